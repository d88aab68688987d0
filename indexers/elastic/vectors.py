"""Entity vectors on the cluster: an index of its own beside a version, searched by approximate nearest neighbours."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BulkFailed, VectorsMissing, WrongFormat
from kbtools.indexers.elastic.bulk import Sender, Sent
from kbtools.indexers.elastic.cluster import Patience
from kbtools.indexers.elastic.documents import Document, encode
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.mapping import (
    OWNER,
    VECTORS,
    Settings,
    final_settings,
    index_body,
    loading_alias,
    make_mark,
)
from kbtools.indexers.elastic.queries import cut
from kbtools.indexers.elastic.versions import index_name, list_versions
from kbtools.knowledge import EntityRows
from kbtools.vectors import Neighbours

CANDIDATES = 10
"""Entities that a shard looks at for each one asked for: more of them find more of the true ones, and cost more."""

LEAST_CANDIDATES, MOST_CANDIDATES = 200, 10_000
AT_ONCE = 50
PATIENCE = Patience(total=300.0)


def load_vectors(
    kb: ElasticKB, rows: EntityRows, vectors: NDArray[np.float32], *, settings: Settings | None = None
) -> "ElasticVectors":
    """Put vectors beside the version of a knowledge base that is open, in place of those it has.

    Raises WrongFormat for what is no vector of an entity, BulkFailed where the cluster rejects one.
    """
    check_vectors(kb, rows, vectors)
    settings = settings or Settings()
    cluster, number = kb.cluster, kb.version.number
    index = index_name(kb.name, number, VECTORS)
    cluster.ask("DELETE", f"/{index}", to=f"replace {index}", missing_ok=True)
    body = index_body(VECTORS, kb=kb.name, version=number, token="", settings=settings)
    body["mappings"]["properties"]["vector"]["dims"] = int(vectors.shape[1])
    cluster.ask("PUT", f"/{index}", body, to=f"create the index {index}")
    rejected: list[str] = []

    def confirm(sent: Sent) -> None:
        rejected.extend(one.reason for one in sent.rejected)

    Sender(cluster, patience=PATIENCE).send_all(index, vector_documents(rows, vectors), confirm)
    cluster.ask("POST", f"/{index}/_refresh", to="refresh", patience=PATIENCE)
    counted = cluster.ask("GET", f"/{index}/_count", to="count the vectors", patience=PATIENCE)["count"]
    if rejected or counted != len(rows):
        reason = rejected[0] if rejected else "some are missing"
        raise BulkFailed(
            f"{index}: holds {counted:,} of {len(rows):,} vectors ({reason}); load them again", index=index
        )
    cluster.ask("PUT", f"/{index}/_settings", final_settings(settings), to="restore the settings", patience=PATIENCE)
    mark = make_mark(kb.name, number, complete=True)
    cluster.ask("PUT", f"/{index}/_mapping", {"_meta": {OWNER: mark}}, to=f"mark {index} as complete")
    actions = [
        {"add": {"index": index, "alias": kb.name}},
        {"remove": {"index": index, "alias": loading_alias(index), "must_exist": False}},
    ]
    if any(version.number == number and version.current for version in list_versions(cluster, kb.name)):
        cluster.ask("POST", "/_aliases", {"actions": actions}, to="show the vectors")
    kb.version.indexes[VECTORS] = index
    return ElasticVectors(kb)


def check_vectors(kb: ElasticKB, rows: EntityRows, vectors: NDArray[np.float32]) -> None:
    """Refuse what the cluster would reject, or what belongs to no entity."""
    entities = kb.manifest.counts["entities"].unique
    if vectors.ndim != 2 or len(rows) != len(vectors) or not len(rows):
        raise WrongFormat(f"vectors {vectors.shape} for {len(rows)} entities: expected one each, (entities, dim)")
    if len(np.unique(rows)) != len(rows) or int(rows.max()) >= entities:
        raise WrongFormat(f"rows of vectors: expected different ones below {entities:,}, the number of entities")
    if not np.isfinite(vectors).all() or not np.linalg.norm(vectors, axis=1).all():
        raise WrongFormat("vectors: some are zero or not finite, and have no direction")


def vector_documents(rows: EntityRows, vectors: NDArray[np.float32]) -> Iterator[Document]:
    """Yield a document for each vector."""
    for place, (row, vector) in enumerate(zip(rows.tolist(), vectors, strict=True), 1):
        yield Document(str(row), encode({"row": row, "vector": vector.tolist()}).encode(), place)


class ElasticVectors:
    """The vectors of a knowledge base on a cluster; see `VectorIndex` for what each method promises.

    The search is approximate; `kbtools.vectors.recall` measures it against the exact one.
    """

    def __init__(self, kb: ElasticKB) -> None:
        index = kb.version.indexes.get(VECTORS)
        if index is None:
            raise VectorsMissing(
                f"{kb.name}: has no entity vectors; load them with indexers.elastic.vectors.load_vectors, or use "
                "a pruner that needs none",
                name=kb.name,
            )
        self.kb, self.index = kb, index
        mapping = kb.searches.ask("GET", f"/{index}/_mapping")[index]["mappings"]
        self.size = int(mapping["properties"]["vector"]["dims"])
        self.count = int(kb.searches.ask("GET", f"/{index}/_count")["count"])

    @property
    def dim(self) -> int:
        return self.size

    def __len__(self) -> int:
        return self.count

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise WrongFormat(f"vectors {vectors.shape}: expected (vectors, {self.size})")
        limit = min(limit, self.count)
        rows = np.empty((len(vectors), limit), dtype=np.uint32)
        cosines = np.empty((len(vectors), limit), dtype=np.float32)
        if not limit:
            return Neighbours(rows, cosines)
        wide = min(max(CANDIDATES * limit, LEAST_CANDIDATES), MOST_CANDIDATES)
        bodies = [nearest_search(vector.tolist(), limit, wide) for vector in vectors]
        at = 0
        for chunk in cut(bodies, AT_ONCE):
            for answer in self.kb.searches.run([(self.index, body) for body in chunk]):
                hits = sorted((-hit["_score"], hit["fields"]["row"][0]) for hit in answer["hits"]["hits"])
                rows[at] = [row for _, row in hits]
                cosines[at] = [-2 * score - 1 for score, _ in hits]
                at += 1
        return Neighbours(rows, cosines)


def nearest_search(vector: list[float], limit: int, wide: int) -> dict[str, object]:
    """Write a search for the nearest vectors; the cluster scores a cosine as (1 + cosine) / 2."""
    return {
        "size": limit,
        "knn": {"field": "vector", "query_vector": vector, "k": limit, "num_candidates": wide},
        "_source": False,
        "docvalue_fields": ["row"],
        "track_total_hits": False,
    }
