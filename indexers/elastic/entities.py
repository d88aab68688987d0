"""What is known of entities: asked for together, put together where they are large, remembered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.cache import Cache
from kbtools.indexers.elastic.documents import id_field
from kbtools.indexers.elastic.opening import Catalog
from kbtools.indexers.elastic.queries import LINKED, PAGE, cut, terms_search
from kbtools.indexers.elastic.searches import Searches

REMEMBERED = 50_000
PARTS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Entity:
    """What is remembered of an entity; relations and types are rows, ascending."""

    id: str
    name: str | None
    relations: tuple[int, ...]
    types: tuple[int, ...]
    facts: int


class Entities:
    """Read the entities of a knowledge base by row or id."""

    def __init__(self, searches: Searches, catalog: Catalog) -> None:
        self.searches, self.catalog, self.index = searches, catalog, catalog.index
        self.known: Cache[int, Entity] = Cache(REMEMBERED)

    def at(self, rows: Sequence[int]) -> list[Entity]:
        """Give what is known of entities, fetching what is not remembered."""
        found = {row: self.known.get(row) for row in rows}
        unknown = [row for row, entity in found.items() if entity is None]
        for chunk in cut(unknown, PAGE):
            found |= self.fetch(chunk)
        missing = [row for row in rows if found.get(row) is None]
        if missing:
            raise IndexError(f"no entity at row {missing[0]}")
        return [entity for row in rows if (entity := found[row])]

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """Find rows by id; what is found on the way is remembered."""
        terms: dict[str, set[str]] = {}
        for entity_id in ids:
            field, term = id_field(entity_id)
            terms.setdefault(field, set()).add(term)
        bodies = [terms_search(field, chunk) for field, some in terms.items() for chunk in cut(sorted(some), PAGE - 1)]
        found: dict[str, int] = {}
        for answer in self.searches.run([(self.index, body) for body in bodies]):
            for hit in answer["hits"]["hits"]:
                self.remember(hit["_source"])
                found[hit["_source"]["id"]] = hit["_source"]["row"]
        return [found.get(entity_id) for entity_id in ids]

    def fetch(self, rows: Sequence[int]) -> dict[int, Entity | None]:
        """Fetch entities by row, those in several parts whole."""
        sources = self.documents([str(row) for row in rows], LINKED)
        found: dict[int, Entity | None] = {}
        for source in sources:
            entity = self.remember(source)
            if "parts" in source:
                entity = self.completed(source, entity)
                self.known.put(source["row"], entity)
            found[source["row"]] = entity
        return found

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
        return Entity(entity.id, name or entity.name, tuple(sorted(relations)), tuple(sorted(types)), entity.facts)

    def part_documents(self, source: dict[str, Any], fields: list[str]) -> list[dict[str, Any]]:
        """Read the further parts of an entity, in order."""
        row, parts = source["row"], source.get("parts", 0)
        keys = [f"{row}-{part}" for part in range(1, parts + 1)]
        found = [source for chunk in cut(keys, PARTS_AT_ONCE) for source in self.documents(chunk, fields)]
        if len(found) != parts:
            raise KBUnusable(
                f"{self.catalog.kb}: a part of entity {row} is missing; load the knowledge base again", row=row
            )
        return found

    def documents(self, keys: Sequence[str], fields: list[str]) -> list[dict[str, Any]]:
        """Read documents by their ids, those that exist, in order."""
        told = self.searches.ask(
            "POST", f"/{self.index}/_mget", {"ids": list(keys)}, params={"_source_includes": ",".join(fields)}
        )
        for document in told["docs"]:
            if "error" in document:
                raise self.searches.failed(document["error"])
        return [document["_source"] for document in told["docs"] if document.get("found")]

    def aliases(self, entity: int) -> list[str]:
        sources = self.documents([str(entity)], ["row", "parts", "names", "aliases"])
        if not sources:
            raise IndexError(f"no entity at row {entity}")
        sources += self.part_documents(sources[0], ["names", "aliases"])
        return [text for kind in ("names", "aliases") for source in sources for text in source.get(kind, ())]
