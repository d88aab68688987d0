"""Opening a knowledge base on a cluster: which version, whether it is whole, and what belongs to all of it."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from kbtools.errors import KBUnusable, NotAllowed, Unreachable
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import ROLES, check_mapping_version
from kbtools.indexers.elastic.versions import Version, current_version
from kbtools.kb.manifest import Manifest


def open_version(cluster: Cluster, kb: str) -> Version:
    """Find the current version and see that it can be read: our mapping, every index, every shard."""
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
    """Refuse a knowledge base that lacks a shard; give a node that was just lost a moment to be replaced."""
    with suppress(NotAllowed):  # reading asks for less than knowing the cluster's health
        health = cluster.ask(
            "GET", f"/_cluster/health/{','.join(indexes)}", to=f"ask for the health of {kb}",
            params={"wait_for_status": "yellow", "timeout": "10s"}, missing_ok=True,
        )  # fmt: skip
        if health and health["status"] == "red":
            raise Unreachable(
                f"{cluster.connection.where}: {kb} lacks {health['unassigned_shards']} of its shards, "
                "the cluster's health is red; start the nodes that are down, or load it again",
                name=kb,
            )


class Catalog:
    """Read what belongs to the whole of a knowledge base: its manifest, its relations and types by row."""

    def __init__(self, cluster: Cluster, kb: str, index: str) -> None:
        self.cluster, self.kb, self.index = cluster, kb, index

    def read(self, document: str) -> dict[str, Any]:
        told = self.cluster.ask("GET", f"/{self.index}/_doc/{document}", to=f"open {self.kb}", missing_ok=True)
        if not told or not told.get("found"):
            raise KBUnusable(f"{self.kb}: {self.index} has no {document}; load it again", name=self.kb)
        return dict(told["_source"]["catalog"])

    def manifest(self) -> Manifest:
        return Manifest.from_record(self.read("manifest")["manifest"])

    def listed(self, name: str) -> tuple[str, ...]:
        """Read the ids of relations or of types, by row."""
        first = self.read(f"{name}-0")
        ids = list(first["ids"])
        for number in range(1, first["of"]):
            ids += self.read(f"{name}-{number}")["ids"]
        return tuple(ids)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return self.listed("relations")

    @cached_property
    def types(self) -> tuple[str, ...]:
        return self.listed("types")

    @cached_property
    def relation_rows(self) -> dict[str, int]:
        return {relation: row for row, relation in enumerate(self.relations)}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {kind: row for row, kind in enumerate(self.types)}
