"""Versions of a knowledge base on a cluster: the current one, older ones, and those that a killed build left.

A knowledge base is an alias of the indexes of one version. Only indexes with our mark are ever changed.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from kbtools.errors import BulkFailed, KBMissing, NameTaken, ServerError, Unreachable, WrongFormat
from kbtools.indexers.elastic.cluster import Cluster, check_shards
from kbtools.indexers.elastic.mapping import (
    ENTITIES,
    MAPPING_VERSION,
    NAMES,
    ROLES,
    VECTORS,
    IndexMark,
    IndexSettings,
    index_body,
    index_name,
    loading_alias,
    number_of,
    role_of,
)

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
"""Valid names of an alias; at most 100 characters, so that index names stay below the cluster's 255 bytes."""

_COPY_TIMEOUT = "20s"
"""The time that a request for a copy may take; afterwards the health of the copy is polled."""

_UNFINISHED_VECTORS = "unfinished vectors"
"""The role of an index of vectors whose loader was killed: deleted with its version, and never read."""


def check_name(kb: str) -> str:
    """Return a name unchanged; raise an error if it cannot be an alias."""
    if not _NAME.fullmatch(kb) or kb.startswith("kbtools-"):
        raise WrongFormat(
            f"{kb!r}: not a valid name for a knowledge base on Elasticsearch; use at most 100 of a-z, 0-9, '_', '.' "
            "and '-', a letter or digit first, and not the prefix 'kbtools-'",
            name=kb,
        )
    return kb


@dataclass(frozen=True, slots=True)
class Version:
    """A build of a knowledge base: its indexes by role; it is current if the alias points at it."""

    kb: str
    number: int
    indexes: dict[str, str] = field(default_factory=dict)
    mapping: int = 0
    complete: bool = False
    current: bool = False

    @property
    def state(self) -> str:
        """The state of the version in a word."""
        if self.current:
            return "current"
        return "older" if self.complete else "unfinished"


def list_versions(cluster: Cluster, kb: str | None = None) -> list[Version]:
    """Return the versions of one knowledge base, or of all, the oldest first."""
    pattern = f"kbtools-{kb}-*" if kb else "kbtools-*"
    indexes = cluster.ask(
        "GET", f"/{pattern}", to="list the indexes of kbtools",
        params={"features": "aliases,mappings", "expand_wildcards": "all", "filter_path": "*.aliases,*.mappings._meta"},
    )  # fmt: skip
    versions: dict[tuple[str, int], Version] = {}
    for index, described in sorted((indexes or {}).items()):
        mark = IndexMark.of(described)
        if mark is None or (kb is not None and mark.kb != kb):
            continue
        role, number = role_of(index), number_of(index)
        # A fresh copy of another version still has its mark.
        complete = mark.complete and mark.version == number
        version = versions.get((mark.kb, number)) or Version(mark.kb, number, complete=True)
        versions[mark.kb, number] = replace(
            version,
            indexes=version.indexes | {role if role != VECTORS or complete else _UNFINISHED_VECTORS: index},
            mapping=mark.mapping,
            complete=version.complete and (complete or role not in ROLES),
            current=version.current or mark.kb in described.get("aliases", {}),
        )
    return [version for _, version in sorted(versions.items())]


def _read_mark(cluster: Cluster, index: str) -> IndexMark | None:
    """Read the mark of an index; None if the index has none of ours or does not exist."""
    answer = cluster.ask(
        "GET", f"/{index}", to=f"look at {index}", missing_ok=True,
        params={"features": "mappings", "filter_path": "*.mappings._meta"},
    )  # fmt: skip
    return IndexMark.of((answer or {}).get(index))


def current_version(cluster: Cluster, kb: str) -> Version:
    """Return the version that the alias points at; raise KBMissing if there is none, NameTaken for a foreign alias."""
    check_name(kb)
    versions = list_versions(cluster, kb)
    current = [version for version in versions if version.current]
    if current:
        return current[-1]
    check_alias(cluster, kb)
    others = sorted({version.kb for version in list_versions(cluster) if version.current})
    known = f"known: {', '.join(others)}" if others else "there is none yet"
    unfinished = " (a build of it is unfinished)" if versions else ""
    raise KBMissing(
        f"{cluster.connection.where}: no knowledge base {kb!r}{unfinished}; {known}; load it with kbtools load "
        f"FOLDER --kb {kb}",
        name=kb,
    )


def check_alias(cluster: Cluster, kb: str) -> None:
    """Raise NameTaken for a name that is an index, a data stream or an alias that kbtools did not make."""
    indexes = cluster.ask(
        "GET", f"/{kb}", to=f"look up {kb}", missing_ok=True,
        params={"features": "mappings", "filter_path": "*.mappings._meta"},
    )  # fmt: skip
    resolved = cluster.ask("GET", f"/_alias/{kb}", to=f"look up the alias {kb}", missing_ok=True)
    if indexes is None:
        return
    # An alias resolves to its indexes; a name that does not resolve is an index or a data stream.
    behind = sorted(resolved or {}) if resolved is not None else [kb]
    strangers = [index for index in behind if IndexMark.of(indexes.get(index)) is None]
    if strangers:
        kind = "an alias of" if resolved is not None else "an index,"
        raise NameTaken(
            f"{cluster.connection.where}: {kb!r} is {kind} {', '.join(strangers)}, which kbtools did not make; choose "
            "another --kb",
            name=kb,
            indexes=strangers,
        )


def switch(cluster: Cluster, kb: str, to: Version, versions: Sequence[Version]) -> None:
    """Point the alias at a version, away from every other, in one call."""
    # One call: a reader finds the old version or the new one, never none or both.
    actions = [
        {"remove": {"index": index, "alias": kb, "must_exist": False}}
        for version in versions
        if version.number != to.number
        for index in version.indexes.values()
    ]
    for index in to.indexes.values():
        actions.append({"add": {"index": index, "alias": kb}})
        actions.append({"remove": {"index": index, "alias": loading_alias(index), "must_exist": False}})
    cluster.ask("POST", "/_aliases", {"actions": actions}, to=f"switch {kb} to version {to.number}")


def roll_back(cluster: Cluster, kb: str) -> Version:
    """Point the alias at the newest complete version before the current one, and return that version."""
    current = current_version(cluster, kb)
    versions = list_versions(cluster, kb)
    older = [version for version in versions if version.complete and version.number < current.number]
    if not older:
        raise KBMissing(f"{kb}: no complete version before {current.number} to roll back to", name=kb)
    switch(cluster, kb, older[-1], versions)
    return older[-1]


def delete_versions(cluster: Cluster, versions: Sequence[Version]) -> list[str]:
    """Delete the indexes of versions, after checking each again for our mark."""
    deleted = []
    for version in versions:
        for index in version.indexes.values():
            mark = _read_mark(cluster, index)
            if mark and (mark.kb, number_of(index)) == (version.kb, version.number):
                cluster.ask("DELETE", f"/{index}", to=f"delete {index}", missing_ok=True)
                deleted.append(index)
    return deleted


def create_version(cluster: Cluster, kb: str, number: int, settings: IndexSettings) -> Version | None:
    """Create the indexes of a version; None if something that kbtools did not make has one of their names."""
    indexes = {role: index_name(kb, number, role) for role in ROLES}

    def create(role: str) -> bool:
        body = index_body(role, kb=kb, version=number, settings=settings)
        try:
            cluster.ask("PUT", f"/{indexes[role]}", body, to=f"create {indexes[role]}", params={"timeout": "60s"})
        except ServerError as error:
            if "resource_already_exists" not in str(error):
                raise
            # We hold the lock, so an index of this number is ours; only the answer to an earlier try was lost.
            return _read_mark(cluster, indexes[role]) is not None
        return True

    with ThreadPoolExecutor(len(ROLES)) as pool:  # In parallel, so that the cluster writes its state once.
        futures = [pool.submit(create, role) for role in ROLES]
    version = Version(kb, number, indexes, MAPPING_VERSION)
    try:
        created = [future.result() for future in futures]
    except ServerError:
        delete_versions(cluster, [version])
        raise
    if not all(created):
        delete_versions(cluster, [version])
        return None
    return version


def mark_complete(cluster: Cluster, version: Version) -> None:
    """Mark the indexes of a version as complete; until then a copy has the marks of another version."""
    for index in version.indexes.values():
        former = _read_mark(cluster, index)
        origin = former.origin if former else {}
        mark = IndexMark(version.kb, version.number, version.mapping, complete=True, origin=origin)
        cluster.ask("PUT", f"/{index}/_mapping", {"_meta": mark.to_meta()}, to=f"mark {index}")


def copy_version(cluster: Cluster, base: Version, number: int) -> Version:
    """Create a copy of a version, including vectors; nobody reads it yet.

    The original no longer accepts documents, which a complete version never gets.
    """
    roles = [role for role in (*ROLES, VECTORS) if role in base.indexes]
    indexes = {role: index_name(base.kb, number, role) for role in roles}
    to = f"copy version {base.number} of {base.kb}"
    cluster.ask("PUT", f"/{','.join(base.indexes[role] for role in roles)}/_block/write", to=to)

    def copy(role: str) -> None:
        body = {
            "settings": _copies_of(cluster, base.indexes[role]) | {"index.blocks.write": None},
            "aliases": {loading_alias(indexes[role]): {}},
        }
        path = f"/{base.indexes[role]}/_clone/{indexes[role]}"
        cluster.ask("POST", path, body, to=to, params={"timeout": _COPY_TIMEOUT})

    with ThreadPoolExecutor(len(roles)) as pool:  # In parallel, so that the cluster writes its state once.
        for future in [pool.submit(copy, role) for role in roles]:
            future.result()
    version = Version(base.kb, number, indexes, base.mapping)
    every = ",".join(indexes.values())
    health = cluster.health(every, until=_has_primaries, patience=cluster.patience)
    if health is None or not _has_primaries(health):
        raise Unreachable(
            f"{cluster.connection.where}: a copy of {base.kb!r} cannot be allocated; check the disks and health "
            "of the nodes, then run the same command again",
            index=every,
        )
    return version


def _copies_of(cluster: Cluster, index: str) -> dict[str, str]:
    """Return the settings for the number of copies of shards, which a copied index does not inherit."""
    wanted = ("index.number_of_replicas", "index.auto_expand_replicas")
    answer = cluster.ask(
        "GET", f"/{index}/_settings/{','.join(wanted)}", to=f"read the settings of {index}",
        params={"flat_settings": "true"},
    )  # fmt: skip
    settings: dict[str, str] = answer[index]["settings"]
    # If the number of copies follows the number of nodes, the current number is not a setting.
    follows = settings.get("index.auto_expand_replicas", "false") != "false"
    return {name: value for name, value in settings.items() if follows is (name == wanted[1])}


def _has_primaries(health: dict[str, Any]) -> bool:
    """Return whether every primary shard is allocated; a missing copy never makes the health red."""
    return health["status"] != "red" and not health["unassigned_primary_shards"]


def count_documents(cluster: Cluster, version: Version) -> dict[str, int]:
    """Count the documents of entities and of forms."""
    queries = {ENTITIES: {"exists": {"field": "part"}}, NAMES: {"match_all": {}}}
    counts = {}
    for role, query in queries.items():
        answer = cluster.ask("POST", f"/{version.indexes[role]}/_count", {"query": query}, to=f"count the {role}")
        check_shards(answer, cluster.connection.where)
        counts[role] = int(answer["count"])
    return counts


def count_held(cluster: Cluster, version: Version, query: dict[str, Any] | None = None) -> dict[str, int]:
    """Count the values in the documents of all entities, or of those that match a query."""
    fields = {
        "facts": "held",
        "facts of subjects": "facts",
        "incoming facts": "held_in",
        "facts of objects": "facts_in",
        "names": "named",
    }
    sums = {kind: {"sum": {"field": name}} for kind, name in fields.items()}
    entities = {"filter": {"term": {"part": 0}}}
    body = {
        "size": 0,
        "track_total_hits": True,
        "query": query or {"exists": {"field": "part"}},
        "aggs": {"entities": entities, "types": {"value_count": {"field": "types"}}, **sums},
    }
    answer = cluster.ask(
        "POST", f"/{version.indexes[ENTITIES]}/_search", body, to="count the entities",
        params={"allow_partial_search_results": "false"},
    )  # fmt: skip
    counts = answer["aggregations"]
    return {
        "documents": answer["hits"]["total"]["value"],
        "entities": counts["entities"]["doc_count"],
        "types": counts["types"]["value"],
        **{kind: int(counts[kind]["value"]) for kind in fields},
    }


def require_counts(version: str, stored: Mapping[str, int], expected: Mapping[str, int], cure: str) -> None:
    """Raise BulkFailed unless a version has the expected counts."""
    if differ := {kind: (stored[kind], count) for kind, count in expected.items() if stored[kind] != count}:
        shares = ", ".join(f"{found:,} of {wanted:,} {kind}" for kind, (found, wanted) in differ.items())
        raise BulkFailed(f"{version} has {shares}; a node may have lost its data; {cure}", counts=differ)
