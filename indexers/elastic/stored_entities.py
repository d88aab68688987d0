"""Entities on a cluster as an update reads them: with all that their documents hold, fetched together and kept."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.elastic.documents import EntityContent, names_in, read_content
from kbtools.indexers.elastic.entities import WITH_FACTS, incoming_facts
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.folder.name_ranks import rank_spoken
from kbtools.kb.contract import ABSENT
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName

EVERY_FIELD = ["*"]

FEW_FACTS = 100
"""Facts of an entity whose objects are looked up beforehand; of one with more they are when its facts are changed."""


class StoredEntities:
    """The entities of a version that an update changes; see `Updatable` for what each method promises."""

    def __init__(self, kb: ElasticKB) -> None:
        self.kb, self.catalog = kb, kb.catalog
        self.relations, self.relation_names, self.types = kb.relations, kb.relation_names, kb.types
        self.rows: dict[str, int | None] = {}
        self.contents: dict[int, EntityContent] = {}
        self.parts: dict[int, int] = {}

    @property
    def base_entities(self) -> int:
        return self.catalog.rows

    def added_ids(self) -> list[str]:
        return []

    def expect_entities(self, ids: Sequence[str]) -> None:
        rows = [row for row in dict.fromkeys(self.rows_of(ids)) if row != ABSENT]
        self.fetch(rows)
        # Most of them are given facts, or lose some: what those lead to is looked up for all of them together.
        few = [self.contents[row] for row in rows if self.contents[row]["facts"] <= FEW_FACTS]
        self.rows_of([target for entity in few for _, targets in entity.get("objects", ()) for target in targets])

    def row_of(self, entity_id: str) -> int | None:
        if entity_id not in self.rows:
            self.expect_entities([entity_id])
        return self.rows[entity_id]

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """Return the rows of ids, ABSENT for an unknown one."""
        unknown = [entity_id for entity_id in dict.fromkeys(ids) if entity_id not in self.rows]
        if unknown:
            self.rows |= zip(unknown, self.kb.rows(unknown), strict=True)
        return [ABSENT if row is None else row for row in map(self.rows.__getitem__, ids)]

    def fetch(self, rows: Sequence[int]) -> None:
        """Fetch the documents of entities that are not at hand."""
        unknown = [row for row in dict.fromkeys(rows) if row not in self.contents]
        for row, parts in self.kb.entities.parts(unknown, EVERY_FIELD, at_once=WITH_FACTS).items():
            self.contents[row] = read_content(parts, self.catalog.language)
            self.parts[row] = len(parts)

    def content(self, row: int) -> EntityContent:
        """Return what an entity holds."""
        self.fetch([row])
        return self.contents[row]

    def keys(self, row: int) -> list[str]:
        """List the ids of the documents of an entity."""
        self.fetch([row])
        return [str(row), *(f"{row}-{part}" for part in range(1, self.parts[row]))]

    def ids(self, entities: EntityRows) -> list[str]:
        return self.kb.ids(entities)

    def ranked_names(self, entity_row: int) -> list[tuple[str, int]]:
        content = self.content(entity_row)
        names = names_in([content], self.catalog.language)
        if "ranks" in content:
            return list(zip([name.text for name in names], content["ranks"], strict=True))
        first = len(content.get("names", ()))
        return rank_spoken(names, [place >= first for place in range(len(names))])

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return [names_in([self.content(row)], self.catalog.language) for row in entities.tolist()]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        self.fetch(entities.tolist())
        return [self.contents[row].get("description") for row in entities.tolist()]

    def types_of(self, entities: EntityRows) -> Grouped:
        self.fetch(entities.tolist())
        rows = self.catalog.type_rows
        return Grouped.of([[rows[kind] for kind in self.contents[row].get("types", ())] for row in entities.tolist()])

    def facts_of(self, entities: EntityRows) -> NDArray[np.int64]:
        subjects, relations = entities.tolist(), self.catalog.relation_rows
        self.fetch(subjects)
        objects = {row: self.contents[row].get("objects", ()) for row in subjects}
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
            incoming_facts([(relations[name], rows) for name, rows in self.content(row).get("subjects", ())])
            for row in entities.tolist()
        ]

    def is_object_of_more(self, entity_row: int, *, than: int) -> bool:
        return int(self.content(entity_row)["facts_in"]) > than
