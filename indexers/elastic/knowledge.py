"""A knowledge base on a cluster: what `KnowledgeBase` promises, in few requests.

One request answers all n-grams of a question: the entities that bear them, with names, relations, types and numbers
of facts, and how many names hold each word. What it brought is remembered, so that the ranking asks nothing more.
Rows are those of the embedded knowledge base that was loaded. An open knowledge base stays with the version that was
current when it was opened.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable, NotAllowed, Unreachable
from kbtools.forms import name_forms
from kbtools.indexers.elastic.cache import Cache
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import LONGEST_TERM, id_field, term_of
from kbtools.indexers.elastic.forms import word_term
from kbtools.indexers.elastic.fuzzy import recall_searches, recalled
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES, ROLES, check_mapping_version
from kbtools.indexers.elastic.searches import Searches
from kbtools.indexers.elastic.versions import Version, current_version
from kbtools.knowledge import EntityRows, Grouped, NameMatch, SimilarName
from kbtools.manifest import Manifest
from kbtools.ngrams import Question, ngrams
from kbtools.rungs import Form
from kbtools.similarity import LONGEST_NAME, rescore

FORMS_REMEMBERED = 50_000
ENTITIES_REMEMBERED = 50_000
WORDS_REMEMBERED = 100_000
SIMILAR_REMEMBERED = 1_000
OBJECTS_REMEMBERED = 500

OBJECTS_AT_ONCE = 20
"""Entities whose objects come in one answer; each may have some megabytes of them."""

TERMS_AT_ONCE = 4_000
"""Forms in one search; the cluster's own limit is 65,536."""

PAGE = 1_000
"""Entities in one answer; more of them come in further ones."""

LINKED = ["row", "part", "parts", "id", "names", "aliases", "types", "relations", "facts"]

forms_of = lru_cache(50_000)(name_forms)


@dataclass(frozen=True, slots=True)
class Entity:
    """What is remembered of an entity; relations and types are rows, ascending."""

    id: str
    name: str | None
    relations: tuple[int, ...]
    types: tuple[int, ...]
    facts: int


class ElasticKB:
    """A knowledge base by its name on a cluster; see `KnowledgeBase` for what each method promises."""

    def __init__(self, name: str, cluster: Cluster | None = None) -> None:
        self.name = str(name)
        self.cluster = cluster or Cluster(read_connection())
        self.cluster.greet()
        self.version: Version = current_version(self.cluster, self.name)
        for index in self.version.indexes.values():
            check_mapping_version(index, self.version.mapping)
        if not set(ROLES) <= self.version.indexes.keys():
            raise KBUnusable(
                f"{self.name}: version {self.version.number} lacks the indexes "
                f"{', '.join(sorted(set(ROLES) - self.version.indexes.keys()))}; load it again",
                name=self.name,
            )
        self.entities, self.named = self.version.indexes[ENTITIES], self.version.indexes[NAMES]
        self.check_health()
        self.manifest = Manifest.from_record(self.catalog("manifest")["manifest"])
        self.searches = Searches(self.cluster, self.name)
        self.matches: Cache[str, Sequence[NameMatch]] = Cache(FORMS_REMEMBERED)
        self.known: Cache[int, Entity] = Cache(ENTITIES_REMEMBERED)
        self.frequencies: Cache[str, int] = Cache(WORDS_REMEMBERED)
        self.objects: Cache[tuple[int, int], EntityRows] = Cache(OBJECTS_REMEMBERED)
        self.near: Cache[tuple[str, int, float], list[SimilarName]] = Cache(SIMILAR_REMEMBERED)

    def close(self) -> None:
        self.cluster.close()

    def check_health(self) -> None:
        """Refuse a knowledge base that lacks a shard; give a node that was just lost a moment to be replaced."""
        with suppress(NotAllowed):  # reading asks for less than knowing the cluster's health
            health = self.cluster.ask(
                "GET", f"/_cluster/health/{self.entities},{self.named}", to=f"ask for the health of {self.name}",
                params={"wait_for_status": "yellow", "timeout": "10s"}, missing_ok=True,
            )  # fmt: skip
            if health and health["status"] == "red":
                raise Unreachable(
                    f"{self.cluster.connection.where}: {self.name} lacks {health['unassigned_shards']} of its shards, "
                    "the cluster's health is red; start the nodes that are down, or load it again",
                    name=self.name,
                )

    def catalog(self, document: str) -> dict[str, Any]:
        """Read a document that belongs to the whole knowledge base."""
        told = self.cluster.ask("GET", f"/{self.entities}/_doc/{document}", to=f"open {self.name}", missing_ok=True)
        if not told or not told.get("found"):
            raise KBUnusable(f"{self.name}: {self.entities} has no {document}; load it again", name=self.name)
        return dict(told["_source"]["catalog"])

    def listed(self, name: str) -> tuple[str, ...]:
        """Read the ids of relations or of types, by row."""
        first = self.catalog(f"{name}-0")
        ids = list(first["ids"])
        for number in range(1, first["of"]):
            ids += self.catalog(f"{name}-{number}")["ids"]
        return tuple(ids)

    @cached_property
    def relations(self) -> Sequence[str]:
        return self.listed("relations")

    @cached_property
    def types(self) -> Sequence[str]:
        return self.listed("types")

    @cached_property
    def relation_rows(self) -> dict[str, int]:
        return {relation: row for row, relation in enumerate(self.relations)}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {kind: row for row, kind in enumerate(self.types)}

    def expect(self, questions: Sequence[Question]) -> None:
        """Fetch what many questions ask for first, in one request."""
        lengths = self.manifest.lengths
        forms = dict.fromkeys(ngram.form for question in questions for ngram in ngrams(question, lengths=lengths))
        self.fetch(list(forms))

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        found = self.fetch(forms)
        return {form: matches for form, matches in found.items() if matches}

    def fetch(self, forms: Sequence[str]) -> dict[str, Sequence[NameMatch]]:
        """Find the names under forms, none for some: those remembered, and the others in one request."""
        found: dict[str, Sequence[NameMatch]] = {}
        unknown = []
        for form in dict.fromkeys(forms):
            matches = self.matches.get(form)
            if matches is not None:
                found[form] = matches
            elif form:
                unknown.append(form)
        if not unknown:
            return found
        words = self.frequencies.missing(word for form in unknown for word in form.split(" ") if is_counted(word))
        searches = [terms_search("forms", terms) for terms in cut([term_of(form) for form in unknown], TERMS_AT_ONCE)]
        counts = [(self.named, count_search(chunk)) for chunk in cut(words, TERMS_AT_ONCE)]
        answers = self.searches.run([(self.entities, body) for body in searches] + counts)
        hits = [hit for answer, body in zip(answers, searches, strict=False) for hit in self.all_hits(answer, body)]
        self.note_counts(answers[len(searches) :])
        found |= self.note_matches(unknown, hits)
        return found

    def all_hits(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Yield the hits of a search by row, further pages too."""
        while True:
            hits = answer["hits"]["hits"]
            yield from hits
            if len(hits) < body["size"]:
                return
            body = body | {"search_after": hits[-1]["sort"]}
            (answer,) = self.searches.run([(self.entities, body)])

    def note_matches(self, forms: list[str], hits: list[dict[str, Any]]) -> dict[str, Sequence[NameMatch]]:
        """Group hits by form, kind and spelling, as the embedded index keeps them; remember them and the entities."""
        asked = set(forms)
        groups: dict[str, dict[tuple[Form, str], list[int]]] = {}
        for hit in hits:
            source = hit["_source"]
            row = source["row"]
            if source["part"] == 0:
                self.remember(source)
            for text in source.get("names", []) + source.get("aliases", []):
                for form, kind in forms_of(text).items():
                    if form in asked:
                        groups.setdefault(form, {}).setdefault((kind, text), []).append(row)
        found: dict[str, Sequence[NameMatch]] = {}
        for form in forms:
            found[form] = tuple(
                NameMatch(text, kind, np.array(sorted(set(rows)), dtype=np.uint32))
                for (kind, text), rows in sorted(groups.get(form, {}).items())
            )
            self.matches.put(form, found[form])
        return found

    def note_counts(self, answers: Iterable[dict[str, Any]]) -> dict[str, int]:
        """Read how many names hold each word, and remember it."""
        counts = {
            word: int(bucket["doc_count"])
            for answer in answers
            for word, bucket in answer["aggregations"]["words"]["buckets"].items()
        }
        for word, count in counts.items():
            self.frequencies.put(word, count)
        return counts

    def remember(self, source: dict[str, Any]) -> Entity:
        """Remember an entity from its document; one in several parts is completed when it is asked for."""
        names = source.get("names") or source.get("aliases")
        order, kinds = self.relation_rows, self.type_rows
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

    def entities_at(self, rows: Sequence[int]) -> list[Entity]:
        """Give what is known of entities, fetching what is not remembered."""
        found = {row: self.known.get(row) for row in rows}
        unknown = [row for row, entity in found.items() if entity is None]
        for chunk in cut(unknown, PAGE):
            found |= self.fetch_entities(chunk)
        missing = [row for row in rows if found.get(row) is None]
        if missing:
            raise IndexError(f"no entity at row {missing[0]}")
        return [entity for row in rows if (entity := found[row])]

    def fetch_entities(self, rows: Sequence[int]) -> dict[int, Entity | None]:
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

    def completed(self, source: dict[str, Any], entity: Entity) -> Entity:
        """Put together what stands in the further parts of an entity."""
        more = self.part_documents(source, ["names", "aliases", "relations", "types"])
        relations, types = set(entity.relations), set(entity.types)
        name = source["names"][0] if source.get("names") else None
        for part in more:
            relations.update(self.relation_rows[relation] for relation in part.get("relations", ()))
            types.update(self.type_rows[kind] for kind in part.get("types", ()))
        return Entity(entity.id, name or entity.name, tuple(sorted(relations)), tuple(sorted(types)), entity.facts)

    def part_documents(self, source: dict[str, Any], fields: list[str]) -> list[dict[str, Any]]:
        """Read the further parts of an entity, in order."""
        row, parts = source["row"], source.get("parts", 0)
        keys = [f"{row}-{part}" for part in range(1, parts + 1)]
        found = [source for chunk in cut(keys, 10) for source in self.documents(chunk, fields)]
        if len(found) != parts:
            raise KBUnusable(f"{self.name}: a part of entity {row} is missing; load the knowledge base again", row=row)
        return found

    def documents(self, keys: Sequence[str], fields: list[str]) -> list[dict[str, Any]]:
        """Read documents by their ids, those that exist, in order."""
        told = self.searches.ask(
            "POST", f"/{self.entities}/_mget", {"ids": list(keys)}, params={"_source_includes": ",".join(fields)}
        )
        for document in told["docs"]:
            if "error" in document:
                raise self.searches.failed(document["error"])
        return [document["_source"] for document in told["docs"] if document.get("found")]

    def similar(self, form: str, *, limit: int = 20, cutoff: float = 80.0) -> list[SimilarName]:
        known = self.near.get((form, limit, cutoff))
        return list(self.fetch_similar([form], limit, cutoff)[form] if known is None else known)

    def expect_similar(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> None:
        """Fetch the names close to several forms, in one request."""
        self.fetch_similar(
            [form for form in dict.fromkeys(forms) if self.near.get((form, limit, cutoff)) is None], limit, cutoff
        )

    def fetch_similar(self, wanted: Sequence[str], limit: int, cutoff: float) -> dict[str, list[SimilarName]]:
        """Recall and rescore the names close to forms, and remember them."""
        askable = [form for form in wanted if form and len(form) <= LONGEST_NAME]
        words = {word for form in askable for word in form.split(" ")}
        known = {word for word, count in zip(words, self.name_frequency(list(words)), strict=True) if count}
        searches = {form: recall_searches(form, known) for form in askable}
        answers = iter(self.searches.run([(self.named, body) for bodies in searches.values() for body in bodies]))
        found = {}
        for form in wanted:
            sources = {one["form"]: one for _ in searches.get(form, ()) for one in recalled(next(answers))}
            found[form] = rescore(form, sources, limit=limit, cutoff=cutoff)
            self.near.put((form, limit, cutoff), found[form])
            for near in found[form]:
                self.note_linked(sources[near.form])
        return found

    def note_linked(self, source: dict[str, Any]) -> None:
        """Remember what the document of a form says of its bearers; it says nothing where they are many."""
        if "matches" not in source:
            return
        for row, entity_id, name, relations, types, facts in source["bearers"]:
            self.known.put(row, Entity(entity_id, name, tuple(relations), tuple(types), facts))
        for word, count in source["counts"]:
            self.frequencies.put(word, count)
        self.matches.put(
            source["form"],
            tuple(
                NameMatch(text, Form(kind), np.array(rows, dtype=np.uint32)) for kind, text, rows in source["matches"]
            ),
        )

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        found = {word: self.frequencies.get(word) for word in words if is_counted(word)}
        unknown = [word for word, count in found.items() if count is None]
        if unknown:
            counts = [(self.named, count_search(chunk)) for chunk in cut(unknown, TERMS_AT_ONCE)]
            found |= self.note_counts(self.searches.run(counts))
        return [found.get(word) or 0 for word in words]

    def relations_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.relations for entity in self.entities_at(entities.tolist())])

    def types_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.types for entity in self.entities_at(entities.tolist())])

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([entity.facts for entity in self.entities_at(entities.tolist())], dtype=np.int64)

    def ids(self, entities: EntityRows) -> list[str]:
        return [entity.id for entity in self.entities_at(entities.tolist())]

    def names(self, entities: EntityRows) -> list[str | None]:
        return [entity.name for entity in self.entities_at(entities.tolist())]

    def objects_of(self, entity: int, relation: int) -> EntityRows:
        pair = entity, relation
        known = self.objects.get(pair)
        found = self.fetch_objects([pair]).get(pair) if known is None else known
        return np.empty(0, dtype=np.uint32) if found is None else found

    def expect_objects(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Fetch the objects of pairs that are not remembered."""
        self.fetch_objects(self.objects.missing(pairs))

    def fetch_objects(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], EntityRows]:
        """Fetch the objects of pairs: a request for their ids, and one for what is to be known of them."""
        known = dict(
            zip([entity for entity, _ in pairs], self.entities_at([entity for entity, _ in pairs]), strict=True)
        )
        wanted = [pair for pair in pairs if pair[1] in known[pair[0]].relations]
        ids: dict[tuple[int, int], list[str]] = {}
        for chunk in cut(wanted, OBJECTS_AT_ONCE):
            sources = self.object_lists([entity for entity, _ in chunk])
            ids |= {pair: sources[pair[0]].get(self.relations[pair[1]], []) for pair in chunk}
        rows = dict(zip(every := list({one for found in ids.values() for one in found}), self.rows(every), strict=True))
        objects: dict[tuple[int, int], EntityRows] = {}
        for pair, found in ids.items():
            targets = [row for one in found if (row := rows[one]) is not None]
            if len(targets) != len(found):
                raise KBUnusable(
                    f"{self.name}: an object of {known[pair[0]].id} is missing; load it again", name=self.name
                )
            objects[pair] = np.array(sorted(targets), dtype=np.uint32)
            self.objects.put(pair, objects[pair])
        return objects

    def object_lists(self, entities: Sequence[int]) -> dict[int, dict[str, list[str]]]:
        """Read the ids of objects by entity and relation."""
        lists: dict[int, dict[str, list[str]]] = {}
        sources = self.documents([str(entity) for entity in dict.fromkeys(entities)], ["row", "parts", "objects"])
        further = [part for source in sources for part in self.part_documents(source, ["row", "objects"])]
        for source in sources + further:
            for relation, targets in source.get("objects", ()):
                lists.setdefault(source["row"], {}).setdefault(relation, []).extend(targets)
        return lists

    def aliases(self, entity: int) -> list[str]:
        sources = self.documents([str(entity)], ["row", "parts", "names", "aliases"])
        if not sources:
            raise IndexError(f"no entity at row {entity}")
        sources += self.part_documents(sources[0], ["names", "aliases"])
        return [text for kind in ("names", "aliases") for source in sources for text in source.get(kind, ())]

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        """Find rows by id; what is found on the way is remembered."""
        terms: dict[str, set[str]] = {}
        for entity_id in ids:
            field, term = id_field(entity_id)
            terms.setdefault(field, set()).add(term)
        bodies = [terms_search(field, chunk) for field, some in terms.items() for chunk in cut(sorted(some), PAGE - 1)]
        found: dict[str, int] = {}
        for answer in self.searches.run([(self.entities, body) for body in bodies]):
            for hit in answer["hits"]["hits"]:
                self.remember(hit["_source"])
                found[hit["_source"]["id"]] = hit["_source"]["row"]
        return [found.get(entity_id) for entity_id in ids]


def is_counted(word: str) -> bool:
    """Tell whether a word is one that names are counted by."""
    return bool(word) and len(word.encode()) <= LONGEST_TERM


def terms_search(field: str, terms: Sequence[str]) -> dict[str, Any]:
    """Search for entities by the terms of a field, in the order of their rows."""
    return {
        "size": PAGE,
        "query": {"constant_score": {"filter": {"terms": {field: list(terms)}}}},
        "sort": ["row", "part"],
        "_source": LINKED,
        "track_total_hits": False,
    }


def count_search(words: Sequence[str]) -> dict[str, Any]:
    """Count the names that hold each word."""
    filters = {word: {"term": {"words": word_term(word)}} for word in words}
    return {"size": 0, "track_total_hits": False, "aggs": {"words": {"filters": {"filters": filters}}}}


def cut(values: Sequence[Any], size: int) -> list[Any]:
    return [values[start : start + size] for start in range(0, len(values), size)]
