"""Deleted documents of a version, which updates leave behind, are dropped: its segments are merged."""

from dataclasses import dataclass, replace

from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.versions import current_version

MERGING = Patience(total=6 * 3600.0, first=0.2, longest=10.0)
"""A merge rewrites the index: minutes for each gigabyte on a busy machine."""


RELEASED = 60.0
"""Seconds in which that happens: Elasticsearch tells its nodes every 30 what they no longer need to keep."""


@dataclass(frozen=True, slots=True)
class DroppedDocuments:
    """The documents that were dropped, and the bytes of the indexes before and after, without copies."""

    count: int
    before: int
    after: int


def drop_deleted(cluster: Cluster, kb: str, *, patience: Patience = MERGING) -> DroppedDocuments | None:
    """Merge the segments of the current version, one for each shard; nothing where it has no deleted documents.

    Who reads it is answered as before, and rows keep their meaning.
    """
    indexes = ",".join(current_version(cluster, kb).indexes.values())
    deleted, before = measure(cluster, indexes)
    if not deleted:
        return None
    wait_for_release(cluster, indexes, replace(patience, total=min(RELEASED, patience.total)))
    task = cluster.ask(
        "POST", f"/{indexes}/_forcemerge", to=f"merge the segments of {kb}",
        params={"max_num_segments": "1", "wait_for_completion": "false"},
    )["task"]  # fmt: skip
    for wait in patience.waits():
        state = cluster.ask("GET", f"/_tasks/{task}", to=f"see how far the merge of {kb} is", missing_ok=True)
        if state is None or state.get("completed"):
            break
        patience.sleep(wait)
    cluster.ask("POST", f"/{indexes}/_refresh", to="refresh the indexes")
    _, after = measure(cluster, indexes)
    return DroppedDocuments(deleted, before, after)


def wait_for_release(cluster: Cluster, indexes: str, patience: Patience) -> None:
    """Wait until a cluster keeps no deleted documents for copies of shards that may have to catch up."""
    for wait in patience.waits():
        stats = cluster.ask(
            "GET", f"/{indexes}/_stats", to="see what deleted documents are kept for", params={"level": "shards"}
        )
        shards = [shard for index in stats["indices"].values() for group in index["shards"].values() for shard in group]
        if all(
            lease["retaining_seq_no"] > shard["seq_no"]["global_checkpoint"]
            for shard in shards
            for lease in shard["retention_leases"]["leases"]
        ):
            return
        patience.sleep(wait)


def measure(cluster: Cluster, indexes: str) -> tuple[int, int]:
    """Count the deleted documents of indexes, and their bytes without copies."""
    stats = cluster.ask("GET", f"/{indexes}/_stats/docs,store", to="read the sizes of indexes")["_all"]["primaries"]
    return int(stats["docs"]["deleted"]), int(stats["store"]["size_in_bytes"])


def compact_by_name(kb: str) -> None:
    """Drop the deleted documents of a knowledge base on the cluster that the environment names."""
    cluster = Cluster(read_connection())
    try:
        cluster.greet()
        drop_deleted(cluster, kb)
    finally:
        cluster.close()
