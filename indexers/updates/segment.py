"""The segment of an update: a small knowledge base of all changed values, with flags of what changed.

It is written from the draft of an update and the previous segment, by the writer of every knowledge base.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.indexers.building.form_rows import form_rows
from kbtools.indexers.building.writing import Content, write_content
from kbtools.indexers.folder.column_files import ColumnWriter, spread
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.form_store import ENTITIES, KIND_SHIFT, is_normal
from kbtools.indexers.folder.form_store import NORMAL as NORMAL_KIND
from kbtools.indexers.folder.kb_folder import SEGMENT_COLUMNS, WORK
from kbtools.indexers.readers.labels import ALIAS
from kbtools.indexers.updates.draft import Draft, as_rows, names_by_text
from kbtools.indexers.updates.overlay import (
    COUNTS,
    DESCRIPTION,
    FACTS,
    GONE,
    INCOMING,
    NAMES,
    NEW,
    NORMAL,
    STORED,
    TYPES,
    VANISHED,
    Overlay,
)
from kbtools.kb.language_tags import UND, stored_text
from kbtools.kb.rows import EntityRows

_Facts = NDArray[np.int64]
"""Rows of subject, relation and object: (facts, 3)."""

_WHOLE = FACTS | NAMES | TYPES | DESCRIPTION | COUNTS | INCOMING
"""All changes an entity can have, as a new or deleted one does: nothing of it is read from the base."""


@dataclass(frozen=True, slots=True)
class _WrittenSegment:
    """A written segment, with its columns in `content`, and the number of stored forms including it."""

    content: Content
    forms: int


def write_segment(draft: Draft, kb: EmbeddedKB | Overlay, folder: Path) -> _WrittenSegment:
    """Write the segment that results from a draft of a knowledge base; it replaces the previous one."""
    (folder / WORK).mkdir(parents=True)
    tables = _SegmentTables(draft, kb)
    content = write_content(tables, folder, done=lambda step, counts: None, jobs=1)
    shutil.rmtree(folder / WORK)
    files, checksums = dict(content.files), dict(content.checksums)
    digest = hashlib.sha256(content.digest.encode())
    for name, values in tables.columns().items():
        column = ColumnWriter(folder / name, SEGMENT_COLUMNS[name])
        try:
            column.write(np.asarray(values))
        finally:
            checksums[name] = column.close()
        files[name] = (folder / name).stat().st_size
        digest.update(f"{name}={checksums[name]}\n".encode())
    content = replace(content, digest=digest.hexdigest(), files=files, checksums=checksums)
    return _WrittenSegment(content, len(tables.base.forms) + tables.form_changes.stored)


@dataclass(frozen=True, slots=True)
class _FormChanges:
    """The forms of changed names, ascending, with the state of each, and the number of stored forms.

    `words` are the words of normal forms that were added or removed, ascending, with their new counts of normal forms.
    """

    states: dict[str, int]
    stored: int
    words: dict[str, int]


class _SegmentTables:
    """The content of a segment, sorted; see `SortedTables` for the contract of each method."""

    def __init__(self, draft: Draft, kb: EmbeddedKB | Overlay) -> None:
        self.draft, self.kb = draft, kb
        self.base = kb.base if isinstance(kb, Overlay) else kb
        self.first_row, self.new_ids = kb.base_entities, [*kb.added_ids(), *draft.new_ids]
        self.added: list[pa.Table] = []
        self.changes = self.mark_changes()
        facts = self.read_facts()
        replaced = self.base.facts_of(self.base_rows(FACTS))
        gained, lost = facts[~_is_among(facts, replaced)], replaced[~_is_among(replaced, facts)]
        for differing in (gained, lost):
            self.changes[differing[:, 2]] |= INCOMING
        merged = {**_kept_redirects(kb), **draft.redirects}
        self.survivor_of = {
            old: row for old, row in zip(merged, map(draft.survivor, merged.values()), strict=True)
            if not self.changes[row] & GONE
        }  # fmt: skip
        is_place = self.changes > 0
        is_place[facts[:, 2]] = is_place[as_rows(self.survivor_of.values())] = True
        self.entities = np.flatnonzero(is_place).astype(np.uint32)
        known = self.entities[self.entities < self.first_row]
        self.incoming_counts = np.zeros(len(self.entities), dtype=np.int64)
        self.incoming_counts[: len(known)] = self.base.incoming_counts(known)
        for differing, sign in ((gained, 1), (lost, -1)):
            self.incoming_counts += sign * np.bincount(self.places(differing[:, 2]), minlength=len(self.entities))
        self.sorted_facts = np.stack([self.places(facts[:, 0]), facts[:, 1], self.places(facts[:, 2])], axis=1)
        self.sorted_facts = self.sorted_facts[np.lexsort(self.sorted_facts.T[::-1])]
        self.read_names()

    def mark_changes(self) -> NDArray[np.uint8]:
        """Return the changes of each entity against the base, as flags."""
        draft, kb = self.draft, self.kb
        changes = np.zeros(draft.end, dtype=np.uint8)
        if isinstance(kb, Overlay):
            # The INCOMING flags are recomputed.
            known = kb.changes & ~np.uint8(INCOMING)
            changes[: len(known)] = np.where(known & GONE, kb.changes, known)
        for rows, flags in (
            (draft.facts, FACTS),
            (draft.names, NAMES),
            (draft.kinds, TYPES),
            (draft.descriptions, DESCRIPTION),
            (map(draft.survivor, draft.survivors), COUNTS),
            (draft.deleted, _WHOLE | GONE),
        ):
            changes[as_rows(rows)] |= np.uint8(flags)
        changes[self.first_row :] |= np.uint8(_WHOLE | NEW)
        return changes

    def changed_rows(self, flags: int) -> EntityRows:
        return np.flatnonzero(self.changes & flags).astype(np.uint32)

    def base_rows(self, flags: int) -> EntityRows:
        """Return the entities of the base with any of these changes."""
        return np.flatnonzero(self.changes[: self.first_row] & flags).astype(np.uint32)

    def kept_rows(self, flags: int, drafted: Iterable[int]) -> EntityRows:
        """Return the changed entities of the knowledge base that are not in the draft."""
        rows: EntityRows = self.changed_rows(flags)
        rows = rows[(rows < self.draft.known_entities) & (self.changes[rows] & GONE == 0)]
        kept: EntityRows = rows[~np.isin(rows, as_rows(drafted))]
        return kept

    def places(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the rows of entities in the segment."""
        return self.entities.searchsorted(rows.astype(np.uint32))

    def read_facts(self) -> _Facts:
        """Return the facts of changed subjects."""
        drafted = self.draft.facts
        changed = [(subject, relation, target) for subject, pairs in drafted.items() for relation, target in pairs]
        kept = self.kb.facts_of(self.kept_rows(FACTS, drafted))
        return np.concatenate([kept, np.array(changed, dtype=np.int64).reshape(-1, 3)])

    def read_names(self) -> None:
        """Read the names of changed entities, in the order of their rows, with ranks and languages."""
        draft, kb = self.draft, self.kb
        kept = self.kept_rows(NAMES, draft.names)
        self.tags: dict[str, int] = {}
        has_languages = bool(kb.manifest.languages) or not draft.languages() <= {UND}
        names = dict(zip(kept.tolist(), map(names_by_text, kb.ranked_names(kept)), strict=True)) | draft.names
        owners: list[int] = []
        self.ranks: list[int] = []
        texts: list[str] = []
        flags, parts = [], []
        for row in sorted(names):
            ranked = sorted((name.rank, text, name.parts) for text, name in names[row].items())
            for rank, text, spoken_in in ranked:
                owners.append(row)
                self.ranks.append(rank)
                texts.append(text)
                flags.append(rank == ALIAS or rank > ranked[0][0])
                own_tags = spoken_in.items() if has_languages else ()
                numbers = [2 * self.tags.setdefault(tag, len(self.tags)) + alias for tag, alias in own_tags]
                parts.append(" ".join(map(str, numbers)))
        columns = [
            self.places(as_rows(owners)).astype(np.uint32), pa.array(flags, pa.bool_()), pa.array(texts, pa.string()),
            pa.array(parts, pa.string()),
        ]  # fmt: skip
        self.name_batch = pa.record_batch(columns, names=["entity", "alias", "text", "parts"])

    # The protocol `SortedTables`

    @property
    def languages(self) -> Sequence[str]:
        return list(self.tags) or [UND]

    def ids(self, table: str) -> Iterator[pa.StringArray]:
        if table == "entities":
            first = self.first_row
            known, new = self.entities[self.entities < first], self.entities[self.entities >= first]
            yield pa.array([*self.base.ids(known), *(self.new_ids[row - first] for row in new)], pa.string())
        else:
            yield pa.array(self.draft.relations if table == "relations" else self.draft.types, pa.string())

    def rows(self, table: str) -> Iterator[pa.RecordBatch]:
        yield from getattr(self, table)()

    def relation_names(self) -> Iterator[pa.RecordBatch]:
        yield _batch(pa.array([stored_text(name) for name in self.draft.relation_names], pa.string()))

    def redirects(self) -> Iterator[pa.RecordBatch]:
        merged = sorted(self.survivor_of)
        yield _batch(pa.array(merged, pa.string()), self.places(as_rows(self.survivor_of[old] for old in merged)))

    def descriptions(self) -> Iterator[pa.RecordBatch]:
        drafted = self.draft.descriptions
        kept = self.kept_rows(DESCRIPTION, drafted)
        texts = dict(zip(kept.tolist(), self.kb.descriptions(kept), strict=True)) | drafted
        described = sorted(row for row, text in texts.items() if text)
        yield _batch(
            self.places(as_rows(described)), pa.array([stored_text(texts[row]) for row in described], pa.string())
        )

    def facts(self) -> Iterator[pa.RecordBatch]:
        yield _batch(*self.sorted_facts.T)

    def incoming(self) -> Iterator[pa.RecordBatch]:
        subjects, relations, objects = self.sorted_facts.T
        yield _batch(*self.sorted_facts[np.lexsort((subjects, relations, objects))].T[[2, 1, 0]])

    def names(self) -> Iterator[pa.RecordBatch]:
        yield self.name_batch

    def types(self) -> Iterator[pa.RecordBatch]:
        drafted = self.draft.kinds
        kept = self.kept_rows(TYPES, drafted)
        grouped = self.kb.types_of(kept)
        pairs = [(row, kind) for row, kinds in drafted.items() for kind in kinds]
        both = np.concatenate(
            [np.stack([kept.repeat(np.diff(grouped.starts)), grouped.values], axis=1).astype(np.int64),
             np.array(pairs, dtype=np.int64).reshape(-1, 2)]
        )  # fmt: skip
        rows, kinds = both[np.lexsort(both.T[::-1])].T
        yield _batch(self.places(rows), kinds)

    def unknown_types(self) -> int:
        return 0

    def counts(self) -> Iterator[pa.RecordBatch]:
        """Yield the counts of entities that others were merged into, added up."""
        wanted = self.changed_rows(COUNTS)
        merged = as_rows(self.draft.survivors)
        about = np.union1d(wanted[(wanted < self.draft.known_entities)], merged)
        if not len(self.base.columns["count.key"]) or not len(about):
            return
        keys, rows, counts = self.kb.counts_about(about.astype(np.uint32))
        for old in self.draft.survivors:
            rows[rows == old] = self.draft.survivor(old)
        alive = self.changes[rows] & GONE == 0
        places = self.places(rows[alive])
        table = pa.table([keys[alive], places.astype(np.uint32), counts[alive]], names=["key", "entity", "count"])
        summed = table.group_by(["key", "entity"]).aggregate([("count", "sum")])
        for part in summed.sort_by([("key", "ascending"), ("entity", "ascending")]).combine_chunks().to_batches():
            yield part.select(["key", "entity", "count_sum"])

    def forms(self) -> Iterator[pa.RecordBatch]:
        yield from self.sorted_forms.to_batches()

    def searchable(self, forms: pa.StringArray, names: NDArray[np.uint32]) -> tuple[list[str], NDArray[np.uint32]]:
        """Leave out the forms that are in the indexes of the base."""
        values = map(self.base.forms.value, texts := forms.to_pylist())
        new = [place for place, value in enumerate(values) if not (value and is_normal(value))]
        return [texts[place] for place in new], names[new]

    def words(self) -> Iterator[pa.RecordBatch]:
        words = self.form_changes.words
        yield pa.record_batch([list(words), list(words.values())], names=["word", "names"])

    def add(self, table: str, rows: pa.Table) -> None:
        if table == "forms":
            self.added.append(rows)

    def drop(self, table: str) -> None:
        """Do nothing: written tables are kept until the end."""

    # Forms, and the additional columns

    @cached_property
    def sorted_forms(self) -> pa.Table:
        order = [(column, "ascending") for column in ("form", "kind", "text", "entity")]
        # An update that only removes names adds no forms; the empty table has the columns.
        nothing = form_rows(pa.array([], pa.string()), pa.array([], pa.bool_()), pa.array([], pa.uint32()), first=0)
        return pa.concat_tables([nothing, *self.added]).sort_by(order).combine_chunks()

    @cached_property
    def form_changes(self) -> _FormChanges:
        """Compare the forms of changed entities' names with their forms in the base."""
        base = self.base
        rows = self.base_rows(NAMES)
        _, names = spread(base.columns["alias.first"], rows, len(base.alias_texts))
        texts = pa.array(base.alias_texts.take(names.tolist()), pa.string())
        nobody, no_alias = (pa.array(np.zeros(len(names), dtype=dtype)) for dtype in (np.uint32, np.bool_))
        # In reverse order, so that the first, least kind of a form wins: a normal form, if it is one.
        kind_of = dict(zip(*(self.sorted_forms[name].to_pylist()[::-1] for name in ("form", "kind")), strict=True))
        forms = sorted({*kind_of, *form_rows(texts, no_alias, nobody, first=0)["form"].to_pylist()})
        states, stored, words = {}, 0, Counter[str]()
        for form, (before, kept) in zip(forms, self.base_kinds(forms), strict=True):
            kinds = [kind for kind in (kept, kind_of.get(form)) if kind is not None]
            state = VANISHED if not kinds else NORMAL if min(kinds) <= NORMAL_KIND else STORED
            states[form] = state
            stored += (state != VANISHED) - (before is not None)
            was_normal = before is not None and before <= NORMAL_KIND
            if was_normal != (state == NORMAL):
                words.update(dict.fromkeys(form.split(" "), -1 if was_normal else 1))
        counts = dict(zip(words, base.name_frequency(list(words)), strict=True))
        return _FormChanges(states, stored, {word: counts[word] + words[word] for word in sorted(words)})

    def base_kinds(self, forms: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
        """Yield for each form the least kind of its names in the base, overall and for unchanged entities."""
        values = [np.frombuffer(self.base.forms.value(form), dtype="<u4") for form in forms]
        numbers = np.concatenate([np.empty(0, dtype=np.uint32), *values])
        # Headers and rows of names are also looked up as if they were entities, and ignored.
        unchanged = (self.changes[np.minimum(numbers, len(self.changes) - 1)] & NAMES == 0).cumsum()
        headers, place = numbers.tolist(), 0
        for value in values:
            end, least, kept = place + len(value), None, None
            while place < end:
                kind, last = headers[place] >> KIND_SHIFT, place + 1 + (headers[place] & ENTITIES)
                least = kind if least is None else least
                if kept is None and unchanged[last] > unchanged[place + 1]:
                    kept = kind
                place = last + 1
            yield least, kept

    def columns(self) -> dict[str, Sequence[int] | NDArray[Any]]:
        """Return the columns of a segment in addition to those of every knowledge base."""
        new_ids, first = self.new_ids, self.first_row
        alive = [row for row in range(first, first + len(new_ids)) if not self.changes[row] & GONE]
        states = self.form_changes.states
        return {
            "place.row": self.entities,
            "place.changes": self.changes[self.entities],
            "place.incoming": self.incoming_counts,
            "entity.order": self.places(as_rows(sorted(alive, key=lambda row: new_ids[row - first]))),
            "alias.rank": self.ranks,
            "form.changed": np.frombuffer("\0".join(states).encode(), dtype=np.uint8),
            "form.state": list(states.values()),
        }


def _kept_redirects(kb: EmbeddedKB | Overlay) -> dict[str, int]:
    """Return the ids that updates merged into others, each with the row of its target."""
    if not isinstance(kb, Overlay):
        return {}
    return dict(zip(kb.segment.redirects, kb.place_rows[kb.segment.columns["redirect.row"]].tolist(), strict=True))


def _batch(*columns: Any) -> pa.RecordBatch:
    """Build a batch from columns; rows become the writer's 32-bit numbers."""
    arrays = [column.astype(np.uint32) if isinstance(column, np.ndarray) else column for column in columns]
    return pa.record_batch(arrays, names=[str(place) for place in range(len(arrays))])


def _is_among(facts: _Facts, others: _Facts) -> NDArray[np.bool_]:
    """Return a mask of the facts that are among others; neither may have repeats."""
    both = np.concatenate([facts, others])
    order = np.lexsort(both.T)
    same = (both[order][1:] == both[order][:-1]).all(axis=1)
    shared = np.zeros(len(both), dtype=bool)
    shared[order[1:][same]] = shared[order[:-1][same]] = True
    return shared[: len(facts)]
