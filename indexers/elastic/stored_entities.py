"""Entities on a cluster as an update reads them: with all that their documents hold, fetched together and kept."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.elastic.entity_facts import SUBJECTS_AT_ONCE, incoming_facts
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.name_languages import spoken_names_in
from kbtools.indexers.elastic.searches import PAGE, cut
from kbtools.indexers.folder.name_ranks import rank_spoken
from kbtools.kb.contract import ABSENT
from kbtools.kb.language_tags import UND
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName

EVERY_FIELD = ["*"]

FEW_FACTS = 100
"""Facts of an entity whose objects are looked up beforehand; of one with more they are when its facts are changed."""

Related = list[tuple[str, list[Any]]]
"""Facts of an entity: their other ends by relation, ids of objects or rows of subjects."""


class StoredEntities:
    """The entities of a version that an update changes; see `Updatable` for what each method promises."""

    def __init__(self, kb: ElasticKB) -> None:
        self.kb, self.catalog = kb, kb.catalog
        self.rows: dict[str, int | None] = {}
        self.own_ids: dict[int, str] = {}
        self.documents: dict[int, list[dict[str, Any]]] = {}

    @property
    def base_entities(self) -> int:
        return self.catalog.rows

    def added_ids(self) -> list[str]:
        return []

    @cached_property
    def relations(self) -> Sequence[str]:
        return self.kb.relations

    @cached_property
    def relation_names(self) -> Sequence[str | None]:
        return self.kb.relation_names

    @cached_property
    def types(self) -> Sequence[str]:
        return self.kb.types

    def expect_entities(self, ids: Sequence[str]) -> None:
        rows = [row for row in dict.fromkeys(self.rows_of(ids)) if row != ABSENT]
        self.fetch(rows)
        # Most of them are given facts, or lose some: what those lead to is looked up for all of them together.
        few = [row for row in rows if self.documents[row][0]["facts"] <= FEW_FACTS]
        self.rows_of([target for row in few for _, targets in self.related(row, "objects") for target in targets])

    def row_of(self, entity_id: str) -> int | None:
        if entity_id not in self.rows:
            self.expect_entities([entity_id])
        return self.rows[entity_id]

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """Give the rows of ids, ABSENT for an unknown one."""
        unknown = [entity_id for entity_id in dict.fromkeys(ids) if entity_id not in self.rows]
        if unknown:
            own, merged = self.kb.entities.rows_apart(unknown)
            self.own_ids |= {row: entity_id for entity_id, row in own.items()}
            self.rows |= dict.fromkeys(unknown) | merged | own
        return [ABSENT if row is None else row for row in map(self.rows.__getitem__, ids)]

    def fetch(self, rows: Sequence[int]) -> None:
        """Fetch the documents of entities that are not at hand."""
        entities = self.kb.entities
        unknown = [row for row in dict.fromkeys(rows) if row not in self.documents]
        for chunk in cut(unknown, SUBJECTS_AT_ONCE):
            for main in entities.documents([str(row) for row in chunk], EVERY_FIELD):
                self.own_ids[main["row"]] = main["id"]
                self.documents[main["row"]] = [main, *entities.part_documents(main, EVERY_FIELD)]

    def parts(self, row: int) -> list[dict[str, Any]]:
        """Give the documents of an entity, the main one first."""
        self.fetch([row])
        return self.documents[row]

    def texts(self, row: int, field: str) -> list[str]:
        """Give the texts of a field of an entity."""
        return [text for part in self.parts(row) for text in part.get(field, ())]

    def related(self, row: int, field: str) -> Related:
        """Give the objects or the subjects of an entity's facts by relation."""
        groups: dict[str, list[Any]] = {}
        for part in self.parts(row):
            for relation, values in part.get(field, ()):
                groups.setdefault(relation, []).extend(values)
        return list(groups.items())

    def ids(self, entities: EntityRows) -> list[str]:
        """Give the ids of entities; of those that are only spoken of, which may have very many facts, nothing else."""
        unknown = [row for row in entities.tolist() if row not in self.own_ids]
        for chunk in cut(unknown, PAGE):
            documents = self.kb.entities.documents([str(row) for row in chunk], ["row", "id"])
            self.own_ids |= {document["row"]: document["id"] for document in documents}
        return [self.own_ids[row] for row in entities.tolist()]

    def ranked_names(self, entity: int) -> list[tuple[str, int]]:
        (names,) = self.names_of(np.array([entity], dtype=np.uint32))
        if "ranks" in (main := self.parts(entity)[0]):
            return list(zip([name.text for name in names], main["ranks"], strict=True))
        first = len(self.texts(entity, "names"))
        return rank_spoken(names, [place >= first for place in range(len(names))])

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        language = self.catalog.language or UND
        return [spoken_names_in(self.parts(row), language) for row in entities.tolist()]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        self.fetch(entities.tolist())
        return [self.documents[row][0].get("description") for row in entities.tolist()]

    def types_of(self, entities: EntityRows) -> Grouped:
        self.fetch(entities.tolist())
        rows = self.catalog.type_rows
        return Grouped.of([[rows[kind] for kind in self.texts(row, "types")] for row in entities.tolist()])

    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        subjects, relations = entities.tolist(), self.catalog.relation_rows
        self.fetch(subjects)
        objects = {row: self.related(row, "objects") for row in subjects}
        self.rows_of([target for row in subjects for _, targets in objects[row] for target in targets])
        facts = [
            (row, relations[relation], target)
            for row in subjects
            for relation, targets in objects[row]
            for target in self.rows_of(targets)
        ]
        return np.array(facts, dtype=np.int64).reshape(-1, 3)

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        relations = self.catalog.relation_rows
        return [
            incoming_facts([(relations[name], rows) for name, rows in self.related(row, "subjects")])
            for row in entities.tolist()
        ]

    def is_object_of_more(self, entity: int, *, than: int) -> bool:
        return int(self.parts(entity)[0]["facts_in"]) > than
