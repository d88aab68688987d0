"""A knowledge base on a cluster, which keeps the promises of `KnowledgeBase` in few requests.

One request answers all n-grams of a question: the entities that bear them, with names, relations, types and numbers
of facts, and how many names hold each word. Its answer is remembered, so that the ranking asks nothing more.
Rows are those of the embedded knowledge base that was loaded. An open knowledge base stays with the version that was
current when it was opened. Entity vectors are an index of their own beside a version.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BulkFailed, KBUnusable, NotAllowed, ServerError, Unreachable, VectorsMissing, WrongFormat
from kbtools.indexers.elastic.build_lock import update_lock
from kbtools.indexers.elastic.bulk import Sender, Sent
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import Document, encode
from kbtools.indexers.elastic.entities import Entities
from kbtools.indexers.elastic.loading import PATIENCE
from kbtools.indexers.elastic.mapping import (
    ENTITIES,
    NAMES,
    ROLES,
    VECTORS,
    IndexMark,
    IndexSettings,
    check_mapping_version,
    final_settings,
    index_body,
    index_name,
    loading_alias,
)
from kbtools.indexers.elastic.names import Names, SimilarNames
from kbtools.indexers.elastic.searches import Searches
from kbtools.indexers.elastic.versions import Version, current_version, list_versions
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.language_tags import SpokenName
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.vector_index import EntityVectors, Neighbours, VectorOrigin, check_dim, normalised

REPLACED = 10.0
"""Seconds in which a copy takes the place of a shard whose node is lost."""

CANDIDATES = 10
"""Entities that a shard looks at for each one asked for: more of them find more of the true ones, and cost more."""

LEAST_CANDIDATES, MOST_CANDIDATES = 200, 10_000
"""Bounds of that number: 10,000 is the cluster's own; with 200 the benchmark's recall@10 of 50,000 vectors is 1.00."""

SEARCHES = 50
"""Searches in one request: each is a text of some kilobytes, and costs more than a look-up of names."""

MOST_DIMENSIONS = 4_096
"""The cluster's own limit for `dense_vector`."""


class ElasticVectors:
    """The vectors of a knowledge base on a cluster; see `VectorIndex` for what each method promises.

    The search is approximate; `kbtools.kb.vector_index.recall` measures it against the exact one.
    """

    def __init__(self, name: str, version: Version, searches: Searches) -> None:
        """Find the vectors of a version; raise VectorsMissing if it has none."""
        index = version.indexes.get(VECTORS)
        if index is None:
            raise VectorsMissing(
                f"{name}: has no entity vectors; make them with kbtools index vectors --elasticsearch --kb {name}, "
                "or use a pruner that needs none",
                name=name,
            )
        self.index, self.searches = index, searches
        described = searches.ask("GET", f"/{index}/_mapping")[index]
        mark = IndexMark.of(described)
        self.size = int(described["mappings"]["properties"]["vector"]["dims"])
        origin = mark.origin if mark else {}
        self.origin = VectorOrigin(str(origin.get("subject", "")), str(origin.get("model", "")))
        self.count = int(searches.ask("GET", f"/{index}/_count")["count"])

    @property
    def dim(self) -> int:
        return self.size

    def __len__(self) -> int:
        return self.count

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        check_dim(vectors, self.size)
        limit = min(limit, self.count)
        rows = np.empty((len(vectors), limit), dtype=np.uint32)
        cosines = np.empty((len(vectors), limit), dtype=np.float32)
        if not limit:
            return Neighbours(rows, cosines)
        wide = min(max(CANDIDATES * limit, LEAST_CANDIDATES), MOST_CANDIDATES)
        bodies = [nearest_search(vector.tolist(), limit, wide) for vector in vectors]
        for first in range(0, len(bodies), SEARCHES):
            answers = self.searches.run([(self.index, body) for body in bodies[first : first + SEARCHES]])
            for place, answer in enumerate(answers, first):
                # By score, the highest first, then by row; the score is (1 + cosine) / 2.
                hits = sorted((-hit["_score"], hit["fields"]["row"][0]) for hit in answer["hits"]["hits"])
                rows[place] = [row for _, row in hits]
                cosines[place] = [-2 * score - 1 for score, _ in hits]
        return Neighbours(rows, cosines)

    def use(self, device: str) -> None:
        """Do nothing: the cluster computes where it is."""

    def vector(self, entity_row: int) -> NDArray[np.float32] | None:
        body = {"size": 1, "query": {"term": {"row": entity_row}}, "_source": {"exclude_vectors": False}}
        (answer,) = self.searches.run([(self.index, body)])
        stored = [hit["_source"]["vector"] for hit in answer["hits"]["hits"]]
        return normalised(np.array(stored, dtype=np.float32))[0] if stored else None


class ElasticKB(BackendDefaults):
    """A knowledge base by its name on a cluster; see `KnowledgeBase` for what each method promises."""

    def __init__(self, name: str, cluster: Cluster | None = None, *, version: Version | None = None) -> None:
        """Open the current version, or one that nobody else reads yet."""
        self.name = str(name)
        self.cluster = cluster or Cluster(read_connection())
        self.version = version or open_version(self.cluster, self.name)
        self.catalog = Catalog(self.cluster, self.name, self.version.indexes[ENTITIES])
        self.manifest = self.catalog.manifest
        self.searches = Searches(self.cluster, self.name)
        self.entities = Entities(self.searches, self.catalog)
        self.named = Names(self.entities, self.version.indexes[NAMES])
        self.near = SimilarNames(self.named, count=self.manifest.statistics.get("forms", 0))
        self.vector_index: ElasticVectors | None = None

    def close(self) -> None:
        self.cluster.close()

    @property
    def relations(self) -> Sequence[str]:
        return self.catalog.relations

    @property
    def relation_names(self) -> Sequence[str | None]:
        return self.catalog.relation_names

    @property
    def types(self) -> Sequence[str]:
        return self.catalog.types

    @cached_property
    def present_rows(self) -> EntityRows:
        gone = np.array(sorted(self.catalog.gone), dtype=np.uint32)
        return np.setdiff1d(np.arange(self.catalog.rows, dtype=np.uint32), gone, assume_unique=True)

    def entity_rows(self) -> EntityRows:
        return self.present_rows

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return self.entities.rows(ids)

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        return self.named.lookup(forms)

    def similar(
        self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0, edits_only: bool = False
    ) -> list[list[SimilarName]]:
        return self.near.to(forms, limit=limit, cutoff=cutoff, edits_only=edits_only)

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.named.frequency(words)

    def ids(self, entities: EntityRows) -> list[str]:
        return [entity.id for entity in self.entities.at(entities.tolist())]

    def names(self, entities: EntityRows) -> list[str | None]:
        return [entity.name for entity in self.entities.at(entities.tolist())]

    def names_of(self, entities: EntityRows) -> list[list[SpokenName]]:
        return self.entities.names_of(entities.tolist())

    def descriptions(self, entities: EntityRows) -> list[str | None]:
        return [entity.description for entity in self.entities.at(entities.tolist())]

    def relations_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.relations for entity in self.entities.at(entities.tolist())])

    def types_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.types for entity in self.entities.at(entities.tolist())])

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([entity.facts for entity in self.entities.at(entities.tolist())], dtype=np.int64)

    def incoming_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([entity.facts_in for entity in self.entities.at(entities.tolist())], dtype=np.int64)

    def objects_of(self, pairs: Sequence[tuple[int, int]]) -> list[EntityRows]:
        return self.entities.objects_of(pairs)

    def subjects_of(self, entities: EntityRows) -> list[IncomingFacts]:
        return self.entities.subjects_of(entities.tolist())

    def incoming_relations_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of(self.entities.incoming_relations_of(entities.tolist()))

    def vectors(self) -> ElasticVectors:
        if self.vector_index is None:
            self.vector_index = ElasticVectors(self.name, self.version, self.searches)
        return self.vector_index

    def load_vectors(self, vectors: EntityVectors, *, settings: IndexSettings | None = None) -> ElasticVectors:
        """Put vectors of entities on the cluster, in place of those that the knowledge base has.

        Raises BuildLocked while it is loaded or updated, ServerError if it has another version meanwhile.
        """
        with update_lock(self.cluster, self.name):
            if current_version(self.cluster, self.name).number != self.version.number:
                raise ServerError(f"{self.name}: another version became current meanwhile; run the same command again")
            load_vectors(
                self.cluster,
                self.version,
                vectors,
                entities=self.catalog.rows,
                settings=settings or IndexSettings(),
            )
        self.vector_index = None
        return self.vectors()


def open_version(cluster: Cluster, kb: str) -> Version:
    """Return the current version; raise an error if its mapping is not ours, or an index or a shard is missing."""
    cluster.greet()
    version = current_version(cluster, kb)
    for index in version.indexes.values():
        check_mapping_version(index, version.mapping)
    missing = sorted(set(ROLES) - version.indexes.keys())
    if missing:
        raise KBUnusable(
            f"{kb}: version {version.number} lacks the indexes {', '.join(missing)}; load it again", name=kb
        )
    check_health(cluster, kb, [version.indexes[role] for role in ROLES])
    return version


def check_health(cluster: Cluster, kb: str, indexes: Sequence[str]) -> None:
    """Refuse a knowledge base that lacks a shard, after a moment in which a node that was just lost is replaced."""
    moment = replace(cluster.patience, total=REPLACED)
    with suppress(NotAllowed):  # reading asks for less than knowing the cluster's health
        health = cluster.health(",".join(indexes), until=lambda health: health["status"] != "red", patience=moment)
        if health and health["status"] == "red":
            raise Unreachable(
                f"{cluster.connection.where}: {kb} lacks {health['unassigned_shards']} of its shards, "
                "the cluster's health is red; start the nodes that are down, or load it again",
                name=kb,
            )


def nearest_search(vector: list[float], limit: int, wide: int) -> dict[str, object]:
    """Write a search for the nearest vectors; the cluster scores a cosine as (1 + cosine) / 2."""
    return {
        "size": limit,
        "knn": {"field": "vector", "query_vector": vector, "k": limit, "num_candidates": wide},
        "_source": False,
        "docvalue_fields": ["row"],
        "track_total_hits": False,
    }


def load_vectors(
    cluster: Cluster, version: Version, vectors: EntityVectors, *, entities: int, settings: IndexSettings
) -> None:
    """Put vectors beside a version of a knowledge base of so many entities, in place of those it has.

    Raises WrongFormat for what is no vector of an entity, BadVectors for a value that is no number, VectorsMissing if
    no entity has one, BulkFailed if the cluster rejects one.
    """
    check_vectors(vectors, entities)
    kb, number = version.kb, version.number
    index = index_name(kb, number, VECTORS)
    cluster.ask("DELETE", f"/{index}", to=f"replace {index}", missing_ok=True)
    body = index_body(VECTORS, kb=kb, version=number, settings=settings)
    body["mappings"]["properties"]["vector"]["dims"] = vectors.dim
    cluster.ask("PUT", f"/{index}", body, to=f"create the index {index}")
    try:
        send_vectors(cluster, index, vectors)
    except BaseException:
        cluster.ask("DELETE", f"/{index}", to="remove what was not loaded whole", missing_ok=True)
        raise
    cluster.ask("PUT", f"/{index}/_settings", final_settings(settings), to="restore the settings", patience=PATIENCE)
    mark = IndexMark(kb, number, version.mapping, complete=True, origin=asdict(vectors.origin))
    cluster.ask("PUT", f"/{index}/_mapping", {"_meta": mark.to_meta()}, to=f"mark {index} as complete")
    actions = [
        {"add": {"index": index, "alias": kb}},
        {"remove": {"index": index, "alias": loading_alias(index), "must_exist": False}},
    ]
    if any(other.number == number and other.current for other in list_versions(cluster, kb)):
        cluster.ask("POST", "/_aliases", {"actions": actions}, to="show the vectors")
    version.indexes[VECTORS] = index


def send_vectors(cluster: Cluster, index: str, vectors: EntityVectors) -> None:
    """Send vectors to an index and count them there."""
    rejected: list[str] = []
    sent = 0

    def confirm(outcome: Sent) -> None:
        rejected.extend(document.reason for document in outcome.rejected)

    def documents() -> Iterator[Document]:
        nonlocal sent
        for rows, chunk in vectors.chunks():
            for row, vector in zip(rows.tolist(), chunk, strict=True):
                sent += 1
                yield Document(str(row), encode({"row": row, "vector": vector.tolist()}).encode(), sent)

    Sender(cluster, patience=PATIENCE).send_all(index, documents(), confirm)
    cluster.ask("POST", f"/{index}/_refresh", to="refresh", patience=PATIENCE)
    counted = cluster.ask("GET", f"/{index}/_count", to="count the vectors", patience=PATIENCE)["count"]
    if rejected or counted != sent:
        reason = rejected[0] if rejected else "some are missing"
        raise BulkFailed(f"{index}: holds {counted:,} of {sent:,} vectors ({reason}); load them again", index=index)
    if not sent:
        raise VectorsMissing(f"{index}: none of its entities has a vector, so that there is nothing to search")


def check_vectors(vectors: EntityVectors, entities: int) -> None:
    """Refuse vectors that the cluster would reject, or that belong to no entity."""
    rows = vectors.rows
    if not 0 < vectors.dim <= MOST_DIMENSIONS:
        raise WrongFormat(f"vectors of {vectors.dim:,} dimensions: Elasticsearch takes 1 to {MOST_DIMENSIONS:,}")
    if len(rows) and (len(np.unique(rows)) != len(rows) or int(rows.max()) >= entities):
        raise WrongFormat(f"rows of vectors: expected different ones below {entities:,}, the number of entities")
