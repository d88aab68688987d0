"""Entity vectors on a cluster: a separate index next to a version, with approximate search."""

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BulkFailed, VectorsMissing, WrongFormat
from kbtools.indexers.elastic.bulk import Sender
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.documents import Document, encode
from kbtools.indexers.elastic.loading import PATIENCE
from kbtools.indexers.elastic.mapping import (
    VECTORS,
    IndexMark,
    IndexSettings,
    final_settings,
    index_body,
    index_name,
    loading_alias,
)
from kbtools.indexers.elastic.searches import Searches
from kbtools.indexers.elastic.versions import Version, list_versions
from kbtools.kb.vector_index import EntityVectors, Neighbours, VectorOrigin, check_dim, normalised

_CANDIDATES = 10
"""Candidates per shard for each entity wanted: more candidates find more of the true neighbours, but cost more."""

_LEAST_CANDIDATES, _MOST_CANDIDATES = 200, 10_000
"""Bounds of that number: 10,000 is the cluster's limit; with 200 the benchmark's recall@10 of 50,000 vectors is 1.00.
"""

_SEARCHES = 50
"""Searches in one request: each has some kilobytes, and costs more than a look-up of names."""

_MOST_DIMENSIONS = 4_096
"""The cluster's limit for `dense_vector`."""


class ElasticVectors:
    """The vectors of a knowledge base on a cluster; see `VectorIndex` for the contract of each method.

    The search is approximate; `kbtools.kb.vector_index.recall` measures it against the exact one.
    """

    def __init__(self, name: str, version: Version, searches: Searches) -> None:
        """Open the vectors of a version; raise VectorsMissing if it has none."""
        index = version.indexes.get(VECTORS)
        if index is None:
            raise VectorsMissing(
                f"{name}: has no entity vectors; create them with kbtools index vectors --elasticsearch --kb {name}, "
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
        wide = min(max(_CANDIDATES * limit, _LEAST_CANDIDATES), _MOST_CANDIDATES)
        bodies = [_nearest_search(vector.tolist(), limit, wide) for vector in vectors]
        for first in range(0, len(bodies), _SEARCHES):
            answers = self.searches.run([(self.index, body) for body in bodies[first : first + _SEARCHES]])
            for place, answer in enumerate(answers, first):
                # By score, the highest first, then by row; the score is (1 + cosine) / 2.
                hits = sorted((-hit["_score"], hit["fields"]["row"][0]) for hit in answer["hits"]["hits"])
                rows[place] = [row for _, row in hits]
                cosines[place] = [-2 * score - 1 for score, _ in hits]
        return Neighbours(rows, cosines)

    def use(self, device: str) -> None:
        """Do nothing: the cluster computes on its own machines."""

    def vector(self, entity_row: int) -> NDArray[np.float32] | None:
        body = {"size": 1, "query": {"term": {"row": entity_row}}, "_source": {"exclude_vectors": False}}
        (answer,) = self.searches.run([(self.index, body)])
        stored = [hit["_source"]["vector"] for hit in answer["hits"]["hits"]]
        return normalised(np.array(stored, dtype=np.float32))[0] if stored else None


def _nearest_search(vector: list[float], limit: int, wide: int) -> dict[str, object]:
    """Return a search for the nearest vectors; the cluster scores a cosine as (1 + cosine) / 2."""
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
    """Store vectors next to a version of a knowledge base with `entities` entities, replacing existing ones.

    Raises WrongFormat for anything that is not a vector of an entity, BadVectors for a value that is not a number,
    VectorsMissing if no entity has a vector, BulkFailed if the cluster rejects one.
    """
    _check_vectors(vectors, entities)
    kb, number = version.kb, version.number
    index = index_name(kb, number, VECTORS)
    cluster.ask("DELETE", f"/{index}", to=f"replace {index}", missing_ok=True)
    body = index_body(VECTORS, kb=kb, version=number, settings=settings)
    body["mappings"]["properties"]["vector"]["dims"] = vectors.dim
    cluster.ask("PUT", f"/{index}", body, to=f"create the index {index}")
    try:
        _send_vectors(cluster, index, vectors)
    except BaseException:
        cluster.ask("DELETE", f"/{index}", to="remove an incomplete load", missing_ok=True)
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


def _send_vectors(cluster: Cluster, index: str, vectors: EntityVectors) -> None:
    """Send vectors to an index and check their number there."""
    documents = (
        Document(str(row), encode({"row": row, "vector": vector.tolist()}).encode(), row)
        for rows, chunk in vectors.chunks()
        for row, vector in zip(rows.tolist(), chunk, strict=True)
    )
    sent, _ = Sender(cluster, patience=PATIENCE).store(index, documents)
    counted = cluster.ask("GET", f"/{index}/_count", to="count the vectors", patience=PATIENCE)["count"]
    if counted != sent:
        raise BulkFailed(f"{index}: has {counted:,} of {sent:,} vectors; load them again", index=index)
    if not sent:
        raise VectorsMissing(f"{index}: none of its entities has a vector, so there is nothing to search")


def _check_vectors(vectors: EntityVectors, entities: int) -> None:
    """Raise WrongFormat for vectors that the cluster would reject or that belong to no entity."""
    rows = vectors.rows
    if not 0 < vectors.dim <= _MOST_DIMENSIONS:
        raise WrongFormat(f"vectors of {vectors.dim:,} dimensions: Elasticsearch takes 1 to {_MOST_DIMENSIONS:,}")
    if len(rows) and (len(np.unique(rows)) != len(rows) or int(rows.max()) >= entities):
        raise WrongFormat(f"rows of vectors: expected distinct rows below {entities:,}, the number of entities")
