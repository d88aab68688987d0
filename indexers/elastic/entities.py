"""Entities on a cluster: what linking, ranking and answers need of them, asked for together and remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.documents import id_field, id_hash, names_in
from kbtools.indexers.elastic.searches import LINKED, NAMED, PAGE, Cache, Searches, cut, terms_search
from kbtools.kb.language_tags import SpokenName
from kbtools.kb.rows import EntityRows, IncomingFacts

KEPT_ENTITIES, KEPT_FACTS = 50_000, 500
"""Entities that are remembered, and pairs of an entity and a relation with their objects, or entities with their
incoming facts; twice as many at most."""

WITH_FACTS, PARTS = 20, 10
"""Documents in one answer that hold facts, and further parts of entities: each may have some megabytes."""

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity as it is remembered; relations and types are rows, ascending.

    `named` are the fields that hold its names, None if these stand in several documents.
    """

    id: str
    name: str | None
    relations: tuple[int, ...]
    types: tuple[int, ...]
    facts: int
    facts_in: int
    description: str | None
    named: Fields | None


class Entities:
    """The entities of a knowledge base, read by row or id."""

    def __init__(self, searches: Searches, catalog: Catalog) -> None:
        self.searches, self.catalog, self.index = searches, catalog, catalog.index
        self.known: Cache[int, KnownEntity] = Cache(KEPT_ENTITIES)
        self.relations_in: Cache[int, tuple[int, ...]] = Cache(KEPT_ENTITIES)
        self.objects: Cache[tuple[int, int], EntityRows] = Cache(KEPT_FACTS)
        self.incoming: Cache[int, IncomingFacts] = Cache(KEPT_FACTS)

    # Documents

    def parts(self, rows: Sequence[int], fields: Sequence[str], *, at_once: int = PAGE) -> dict[int, list[Fields]]:
        """Read fields of the documents of entities, part 0 first; rows of no entity are left out."""
        found: dict[int, list[Fields]] = {}
        for chunk in cut(list(dict.fromkeys(rows)), at_once):
            found |= {main["row"]: [main] for main in self.documents(list(map(str, chunk)), [*fields, "parts"])}
        keys = [f"{row}-{part}" for row, (main,) in found.items() for part in range(1, main.get("parts", 0) + 1)]
        for further in cut(keys, PARTS):
            for source in self.documents(further, fields):
                found[source["row"]].append(source)
        for row, own in found.items():
            if len(own) <= own[0].get("parts", 0):
                raise KBUnusable(
                    f"{self.catalog.kb}: a part of entity {row} is missing; load the knowledge base again", row=row
                )
        return found

    def documents(self, keys: Sequence[str], fields: Sequence[str]) -> list[Fields]:
        """Read documents by their ids, those that exist, in order."""
        answer = self.searches.ask(
            "POST", f"/{self.index}/_mget", {"ids": keys}, params={"_source_includes": ",".join(["row", *fields])}
        )
        for document in answer["docs"]:
            if "error" in document:
                raise self.searches.failed(document["error"])
        return [document["_source"] for document in answer["docs"] if document.get("found")]

    # Entities

    def at(self, rows: Sequence[int]) -> list[KnownEntity]:
        """Return entities, fetching those that are not remembered; raise IndexError for a row that is unused."""
        entities = {row: self.known.get(row) for row in rows}
        unknown = [row for row, entity in entities.items() if entity is None]
        for row, sources in self.parts(unknown, LINKED).items():
            entities[row] = self.read(sources)
        if missing := [row for row, entity in entities.items() if entity is None]:
            raise IndexError(f"no entity at row {missing[0]}")
        return [entity for row in rows if (entity := entities[row])]

    def read(self, sources: Sequence[Fields]) -> KnownEntity:
        """Read an entity from its documents, part 0 first, and remember it."""
        main, catalog = sources[0], self.catalog
        names = next(
            (source[field][0] for field in ("names", "aliases") for source in sources if field in source), None
        )
        entity = KnownEntity(
            main["id"],
            names,
            rows_of(catalog.relation_rows, sources, "relations"),
            rows_of(catalog.type_rows, sources, "types"),
            main["facts"],
            main["facts_in"],
            main.get("description"),
            {field: main[field] for field in NAMED if field in main} if len(sources) == 1 else None,
        )
        self.known.put(main["row"], entity)
        return entity

    def note(self, source: Fields) -> None:
        """Remember an entity that a search found, unless it stands in several documents."""
        if source["part"] == 0 and "parts" not in source:
            self.read([source])

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """Find rows by id, also of ids that were merged into another; the entities that come along are remembered."""
        terms: dict[str, dict[str, str]] = {}
        for entity_id in ids:
            field, term = id_field(entity_id)
            terms.setdefault(field, {})[term] = entity_id
        rows = self.find(terms)
        unknown = [entity_id for entity_id in ids if entity_id not in rows]
        if unknown and self.catalog.has_merged_ids:
            rows |= self.find({"hashed_id": {id_hash(entity_id): entity_id for entity_id in unknown}})
        return [rows.get(entity_id) for entity_id in ids]

    def find(self, ids_by_term: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
        """Find rows by the terms of ids, which are given by field."""
        searches = [
            (self.index, terms_search(field, chunk) | {"_source": [*LINKED, "hashed_id"]})
            for field, terms in ids_by_term.items()
            for chunk in cut(list(terms), PAGE - 1)
        ]
        rows: dict[str, int] = {}
        for answer in self.searches.run(searches):
            for hit in answer["hits"]["hits"]:
                source = hit["_source"]
                self.note(source)
                for field, terms in ids_by_term.items():
                    own = [source["id"]] if field == "id" else source.get("hashed_id", ())
                    rows |= {terms[term]: source["row"] for term in own if term in terms}
        return rows

    def names_of(self, rows: Sequence[int]) -> list[list[SpokenName]]:
        """List the names of each entity with their languages, aliases last."""
        entities = self.at(rows)
        in_parts = [row for row, entity in zip(rows, entities, strict=True) if entity.named is None]
        whole = self.parts(in_parts, NAMED)
        return [
            names_in(whole[row] if entity.named is None else [entity.named], self.catalog.language)
            for row, entity in zip(rows, entities, strict=True)
        ]

    # Facts

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of pairs of an entity and a relation: a request for ids, and one for what they are."""
        objects = {pair: self.objects.get(pair) for pair in pairs}
        unknown = [pair for pair, rows in objects.items() if rows is None]
        subjects = [row for row, _ in unknown]
        known = dict(zip(subjects, self.at(subjects), strict=True))
        stated = [pair for pair in unknown if pair[1] in known[pair[0]].relations]
        ids: dict[tuple[int, int], list[str]] = {pair: [] for pair in unknown}
        documents = self.parts([row for row, _ in stated], ["objects"], at_once=WITH_FACTS)
        for row, relation in stated:
            for source in documents[row]:
                for name, targets in source.get("objects", ()):
                    if name == self.catalog.relations[relation]:
                        ids[row, relation] += targets
        targets = list({target for own in ids.values() for target in own})
        target_rows = dict(zip(targets, self.rows(targets), strict=True))
        for pair, own in ids.items():
            found = sorted(row for target in own if (row := target_rows[target]) is not None)
            if len(found) < len(own):
                name = self.catalog.kb
                raise KBUnusable(f"{name}: an object of {known[pair[0]].id} is missing; load it again", name=name)
            objects[pair] = in_order = np.array(found, dtype=np.uint32)
            self.objects.put(pair, in_order)
        return [rows for pair in pairs if (rows := objects[pair]) is not None]

    def subjects_of(self, rows: Sequence[int]) -> list[IncomingFacts]:
        """Return the incoming facts of entities, with the rows of their subjects."""
        facts = {row: self.incoming.get(row) for row in rows}
        unknown = [row for row, own in facts.items() if own is None]
        order, found = self.catalog.relation_rows, self.parts(unknown, ["subjects"], at_once=WITH_FACTS)
        for row in unknown:
            parts = found.get(row, ())
            incoming = incoming_facts(
                [(order[relation], subjects) for part in parts for relation, subjects in part.get("subjects", ())]
            )
            facts[row] = incoming
            self.incoming.put(row, incoming)
        return [own for row in rows if (own := facts[row]) is not None]

    def incoming_relations_of(self, rows: Sequence[int]) -> list[tuple[int, ...]]:
        """List the relations of the incoming facts of each entity, which are read without the facts."""
        relations = {row: self.relations_in.get(row) for row in rows}
        unknown = [row for row, known in relations.items() if known is None]
        for row, sources in self.parts(unknown, ["relations_in"]).items():
            relations[row] = own = rows_of(self.catalog.relation_rows, sources, "relations_in")
            self.relations_in.put(row, own)
        return [relations[row] or () for row in rows]


def rows_of(order: Mapping[str, int], sources: Sequence[Fields], field: str) -> tuple[int, ...]:
    """Return the rows of the labels in a field, ascending, once each."""
    return tuple(sorted({order[label] for source in sources for label in source.get(field, ())}))


def incoming_facts(groups: Sequence[tuple[int, Sequence[int]]]) -> IncomingFacts:
    """Put the subjects under each relation one after the other; a relation may go on in a further group."""
    relations = np.repeat(
        np.array([relation for relation, _ in groups], dtype=np.uint32), [len(subjects) for _, subjects in groups]
    )
    subjects = np.array([subject for _, group in groups for subject in group], dtype=np.uint32)
    order = np.lexsort((subjects, relations))
    return IncomingFacts(relations[order], subjects[order])
