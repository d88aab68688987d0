"""A knowledge base that was updated: its base as it was built, and the segment that has the changed entities whole."""

import heapq
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.indexers.folder.column_files import JoinedStrings, StringTable, read_column
from kbtools.indexers.folder.edit_index import EditIndex, Probes
from kbtools.indexers.folder.embedded import EmbeddedKB, explained, near_forms
from kbtools.indexers.folder.faiss_index import FaissVectors
from kbtools.indexers.folder.form_filter import FormFilter
from kbtools.indexers.folder.form_store import FormStore
from kbtools.indexers.folder.fuzzy_index import FuzzyIndex
from kbtools.indexers.folder.kb_folder import FORMS, FUZZY, SEGMENT_COLUMNS, read_manifest
from kbtools.indexers.folder.language_sets import LanguageSets
from kbtools.indexers.folder.name_counts import counts_at, form_range
from kbtools.indexers.folder.run_columns import facts_among, facts_at, gather, spread_runs, within
from kbtools.indexers.readers.ranks import ALIAS
from kbtools.indexers.updates.changed_runs import ChangedRuns
from kbtools.indexers.updates.live_vectors import LiveVectors
from kbtools.kb.contract import ABSENT, NameMatch
from kbtools.kb.manifest import SEGMENT, Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName, part_among
from kbtools.kb.vector_index import VectorIndex
from kbtools.storage import folder_identity

FACTS, NAMES, TYPES, INCOMING = 1, 2, 4, 8
"""Bits of what the segment has of an entity, of the facts that it is the object of the differences; it has all of those
that are new or gone."""


MERGED, MANY = 2_000_000, 10_000
"""Facts, and entities, whose incoming facts are kept merged: 16 MB, or those of the one entity that has more."""

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
        files = {name.removeprefix(f"{SEGMENT}/") for name in manifest.files if name.startswith(f"{SEGMENT}/")}
        self.own = {name: read_column(folder / name, dtype) for name, dtype in SEGMENT_COLUMNS.items() if name in files}
        self.own_ids = StringTable(folder / "entity.id")
        self.relation_texts = StringTable(folder / "relation.name")
        self.labels = {kind: StringTable(folder / f"{kind}.id") for kind in ("relation", "type")}
        # Nothing where no row is another one, so that none need be looked up.
        self.label_rows = {kind: moved(self.own[f"{kind}.of_base"], len(table)) for kind, table in self.labels.items()}
        self.own_redirects = StringTable(folder / "redirect.old")
        self.own_texts = StringTable(folder / "alias.text")
        rows = self.own.get("description.row", np.empty(0, dtype=np.uint32)).tolist()
        self.own_descriptions = dict(zip(rows, StringTable(folder / "description.text"), strict=True)) if rows else {}
        self.own_languages = LanguageSets(folder, files, names=len(self.own_texts))
        self.texts = JoinedStrings(self.alias_texts, self.own_texts)
        self.own_forms = FormStore.open(folder / FORMS)
        self.own_fuzzy = FuzzyIndex(folder / FUZZY, texts=self.own_texts)
        self.own_edits = EditIndex(
            *(self.own[f"edit.{part}"] for part in ("key", "row", "signature")), texts=self.own_texts
        )
        # Forms that are looked up in the segment, which knows all their bearers.
        self.changed_forms = frozenset(self.own["changed.forms"].tobytes().decode().split("\0"))
        if "form.filter" in manifest.files:
            self.form_filter = FormFilter(self.columns["form.filter"], also=self.changed_forms)
        self.own_runs = {kind: ChangedRuns(self.own, kind) for kind in ("fact", "alias", "type")}
        self.marks = np.zeros(self.base_entities + len(self.own_ids), dtype=np.uint8)
        for kind, bit in (("fact", FACTS), ("alias", NAMES), ("type", TYPES)):
            self.marks[self.own[f"{kind}.row"]] |= bit
        for change in ("gained", "lost"):
            self.marks[self.own[f"{change}.object"]] |= INCOMING
        self.marks[self.base_entities :] |= INCOMING
        self.mark_of = self.marks.data  # read by entity five times as fast as the array
        self.merged_incoming: dict[int, IncomingFacts] = {}

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

    def place(self, kind: str, entity: int) -> int:
        """Find the place of an entity among those that the segment has facts, names or types of."""
        return self.own_runs[kind].place(entity)

    def has_own(self, entity: int, bit: int) -> bool:
        return bool(self.mark_of[entity] & bit)

    def own_among(self, entities: EntityRows, bit: int) -> NDArray[np.bool_] | None:
        """Tell which of some entities the segment has, nothing where it has none of them."""
        marks = self.marks[entities] & bit
        return marks.astype(bool) if np.count_nonzero(marks) else None

    def in_base(self, entities: EntityRows, own: NDArray[np.bool_]) -> EntityRows:
        """Let the first entity of the base stand where the segment has one, so that the base can be read."""
        return np.where(own, np.uint32(0), entities)

    def entity_rows(self) -> EntityRows:
        alive = np.ones(len(self.marks), dtype=bool)
        alive[self.own["gone.row"]] = False
        return np.flatnonzero(alive).astype(np.uint32)

    def stored_names(self, forms: Sequence[str]) -> dict[str, list[NameMatch]]:
        changed = self.changed_forms
        own = [form for form in forms if form in changed]
        if not own:
            return super().stored_names(forms)
        base = super().stored_names([form for form in forms if form not in changed])
        return base | self.own_forms.lookup(own, self.texts)

    def recall(self, probes: Probes) -> list[list[str]]:
        own = near_forms(self.own_edits, self.own_fuzzy, probes)
        return [list({*base, *new} - self.vanished) for base, new in zip(super().recall(probes), own, strict=True)]

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
        starts, values = self.columns[f"{kind}.first"], self.columns[f"{kind}.{label}"]
        runs, own_values, own = self.own_runs[kind], self.own[f"{kind}.{label}"], self.own_among(entities, bit)
        if own is None:
            base = gather(starts, values, entities)
            grouped = Grouped(base.starts, self.of_base(label, base.values))
        elif own.all():
            grouped = gather(runs.starts, own_values, runs.places(entities))
        else:
            # The values of the segment as if they stood behind those of the base.
            begin, end = runs.bounds(starts, entities, own, behind=len(values))
            first, places = spread_runs(begin, end, len(values) + len(own_values))
            is_own = places >= len(values)
            labels = np.empty(len(places), dtype=np.uint32)
            labels[~is_own] = self.of_base(label, values[places[~is_own]])
            labels[is_own] = own_values[places[is_own] - len(values)]
            grouped = Grouped(first, labels)
        return within(grouped, len(self.labels[label]))

    @explained
    def relations_of(self, entities: EntityRows) -> Grouped:
        return self.labels_of("fact", entities, bit=FACTS, label="relation")

    @explained
    def types_of(self, entities: EntityRows) -> Grouped:
        return self.labels_of("type", entities, bit=TYPES, label="type")

    def objects(self, entity_row: int, relation: int) -> EntityRows:
        if not self.has_own(entity_row, FACTS):
            base = self.base_relation(relation)
            return np.empty(0, dtype=np.uint32) if base == ABSENT else super().objects(entity_row, base)
        first, last = self.own_runs["fact"].run(entity_row)
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
        own, runs = self.own_among(entities, FACTS), self.own_runs["fact"]
        if own is None:
            return self.with_labels(super().facts_of(entities))
        if own.all():
            return facts_at(self.own, runs.places(entities), entities)
        is_own, changed = np.repeat(own, self.fact_counts(entities)), entities[own]
        facts = np.empty((len(is_own), 3), dtype=np.int64)
        facts[~is_own] = self.with_labels(super().facts_of(entities[~own]))
        facts[is_own] = facts_at(self.own, runs.places(changed), changed)
        return facts

    @explained
    def facts_between(self, first: int, last: int) -> NDArray[np.int64]:
        if last == first + 1 and self.has_own(first, FACTS):
            return facts_among(self.own, self.place("fact", first), np.array([first]))
        if not (self.marks[first:last] & FACTS).any():
            return self.with_labels(super().facts_between(first, last))
        return self.facts_of(np.arange(first, last, dtype=np.uint32))

    def with_labels(self, facts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the relations of facts of the base the rows that they have now."""
        if self.label_rows["relation"] is not None:
            facts[:, 1] = self.of_base("relation", facts[:, 1])
        return facts

    @explained
    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        own = self.own_among(entities, FACTS)
        if own is None:
            return super().fact_counts(entities)
        changed = self.own_fact_counts[self.own_runs["fact"].places(entities[own])]
        if len(changed) == len(entities):
            return changed
        counts = super().fact_counts(self.in_base(entities, own))
        counts[own] = changed
        return counts

    @cached_property
    def own_fact_counts(self) -> NDArray[np.int64]:
        """Count the facts of each of the entities that the segment has facts of."""
        counts: NDArray[np.int64] = np.diff(self.own["fact.first_object"][self.own["fact.first"]].astype(np.int64))
        return counts

    @explained
    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        own = self.own_among(entities, INCOMING)
        if own is None:
            return super().incoming_counts(entities)
        objects, differences = self.incoming_differences
        changed: NDArray[np.int64] = differences[objects.searchsorted(entities[own])]
        if entities.min(initial=self.base_entities) >= self.base_entities:
            return changed
        is_new = entities >= self.base_entities
        counts = super().incoming_counts(self.in_base(entities, is_new))
        counts[is_new] = 0
        counts[own] += changed
        return counts

    @cached_property
    def incoming_differences(self) -> tuple[EntityRows, NDArray[np.int64]]:
        """List the entities that are the object of more or fewer facts, and new ones, with how many more each."""
        gained, lost = self.own["gained.object"], self.own["lost.object"]
        new = np.arange(self.base_entities, len(self.marks), dtype=np.uint32)
        objects, place = np.unique(np.concatenate([gained, lost, new]), return_inverse=True)
        signs = np.repeat([1, -1, 0], [len(gained), len(lost), len(new)])
        return objects, np.bincount(place, weights=signs, minlength=len(objects)).astype(np.int64)

    def incoming(self, entity_row: int) -> IncomingFacts:
        if entity_row in self.merged_incoming:
            return self.merged_incoming[entity_row]
        facts = super().incoming(entity_row) if entity_row < self.base_entities else NO_FACTS
        if not self.has_own(entity_row, INCOMING):
            return IncomingFacts(self.of_base("relation", facts.relations), facts.subjects)
        return self.remember_incoming(entity_row, self.merge_incoming(entity_row, facts))

    def remember_incoming(self, entity: int, facts: IncomingFacts) -> IncomingFacts:
        """Keep merged facts in memory: of an entity that millions of facts point at merging takes long."""
        kept = self.merged_incoming
        if len(facts.subjects) + sum(len(other.subjects) for other in kept.values()) > MERGED or len(kept) > MANY:
            kept = self.merged_incoming = {}
        kept[entity] = facts
        return facts

    def merge_incoming(self, entity: int, facts: IncomingFacts) -> IncomingFacts:
        """Take from the facts of the base that an entity is the object of what it lost, and add what it gained."""
        lost, gained = self.incoming_change("lost", entity), self.incoming_change("gained", entity)
        if len(lost.subjects):
            keys = as_keys(facts)
            left = np.ones(len(keys), dtype=bool)
            left[keys.searchsorted(as_keys(lost))] = False
            facts = from_keys(keys[left])
        relations = self.of_base("relation", facts.relations)
        if not len(facts.subjects) or not len(gained.subjects):
            return gained if len(gained.subjects) else IncomingFacts(relations, facts.subjects)
        both = np.concatenate([as_keys(IncomingFacts(relations, facts.subjects)), as_keys(gained)])
        both.sort(kind="stable")  # two sorted runs, which are merged
        return from_keys(both)

    def incoming_change(self, kind: str, entity: int) -> IncomingFacts:
        """List the facts that an entity became, or is no longer, the object of."""
        column = self.own[f"{kind}.object"]
        first, last = (int(np.searchsorted(column, np.uint32(entity), side)) for side in ("left", "right"))
        return IncomingFacts(self.own[f"{kind}.relation"][first:last], self.own[f"{kind}.subject"][first:last])

    @explained
    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        if not len(self.columns["count.key"]):
            return None
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
        rows, marks = entities.tolist(), self.mark_of
        own = {row: self.own_name(row) for row in rows if marks[row] & NAMES}
        if not own:
            return super().names(entities)
        base = [row for row in rows if row not in own]
        names = iter(super().names(np.array(base, dtype=np.uint32)) if base else ())
        return [own[row] if row in own else next(names) for row in rows]

    def own_name(self, entity: int) -> str | None:
        """Give the first name of an entity that the segment has names of."""
        first, last = self.own_runs["alias"].run(entity)
        return self.own_texts[first] if first < last else None

    @explained
    def aliases(self, entity: int) -> list[str]:
        if not self.has_own(entity, NAMES):
            return super().aliases(entity)
        return [self.own_texts[row] for row in range(*self.own_runs["alias"].run(entity))]

    @explained
    def descriptions(self, entities: EntityRows) -> list[str | None]:
        base, own = super().descriptions(entities), self.own_descriptions
        return [own.get(row, text) or None for row, text in zip(entities.tolist(), base, strict=True)]

    def names_with_languages(self, entity: int) -> list[SpokenName]:
        if not self.has_own(entity, NAMES):
            return super().names_with_languages(entity)
        place = self.place("alias", entity)
        first, last = self.own["alias.first"][place : place + 2].tolist()
        ranks = self.own["alias.rank"][first:last].tolist()
        return [
            self.own_languages.spoken(row, self.own_texts[row], is_alias=rank > ranks[0] or rank == ALIAS)
            for row, rank in zip(range(first, last), ranks, strict=True)
        ]

    def parts_of_name(self, name: str, entities: EntityRows, tags: frozenset[str]) -> NDArray[np.uint8]:
        own = (self.marks[entities] & NAMES) > 0
        parts = np.zeros(len(entities), dtype=np.uint8)
        parts[~own] = super().parts_of_name(name, entities[~own], tags)
        names = map(self.names_with_languages, entities[own].tolist())
        parts[own] = [part_among(spoken, name, tags) for spoken in names]
        return parts

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
        own = self.own_among(entities, NAMES)
        if own is None:
            return super().alias_counts(entities)
        begin, end = self.own_runs["alias"].bounds(self.columns["alias.first"], entities, own, behind=0)
        return end - begin

    def open_vectors(self) -> VectorIndex:
        return LiveVectors(FaissVectors(self.path, self.manifest), self.own["gone.row"])

    def row_of(self, entity_id: str) -> int | None:
        row = self.entity_ids.find(entity_id)
        if row is not None and row not in self.gone:
            return row
        # Also of an id that is gone from the base: it may have come again.
        place = self.own_ids.find_among(entity_id, self.own["entity.order"])
        if place is not None:
            return self.base_entities + place
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
