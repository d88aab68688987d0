"""The embedded knowledge base: one folder, opened through the memory map, shared by any number of processes."""

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.indexers.folder.checksums import INDEX_AGAIN, require_files
from kbtools.indexers.folder.column_files import StringTable, facts_at, gather, read_column, spread, within
from kbtools.indexers.folder.edit_index import EditIndex, Probes
from kbtools.indexers.folder.faiss_index import FaissVectors
from kbtools.indexers.folder.folder_kb import FolderKB, explained
from kbtools.indexers.folder.form_store import FormFilter, FormStore
from kbtools.indexers.folder.fuzzy_index import FuzzyIndex
from kbtools.indexers.folder.kb_folder import COLUMNS, FORMS, FUZZY, REQUIRED, open_steadily, read_manifest
from kbtools.indexers.folder.language_sets import LanguageSets
from kbtools.indexers.folder.name_counts import counts_at, rank_names
from kbtools.kb.contract import NameMatch
from kbtools.kb.language_tags import SpokenName, read_text
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.vector_index import VectorIndex

_FEW = 8
"""Most entities for which reading one by one is faster than all at once."""


class EmbeddedKB(FolderKB):
    """A knowledge base in a folder, as built; see `KnowledgeBase` for the contract of each method.

    All files are opened together, so that a reader keeps its answers even if the folder is replaced.
    """

    def __init__(self, path: str | Path, *, manifest: Manifest | None = None) -> None:
        """Open a folder; a build passes the manifest that it has yet to write."""
        super().__init__()
        self.path = Path(path)
        open_steadily(self.path, lambda: self.open(manifest or read_manifest(self.path)))

    def open(self, manifest: Manifest) -> None:
        """Open every file; raise KBUnusable if one is damaged or the folder was just replaced."""
        self.manifest = manifest
        if manifest.is_updated:
            raise KBUnusable.at(
                self.path, "contains updates, which only kbtools.open reads; merge them with kbtools compact"
            )
        require_files(self.path, manifest.files, manifest.checksums, INDEX_AGAIN)
        if missing := sorted(REQUIRED - manifest.files.keys()):
            raise KBUnusable(f"{self.path}: built by another kbtools, without {missing[0]}; index again")
        with self.opening():
            self.open_files()

    def open_files(self) -> None:
        self.columns = {name: read_column(self.path / name, dtype) for name, dtype in COLUMNS.items()}
        self.entity_ids, self.relation_ids, self.type_ids, self.relation_texts, self.redirects = (
            StringTable(self.path / name)
            for name in ("entity.id", "relation.id", "type.id", "relation.name", "redirect.old")
        )
        self.base_entities = len(self.entity_ids)
        self.alias_texts, self.description_texts = (
            StringTable(self.path / name) for name in ("alias.text", "description.text")
        )
        self.languages = LanguageSets(self.path, self.manifest.files, names=len(self.alias_texts))
        self.forms = FormStore.open(self.path / FORMS)
        self.form_filter = FormFilter(self.columns["form.filter"])
        self.fuzzy = FuzzyIndex(self.path / FUZZY, texts=self.alias_texts)
        self.edits = EditIndex(
            *(self.columns[f"edit.{part}"] for part in ("key", "row", "signature")), texts=self.alias_texts
        )

    @cached_property
    @explained
    def relations(self) -> Sequence[str]:
        return tuple(self.relation_ids)

    @cached_property
    @explained
    def relation_names(self) -> Sequence[str | None]:
        return tuple(read_text(name) for name in self.relation_texts)

    @cached_property
    @explained
    def types(self) -> Sequence[str]:
        return tuple(self.type_ids)

    def stored_names(self, forms: Sequence[str]) -> dict[str, list[NameMatch]]:
        return self.forms.lookup(forms, self.alias_texts)

    def recall(self, probes: Probes) -> list[list[str]]:
        rows = self.edits.recall(probes)
        names = iter(self.fuzzy.forms(np.concatenate(rows).tolist() if rows else ()))
        return [list(islice(names, len(rows_of_form))) for rows_of_form in rows]

    def trigram_names(self, form: str) -> set[str]:
        return self.fuzzy.names(self.fuzzy.near(form))

    def alias_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        first, rows = self.columns["alias.first"], entities.astype(np.int64)
        counts: NDArray[np.int64] = (first[rows + 1] - first[rows]).astype(np.int64)
        return counts

    @explained
    def forms_with_prefix(self, prefix: str, *, limit: int) -> list[str]:
        return list(self.forms.forms_with_prefix(prefix, limit=limit))

    @explained
    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.forms.name_frequency(words)

    @explained
    def relations_of(self, entities: EntityRows) -> Grouped:
        return within(
            gather(self.columns["fact.first"], self.columns["fact.relation"], entities), len(self.relation_ids)
        )

    @explained
    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        """Return the facts of entities, by the entities' order, then relation and object: (facts, 3)."""
        return facts_at(self.columns, entities)

    @explained
    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        return [self.objects(entity_row, relation) for entity_row, relation in pairs]

    def objects(self, entity_row: int, relation: int) -> EntityRows:
        """Return the objects of one entity under one relation."""
        columns = self.columns
        first, last = columns["fact.first"][entity_row : entity_row + 2].tolist()
        relations = columns["fact.relation"][first:last]
        pair = first + int(relations.searchsorted(relation))
        if pair == last or relations[pair - first] != relation:
            return np.empty(0, dtype=np.uint32)
        begin, end = columns["fact.first_object"][pair : pair + 2].tolist()
        return columns["fact.object"][begin:end]

    @explained
    def types_of(self, entities: EntityRows) -> Grouped:
        return within(gather(self.columns["type.first"], self.columns["type.type"], entities), len(self.type_ids))

    @explained
    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        first, objects = self.columns["fact.first"], self.columns["fact.first_object"]
        rows = entities.astype(np.int64)
        counts: NDArray[np.int64] = objects.take(first.take(rows + 1)) - objects.take(first.take(rows))
        return counts

    @explained
    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        first, rows = self.columns["incoming.first"], entities.astype(np.int64)
        counts: NDArray[np.int64] = (first[rows + 1] - first[rows]).astype(np.int64)
        return counts

    @explained
    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        return [self.incoming(entity_row) for entity_row in entities.tolist()]

    def incoming(self, entity_row: int) -> IncomingFacts:
        """Return the facts with one entity as object."""
        first, last = self.columns["incoming.first"][entity_row : entity_row + 2].tolist()
        return IncomingFacts(
            self.columns["incoming.relation"][first:last], self.columns["incoming.subject"][first:last]
        )

    @explained
    def name_counts(self, form: str, entities: EntityRows) -> NDArray[np.int64] | None:
        return counts_at(self.columns, form, entities)

    @explained
    def counts_about(self, entities: EntityRows) -> tuple[NDArray[np.uint64], EntityRows, NDArray[np.uint64]]:
        """Return the counts of names that mean some entities: keys of the names, entities and counts."""
        about = np.isin(self.columns["count.entity"], entities)
        keys, rows, counts = (self.columns[f"count.{name}"][about] for name in ("key", "entity", "count"))
        return keys, rows, counts

    @explained
    def ids(self, entities: EntityRows) -> list[str]:
        return self.entity_ids.take(entities.tolist())

    @explained
    def names(self, entities: EntityRows) -> list[str | None]:
        if len(entities) <= _FEW:
            return [self.name_of(row) for row in entities.tolist()]
        starts, rows, texts = self.columns["alias.first"], entities.astype(np.int64), self.alias_texts
        edges = zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True)
        return [texts[first] if first < end else None for first, end in edges]

    def name_of(self, entity_row: int) -> str | None:
        """Return the name of one entity."""
        first, end = self.columns["alias.first"][entity_row : entity_row + 2].tolist()
        return self.alias_texts[first] if first < end else None

    @explained
    def ranked_names(self, entities: EntityRows) -> list[list[tuple[SpokenName, int]]]:
        """Return the names of each entity in order, each with its rank: 0 in the first language, ALIAS for aliases."""
        first, flags = self.columns["alias.first"], self.columns["alias.is_alias"]
        return [
            rank_names(self.spoken_names(row), flags[slice(*first[row : row + 2].tolist())].tolist())
            for row in entities.tolist()
        ]

    @explained
    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [self.spoken_names(entity_row) for entity_row in entities.tolist()]

    def spoken_names(self, entity_row: int) -> list[SpokenName]:
        """Return the names of one entity with their languages."""
        first, last = self.columns["alias.first"][entity_row : entity_row + 2].tolist()
        flags = self.columns["alias.is_alias"][first:last].tolist()
        return [
            self.languages.spoken(row, self.alias_texts[row], is_alias=flag)
            for row, flag in zip(range(first, last), flags, strict=True)
        ]

    def parts_of_name(self, name: str, entities: EntityRows, tags: frozenset[str]) -> NDArray[np.uint8]:
        bounds, rows = spread(self.columns["alias.first"], entities, len(self.alias_texts))
        places = self.alias_texts.places_of(name, rows)
        parts = np.zeros(len(entities), dtype=np.uint8)
        rows = rows[places]
        owners = np.searchsorted(bounds, places, side="right") - 1
        parts[owners] = self.languages.parts(rows, self.columns["alias.is_alias"][rows], tags)
        return parts

    @explained
    def descriptions(self, entities: EntityRows) -> list[str | None]:
        if not len(self.description_texts):
            return [None] * len(entities)
        described = self.columns["description.row"]
        places = np.minimum(np.searchsorted(described, entities), len(described) - 1)
        texts = described[places] == entities
        return [
            read_text(self.description_texts[place]) if has else None
            for place, has in zip(places.tolist(), texts.tolist(), strict=True)
        ]

    def open_vectors(self) -> VectorIndex:
        return FaissVectors(self.path, self.manifest)

    @property
    def row_count(self) -> int:
        return self.base_entities

    def added_ids(self) -> list[str]:
        """Return the ids of the entities added by updates, by row; always empty here."""
        return []

    def row_of(self, entity_id: str) -> int | None:
        row = self.entity_ids.find(entity_id)
        if row is None:
            merged = self.redirects.find(entity_id)
            return None if merged is None else int(self.columns["redirect.row"][merged])
        return row
