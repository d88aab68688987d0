"""What a cluster tells of the knowledge bases on it: versions, sizes, shards, health, builds under way."""

from dataclasses import dataclass

from kbtools.indexers.elastic.claims import Progress, read_note, read_parts
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import ENTITIES
from kbtools.indexers.elastic.versions import CONTROL, Version, check_name, current_version, list_versions
from kbtools.kb.manifest import Manifest


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """An index: its state, documents, bytes with and without copies, shards."""

    index: str
    health: str
    documents: int
    bytes: int
    primary_bytes: int
    shards: int
    replicas: int


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
    """A build under way or left behind: who loads each part and how far it is."""

    kb: str
    version: int
    parts: tuple[str, ...]


def version_status(cluster: Cluster, kb: str | None = None) -> list[VersionStatus]:
    """Describe the versions of one knowledge base, or of all."""
    versions = list_versions(cluster, kb)
    sizes = index_sizes(cluster)
    return [describe(version, sizes) for version in versions]


def describe(version: Version, sizes: dict[str, IndexStatus]) -> VersionStatus:
    indexes = tuple(sizes[index] for index in sorted(version.indexes.values()) if index in sizes)
    return VersionStatus(version.kb, version.number, version.state, version.mapping, indexes)


def index_sizes(cluster: Cluster) -> dict[str, IndexStatus]:
    """Ask for the size of every index of ours; a closed or lost one counts nothing."""
    columns = "index,health,docs.count,store.size,pri.store.size,pri,rep"
    rows = cluster.ask(
        "GET", "/_cat/indices/kbtools-*", to="read the sizes of indexes",
        params={"format": "json", "bytes": "b", "h": columns, "expand_wildcards": "all"},
    )  # fmt: skip
    return {
        row["index"]: IndexStatus(
            index=row["index"],
            health=row["health"] or "",
            documents=int(row["docs.count"] or 0),
            bytes=int(row["store.size"] or 0),
            primary_bytes=int(row["pri.store.size"] or 0),
            shards=int(row["pri"] or 0),
            replicas=int(row["rep"] or 0),
        )
        for row in rows
    }


def build_status(cluster: Cluster, kb: str) -> BuildStatus | None:
    """Describe the build of a knowledge base that is under way or was left behind."""
    if not cluster.ask("GET", f"/{CONTROL}", to="look for builds", missing_ok=True):
        return None
    note = read_note(cluster, kb)
    if note is None:
        return None
    parts = read_parts(cluster, kb, note[0]["parts"])
    return BuildStatus(kb, note[0]["version"], tuple(map(describe_part, parts)))


def describe_part(part: Progress | None) -> str:
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


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster and what kbtools has on it; the manifest is that of the one knowledge base asked for."""

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
    health = cluster.ask("GET", "/_cluster/health", to="read the cluster's health")
    if kb is not None:
        check_name(kb)
    versions = version_status(cluster, kb)
    if kb is not None and not versions:
        current_version(cluster, kb)
    current = next((version for version in list_versions(cluster, kb) if version.current), None) if kb else None
    builds = [build_status(cluster, name) for name in sorted({version.kb for version in versions})]
    return ClusterStatus(
        where=cluster.connection.where,
        server=server,
        health=health["status"],
        nodes=health["number_of_data_nodes"],
        versions=tuple(versions),
        builds=tuple(build for build in builds if build),
        manifest=read_manifest(cluster, current) if current else None,
    )


def read_manifest(cluster: Cluster, version: Version) -> Manifest:
    """Read what a version says of its content."""
    told = cluster.ask("GET", f"/{version.indexes[ENTITIES]}/_doc/manifest", to="read the manifest")
    return Manifest.from_record(told["_source"]["catalog"]["manifest"])
