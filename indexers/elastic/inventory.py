"""Inventory of a cluster: versions of knowledge bases with sizes and health, running builds; and deletion of these."""

from dataclasses import dataclass, replace
from typing import Any

from kbtools.errors import KBMissing, KBUnusable, ServerError
from kbtools.indexers.elastic.build_lock import drop_note, free_note, read_note
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.mapping import ENTITIES
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    check_name,
    current_version,
    delete_versions,
    list_versions,
)
from kbtools.kb.manifest import Manifest

_MERGING = Patience(total=6 * 3600.0, first=0.2, longest=10.0)
"""A merge rewrites the index: minutes for each gigabyte on a busy machine."""

_RELEASED = 60.0
"""Seconds to wait until deleted documents may be purged: Elasticsearch updates this on its nodes every 30 seconds."""


@dataclass(frozen=True, slots=True)
class _IndexStatus:
    """An index: its health, documents, bytes with and without copies, shards, missing copies."""

    index: str
    health: str
    documents: int
    bytes: int
    primary_bytes: int
    shards: int
    replicas: int
    copies_missing: int


@dataclass(frozen=True, slots=True)
class _VersionStatus:
    """A version and its indexes; `mapping` is the version of their mapping."""

    kb: str
    version: int
    state: str
    mapping: int
    indexes: tuple[_IndexStatus, ...]

    @property
    def bytes(self) -> int:
        return sum(index.bytes for index in self.indexes)


@dataclass(frozen=True, slots=True)
class _BuildStatus:
    """A version being made or left unfinished: its owner and progress, or why its note cannot be read."""

    kb: str
    version: int
    progress: str


@dataclass(frozen=True, slots=True)
class _ClusterStatus:
    """A cluster and its knowledge bases; the manifest is that of the one knowledge base requested."""

    where: str
    server: str
    health: str
    nodes: int
    versions: tuple[_VersionStatus, ...]
    builds: tuple[_BuildStatus, ...]
    manifest: Manifest | None


def cluster_status(cluster: Cluster, kb: str | None = None) -> _ClusterStatus:
    """Describe one knowledge base, or all; raise KBMissing if nothing has the name, not even an unfinished build."""
    server = cluster.greet()["version"]["number"]
    if kb is not None:
        check_name(kb)
    versions = list_versions(cluster, kb)
    if kb is not None and not versions:
        current_version(cluster, kb)  # Raises the error that describes what exists.
    health = cluster.ask(
        "GET", "/_cluster/health", to="read the cluster's health",
        params={"level": "indices", "filter_path": "status,number_of_data_nodes,indices.kbtools-*"},
    )  # fmt: skip
    sizes = _index_sizes(cluster, health.get("indices", {}))
    current = next((version for version in versions if version.current), None) if kb else None
    builds = [_build_status(cluster, name) for name in sorted({version.kb for version in versions})]
    return _ClusterStatus(
        where=cluster.connection.where,
        server=server,
        health=health["status"],
        nodes=health["number_of_data_nodes"],
        versions=tuple(_describe_version(version, sizes) for version in versions),
        builds=tuple(build for build in builds if build),
        manifest=Catalog(cluster, current.kb, current.indexes[ENTITIES]).manifest if current else None,
    )


def _describe_version(version: Version, sizes: dict[str, _IndexStatus]) -> _VersionStatus:
    indexes = tuple(sizes[index] for index in sorted(version.indexes.values()) if index in sizes)
    return _VersionStatus(version.kb, version.number, version.state, version.mapping, indexes)


def _index_sizes(cluster: Cluster, health: dict[str, Any]) -> dict[str, _IndexStatus]:
    """Return the size of each of our indexes; a closed or lost one counts as empty."""
    columns = "index,health,docs.count,store.size,pri.store.size,pri,rep"
    rows = cluster.ask(
        "GET", "/_cat/indices/kbtools-*", to="read the sizes of indexes",
        params={"format": "json", "bytes": "b", "h": columns, "expand_wildcards": "all"},
    )  # fmt: skip
    sizes = {}
    for row in rows:
        shards, replicas = int(row["pri"] or 0), int(row["rep"] or 0)
        active = health.get(row["index"], {}).get("active_shards", 0)
        sizes[row["index"]] = _IndexStatus(
            index=row["index"],
            health=row["health"] or "",
            documents=int(row["docs.count"] or 0),
            bytes=int(row["store.size"] or 0),
            primary_bytes=int(row["pri.store.size"] or 0),
            shards=shards,
            replicas=replicas,
            # A missing primary is not a missing copy: at most all copies are missing.
            copies_missing=min(shards * replicas, shards * (1 + replicas) - active),
        )
    return sizes


def _build_status(cluster: Cluster, kb: str) -> _BuildStatus | None:
    """Describe the version of a knowledge base that is being made or was left unfinished, if any."""
    try:
        stored = read_note(cluster, kb)
    except KBUnusable as error:
        return _BuildStatus(kb, 0, str(error))
    if stored is None:
        return None
    note = stored[0]
    cure = "; run the same command to resume, or kbtools remove --unfinished to drop it" if note.is_free else ""
    return _BuildStatus(kb, note.version, note.progress + cure)


def choose_versions(cluster: Cluster, kb: str, *, number: int | None, unfinished: bool) -> list[Version]:
    """Return the versions to remove: one, the unfinished ones, or all of them."""
    check_name(kb)
    versions = list_versions(cluster, kb)
    if not versions:
        check_alias(cluster, kb)
        raise KBMissing(f"{cluster.connection.where}: kbtools has nothing under the name {kb!r}", name=kb)
    if unfinished:
        return [version for version in versions if not version.complete and not version.current]
    if number is None:
        return versions
    chosen = [version for version in versions if version.number == number]
    if not chosen:
        known = ", ".join(str(version.number) for version in versions)
        raise KBMissing(f"{kb}: no version {number}; there are {known}", name=kb)
    if chosen[0].current:
        cure = "roll back first, or remove the whole knowledge base"
        raise ServerError(f"{kb}: version {number} is the current one; {cure}", name=kb)
    return chosen


def remove_versions(cluster: Cluster, kb: str, chosen: list[Version]) -> list[str]:
    """Delete versions, and the note of an unfinished one; raise BuildLocked while it is being made."""
    note, condition = read_note(cluster, kb) or (None, None)
    numbers = {version.number for version in chosen}
    if note and note.version in numbers:
        note, condition = free_note(cluster, kb)
    deleted = delete_versions(cluster, chosen)
    # A note is removed with its version, or if a process was killed before it created one.
    if note and note.is_free and note.version not in {version.number for version in list_versions(cluster, kb)}:
        drop_note(cluster, kb, condition)
    return deleted


@dataclass(frozen=True, slots=True)
class _DroppedDocuments:
    """The number of purged documents, and the bytes of the indexes before and after, without copies."""

    count: int
    before: int
    after: int


def drop_deleted(cluster: Cluster, kb: str, *, patience: Patience = _MERGING) -> _DroppedDocuments | None:
    """Merge the segments of the current version into one per shard; None if it has no deleted documents.

    Open readers are not affected, and rows stay valid.
    """
    indexes = ",".join(current_version(cluster, kb).indexes.values())
    deleted, before = _measure(cluster, indexes)
    if not deleted:
        return None
    _wait_for_release(cluster, indexes, replace(patience, total=min(_RELEASED, patience.total)))
    # A merge keeps what lies after the last commit.
    cluster.ask("POST", f"/{indexes}/_flush", to=f"write the changes of {kb} to disk")
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
    _, after = _measure(cluster, indexes)
    return _DroppedDocuments(deleted, before, after)


def _wait_for_release(cluster: Cluster, indexes: str, patience: Patience) -> None:
    """Wait until a cluster no longer retains deleted documents for lagging copies of shards."""
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


def _measure(cluster: Cluster, indexes: str) -> tuple[int, int]:
    """Count the deleted documents of indexes, and their bytes without copies."""
    stats = cluster.ask("GET", f"/{indexes}/_stats/docs,store", to="read the sizes of indexes")["_all"]["primaries"]
    return int(stats["docs"]["deleted"]), int(stats["store"]["size_in_bytes"])
