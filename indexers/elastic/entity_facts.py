"""The facts that entities of a cluster are in: objects by relation, incoming facts; asked for together, remembered."""

from collections.abc import Sequence

import numpy as np

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.entity_cache import ENTITIES_REMEMBERED, Entities
from kbtools.indexers.elastic.searches import PAGE, Cache, cut
from kbtools.kb.rows import EntityRows, IncomingFacts

PAIRS_REMEMBERED = 500
"""Pairs of an entity and a relation with its objects, and entities with their incoming facts, that are kept; twice as
many at most."""

SUBJECTS_AT_ONCE = 20
"""Entities whose objects or subjects come in one answer; each may have some megabytes of them."""


class Objects:
    """The objects of pairs of an entity and a relation, read by row."""

    def __init__(self, entities: Entities) -> None:
        self.entities, self.catalog = entities, entities.catalog
        self.known: Cache[tuple[int, int], EntityRows] = Cache(PAIRS_REMEMBERED)

    def of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of pairs: those remembered, and the others fetched together."""
        known = {pair: self.known.get(pair) for pair in pairs}
        fetched = self.fetch([pair for pair, objects in known.items() if objects is None])
        none = np.empty(0, dtype=np.uint32)
        return [fetched.get(pair, none) if (objects := known[pair]) is None else objects for pair in pairs]

    def fetch(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], EntityRows]:
        """Fetch the objects of pairs: a request for their ids, and one for what is to be known of them."""
        entities = [entity for entity, _ in pairs]
        known = dict(zip(entities, self.entities.at(entities), strict=True))
        stated = [pair for pair in pairs if pair[1] in known[pair[0]].relations]
        ids: dict[tuple[int, int], list[str]] = {}
        for chunk in cut(stated, SUBJECTS_AT_ONCE):
            lists = self.lists([entity for entity, _ in chunk])
            ids |= {pair: lists[pair[0]].get(self.catalog.relations[pair[1]], []) for pair in chunk}
        targets = list({target for listed in ids.values() for target in listed})
        rows = dict(zip(targets, self.entities.rows(targets), strict=True))
        objects: dict[tuple[int, int], EntityRows] = {}
        for pair, listed in ids.items():
            if any(rows[target] is None for target in listed):
                raise KBUnusable(
                    f"{self.catalog.kb}: an object of {known[pair[0]].id} is missing; load it again",
                    name=self.catalog.kb,
                )
            objects[pair] = np.array(sorted(row for target in listed if (row := rows[target]) is not None), np.uint32)
            self.known.put(pair, objects[pair])
        return objects

    def lists(self, entities: Sequence[int]) -> dict[int, dict[str, list[str]]]:
        """Read the ids of objects by entity and relation."""
        lists: dict[int, dict[str, list[str]]] = {}
        for source in self.entities.sources(entities, "objects"):
            for relation, targets in source.get("objects", ()):
                lists.setdefault(source["row"], {}).setdefault(relation, []).extend(targets)
        return lists


class Subjects:
    """The facts that entities are the objects of, read by row."""

    def __init__(self, entities: Entities) -> None:
        self.entities, self.catalog = entities, entities.catalog
        self.known: Cache[int, IncomingFacts] = Cache(PAIRS_REMEMBERED)
        self.known_relations: Cache[int, tuple[int, ...]] = Cache(ENTITIES_REMEMBERED)

    def of(self, entities: Sequence[int]) -> list[IncomingFacts]:
        """Return the incoming facts of entities: those remembered, and the others fetched together."""
        known = {row: self.known.get(row) for row in entities}
        fetched = self.fetch([row for row, facts in known.items() if facts is None])
        return [fetched[row] if (facts := known[row]) is None else facts for row in entities]

    def fetch(self, entities: Sequence[int]) -> dict[int, IncomingFacts]:
        """Fetch the incoming facts of entities that have some, with the rows of their subjects."""
        facts: dict[int, IncomingFacts] = {}
        for chunk in cut(entities, SUBJECTS_AT_ONCE):
            groups: dict[int, list[tuple[int, list[int]]]] = {entity: [] for entity in chunk}
            for source in self.entities.sources(chunk, "subjects"):
                groups[source["row"]] += (
                    (self.catalog.relation_rows[relation], subjects)
                    for relation, subjects in source.get("subjects", ())
                )
            facts |= {entity: incoming_facts(group) for entity, group in groups.items()}
        for entity, incoming in facts.items():
            self.known.put(entity, incoming)
        return facts

    def relations(self, entities: Sequence[int]) -> list[tuple[int, ...]]:
        """List the relations of the incoming facts of each entity, which are read without the facts."""
        unknown = self.known_relations.missing(entities)
        relations = {entity: self.known_relations.get(entity) or () for entity in entities}
        for chunk in cut(unknown, PAGE):
            found: dict[int, set[int]] = {entity: set() for entity in chunk}
            for source in self.entities.sources(chunk, "relations_in"):
                found[source["row"]].update(
                    self.catalog.relation_rows[relation] for relation in source.get("relations_in", ())
                )
            for entity, rows in found.items():
                relations[entity] = tuple(sorted(rows))
                self.known_relations.put(entity, relations[entity])
        return [relations[entity] for entity in entities]


def incoming_facts(groups: Sequence[tuple[int, Sequence[int]]]) -> IncomingFacts:
    """Put the subjects under each relation one after the other; a relation may go on in a further group."""
    relations = np.repeat(
        np.array([relation for relation, _ in groups], dtype=np.uint32), [len(subjects) for _, subjects in groups]
    )
    subjects = np.array([subject for _, group in groups for subject in group], dtype=np.uint32)
    order = np.lexsort((subjects, relations))
    return IncomingFacts(relations[order], subjects[order])
