"""A knowledge base on a cluster: what `KnowledgeBase` promises, in few requests.

One request answers all n-grams of a question: the entities that bear them, with names, relations, types and numbers
of facts, and how many names hold each word. What it brought is remembered, so that the ranking asks nothing more.
Rows are those of the embedded knowledge base that was loaded. An open knowledge base stays with the version that was
current when it was opened.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.entities import Entities, Entity
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES
from kbtools.indexers.elastic.names import Names
from kbtools.indexers.elastic.objects import Objects
from kbtools.indexers.elastic.opening import Catalog, open_version
from kbtools.indexers.elastic.searches import Searches
from kbtools.indexers.elastic.similar import SimilarNames
from kbtools.indexers.elastic.vectors import ElasticVectors
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.rows import EntityRows, Grouped
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question


class ElasticKB(BackendDefaults):
    """A knowledge base by its name on a cluster; see `KnowledgeBase` for what each method promises."""

    def __init__(self, name: str, cluster: Cluster | None = None) -> None:
        self.name = str(name)
        self.cluster = cluster or Cluster(read_connection())
        self.version = open_version(self.cluster, self.name)
        self.catalog = Catalog(self.cluster, self.name, self.version.indexes[ENTITIES])
        self.manifest = self.catalog.manifest()
        self.searches = Searches(self.cluster, self.name)
        self.entities = Entities(self.searches, self.catalog)
        self.objects = Objects(self.entities)
        self.named = Names(self.entities, self.version.indexes[NAMES])
        self.near = SimilarNames(self.named)
        self.vector_index: ElasticVectors | None = None

    def close(self) -> None:
        self.cluster.close()

    @property
    def relations(self) -> Sequence[str]:
        return self.catalog.relations

    @property
    def types(self) -> Sequence[str]:
        return self.catalog.types

    def expect(self, questions: Sequence[Question]) -> None:
        """Fetch what many questions ask for first, in one request."""
        lengths = self.manifest.lengths
        forms = dict.fromkeys(ngram.form for question in questions for ngram in ngrams(question, lengths=lengths))
        self.named.fetch(list(forms))

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        found = self.named.fetch(forms)
        return {form: matches for form, matches in found.items() if matches}

    def similar(self, form: str, *, limit: int = 20, cutoff: float = 80.0) -> list[SimilarName]:
        return self.near.to(form, limit=limit, cutoff=cutoff)

    def expect_similar(self, forms: Sequence[str], *, limit: int = 20, cutoff: float = 80.0) -> None:
        """Fetch the names close to several forms, in one request."""
        self.near.expect(forms, limit=limit, cutoff=cutoff)

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.named.frequency(words)

    def relations_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.relations for entity in self.read(entities)])

    def types_of(self, entities: EntityRows) -> Grouped:
        return Grouped.of([entity.types for entity in self.read(entities)])

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        return np.array([entity.facts for entity in self.read(entities)], dtype=np.int64)

    def ids(self, entities: EntityRows) -> list[str]:
        return [entity.id for entity in self.read(entities)]

    def names(self, entities: EntityRows) -> list[str | None]:
        return [entity.name for entity in self.read(entities)]

    def read(self, entities: EntityRows) -> list[Entity]:
        """Give what is known of entities, fetching what is not remembered."""
        return self.entities.at(entities.tolist())

    def objects_of(self, entity: int, relation: int) -> EntityRows:
        return self.objects.of(entity, relation)

    def expect_objects(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Fetch the objects of pairs that are not remembered."""
        self.objects.expect(pairs)

    def aliases(self, entity: int) -> list[str]:
        return self.entities.aliases(entity)

    def vectors(self) -> ElasticVectors:
        if self.vector_index is None:
            self.vector_index = ElasticVectors(self.name, self.version, self.searches)
        return self.vector_index

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return self.entities.rows(ids)
