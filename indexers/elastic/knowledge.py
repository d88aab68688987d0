"""A knowledge base on a cluster, which implements `KnowledgeBase` in few requests.

One request answers all n-grams of a question: the entities with these names, with their names, relations, types and
numbers of facts, and the number of names with each word. The answer is cached, so that ranking needs no further
requests. Rows are those of the loaded embedded knowledge base. An open knowledge base keeps the version that was
current when it was opened.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable, NotAllowed, ServerError, Unreachable
from kbtools.indexers.elastic.build_lock import update_lock
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.cluster_vectors import ElasticVectors, load_vectors
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import INCOMING, OUTGOING, facts_in, id_field, id_hash, names_in
from kbtools.indexers.elastic.mapping import ENTITIES, ROLES, IndexSettings, check_mapping_version
from kbtools.indexers.elastic.names import Names
from kbtools.indexers.elastic.searches import LINKED, NAMED, PAGE, Cache, Searches, cut, terms_search
from kbtools.indexers.elastic.versions import Version, current_version
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.language_tags import SpokenName, read_text
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.vector_index import EntityVectors

_REPLACED = 10.0
"""Seconds within which a copy replaces a shard whose node is lost."""

_KEPT_ENTITIES, _KEPT_FACTS = 50_000, 500
"""Entities cached, and cached pairs of an entity and a relation with their objects, or entities with their incoming
facts; at most twice as many.
"""

WITH_FACTS, _PARTS = 20, 10
"""Documents with facts, and further parts of entities, in one answer: each may have some megabytes."""

_Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _KnownEntity:
    """A cached entity; relations and types are rows, ascending.

    `named` are the fields with its names, None if they are spread over several documents.
    """

    id: str
    name: str | None
    relations: tuple[int, ...]
    types: tuple[int, ...]
    facts: int
    facts_in: int
    description: str | None
    named: _Fields | None


class ElasticKB(Catalog, BackendDefaults):
    """A knowledge base by its name on a cluster; see `KnowledgeBase` for the contract of each method."""

    def __init__(
        self, name: str, cluster: Cluster | None = None, *, url: str | None = None, version: Version | None = None
    ) -> None:
        """Open the current version, or one that nobody else reads yet; connect to a URL if no cluster is given."""
        cluster = cluster or Cluster(read_connection(url))
        self.version = version or _open_version(cluster, str(name))
        super().__init__(cluster, str(name), self.version.indexes[ENTITIES])
        self.searches = Searches(cluster, self.name)
        self.known: Cache[int, _KnownEntity] = Cache(_KEPT_ENTITIES)
        self.known_relations_in: Cache[int, tuple[int, ...]] = Cache(_KEPT_ENTITIES)
        self.known_objects: Cache[tuple[int, int], EntityRows] = Cache(_KEPT_FACTS)
        self.known_incoming: Cache[int, IncomingFacts] = Cache(_KEPT_FACTS)
        self.named = Names(self.searches, self.version.indexes, count=self.manifest.statistics["forms"], note=self.note)
        self.vector_index: ElasticVectors | None = None

    def close(self) -> None:
        self.cluster.close()

    # Documents

    def parts(self, rows: Sequence[int], fields: Sequence[str], *, at_once: int = PAGE) -> dict[int, list[_Fields]]:
        """Read fields of the documents of entities, part 0 first; rows without an entity are left out."""
        documents_of: dict[int, list[_Fields]] = {}
        for chunk in cut(list(dict.fromkeys(rows)), at_once):
            documents_of |= {main["row"]: [main] for main in self.documents(list(map(str, chunk)), [*fields, "parts"])}
        keys = [f"{row}-{part}" for row, (main,) in documents_of.items() for part in range(1, main.get("parts", 0) + 1)]
        for further in cut(keys, _PARTS):
            for source in self.documents(further, fields):
                documents_of[source["row"]].append(source)
        for row, documents in documents_of.items():
            if len(documents) <= documents[0].get("parts", 0):
                raise KBUnusable(
                    f"{self.name}: a part of entity {row} is missing; load the knowledge base again", row=row
                )
        return documents_of

    def documents(self, keys: Sequence[str], fields: Sequence[str]) -> list[_Fields]:
        """Read the existing documents with these ids, in order."""
        answer = self.searches.ask(
            "POST", f"/{self.index}/_mget", {"ids": keys}, params={"_source_includes": ",".join(["row", *fields])}
        )
        for document in answer["docs"]:
            if "error" in document:
                raise self.searches.failed(document["error"])
        return [document["_source"] for document in answer["docs"] if document.get("found")]

    # Entities

    def at(self, rows: Sequence[int]) -> list[_KnownEntity]:
        """Return entities, fetching those not cached; raise IndexError for an unused row."""
        entities = {row: self.known.get(row) for row in rows}
        unknown = [row for row, entity in entities.items() if entity is None]
        for row, sources in self.parts(unknown, LINKED).items():
            entities[row] = self.read(sources)
        if missing := [row for row, entity in entities.items() if entity is None]:
            raise IndexError(f"no entity at row {missing[0]}")
        return [entity for row in rows if (entity := entities[row])]

    def read(self, sources: Sequence[_Fields]) -> _KnownEntity:
        """Read an entity from its documents, part 0 first, and cache it."""
        main = sources[0]
        names = next(
            (source[field][0] for field in ("names", "aliases") for source in sources if field in source), None
        )
        entity = _KnownEntity(
            main["id"],
            names,
            _rows_of(self.relation_rows, sources, "relations"),
            _rows_of(self.type_rows, sources, "types"),
            main["facts"],
            main["facts_in"],
            read_text(main.get("description")),
            {field: main[field] for field in NAMED if field in main} if len(sources) == 1 else None,
        )
        self.known.put(main["row"], entity)
        return entity

    def note(self, source: _Fields) -> None:
        """Cache an entity that a search returned, unless it is cached or spread over several documents."""
        if source["part"] == 0 and "parts" not in source and self.known.get(source["row"]) is None:
            self.read([source])

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        terms: dict[str, dict[str, str]] = {}
        for entity_id in ids:
            field, term = id_field(entity_id)
            terms.setdefault(field, {})[term] = entity_id
        rows = self.find(terms)
        unknown = [entity_id for entity_id in ids if entity_id not in rows]
        if unknown and self.head["merged"]:
            rows |= self.find({"hashed_id": {id_hash(entity_id): entity_id for entity_id in unknown}})
        return [rows.get(entity_id) for entity_id in ids]

    def find(self, ids_by_term: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
        """Return rows by the terms of ids, grouped by field; caches the entities in the answer."""
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
                    spellings = [source["id"]] if field == "id" else source.get("hashed_id", ())
                    rows |= {terms[term]: source["row"] for term in spellings if term in terms}
        return rows

    def ids(self, entities: EntityRows) -> list[str]:
        return [entity.id for entity in self.at(entities.tolist())]

    def names(self, entities: EntityRows) -> list[str | None]:
        return [entity.name for entity in self.at(entities.tolist())]

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        known = dict(zip(entities.tolist(), self.at(entities.tolist()), strict=True))
        in_parts = self.parts([row for row, entity in known.items() if entity.named is None], NAMED)
        stored = {row: in_parts[row] if entity.named is None else [entity.named] for row, entity in known.items()}
        return [names_in(stored[row], self.language) for row in entities.tolist()]

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [entity.description for entity in self.at(entities.tolist())]

    def types_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.types for entity in self.at(entities.tolist())])

    # Facts

    def relations_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.relations for entity in self.at(entities.tolist())])

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([entity.facts for entity in self.at(entities.tolist())], dtype=np.int64)

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([entity.facts_in for entity in self.at(entities.tolist())], dtype=np.int64)

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        """Return the objects of pairs of an entity and a relation, with one request for ids and one for their rows."""
        objects = {pair: self.known_objects.get(pair) for pair in pairs}
        unknown = [pair for pair, rows in objects.items() if rows is None]
        subjects = [row for row, _ in unknown]
        known = dict(zip(subjects, self.at(subjects), strict=True))
        stated = [pair for pair in unknown if pair[1] in known[pair[0]].relations]
        ids: dict[tuple[int, int], list[str]] = {pair: [] for pair in unknown}
        documents = self.parts([row for row, _ in stated], OUTGOING, at_once=WITH_FACTS)
        for row, relation in stated:
            for source in documents[row]:
                for name, targets in facts_in(source, *OUTGOING):
                    if name == self.relations[relation]:
                        ids[row, relation] += targets
        targets = list({target for ids_of_pair in ids.values() for target in ids_of_pair})
        target_rows = dict(zip(targets, self.rows(targets), strict=True))
        for pair, ids_of_pair in ids.items():
            object_rows = sorted(row for target in ids_of_pair if (row := target_rows[target]) is not None)
            if len(object_rows) < len(ids_of_pair):
                raise KBUnusable(
                    f"{self.name}: an object of {known[pair[0]].id} is missing; load it again", name=self.name
                )
            objects[pair] = in_order = np.array(object_rows, dtype=np.uint32)
            self.known_objects.put(pair, in_order)
        return [rows for pair in pairs if (rows := objects[pair]) is not None]

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        facts = {row: self.known_incoming.get(row) for row in entities.tolist()}
        unknown = [row for row, own in facts.items() if own is None]
        order, found = self.relation_rows, self.parts(unknown, INCOMING, at_once=WITH_FACTS)
        for row in unknown:
            parts = found.get(row, ())
            facts[row] = incoming = incoming_facts(
                [(order[relation], subjects) for part in parts for relation, subjects in facts_in(part, *INCOMING)]
            )
            self.known_incoming.put(row, incoming)
        return [own for row in entities.tolist() if (own := facts[row]) is not None]

    def incoming_relations_of(self, entities: EntityRows) -> Grouped:
        relations = {row: self.known_relations_in.get(row) for row in entities.tolist()}
        unknown = [row for row, known in relations.items() if known is None]
        for row, sources in self.parts(unknown, ["relations_in"]).items():
            relations[row] = rows = _rows_of(self.relation_rows, sources, "relations_in")
            self.known_relations_in.put(row, rows)
        return Grouped.of([relations[row] or () for row in entities.tolist()])

    # Names

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        return self.named.lookup(forms)

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        return self.named.similar(forms, limit=limit, cutoff=cutoff, edits_only=edits_only)

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.named.frequency(words)

    # Vectors

    def vectors(self) -> ElasticVectors:
        if self.vector_index is None:
            self.vector_index = ElasticVectors(self.name, self.version, self.searches)
        return self.vector_index

    def load_vectors(self, vectors: EntityVectors, *, settings: IndexSettings | None = None) -> ElasticVectors:
        """Store vectors of entities on the cluster, replacing existing ones.

        Raises BuildLocked while it is loaded or updated, ServerError if its version changed meanwhile.
        """
        settings = settings or IndexSettings()
        with update_lock(self.cluster, self.name):
            if current_version(self.cluster, self.name).number != self.version.number:
                raise ServerError(
                    f"{self.name}: another version became current in the meantime; run the same command again"
                )
            load_vectors(self.cluster, self.version, vectors, entities=self.row_count, settings=settings)
        self.vector_index = None
        return self.vectors()


def _open_version(cluster: Cluster, kb: str) -> Version:
    """Return the current version; raise an error for another mapping, or a missing index or shard."""
    cluster.greet()
    version = current_version(cluster, kb)
    for index in version.indexes.values():
        check_mapping_version(index, version.mapping)
    missing = sorted(set(ROLES) - version.indexes.keys())
    if missing:
        raise KBUnusable(
            f"{kb}: version {version.number} lacks the indexes {', '.join(missing)}; load it again", name=kb
        )
    _check_health(cluster, kb, [version.indexes[role] for role in ROLES])
    return version


def _check_health(cluster: Cluster, kb: str, indexes: Sequence[str]) -> None:
    """Raise an error if a knowledge base lacks a shard, after a pause in which a lost node is replaced."""
    moment = replace(cluster.patience, total=_REPLACED)
    with suppress(NotAllowed):  # Reading requires fewer privileges than cluster health.
        health = cluster.health(",".join(indexes), until=lambda health: health["status"] != "red", patience=moment)
        if health and health["status"] == "red":
            raise Unreachable(
                f"{cluster.connection.where}: {kb} lacks {health['unassigned_shards']} of its shards, "
                "the cluster's health is red; start the missing nodes, or load it again",
                name=kb,
            )


def _rows_of(order: Mapping[str, int], sources: Sequence[_Fields], field: str) -> tuple[int, ...]:
    """Return the distinct rows of the labels in a field, ascending."""
    return tuple(sorted({order[label] for source in sources for label in source.get(field, ())}))


def incoming_facts(groups: Sequence[tuple[int, Sequence[int]]]) -> IncomingFacts:
    """Concatenate the subjects under each relation; a relation may be continued in a further group."""
    relations = np.repeat(
        np.array([relation for relation, _ in groups], dtype=np.uint32), [len(subjects) for _, subjects in groups]
    )
    subjects = np.array([subject for _, group in groups for subject in group], dtype=np.uint32)
    order = np.lexsort((subjects, relations))
    return IncomingFacts(relations[order], subjects[order])
