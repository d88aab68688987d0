"""Put vectors of entities on the cluster: an index of its own beside a version of a knowledge base."""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from kbtools.errors import BulkFailed, VectorsMissing, WrongFormat
from kbtools.indexers.elastic.bulk import Sender, Sent
from kbtools.indexers.elastic.cluster import Cluster, Patience
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
from kbtools.indexers.elastic.vectors import ElasticVectors
from kbtools.indexers.elastic.versions import index_name, list_versions
from kbtools.kb.vector_index import EntityVectors

PATIENCE = Patience(total=300.0)

MOST_DIMENSIONS = 4_096
"""What `dense_vector` takes."""


def load_vectors(kb: ElasticKB, vectors: EntityVectors, *, settings: Settings | None = None) -> ElasticVectors:
    """Put vectors beside the version of a knowledge base that is open, in place of those it has.

    Raises WrongFormat for what is no vector of an entity, BadVectors for a value that is no number, VectorsMissing
    where no entity has one, BulkFailed where the cluster rejects one.
    """
    check_vectors(kb, vectors)
    settings = settings or Settings()
    cluster, number = kb.cluster, kb.version.number
    index = index_name(kb.name, number, VECTORS)
    cluster.ask("DELETE", f"/{index}", to=f"replace {index}", missing_ok=True)
    body = index_body(VECTORS, kb=kb.name, version=number, token="", settings=settings)
    body["mappings"]["properties"]["vector"]["dims"] = vectors.dim
    cluster.ask("PUT", f"/{index}", body, to=f"create the index {index}")
    try:
        send_vectors(cluster, index, vectors)
    except BaseException:
        cluster.ask("DELETE", f"/{index}", to="remove what was not loaded whole", missing_ok=True)
        raise
    cluster.ask("PUT", f"/{index}/_settings", final_settings(settings), to="restore the settings", patience=PATIENCE)
    mark = make_mark(kb.name, number, complete=True) | {"origin": asdict(vectors.origin)}
    cluster.ask("PUT", f"/{index}/_mapping", {"_meta": {OWNER: mark}}, to=f"mark {index} as complete")
    actions = [
        {"add": {"index": index, "alias": kb.name}},
        {"remove": {"index": index, "alias": loading_alias(index), "must_exist": False}},
    ]
    if any(version.number == number and version.current for version in list_versions(cluster, kb.name)):
        cluster.ask("POST", "/_aliases", {"actions": actions}, to="show the vectors")
    kb.version.indexes[VECTORS] = index
    kb.vector_index = None
    return kb.vectors()


def send_vectors(cluster: Cluster, index: str, vectors: EntityVectors) -> None:
    """Send vectors to an index and count them there."""
    rejected: list[str] = []
    sent = 0

    def confirm(done: Sent) -> None:
        rejected.extend(one.reason for one in done.rejected)

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


def check_vectors(kb: ElasticKB, vectors: EntityVectors) -> None:
    """Refuse what the cluster would reject, or what belongs to no entity."""
    entities, rows = kb.manifest.counts["entities"].unique, vectors.rows
    if not 0 < vectors.dim <= MOST_DIMENSIONS:
        raise WrongFormat(f"vectors of {vectors.dim:,} dimensions: Elasticsearch takes 1 to {MOST_DIMENSIONS:,}")
    if len(rows) and (len(np.unique(rows)) != len(rows) or int(rows.max()) >= entities):
        raise WrongFormat(f"rows of vectors: expected different ones below {entities:,}, the number of entities")
