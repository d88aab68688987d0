"""A knowledge base that was updated: its base as it was built, and the segment that has the changed entities whole."""

import heapq
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.indexers.column_files import JoinedStrings, StringTable, read_column
from kbtools.indexers.edit_index import EditIndex
from kbtools.indexers.embedded import EmbeddedKB, explained, facts_at, gather, within
from kbtools.indexers.faiss_index import FaissVectors
from kbtools.indexers.form_store import FormStore
from kbtools.indexers.fuzzy_index import FuzzyIndex
from kbtools.indexers.kb_folder import FORMS, FUZZY, SEGMENT_COLUMNS, read_manifest
from kbtools.indexers.name_counts import counts_at, form_range
from kbtools.indexers.updates.live_vectors import LiveVectors
from kbtools.kb.contract import ABSENT, NameMatch
from kbtools.kb.manifest import SEGMENT, Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.vector_index import VectorIndex
from kbtools.storage import folder_identity

FACTS, NAMES, TYPES = 1, 2, 4
"""Bits of what the segment has of an entity; it has all of those that are new or gone."""


NO_FACTS = IncomingFacts(np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32))


def open_folder(path: str | Path) -> EmbeddedKB:
    """Open the folder of a knowledge base, which may have been updated; raise KBMissing or KBUnusable."""
    while True:
        before = folder_identity(Path(path))
        try:
            return (UpdatedKB if read_manifest(Path(path)).is_updated else EmbeddedKB)(path)
        except KBUnusable:
            # Updated, or merged, between the two looks at it.
            if folder_identity(Path(path)) == before:
                raise


class UpdatedKB(EmbeddedKB):
    """A knowledge base in a folder with updates; see `KnowledgeBase` for what each method promises.

    Rows of entities are those of the base, which deleted entities leave unused, and behind them those of new ones.
    """

    reads_updates = True
    misread = "holds no updates"

    def open(self, manifest: Manifest) -> None:
        super().open(manifest)
        folder = self.path / SEGMENT
        present = [name for name in SEGMENT_COLUMNS if f"{SEGMENT}/{name}" in manifest.files]
        self.own = {name: read_column(folder / name, SEGMENT_COLUMNS[name]) for name in present}
        self.own_ids = StringTable(folder / "entity.id")
        self.relation_texts = StringTable(folder / "relation.name")
        self.labels = {kind: StringTable(folder / f"{kind}.id") for kind in ("relation", "type")}
        # Nothing where no row is another one, so that none need be looked up.
        self.label_rows = {kind: moved(self.own[f"{kind}.of_base"], len(table)) for kind, table in self.labels.items()}
        self.own_redirects = StringTable(folder / "redirect.old")
        self.own_texts = StringTable(folder / "alias.text")
        rows = self.own.get("description.row", np.empty(0, dtype=np.uint32)).tolist()
        self.own_descriptions = dict(zip(rows, StringTable(folder / "description.text"), strict=True)) if rows else {}
        self.texts = JoinedStrings(self.alias_texts, self.own_texts)
        self.own_forms = FormStore.open(folder / FORMS)
        self.own_fuzzy = FuzzyIndex(folder / FUZZY, texts=self.own_texts)
        self.own_edits = EditIndex(*(self.own[f"edit.{part}"] for part in ("key", "row", "signature")))
        self.marks = np.zeros(self.base_entities + len(self.own_ids), dtype=np.uint8)
        for kind, bit in (("fact", FACTS), ("alias", NAMES), ("type", TYPES)):
            self.marks[self.own[f"{kind}.row"]] |= bit

    @cached_property
    @explained
    def relations(self) -> Sequence[str]:
        return tuple(self.labels["relation"])

    @cached_property
    @explained
    def types(self) -> Sequence[str]:
        return tuple(self.labels["type"])

    def of_base(self, kind: str, rows: NDArray[Any]) -> NDArray[Any]:
        """Give the rows that relations or types of the base have now."""
        label_rows = self.label_rows[kind]
        return rows if label_rows is None else label_rows[rows]

    @cached_property
    def changed_forms(self) -> frozenset[str]:
        """Give the forms that are looked up in the segment, which knows all their bearers."""
        return frozenset(self.own["changed.forms"].tobytes().decode().split("\0"))

    @cached_property
    def gone(self) -> frozenset[int]:
        return frozenset(self.own["gone.row"].tolist())

    @cached_property
    def vanished(self) -> frozenset[str]:
        """Give the forms that no name has as its normal form any more."""
        return frozenset(self.own["vanished.forms"].tobytes().decode().split("\0"))

    @cached_property
    def survivors(self) -> dict[int, int]:
        """Give the rows of entities that were merged into others, each with the row of that one."""
        return dict(zip(self.own["merged.old"].tolist(), self.own["merged.row"].tolist(), strict=True))

    def places(self, kind: str, entities: EntityRows) -> NDArray[np.int64]:
        """Find the places of entities, all of which the segment has, among those with facts, names or types of it."""
        return np.searchsorted(self.own[f"{kind}.row"], entities)

    def place(self, kind: str, entity: int) -> int:
        return int(np.searchsorted(self.own[f"{kind}.row"], np.uint32(entity)))

    def has_own(self, entity: int, bit: int) -> bool:
        return bool(self.marks[entity] & bit)

    def entity_rows(self) -> EntityRows:
        alive = np.ones(len(self.marks), dtype=bool)
        alive[self.own["gone.row"]] = False
        return np.flatnonzero(alive).astype(np.uint32)

    @explained
    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        changed = self.changed_forms.intersection(forms)
        if not changed:
            return super().lookup(forms)
        # Remembered, nothing too, so that the base is not asked for them.
        remembered = self.remembered
        if unknown := sorted(changed - remembered.keys()):
            matches_of = self.own_forms.lookup(unknown, self.texts)
            remembered.update({form: matches_of.get(form, ()) for form in unknown})
        own = {form: remembered[form] for form in changed}
        matches = {**super().lookup(forms), **own}
        return matches if all(own.values()) else {form: match for form, match in matches.items() if match}

    def names_near(self, forms: Sequence[str]) -> dict[str, list[str]]:
        base = super().names_near(forms)
        own = (self.own_fuzzy.names(rows) for rows in self.own_edits.near_all(forms))
        return {form: list({*base[form], *new} - self.vanished) for form, new in zip(forms, own, strict=True)}

    def trigram_names(self, form: str) -> set[str]:
        own = self.own_fuzzy.names(self.own_fuzzy.near(form))
        return (super().trigram_names(form) | own) - self.vanished

    @explained
    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        changed = self.changed_forms
        base = (stored for stored in self.forms.stored_with_prefix(prefix) if stored[0] not in changed)
        both = heapq.merge(base, self.own_forms.stored_with_prefix(prefix))
        return [form for form, is_normal in islice(both, limit) if is_normal]

    @explained
    def name_frequency(self, words: Sequence[str]) -> list[int]:
        own = self.own_forms.frequencies(words)
        return [base if new is None else new for base, new in zip(self.forms.name_frequency(words), own, strict=True)]

    def labels_of(self, kind: str, entities: EntityRows, *, bit: int, label: str) -> Grouped:
        """Read relations or types of entities from the base, and from the segment those of the entities that it has."""
        first, values = f"{kind}.first", f"{kind}.{label}"
        own = (self.marks[entities] & bit) > 0
        base = gather(self.columns[first], self.columns[values], entities[~own] if own.any() else entities)
        base = Grouped(base.starts, self.of_base(label, base.values))
        if not own.any():
            return within(base, len(self.labels[label]))
        changed = gather(self.own[first], self.own[values], self.places(kind, entities[own]))
        lengths = np.empty(len(entities), dtype=np.int64)
        lengths[~own], lengths[own] = np.diff(base.starts), np.diff(changed.starts)
        is_own = np.repeat(own, lengths)
        rows = np.empty(len(is_own), dtype=np.uint32)
        rows[~is_own], rows[is_own] = base.values, changed.values
        return within(Grouped(np.concatenate([[0], np.cumsum(lengths)]), rows), len(self.labels[label]))

    @explained
    def relations_of(self, entities: EntityRows) -> Grouped:
        return self.labels_of("fact", entities, bit=FACTS, label="relation")

    @explained
    def types_of(self, entities: EntityRows) -> Grouped:
        return self.labels_of("type", entities, bit=TYPES, label="type")

    @explained
    def objects_of(self, entity: int, relation: int) -> EntityRows:
        if not self.has_own(entity, FACTS):
            base = self.base_relation(relation)
            return np.empty(0, dtype=np.uint32) if base == ABSENT else super().objects_of(entity, base)
        place = self.place("fact", entity)
        first, last = self.own["fact.first"][place : place + 2].tolist()
        pair = first + int(np.searchsorted(self.own["fact.relation"][first:last], relation))
        if pair == last or self.own["fact.relation"][pair] != relation:
            return np.empty(0, dtype=np.uint32)
        begin, end = self.own["fact.first_object"][pair : pair + 2].tolist()
        return self.own["fact.object"][begin:end]

    def base_relation(self, relation: int) -> int:
        """Find the row that a relation has in the base, ABSENT for a new one."""
        rows = self.label_rows["relation"]
        if rows is None:
            return relation
        bases = np.flatnonzero(rows == relation)
        return int(bases[0]) if len(bases) else ABSENT

    @explained
    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        own = (self.marks[entities] & FACTS) > 0
        if not own.any():
            return self.with_labels(super().facts_of(entities))
        is_own, changed = np.repeat(own, self.fact_counts(entities)), entities[own]
        facts = np.empty((len(is_own), 3), dtype=np.int64)
        facts[~is_own] = self.with_labels(super().facts_of(entities[~own]))
        facts[is_own] = facts_at(self.own, self.places("fact", changed), changed)
        return facts

    @explained
    def facts_between(self, first: int, last: int) -> NDArray[np.int64]:
        if not self.marks[first:last].any():
            return self.with_labels(super().facts_between(first, last))
        return self.facts_of(np.arange(first, last, dtype=np.uint32))

    def with_labels(self, facts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the relations of facts of the base the rows that they have now."""
        facts[:, 1] = self.of_base("relation", facts[:, 1])
        return facts

    def own_fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        places, first, objects = self.places("fact", entities), self.own["fact.first"], self.own["fact.first_object"]
        counts: NDArray[np.int64] = (objects[first[places + 1]] - objects[first[places]]).astype(np.int64)
        return counts

    @explained
    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        own = (self.marks[entities] & FACTS) > 0
        if not own.any():
            return super().fact_counts(entities)
        counts = np.empty(len(entities), dtype=np.int64)
        counts[~own], counts[own] = super().fact_counts(entities[~own]), self.own_fact_counts(entities[own])
        return counts

    @explained
    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        counts = np.zeros(len(entities), dtype=np.int64)
        base = entities < self.base_entities
        counts[base] = super().incoming_counts(entities[base])
        for kind, sign in (("gained", 1), ("lost", -1)):
            column = self.own[f"{kind}.object"]
            first, last = (np.searchsorted(column, entities, side) for side in ("left", "right"))
            counts += sign * (last - first)
        return counts

    @explained
    def subjects_of(self, entity: int) -> IncomingFacts:
        facts = super().subjects_of(entity) if entity < self.base_entities else NO_FACTS
        lost, gained = self.incoming_change("lost", entity), self.incoming_change("gained", entity)
        if len(lost.subjects):
            keys = as_keys(facts)
            facts = from_keys(np.delete(keys, np.searchsorted(keys, as_keys(lost))))
        facts = IncomingFacts(self.of_base("relation", facts.relations), facts.subjects)
        if len(gained.subjects):
            keys, new = as_keys(facts), as_keys(gained)
            facts = from_keys(np.insert(keys, np.searchsorted(keys, new), new))
        return facts

    def incoming_change(self, kind: str, entity: int) -> IncomingFacts:
        """List the facts that an entity became, or is no longer, the object of."""
        column = self.own[f"{kind}.object"]
        first, last = (int(np.searchsorted(column, np.uint32(entity), side)) for side in ("left", "right"))
        return IncomingFacts(self.own[f"{kind}.relation"][first:last], self.own[f"{kind}.subject"][first:last])

    @explained
    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        base = entities < self.base_entities
        counted = counts_at(self.columns, form, np.where(base, entities, 0))
        if counted is None or self.is_forgotten(form):
            return None
        counts = np.where(base, counted, 0)
        moved = counts_at(self.columns, form, self.own["merged.old"])
        if moved is not None:
            for place, entity in enumerate(entities.tolist()):
                counts[place] += moved[self.own["merged.row"] == entity].sum()
        return counts

    def is_forgotten(self, form: str) -> bool:
        """Tell whether all entities that a form was counted for are gone."""
        counted = self.columns["count.entity"][form_range(self.columns, form)]
        return len(counted) <= len(self.gone) and all(
            self.survivors.get(row, row) in self.gone for row in counted.tolist()
        )

    def added_ids(self) -> list[str]:
        return list(self.own_ids)

    @explained
    def ids(self, entities: EntityRows) -> list[str]:
        base, own, first = self.entity_ids, self.own_ids, self.base_entities
        return [base[row] if row < first else own[row - first] for row in entities.tolist()]

    @explained
    def names(self, entities: EntityRows) -> list[str | None]:
        if not (self.marks[entities] & NAMES).any():
            return super().names(entities)
        return [next(iter(self.first_aliases(row, 1)), None) for row in entities.tolist()]

    @explained
    def aliases(self, entity: int) -> list[str]:
        return self.first_aliases(entity)

    @explained
    def descriptions(self, entities: EntityRows) -> list[str | None]:
        base, own = super().descriptions(entities), self.own_descriptions
        return [own.get(row, text) or None for row, text in zip(entities.tolist(), base, strict=True)]

    def first_aliases(self, entity: int, count: int | None = None) -> list[str]:
        """List so many of the names of an entity, by default all."""
        own = self.has_own(entity, NAMES)
        columns, texts = (self.own, self.own_texts) if own else (self.columns, self.alias_texts)
        place = self.place("alias", entity) if own else entity
        first, last = columns["alias.first"][place : place + 2].tolist()
        return [texts[row] for row in range(first, last)[:count]]

    @explained
    def ranked_names(self, entity: int) -> list[tuple[str, int]]:
        if not self.has_own(entity, NAMES):
            return super().ranked_names(entity)
        place = self.place("alias", entity)
        first, last = self.own["alias.first"][place : place + 2].tolist()
        return list(
            zip(self.own_texts.take(range(first, last)), self.own["alias.rank"][first:last].tolist(), strict=True)
        )

    @explained
    def alias_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        own = (self.marks[entities] & NAMES) > 0
        counts = np.empty(len(entities), dtype=np.int64)
        first, places = self.own["alias.first"], self.places("alias", entities[own])
        counts[~own] = super().alias_counts(entities[~own])
        counts[own] = first[places + 1] - first[places]
        return counts

    def open_vectors(self) -> VectorIndex:
        return LiveVectors(FaissVectors(self.path, self.manifest), self.own["gone.row"])

    def row_of(self, entity_id: str) -> int | None:
        place = self.own_ids.find_among(entity_id, self.own["entity.order"])
        if place is not None:
            return self.base_entities + place
        row = self.entity_ids.find(entity_id)
        if row is not None and row not in self.gone:
            return row
        merged = self.merged_row(entity_id)
        survivor = self.survivors.get(merged, merged)
        return None if survivor in self.gone or survivor == ABSENT else survivor

    def merged_row(self, entity_id: str) -> int:
        """Find the row of the entity that an id was merged into, which may be gone by now."""
        place = self.own_redirects.find(entity_id)
        if place is not None:
            return int(self.own["redirect.row"][place])
        place = self.redirects.find(entity_id) if self.redirects is not None else None
        return ABSENT if place is None else int(self.columns["redirect.row"][place])


def moved(rows: NDArray[np.uint32], count: int) -> NDArray[np.uint32] | None:
    """Give the new rows of labels, nothing where there are as many as before and each has the row that it had."""
    return None if len(rows) == count and np.array_equal(rows, np.arange(count)) else rows


def as_keys(facts: IncomingFacts) -> NDArray[np.uint64]:
    """Put relation and subject of each fact into one number, which sorts as they do."""
    return facts.relations.astype(np.uint64) << np.uint64(32) | facts.subjects


def from_keys(keys: NDArray[np.uint64]) -> IncomingFacts:
    return IncomingFacts((keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32))
