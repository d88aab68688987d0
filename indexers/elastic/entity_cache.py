"""Entities on a cluster: what is known of them, asked for together and remembered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.documents import id_field, id_hash
from kbtools.indexers.elastic.searches import LINKED, NAMED, PAGE, Cache, Searches, cut, terms_search

ENTITIES_REMEMBERED = 50_000
"""Entities that are kept, twice as many at most."""

NAMES_REMEMBERED = 20_000
"""Entities whose names are kept with their languages, twice as many at most."""

PARTS_AT_ONCE = 10
"""Parts of a large entity in one answer: each has up to 4 MB."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as it is remembered; relations and types are rows, ascending."""

    id: str
    name: str | None
    relations: tuple[int, ...]
    types: tuple[int, ...]
    facts: int
    facts_in: int
    description: str | None = None


class Entities:
    """The entities of a knowledge base, read by row or id."""

    def __init__(self, searches: Searches, catalog: Catalog) -> None:
        self.searches, self.catalog, self.index = searches, catalog, catalog.index
        self.known: Cache[int, Entity] = Cache(ENTITIES_REMEMBERED)
        self.names: Cache[int, list[dict[str, Any]]] = Cache(NAMES_REMEMBERED)

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
        own, merged = self.rows_apart(ids)
        rows = merged | own
        return [rows.get(entity_id) for entity_id in ids]

    def rows_apart(self, ids: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Find rows by id: of entities by their own, and of ids that were merged into another."""
        own = self.rows_by_own_id(ids)
        unknown = [entity_id for entity_id in ids if entity_id not in own]
        return own, self.rows_by_merged_id(unknown) if unknown and self.catalog.has_merged_ids else {}

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
            source["facts_in"],
            source.get("description"),
        )
        if "parts" not in source:
            self.known.put(source["row"], entity)
            if self.catalog.manifest.languages:
                self.names.put(source["row"], [{name: source[name] for name in NAMED if name in source}])
        return entity

    def completed(self, source: dict[str, Any], entity: Entity) -> Entity:
        """Put together what stands in the further parts of an entity."""
        more = self.part_documents(source, ["names", "aliases", "relations", "types"])
        relations, types = set(entity.relations), set(entity.types)
        name = source["names"][0] if source.get("names") else None
        for part in more:
            relations.update(self.catalog.relation_rows[relation] for relation in part.get("relations", ()))
            types.update(self.catalog.type_rows[kind] for kind in part.get("types", ()))
        return replace(entity, name=name or entity.name, relations=tuple(sorted(relations)), types=tuple(sorted(types)))

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

    def sources(self, entities: Sequence[int], field: str) -> list[dict[str, Any]]:
        """Read a field of entities, with the further parts of those that have some; each tells its row."""
        sources = self.documents([str(entity) for entity in dict.fromkeys(entities)], ["row", "parts", field])
        return sources + [part for source in sources for part in self.part_documents(source, ["row", field])]

    def documents(self, keys: Sequence[str], fields: list[str]) -> list[dict[str, Any]]:
        """Read documents by their ids, those that exist, in order."""
        answer = self.searches.ask(
            "POST", f"/{self.index}/_mget", {"ids": list(keys)}, params={"_source_includes": ",".join(fields)}
        )
        for document in answer["docs"]:
            if "error" in document:
                raise self.searches.failed(document["error"])
        return [document["_source"] for document in answer["docs"] if document.get("found")]

    def named(self, rows: Sequence[int]) -> list[list[dict[str, Any]]]:
        """Give the documents of each entity with its names, fetching together those that are not remembered."""
        documents = {row: self.names.get(row) for row in rows}
        unknown = [row for row, own in documents.items() if own is None]
        for chunk in cut(unknown, PAGE):
            for source in self.documents([str(row) for row in chunk], ["row", "parts", *NAMED]):
                own = documents[source["row"]] = [source, *self.part_documents(source, NAMED)]
                self.names.put(source["row"], own)
        missing = [row for row in rows if documents[row] is None]
        if missing:
            raise IndexError(f"no entity at row {missing[0]}")
        return [named for row in rows if (named := documents[row])]
