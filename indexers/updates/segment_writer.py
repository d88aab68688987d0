"""Write the segment of an update: all that the base does not say any more, from the draft and the segment before."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.indexers.folder.column_files import ColumnWriter, StringWriter
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import SEGMENT_COLUMNS
from kbtools.indexers.folder.language_sets import NUMBERS, SETS, set_text
from kbtools.indexers.folder.run_columns import gather
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.updates.draft import Draft
from kbtools.indexers.updates.label_rows import LabelRows
from kbtools.indexers.updates.segment_forms import FormChanges, Name, write_forms
from kbtools.indexers.updates.updated_kb import UpdatedKB
from kbtools.kb.language_tags import UND

Facts = NDArray[np.int64]
"""Rows of subject, relation and object: (facts, 3)."""


@dataclass(frozen=True, slots=True)
class SegmentAccount:
    """A segment that was written: the checksum of its content, and what the whole knowledge base counts with it."""

    digest: str
    counts: dict[str, int]
    statistics: dict[str, int]
    lengths: frozenset[int]


class SegmentWriter:
    """A writer of the segment that a draft of a knowledge base leaves behind, in place of the one that it has."""

    def __init__(self, draft: Draft, kb: EmbeddedKB, folder: Path) -> None:
        folder.mkdir()
        self.draft, self.kb, self.folder = draft, kb, folder
        self.digest = hashlib.sha256()
        own = kb.own if isinstance(kb, UpdatedKB) else {}
        # Entities that are new or gone stand in each of the tables, so that none is looked for in the base.
        self.gone = sorted({*own["gone.row"].tolist(), *draft.deleted} if own else draft.deleted)
        self.always = {*range(draft.first_row, draft.first_row + len(draft.new_ids)), *self.gone}
        self.before = {kind: own[f"{kind}.row"].tolist() if own else [] for kind in ("fact", "alias", "type")}
        gone = set(self.gone)
        self.survivors = resolve({**(kb.survivors if isinstance(kb, UpdatedKB) else {}), **draft.survivors})
        self.redirects = {
            old: self.survivors.get(row, row)
            for old, row in {**own_redirects(kb), **draft.redirects}.items()
            if self.survivors.get(row, row) not in gone
        }

    def write(self) -> SegmentAccount:
        """Write every file."""
        draft, kb = self.draft, self.kb
        self.write_ids(set(self.gone))
        fact_rows, type_rows, alias_rows = (
            self.rows(kind, changed)
            for kind, changed in (("fact", draft.facts), ("type", draft.kinds), ("alias", draft.texts))
        )
        facts, replaced = self.facts_of(fact_rows), EmbeddedKB.facts_of(kb, self.in_base(fact_rows))
        base_pairs = replaced[is_new_pair(replaced), 1]
        relations = LabelRows.of(
            list(kb.relation_ids),
            draft.relations,
            column=kb.columns["fact.relation"],
            replaced=base_pairs,
            own=facts[:, 1],
        )
        facts[:, 1], before = relations.of_draft[facts[:, 1]], replaced.copy()
        before[:, 1] = relations.of_base[replaced[:, 1]]
        facts = facts[np.lexsort(facts.T[::-1])]
        names_of = dict(zip(draft.relations, draft.relation_names, strict=True))
        self.write_labels("relation", relations)
        self.write_strings("relation.name", [names_of.get(relation) or "" for relation in relations.labels])
        pairs = self.write_facts(fact_rows, facts)
        self.write_incoming("gained", facts[~is_among(facts, before)])
        # With the base's own rows of relations, by whose order its facts are found.
        self.write_incoming("lost", replaced[~is_among(before, facts)])
        base_types = gather(kb.columns["type.first"], kb.columns["type.type"], self.in_base(type_rows)).values
        kinds = self.kinds_of(type_rows)
        own = np.array([kind for run in kinds for kind in run], dtype=np.int64)
        types = LabelRows.of(
            list(kb.type_ids), draft.types, column=kb.columns["type.type"], replaced=base_types, own=own
        )
        self.write_labels("type", types)
        self.write_types(type_rows, [sorted(types.of_draft[list(run)].tolist()) for run in kinds])
        names = self.write_names(alias_rows)
        descriptions = self.write_descriptions()
        changes = FormChanges.between(kb, self.in_base(alias_rows).tolist(), names)
        write_forms(changes, self.folder, self.write_column)
        return SegmentAccount(
            digest=self.digest.hexdigest(),
            counts={
                "facts": len(kb.columns["fact.object"]) - len(replaced) + len(facts),
                "names": len(kb.alias_texts) - changes.base_names + len(names),
                "types": len(kb.columns["type.type"]) - len(base_types) + len(own),
                "entities": draft.first_row + len(draft.new_ids) - len(self.gone),
            },
            statistics={
                "relations": len(relations.labels),
                "types": len(types.labels),
                "pairs": len(kb.columns["fact.relation"]) - len(base_pairs) + pairs,
                "forms": changes.forms,
                "descriptions": descriptions,
            },
            lengths=changes.lengths,
        )

    def rows(self, kind: str, changed: Iterable[int]) -> NDArray[np.uint32]:
        """List the entities that the segment has facts, names or types of."""
        return np.array(sorted({*self.before[kind], *changed, *self.always}), dtype=np.uint32)

    def in_base(self, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return rows[rows < self.draft.first_row]

    def unchanged(self, rows: NDArray[np.uint32], changed: dict[int, Any]) -> NDArray[np.uint32]:
        """List those of some entities that are as they were before the draft."""
        known = rows[rows < self.draft.known_entities]
        return known[~np.isin(known, np.fromiter(changed, dtype=np.uint32, count=len(changed)))]

    def write_column(self, name: str, values: Sequence[Any] | NDArray[Any]) -> None:
        column = ColumnWriter(self.folder / name, SEGMENT_COLUMNS[name])
        try:
            column.write(np.asarray(values))
        finally:
            digest = column.close()
        self.digest.update(f"{name}={digest}\n".encode())

    def write_strings(self, name: str, texts: Iterable[str]) -> None:
        strings = StringWriter(self.folder / name)
        try:
            strings.write(pa.array(texts, pa.string()))
        finally:
            digest = strings.close()
        self.digest.update(f"{name}={digest}\n".encode())

    def write_ids(self, gone: set[int]) -> None:
        """Write the ids of new entities, the rows of those that are gone, and ids and rows that stand for another."""
        draft = self.draft
        self.write_strings("entity.id", draft.new_ids)
        alive = [place for place in range(len(draft.new_ids)) if draft.first_row + place not in gone]
        self.write_column("entity.order", sorted(alive, key=draft.new_ids.__getitem__))
        self.write_column("gone.row", self.gone)
        merged = sorted(self.survivors.items())
        self.write_column("merged.old", [old for old, _ in merged])
        self.write_column("merged.row", [row for _, row in merged])
        redirects = sorted(self.redirects.items())
        self.write_strings("redirect.old", [old for old, _ in redirects])
        self.write_column("redirect.row", [row for _, row in redirects])

    def facts_of(self, rows: NDArray[np.uint32]) -> Facts:
        """Give the facts of subjects, with the draft's rows of relations."""
        draft = self.draft
        changed = [(subject, relation, target) for subject, pairs in draft.facts.items() for relation, target in pairs]
        parts = (self.kb.facts_of(self.unchanged(rows, draft.facts)), as_facts(changed))
        return np.concatenate(parts)

    def write_labels(self, kind: str, rows: LabelRows) -> None:
        self.write_strings(f"{kind}.id", rows.labels)
        self.write_column(f"{kind}.of_base", rows.of_base)

    def write_facts(self, rows: NDArray[np.uint32], facts: Facts) -> int:
        """Write the facts of subjects; give the number of their pairs of subject and relation."""
        first = np.flatnonzero(is_new_pair(facts))
        self.write_column("fact.row", rows)
        self.write_column("fact.first", np.searchsorted(facts[first, 0], np.append(rows.astype(np.int64), 1 << 40)))
        self.write_column("fact.relation", facts[first, 1])
        self.write_column("fact.first_object", np.append(first, len(facts)))
        self.write_column("fact.object", facts[:, 2])
        return len(first)

    def write_incoming(self, kind: str, facts: Facts) -> None:
        """Write facts by object, relation and subject."""
        ordered = facts[np.lexsort(facts.T[[0, 1, 2]])]
        for name, column in (("object", 2), ("relation", 1), ("subject", 0)):
            self.write_column(f"{kind}.{name}", ordered[:, column])

    def kinds_of(self, rows: NDArray[np.uint32]) -> list[set[int]]:
        """Give the types of entities, with the draft's rows of types."""
        kinds = dict(self.draft.kinds)
        unchanged = self.unchanged(rows, kinds)
        grouped = self.kb.types_of(unchanged)
        for place, row in enumerate(unchanged.tolist()):
            kinds[row] = set(grouped.values[grouped.starts[place] : grouped.starts[place + 1]].tolist())
        return [kinds.get(row, set()) for row in rows.tolist()]

    def write_types(self, rows: NDArray[np.uint32], runs: Sequence[Sequence[int]]) -> None:
        """Write the types of entities."""
        self.write_column("type.row", rows)
        self.write_column("type.first", starts_of(runs))
        self.write_column("type.type", [kind for run in runs for kind in run])

    def write_names(self, rows: NDArray[np.uint32]) -> list[Name]:
        """Write the names of entities, and list them in the order of their rows."""
        draft = self.draft
        runs: list[list[tuple[int, str]]] = []
        for row in rows.tolist():
            texts = draft.texts[row].items() if row in draft.texts else self.former_names(row)
            runs.append(sorted((rank, text) for text, rank in texts))
        self.write_column("alias.row", rows)
        self.write_column("alias.first", starts_of(runs))
        self.write_column("alias.rank", [rank for run in runs for rank, _ in run])
        self.write_strings("alias.text", [text for run in runs for _, text in run])
        self.write_languages(rows, runs)
        return [
            Name(text, rank == ALIAS or rank > run[0][0], row)
            for row, run in zip(rows.tolist(), runs, strict=True)
            for rank, text in run
        ]

    def write_descriptions(self) -> int:
        """Write the descriptions that are other than the base's; give the number of all that there are now."""
        draft, kb = self.draft, self.kb
        described = {**(kb.own_descriptions if isinstance(kb, UpdatedKB) else {}), **draft.descriptions}
        rows = np.array(sorted(described), dtype=np.uint32)
        texts = [described[row] for row in rows.tolist()]
        if texts:
            self.write_column("description.row", rows)
            self.write_strings("description.text", texts)
        base = sum(text is not None for text in EmbeddedKB.descriptions(kb, self.in_base(rows)))
        return kb.base_descriptions - base + sum(map(bool, texts))

    def write_languages(self, rows: NDArray[np.uint32], runs: Sequence[Sequence[tuple[int, str]]]) -> None:
        """Write the languages of names, where any name has one."""
        draft = self.draft
        if not self.kb.manifest.languages and draft.languages() <= {UND}:
            return
        texts = [
            set_text(parts[text])
            for row, run in zip(rows.tolist(), runs, strict=True)
            for parts in [draft.parts_of(row)]
            for _, text in run
        ]
        sets = {text: number for number, text in enumerate(sorted(set(texts)))}
        self.write_strings(SETS, sets)
        self.write_column(NUMBERS, [sets[text] for text in texts])

    def former_names(self, row: int) -> Iterable[tuple[str, int]]:
        return self.kb.ranked_names(row) if self.draft.is_known(row) else ()


def own_redirects(kb: EmbeddedKB) -> dict[str, int]:
    """Give the ids that updates merged into others, each with the row of that one."""
    if not isinstance(kb, UpdatedKB):
        return {}
    return dict(zip(kb.own_redirects, kb.own["redirect.row"].tolist(), strict=True))


def resolve(survivors: dict[int, int]) -> dict[int, int]:
    """Let every merged row point to the one that is left at the end."""
    for old in survivors:
        row = survivors[old]
        while row in survivors:
            row = survivors[row]
        survivors[old] = row
    return survivors


def is_new_pair(facts: Facts) -> NDArray[np.bool_]:
    """Tell which of ordered facts are the first of their subject and relation."""
    new = np.ones(len(facts), dtype=bool)
    new[1:] = (facts[1:, :2] != facts[:-1, :2]).any(axis=1)
    return new


def as_facts(facts: Sequence[tuple[int, int, int]]) -> Facts:
    return np.array(facts, dtype=np.int64).reshape(-1, 3)


def starts_of(runs: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, runs)], dtype=np.int64)


def is_among(facts: Facts, others: Facts) -> NDArray[np.bool_]:
    """Tell which of some facts are among others; each is there once in either."""
    both = np.concatenate([facts, others])
    order = np.lexsort(both.T)
    same = (both[order][1:] == both[order][:-1]).all(axis=1)
    shared = np.zeros(len(both), dtype=bool)
    shared[order[1:][same]] = shared[order[:-1][same]] = True
    return shared[: len(facts)]
