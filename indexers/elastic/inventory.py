"""Inventory of a cluster: versions of knowledge bases with sizes, shards and health, builds under way; and removal."""

from dataclasses import dataclass
from typing import Any

from kbtools.errors import KBMissing, KBUnusable, ServerError
from kbtools.indexers.elastic.build_notes import PartProgress, drop_notes, has_control, read_build, read_parts
from kbtools.indexers.elastic.catalog import Catalog
from kbtools.indexers.elastic.claims import is_alive, locked
from kbtools.indexers.elastic.cluster import Cluster
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


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """An index: its health, documents, bytes with and without copies, shards, copies that are still to be made."""

    index: str
    health: str
    documents: int
    bytes: int
    primary_bytes: int
    shards: int
    replicas: int
    copies_missing: int


@dataclass(frozen=True, slots=True)
class VersionStatus:
    """A version and its indexes; `mapping` is the version of the mapping that it was made with."""

    kb: str
    version: int
    state: str
    mapping: int
    indexes: tuple[IndexStatus, ...]

    @property
    def bytes(self) -> int:
        return sum(index.bytes for index in self.indexes)


@dataclass(frozen=True, slots=True)
class BuildStatus:
    """A build under way or left behind: who loads each part and how far it is, or why that cannot be told."""

    kb: str
    version: int
    parts: tuple[str, ...]
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster and the knowledge bases on it; the manifest is that of the one knowledge base asked for."""

    where: str
    server: str
    health: str
    nodes: int
    versions: tuple[VersionStatus, ...]
    builds: tuple[BuildStatus, ...]
    manifest: Manifest | None


def cluster_status(cluster: Cluster, kb: str | None = None) -> ClusterStatus:
    """Describe one knowledge base, or all; raise KBMissing if there is nothing under the name, not even a leftover."""
    server = cluster.greet()["version"]["number"]
    if kb is not None:
        check_name(kb)
    versions = list_versions(cluster, kb)
    if kb is not None and not versions:
        current_version(cluster, kb)  # raises the error that says what there is
    health = cluster.ask(
        "GET", "/_cluster/health", to="read the cluster's health",
        params={"level": "indices", "filter_path": "status,number_of_data_nodes,indices.kbtools-*"},
    )  # fmt: skip
    sizes = index_sizes(cluster, health.get("indices", {}))
    current = next((version for version in versions if version.current), None) if kb else None
    builds = [build_status(cluster, name) for name in sorted({version.kb for version in versions})]
    return ClusterStatus(
        where=cluster.connection.where,
        server=server,
        health=health["status"],
        nodes=health["number_of_data_nodes"],
        versions=tuple(describe_version(version, sizes) for version in versions),
        builds=tuple(build for build in builds if build),
        manifest=Catalog(cluster, current.kb, current.indexes[ENTITIES]).manifest if current else None,
    )


def describe_version(version: Version, sizes: dict[str, IndexStatus]) -> VersionStatus:
    indexes = tuple(sizes[index] for index in sorted(version.indexes.values()) if index in sizes)
    return VersionStatus(version.kb, version.number, version.state, version.mapping, indexes)


def index_sizes(cluster: Cluster, health: dict[str, Any]) -> dict[str, IndexStatus]:
    """Ask for the size of every index of ours; a closed or lost one counts nothing."""
    columns = "index,health,docs.count,store.size,pri.store.size,pri,rep"
    rows = cluster.ask(
        "GET", "/_cat/indices/kbtools-*", to="read the sizes of indexes",
        params={"format": "json", "bytes": "b", "h": columns, "expand_wildcards": "all"},
    )  # fmt: skip
    sizes = {}
    for row in rows:
        shards, replicas = int(row["pri"] or 0), int(row["rep"] or 0)
        active = health.get(row["index"], {}).get("active_shards", 0)
        sizes[row["index"]] = IndexStatus(
            index=row["index"],
            health=row["health"] or "",
            documents=int(row["docs.count"] or 0),
            bytes=int(row["store.size"] or 0),
            primary_bytes=int(row["pri.store.size"] or 0),
            shards=shards,
            replicas=replicas,
            # A shard that is away itself is no copy: at most all copies are missing.
            copies_missing=min(shards * replicas, shards * (1 + replicas) - active),
        )
    return sizes


def build_status(cluster: Cluster, kb: str) -> BuildStatus | None:
    """Describe the build of a knowledge base that is under way or was left behind."""
    try:
        note = read_build(cluster, kb) if has_control(cluster) else None
        if note is None:
            return None
        parts = read_parts(cluster, kb, note[0].parts)
    except KBUnusable as error:
        return BuildStatus(kb, 0, (), str(error))
    return BuildStatus(kb, note[0].version, tuple(map(describe_part, parts)))


def describe_part(part: PartProgress | None) -> str:
    """Say how far a part is and who loads it."""
    if part is None:
        return "not begun"
    if part.done:
        return f"done, {part.documents:,} documents"
    gone = part.owner.is_gone()
    state = "left behind by" if gone or not part.loading else "loaded by" if gone is False else "last loaded by"
    who = f"process {part.owner.pid} on {part.owner.host}"
    rejected = f", {part.rejected:,} rejected" if part.rejected else ""
    return f"{state} {who}, {part.documents:,} documents{rejected}; the same command goes on, or remove --unfinished"


def choose_versions(cluster: Cluster, kb: str, *, number: int | None, unfinished: bool) -> list[Version]:
    """List the versions that a removal is about: one, the unfinished ones, or all of them."""
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
        raise ServerError(f"{kb}: version {number} is the current one; roll back first, or remove the whole", name=kb)
    return chosen


def remove_versions(cluster: Cluster, kb: str, chosen: list[Version]) -> list[str]:
    """Delete versions and the notes of their build; raise BuildLocked while it is under way."""
    note = read_build(cluster, kb) if has_control(cluster) else None
    if note and any(version.number == note[0].version for version in chosen):
        for progress in read_parts(cluster, kb, note[0].parts):
            if progress and is_alive(cluster, kb, progress, cluster.patience.sleep):
                raise locked(cluster, kb, progress)
        drop_notes(cluster, kb, note[0].parts)
    return delete_versions(cluster, chosen)
