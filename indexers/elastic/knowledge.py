"""A knowledge base on a cluster, which keeps the promises of `KnowledgeBase` in few requests.

One request answers all n-grams of a question: the entities that bear them, with names, relations, types and numbers
of facts, and how many names hold each word. Its answer is remembered, so that the ranking asks nothing more.
Rows are those of the embedded knowledge base that was loaded. An open knowledge base stays with the version that was
current when it was opened.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable, NotAllowed, ServerError, Unreachable
from kbtools.indexers.elastic.build_lock import update_lock
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.dense_vectors import ElasticVectors, load_vectors
from kbtools.indexers.elastic.entities import Entities
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES, ROLES, IndexSettings, check_mapping_version
from kbtools.indexers.elastic.names import Names, SimilarNames
from kbtools.indexers.elastic.searches import Searches
from kbtools.indexers.elastic.versions import Version, current_version
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.rows import EntityRows, Grouped, IncomingFacts
from kbtools.kb.spoken_names import SpokenName
from kbtools.kb.vector_index import EntityVectors

REPLACED = 10.0
"""Seconds in which a copy takes the place of a shard whose node is lost."""


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
