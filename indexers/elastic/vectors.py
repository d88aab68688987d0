"""Entity vectors on the cluster, searched by approximate nearest neighbours."""

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import VectorsMissing
from kbtools.indexers.elastic.mapping import OWNER, VECTORS
from kbtools.indexers.elastic.searches import Searches
from kbtools.indexers.elastic.versions import Version
from kbtools.kb.vector_index import Neighbours, VectorOrigin, check_dim, normalised

CANDIDATES = 10
"""Entities that a shard looks at for each one asked for: more of them find more of the true ones, and cost more."""

LEAST_CANDIDATES, MOST_CANDIDATES = 200, 10_000
AT_ONCE = 50


class ElasticVectors:
    """The vectors of a knowledge base on a cluster; see `VectorIndex` for what each method promises.

    The search is approximate; `kbtools.kb.vector_index.recall` measures it against the exact one.
    """

    def __init__(self, name: str, version: Version, searches: Searches) -> None:
        """Find the vectors of a version; raise VectorsMissing where it has none."""
        index = version.indexes.get(VECTORS)
        if index is None:
            raise VectorsMissing(
                f"{name}: has no entity vectors; make them with kbtools index vectors --elasticsearch --kb {name}, "
                "or use a pruner that needs none",
                name=name,
            )
        self.index, self.searches = index, searches
        mapping = searches.ask("GET", f"/{index}/_mapping")[index]["mappings"]
        self.size = int(mapping["properties"]["vector"]["dims"])
        self.origin = VectorOrigin(**mapping["_meta"][OWNER].get("origin", {}))
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
        for first in range(0, len(bodies), AT_ONCE):
            answers = self.searches.run([(self.index, body) for body in bodies[first : first + AT_ONCE]])
            for at, answer in enumerate(answers, first):
                hits = sorted((-hit["_score"], hit["fields"]["row"][0]) for hit in answer["hits"]["hits"])
                rows[at] = [row for _, row in hits]
                cosines[at] = [-2 * score - 1 for score, _ in hits]
        return Neighbours(rows, cosines)

    def use(self, device: str) -> None:
        """Do nothing: the cluster computes where it is."""

    def vector(self, entity: int) -> NDArray[np.float32] | None:
        body = {"size": 1, "query": {"term": {"row": entity}}, "_source": {"exclude_vectors": False}}
        (answer,) = self.searches.run([(self.index, body)])
        found = [hit["_source"]["vector"] for hit in answer["hits"]["hits"]]
        return normalised(np.array(found, dtype=np.float32))[0] if found else None


def nearest_search(vector: list[float], limit: int, wide: int) -> dict[str, object]:
    """Write a search for the nearest vectors; the cluster scores a cosine as (1 + cosine) / 2."""
    return {
        "size": limit,
        "knn": {"field": "vector", "query_vector": vector, "k": limit, "num_candidates": wide},
        "_source": False,
        "docvalue_fields": ["row"],
        "track_total_hits": False,
    }
