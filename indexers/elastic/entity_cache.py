"""Entities on a cluster: what is known of them and the objects of their facts, asked for together and remembered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.documents import id_field, id_hash
from kbtools.indexers.elastic.searches import LINKED, PAGE, Cache, Searches, cut, terms_search
from kbtools.kb.rows import EntityRows

ENTITIES_REMEMBERED = 50_000
PAIRS_REMEMBERED = 500
"""Entities, and pairs of an entity and a relation with its objects, that are kept; twice as many at most."""

PARTS_AT_ONCE = 10
"""Parts of a large entity in one answer: each has up to 4 MB."""

SUBJECTS_AT_ONCE = 20
"""Entities whose objects come in one answer; each may have some megabytes of them."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as it is remembered; relations and types are rows, ascending."""

    id: str
    name: str | None
    relations: tuple[int, ...]
    types: tuple[int, ...]
    facts: int
    description: str | None = None


class Entities:
    """The entities of a knowledge base, read by row or id."""

    def __init__(self, searches: Searches, catalog: Catalog) -> None:
        self.searches, self.catalog, self.index = searches, catalog, catalog.index
        self.known: Cache[int, Entity] = Cache(ENTITIES_REMEMBERED)

    def at(self, rows: Sequence[int]) -> list[Entity]:
        """Give what is known of entities, fetching what is not remembered."""
        entities = {row: self.known.get(row) for row in rows}
        unknown = [row for row, entity in entities.items() if entity is None]
        for chunk in cut(unknown, PAGE):
            entities |= self.fetch(chunk)
        missing = [row for row in rows if entities.get(row) is None]
        if missing:
            raise IndexError(f"no entity at row {missing[0]}")
        return [entity for row in rows if (entity := entities[row])]

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """Find rows by id, also of ids that were merged into another; the entities that come along are remembered."""
        rows = self.rows_by_own_id(ids)
        unknown = [entity_id for entity_id in ids if entity_id not in rows]
        if unknown and self.catalog.has_merged_ids:
            rows |= self.rows_by_merged_id(unknown)
        return [rows.get(entity_id) for entity_id in ids]

    def rows_by_own_id(self, ids: Sequence[str]) -> dict[str, int]:
        terms: dict[str, set[str]] = {}
        for entity_id in ids:
            field, term = id_field(entity_id)
            terms.setdefault(field, set()).add(term)
        bodies = [
            terms_search(field, chunk)
            for field, field_terms in terms.items()
            for chunk in cut(sorted(field_terms), PAGE - 1)
        ]
        rows: dict[str, int] = {}
        for answer in self.searches.run([(self.index, body) for body in bodies]):
            for hit in answer["hits"]["hits"]:
                self.remember(hit["_source"])
                rows[hit["_source"]["id"]] = hit["_source"]["row"]
        return rows

    def rows_by_merged_id(self, ids: Sequence[str]) -> dict[str, int]:
        hashes = {id_hash(entity_id): entity_id for entity_id in ids}
        searches = [terms_search("hashed_id", chunk) for chunk in cut(list(hashes), PAGE - 1)]
        searches = [search | {"_source": [*LINKED, "hashed_id"]} for search in searches]
        rows: dict[str, int] = {}
        for answer in self.searches.run([(self.index, search) for search in searches]):
            for hit in answer["hits"]["hits"]:
                source = hit["_source"]
                self.remember(source)
                rows |= {hashes[term]: source["row"] for term in source["hashed_id"] if term in hashes}
        return rows

    def fetch(self, rows: Sequence[int]) -> dict[int, Entity | None]:
        """Fetch entities by row, those in several parts whole."""
        sources = self.documents([str(row) for row in rows], LINKED)
        entities: dict[int, Entity | None] = {}
        for source in sources:
            entity = self.remember(source)
            if "parts" in source:
                entity = self.completed(source, entity)
                self.known.put(source["row"], entity)
            entities[source["row"]] = entity
        return entities

    def remember(self, source: dict[str, Any]) -> Entity:
        """Remember an entity from its document; one in several parts is completed when it is asked for."""
        names = source.get("names") or source.get("aliases")
        order, kinds = self.catalog.relation_rows, self.catalog.type_rows
        entity = Entity(
            source["id"],
            names[0] if names else None,
            tuple(order[relation] for relation in source.get("relations", ())),
            tuple(kinds[kind] for kind in source.get("types", ())),
            source["facts"],
            source.get("description"),
        )
        if "parts" not in source:
            self.known.put(source["row"], entity)
        return entity

    def completed(self, source: dict[str, Any], entity: Entity) -> Entity:
        """Put together what stands in the further parts of an entity."""
        more = self.part_documents(source, ["names", "aliases", "relations", "types"])
        relations, types = set(entity.relations), set(entity.types)
        name = source["names"][0] if source.get("names") else None
        for part in more:
            relations.update(self.catalog.relation_rows[relation] for relation in part.get("relations", ()))
            types.update(self.catalog.type_rows[kind] for kind in part.get("types", ()))
        whole = tuple(sorted(relations)), tuple(sorted(types))
        return Entity(entity.id, name or entity.name, *whole, entity.facts, entity.description)

    def part_documents(self, source: dict[str, Any], fields: list[str]) -> list[dict[str, Any]]:
        """Read the further parts of an entity, in order."""
        row, parts = source["row"], source.get("parts", 0)
        keys = [f"{row}-{part}" for part in range(1, parts + 1)]
        sources = [source for chunk in cut(keys, PARTS_AT_ONCE) for source in self.documents(chunk, fields)]
        if len(sources) != parts:
            raise KBUnusable(
                f"{self.catalog.kb}: a part of entity {row} is missing; load the knowledge base again", row=row
            )
        return sources

    def documents(self, keys: Sequence[str], fields: list[str]) -> list[dict[str, Any]]:
        """Read documents by their ids, those that exist, in order."""
        answer = self.searches.ask(
            "POST", f"/{self.index}/_mget", {"ids": list(keys)}, params={"_source_includes": ",".join(fields)}
        )
        for document in answer["docs"]:
            if "error" in document:
                raise self.searches.failed(document["error"])
        return [document["_source"] for document in answer["docs"] if document.get("found")]

    def aliases(self, entity: int) -> list[str]:
        sources = self.documents([str(entity)], ["row", "parts", "names", "aliases"])
        if not sources:
            raise IndexError(f"no entity at row {entity}")
        sources += self.part_documents(sources[0], ["names", "aliases"])
        return [text for kind in ("names", "aliases") for source in sources for text in source.get(kind, ())]


class Objects:
    """The objects of pairs of an entity and a relation, read by row."""

    def __init__(self, entities: Entities) -> None:
        self.entities, self.catalog = entities, entities.catalog
        self.known: Cache[tuple[int, int], EntityRows] = Cache(PAIRS_REMEMBERED)

    def of(self, entity: int, relation: int) -> EntityRows:
        pair = entity, relation
        objects = self.known.get(pair)
        if objects is None:
            objects = self.fetch([pair]).get(pair)
        return np.empty(0, dtype=np.uint32) if objects is None else objects

    def expect(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Fetch the objects of pairs that are not remembered."""
        self.fetch(self.known.missing(pairs))

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
        sources = self.entities.documents(
            [str(entity) for entity in dict.fromkeys(entities)], ["row", "parts", "objects"]
        )
        further = [part for source in sources for part in self.entities.part_documents(source, ["row", "objects"])]
        for source in sources + further:
            for relation, targets in source.get("objects", ()):
                lists.setdefault(source["row"], {}).setdefault(relation, []).extend(targets)
        return lists
