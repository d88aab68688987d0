"""Copies of a version, in which an update is made: the cluster links the files, so that a copy takes moments."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kbtools.errors import Unreachable
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import ROLES, VECTORS, Mark, index_name, loading_alias
from kbtools.indexers.elastic.versions import Version, read_mark

TIMEOUT = "20s"
"""Within the time-out of a request; then the health of the copy is asked for."""


def copy_version(cluster: Cluster, base: Version, number: int) -> Version:
    """Make a version that holds what another one holds, vectors too; nobody reads it yet.

    The one copied takes no documents any more, which a version that is complete never does.
    """
    roles = [role for role in (*ROLES, VECTORS) if role in base.indexes]
    indexes = {role: index_name(base.kb, number, role) for role in roles}
    to = f"copy version {base.number} of {base.kb}"
    cluster.ask("PUT", f"/{','.join(base.indexes[role] for role in roles)}/_block/write", to=to)

    def copy(role: str) -> None:
        body = {
            "settings": copies_of(cluster, base.indexes[role]) | {"index.blocks.write": None},
            "aliases": {loading_alias(indexes[role]): {}},
        }
        path = f"/{base.indexes[role]}/_clone/{indexes[role]}"
        cluster.ask("POST", path, body, to=to, params={"timeout": TIMEOUT})

    with ThreadPoolExecutor(len(roles)) as pool:  # together, the cluster writes its state once
        for future in [pool.submit(copy, role) for role in roles]:
            future.result()
    version = Version(base.kb, number, indexes, base.mapping)
    every = ",".join(indexes.values())
    health = cluster.health(every, until=has_primaries, patience=cluster.patience)
    if health is None or not has_primaries(health):
        raise Unreachable(
            f"{cluster.connection.where}: a copy of {base.kb!r} finds no place on the cluster; look at the disks and "
            "the health of its nodes, then run the same command again",
            index=every,
        )
    return version


def copies_of(cluster: Cluster, index: str) -> dict[str, str]:
    """Read the settings of an index that say how many copies of shards there are, which a copied index does not get."""
    wanted = ("index.number_of_replicas", "index.auto_expand_replicas")
    answer = cluster.ask(
        "GET", f"/{index}/_settings/{','.join(wanted)}", to=f"read the settings of {index}",
        params={"flat_settings": "true"},
    )  # fmt: skip
    settings: dict[str, str] = answer[index]["settings"]
    # Where copies follow the number of nodes, their present number is no setting.
    follows = settings.get("index.auto_expand_replicas", "false") != "false"
    return {name: value for name, value in settings.items() if follows is (name == wanted[1])}


def has_primaries(health: dict[str, Any]) -> bool:
    """Tell whether every shard has a place; a copy that finds none is never red."""
    return health["status"] != "red" and not health["unassigned_primary_shards"]


def mark_copy(cluster: Cluster, base: Version, copy: Version) -> None:
    """Mark copied indexes as complete: until then they have the marks of their sources, of another version."""
    mark = Mark(copy.kb, copy.number, copy.mapping, complete=True)
    both = ",".join(copy.indexes[role] for role in ROLES)
    cluster.ask("PUT", f"/{both}/_mapping", {"_meta": mark.to_meta()}, to=f"mark {both}")
    if index := copy.indexes.get(VECTORS):
        former = read_mark(cluster, base.indexes[VECTORS])
        mark = Mark(copy.kb, copy.number, copy.mapping, complete=True, origin=former.origin if former else {})
        cluster.ask("PUT", f"/{index}/_mapping", {"_meta": mark.to_meta()}, to=f"mark {index}")
