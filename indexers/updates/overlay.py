"""An updated knowledge base: a base as built, and over it a segment that holds all changed values in full.

Both are knowledge bases in folders. No other module knows that there are two.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.indexers.folder.column_files import read_column
from kbtools.indexers.folder.edit_index import Probes
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FaissVectors
from kbtools.indexers.folder.folder_kb import FolderKB, explained
from kbtools.indexers.folder.form_store import LONGEST_KEY, FormFilter
from kbtools.indexers.folder.kb_folder import SEGMENT_COLUMNS, open_steadily, part_manifest, read_manifest
from kbtools.indexers.folder.name_counts import form_range
from kbtools.kb.contract import NameMatch
from kbtools.kb.language_tags import SpokenName
from kbtools.kb.manifest import SEGMENT, Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.vector_index import VectorIndex
from kbtools.text.rungs import Form

_T = TypeVar("_T")

FACTS, NAMES, TYPES, DESCRIPTION, COUNTS, INCOMING, NEW, GONE = (1 << bit for bit in range(8))
"""The changes of an entity, as bits: the segment replaces the base for these values. INCOMING: its incoming facts
differ. NEW: it is not in the base. GONE: it is deleted, and all its values changed.
"""

VANISHED, STORED, NORMAL = range(3)
"""The states of a form of a changed name: no name has it any more, some name has it, as its normal form."""

_MOST_MERGED, MOST_MERGED_FACTS = 10_000, 2_000_000
"""Most entities, and most facts in all, whose merged incoming facts are cached: 16 MB, or one entity's."""


def open_folder(path: str | Path) -> "EmbeddedKB | Overlay":
    """Open the folder of a knowledge base, which may have been updated; raise KBMissing or KBUnusable."""
    folder = Path(path)

    def open_files() -> "EmbeddedKB | Overlay":
        manifest = read_manifest(folder)
        return Overlay(folder, manifest) if manifest.is_updated else EmbeddedKB(folder, manifest=manifest)

    return open_steadily(folder, open_files)


class Overlay(FolderKB):
    """A view of a base and a segment as one knowledge base; see `KnowledgeBase` for the contract of each method.

    Rows of entities are those of the base, including unused ones of deleted entities, followed by those of new ones.
    The segment numbers its entities itself, in the same order: `place_rows` are their rows. Relations and types have
    the same rows in both; new ones in the segment follow those of the base.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        super().__init__()
        self.path, self.manifest = path, manifest
        self.base = EmbeddedKB(path, manifest=part_manifest(manifest, ""))
        segment = part_manifest(manifest, SEGMENT)
        if missing := sorted(SEGMENT_COLUMNS.keys() - segment.files.keys()):
            raise KBUnusable(f"{path / SEGMENT}: written by another kbtools, without {missing[0]}; index again")
        self.segment = EmbeddedKB(path / SEGMENT, manifest=segment)
        with self.opening():
            self.open_marks()
        self.form_filter = FormFilter(self.base.columns["form.filter"], also=self.form_states)
        self.merged: dict[int, IncomingFacts] = {}

    def open_marks(self) -> None:
        """Open the columns that a segment has in addition to those of a knowledge base."""
        self.marks = {name: read_column(self.path / SEGMENT / name, dtype) for name, dtype in SEGMENT_COLUMNS.items()}
        self.base_entities = len(self.base.entity_ids)
        self.place_rows: EntityRows = self.marks["place.row"].view(np.uint32)
        new = np.count_nonzero(self.marks["place.changes"] & NEW)
        self.changes = np.zeros(self.base_entities + new, dtype=np.uint8)
        self.changes[self.place_rows] = self.marks["place.changes"]
        # Reading one value takes a fifth of the time of an array.
        self.changes_of, self.row_at = self.changes.data, self.place_rows.data
        # The forms of names that changed entities have or had, ascending.
        states = self.marks["form.state"].tolist()
        self.sorted_forms = self.marks["form.changed"].tobytes().decode().split("\0") if states else []
        self.form_states = dict(zip(self.sorted_forms, states, strict=True))
        self.not_normal = frozenset(form for form, state in self.form_states.items() if state != NORMAL)

    def close(self) -> None:
        self.base.close()
        self.segment.close()
        super().close()

    # Base or segment

    def places(self, entities: EntityRows) -> NDArray[Any]:
        """Return the rows in the segment of entities that it contains."""
        return self.place_rows.searchsorted(entities)

    def place(self, entity_row: int) -> int:
        return bisect_left(self.row_at, entity_row)

    def home(self, entities: EntityRows, flags: int) -> tuple[EmbeddedKB, NDArray[Any]] | None:
        """Return the part that has the values of all these entities, and their rows in it; None if they are in both."""
        if len(entities) < 2:  # A fifth of the time of the general case.
            in_segment = self.changes_of[entities[0]] & flags if len(entities) else 0
        else:
            changes = self.changes[entities]
            in_segment = np.bitwise_or.reduce(changes) & flags
            if in_segment and not np.bitwise_and.reduce(changes) & flags:
                return None
        return (self.segment, self.places(entities)) if in_segment else (self.base, entities)

    def split(self, entities: EntityRows, flags: int) -> tuple[NDArray[np.bool_], EntityRows, NDArray[Any]]:
        """Return a mask of the entities that the segment has, the other entities, and the segment's rows."""
        in_segment = (self.changes[entities] & flags).astype(bool)
        return in_segment, entities[~in_segment], self.places(entities[in_segment])

    def read(self, entities: EntityRows, flags: int, of: Callable[[EmbeddedKB, NDArray[Any]], list[_T]]) -> list[_T]:
        """Return a value for each entity, read from the part that has it."""
        if home := self.home(entities, flags):
            return of(*home)
        in_segment, others, places = self.split(entities, flags)
        values = iter(of(self.base, others)), iter(of(self.segment, places))
        return [next(values[segment]) for segment in in_segment.tolist()]

    def count(
        self, entities: EntityRows, flags: int, of: Callable[[EmbeddedKB, NDArray[Any]], NDArray[Any]]
    ) -> NDArray[np.int64]:
        """Return a number for each entity, as `read` returns values."""
        if home := self.home(entities, flags):
            return of(*home)
        in_segment, others, places = self.split(entities, flags)
        return _joined(in_segment, of(self.base, others).astype(np.int64), of(self.segment, places))

    def group(self, entities: EntityRows, flags: int, of: Callable[[EmbeddedKB, NDArray[Any]], Grouped]) -> Grouped:
        """Return relations or types of each entity, as `read` returns values."""
        if home := self.home(entities, flags):
            return of(*home)
        in_segment, others, places = self.split(entities, flags)
        base, segment = of(self.base, others), of(self.segment, places)
        sizes = _joined(in_segment, np.diff(base.starts), np.diff(segment.starts))
        starts = np.zeros(len(entities) + 1, dtype=np.int64)
        sizes.cumsum(out=starts[1:])
        return Grouped(starts, _joined(in_segment.repeat(sizes), base.values, segment.values))

    # Entities, relations and types

    @cached_property
    def relations(self) -> Sequence[str]:
        return self.segment.relations

    @cached_property
    def relation_names(self) -> Sequence[str | None]:
        return self.segment.relation_names

    @cached_property
    def types(self) -> Sequence[str]:
        return self.segment.types

    def entity_rows(self) -> EntityRows:
        return np.flatnonzero(self.changes & GONE == 0).astype(np.uint32)

    @property
    def row_count(self) -> int:
        return len(self.changes)

    def added_ids(self) -> list[str]:
        """Return the ids of the entities added by updates, by row."""
        first = int(self.place_rows.searchsorted(np.uint32(self.base_entities)))
        return self.segment.entity_ids.take(range(first, len(self.place_rows)))

    @explained
    def ids(self, entities: EntityRows) -> list[str]:
        if home := self.home(entities, NEW):
            return home[0].ids(home[1])
        base, first, last = self.base.entity_ids, self.base_entities, len(self.changes)
        segment = self.segment.entity_ids
        # The new entities are the last of the segment.
        return [base[row] if row < first else segment[row - last + len(segment)] for row in entities.tolist()]

    def row_of(self, entity_id: str) -> int | None:
        row = self.base.entity_ids.find(entity_id)
        if row is not None and not self.changes_of[row] & GONE:
            return row
        # Applies to ids deleted from the base too: they may have been added again.
        place = self.segment.entity_ids.find_among(entity_id, self.marks["entity.order"])
        if place is None:
            merged = self.segment.redirects.find(entity_id)
            place = None if merged is None else int(self.segment.columns["redirect.row"][merged])
        if place is not None:
            return int(self.place_rows[place])
        row = self.base.row_of(entity_id) if row is None else None
        if row is None or not self.changes_of[row] & GONE:
            return row
        # The entity it was merged into was deleted or merged in turn.
        (survivor,) = self.base.ids(np.array([row], dtype=np.uint32))
        return self.row_of(survivor)

    # Facts and types

    def relations_of(self, entities: EntityRows) -> Grouped:
        return self.group(entities, FACTS, EmbeddedKB.relations_of)

    def types_of(self, entities: EntityRows) -> Grouped:
        return self.group(entities, TYPES, EmbeddedKB.types_of)

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return self.count(entities, FACTS, EmbeddedKB.fact_counts)

    @explained
    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        return [
            self.place_rows[self.segment.objects(self.place(entity_row), relation)]
            if self.changes_of[entity_row] & FACTS
            else self.base.objects(entity_row, relation)
            for entity_row, relation in pairs
        ]

    @explained
    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        if home := self.home(entities, FACTS):
            return self.base.facts_of(entities) if home[0] is self.base else self.segment_facts(home[1])
        in_segment, others, places = self.split(entities, FACTS)
        of_segment = in_segment.repeat(self.fact_counts(entities))
        return _joined(of_segment, self.base.facts_of(others), self.segment_facts(places))

    def segment_facts(self, places: NDArray[Any]) -> NDArray[np.int64]:
        """Return facts of the segment, with the entities' rows in this view."""
        facts = self.segment.facts_of(places)
        facts[:, ::2] = self.place_rows[facts[:, ::2]]
        return facts

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return self.count(
            entities,
            INCOMING,
            lambda kb, rows: self.marks["place.incoming"][rows] if kb is self.segment else kb.incoming_counts(rows),
        )

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        return [self.incoming(entity_row) for entity_row in entities.tolist()]

    @explained
    def incoming(self, entity_row: int) -> IncomingFacts:
        """Return the facts with one entity as object."""
        if not self.changes_of[entity_row] & INCOMING:
            return self.base.incoming(entity_row)
        if entity_row not in self.merged:
            # Cached, since merging takes long for an entity with millions of incoming facts.
            facts, kept = self.merge_incoming(entity_row), sum(len(other.subjects) for other in self.merged.values())
            if len(facts.subjects) + kept > MOST_MERGED_FACTS or len(self.merged) > _MOST_MERGED:
                self.merged = {}
            self.merged[entity_row] = facts
        return self.merged[entity_row]

    def merge_incoming(self, entity_row: int) -> IncomingFacts:
        """Return the facts into a changed entity: the base's of unchanged subjects, and the segment's."""
        segment = self.segment.incoming(self.place(entity_row))
        segment = IncomingFacts(segment.relations, self.place_rows[segment.subjects])
        if self.changes_of[entity_row] & NEW:
            return segment
        base = self.base.incoming(entity_row)
        kept = self.changes[base.subjects] & FACTS == 0
        if not len(segment.subjects):
            return IncomingFacts(base.relations[kept], base.subjects[kept])
        # Relation and subject as one number that sorts in the same order, to merge two sorted runs.
        keys = np.concatenate([_as_keys(base)[kept], _as_keys(segment)])
        keys.sort(kind="stable")
        return IncomingFacts((keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32))

    # Names

    def names(self, entities: EntityRows) -> list[str | None]:
        return self.read(entities, NAMES, EmbeddedKB.names)

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return self.read(entities, NAMES, EmbeddedKB.names_of)

    def alias_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return self.count(entities, NAMES, EmbeddedKB.alias_counts)

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return self.read(entities, DESCRIPTION, EmbeddedKB.descriptions)

    def parts_of_name(self, name: str, entities: EntityRows, tags: frozenset[str]) -> NDArray[np.uint8]:
        return self.count(entities, NAMES, lambda kb, rows: kb.parts_of_name(name, rows, tags)).astype(np.uint8)

    def ranked_names(self, entities: EntityRows) -> list[list[tuple[SpokenName, int]]]:
        """Return the names of each entity in order, each with its rank: 0 in the first language, ALIAS for aliases."""
        return self.read(
            entities, NAMES, lambda kb, rows: self.segment_ranks(rows) if kb is self.segment else kb.ranked_names(rows)
        )

    def segment_ranks(self, places: NDArray[Any]) -> list[list[tuple[SpokenName, int]]]:
        """Return names of the segment, which stores their ranks."""
        first, ranks = self.segment.columns["alias.first"], self.marks["alias.rank"]
        return [
            list(zip(self.segment.spoken_names(place), ranks[slice(*first[place : place + 2].tolist())].tolist(),
                     strict=True))
            for place in places.tolist()
        ]  # fmt: skip

    def stored_names(self, forms: Sequence[str]) -> dict[str, list[NameMatch]]:
        matches = self.base.stored_names(forms)
        states = self.form_states
        if changed := [form for form in forms if form in states]:
            segment = self.segment.stored_names(changed)
            for form in changed:
                if merged := self.merge_matches(matches.pop(form, []), segment.get(form, [])):
                    matches[form] = merged
        return matches

    def merge_matches(self, base: Sequence[NameMatch], segment: Sequence[NameMatch]) -> list[NameMatch]:
        """Merge the matches of a form: unchanged entities from the base, changed ones from the segment."""
        merged: dict[tuple[Form, bool, str], NameMatch] = {}
        for match in base:
            kept = match.entities[self.changes[match.entities] & NAMES == 0]
            if len(kept):
                merged[match.form, match.is_alias, match.name] = match._replace(entities=kept)
        for match in segment:
            entities, key = self.place_rows[match.entities], (match.form, match.is_alias, match.name)
            if key in merged:
                entities = np.sort(np.concatenate([merged[key].entities, entities]))
            merged[key] = match._replace(entities=entities)
        return [merged[key] for key in sorted(merged)]

    def recall(self, probes: Probes) -> list[list[str]]:
        both = zip(self.base.recall(probes), self.segment.recall(probes), strict=True)
        return [list({*base, *segment} - self.not_normal) for base, segment in both]

    def trigram_names(self, form: str) -> set[str]:
        return (self.base.trigram_names(form) | self.segment.trigram_names(form)) - self.not_normal

    @explained
    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        states = self.form_states
        base = (stored for stored in self.base.forms.stored_with_prefix(prefix) if stored[0] not in states)
        both = heapq.merge(base, self.changed_with_prefix(prefix))
        return [form for form, is_normal in islice(both, limit) if is_normal]

    def changed_with_prefix(self, prefix: str) -> Iterator[tuple[str, bool]]:
        """Yield the stored forms of changed names with a prefix, in order, each with whether it is normal."""
        forms = self.sorted_forms
        for form in islice(forms, bisect_left(forms, prefix), None):
            if not form.startswith(prefix):
                return
            if self.form_states[form] != VANISHED:
                yield form, self.form_states[form] == NORMAL and len(form.encode()) <= LONGEST_KEY

    @explained
    def name_frequency(self, words: Sequence[str]) -> list[int]:
        counts = zip(self.base.name_frequency(words), self.segment.forms.frequencies(words), strict=True)
        return [base if new is None else new for base, new in counts]

    # Counts of names, and vectors

    @explained
    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        if not len(self.base.columns["count.key"]):
            return None
        base, segment = self.base.name_counts(form, entities), self.segment.name_counts(form, self.places(entities))
        if segment is None:
            counted = self.base.columns["count.entity"][form_range(self.base.columns, form)]
            few = len(counted) <= len(self.place_rows)
            if base is None or (few and (self.changes[counted] & COUNTS).all()):
                return None  # All that the base counts under the form has changed.
        changed = (self.changes[entities] & COUNTS).astype(bool)
        zeros = np.zeros(len(entities), dtype=np.int64)
        return np.where(changed, zeros if segment is None else segment, zeros if base is None else base)

    @explained
    def counts_about(self, entities: EntityRows) -> tuple[NDArray[np.uint64], EntityRows, NDArray[np.uint64]]:
        """Return the counts of names that mean some entities: keys of the names, entities and counts."""
        _, others, places = self.split(entities, COUNTS)
        keys, rows, counts = self.base.counts_about(others)
        own_keys, places, own_counts = self.segment.counts_about(places)
        return (
            np.concatenate([keys, own_keys]),
            np.concatenate([rows, self.place_rows[places]]),
            np.concatenate([counts, own_counts]),
        )

    def open_vectors(self) -> VectorIndex:
        gone = np.flatnonzero(self.changes & GONE).astype(np.uint32)
        return FaissVectors(self.path, self.manifest, gone=gone)


def _joined(in_segment: NDArray[np.bool_], base: NDArray[Any], segment: NDArray[Any]) -> NDArray[Any]:
    """Interleave values of the base and of the segment in the order of the mask."""
    values = np.empty((len(in_segment), *base.shape[1:]), dtype=base.dtype)
    values[~in_segment], values[in_segment] = base, segment
    return values


def _as_keys(facts: IncomingFacts) -> NDArray[np.uint64]:
    """Combine relation and subject of each fact into one number that sorts in the same order."""
    return facts.relations.astype(np.uint64) << np.uint64(32) | facts.subjects
