"""The versions of a knowledge base on a cluster: which is current, which are older, which a killed build left.

A knowledge base is an alias on the indexes of one version. Only indexes that carry our mark are ever touched.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from kbtools.errors import KBMissing, NameTaken, WrongFormat
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import OWNER, ROLES, VECTORS, loading_alias

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
CONTROL = "kbtools-builds"

UNFINISHED_VECTORS = "unfinished vectors"
"""The role of an index of vectors whose loader was killed: it goes with its version, and nobody reads it."""
"""The index in which builds under way are noted."""


def check_name(kb: str) -> str:
    """Refuse a name that cannot be an alias."""
    if not NAME.fullmatch(kb) or kb.startswith("kbtools-"):
        raise WrongFormat(
            f"{kb!r}: no name for a knowledge base on Elasticsearch; take at most 100 of a-z, 0-9, '_', '.' and '-', a "
            "letter or digit first, and not the prefix 'kbtools-'",
            name=kb,
        )
    return kb


def index_name(kb: str, version: int, role: str) -> str:
    return f"kbtools-{kb}-{version:06d}-{role}"


def role_of(index: str) -> str:
    """Read the role of an index of ours from its name."""
    return index.rpartition("-")[2]


@dataclass(frozen=True, slots=True)
class Version:
    """One build of a knowledge base: its indexes by role, whether it is complete, whether the alias points at it."""

    kb: str
    number: int
    indexes: dict[str, str] = field(default_factory=dict)
    mapping: int = 0
    complete: bool = False
    current: bool = False

    @property
    def state(self) -> str:
        """Say what the version is."""
        if self.current:
            return "current"
        return "older" if self.complete else "unfinished"


def list_versions(cluster: Cluster, kb: str | None = None) -> list[Version]:
    """List the versions of one knowledge base, or of all, the oldest first."""
    pattern = f"kbtools-{kb}-*" if kb else "kbtools-*"
    indexes = cluster.ask(
        "GET", f"/{pattern}", to="list the indexes of kbtools",
        params={"features": "aliases,mappings", "expand_wildcards": "all", "filter_path": "*.aliases,*.mappings._meta"},
    )  # fmt: skip
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for index, told in (indexes or {}).items():
        mark = mark_of(told)
        if not is_mark(mark) or (kb is not None and mark["kb"] != kb):
            continue
        version = found.setdefault((mark["kb"], mark["version"]), {"indexes": {}, "complete": [], "current": []})
        role = role_of(index)
        version["indexes"][role if role != VECTORS or mark["complete"] else UNFINISHED_VECTORS] = index
        version["mapping"] = mark["mapping"]
        if role in ROLES:
            version["complete"].append(mark["complete"])
        version["current"].append(mark["kb"] in told.get("aliases", {}))
    return [
        Version(name, number, told["indexes"], told["mapping"], all(told["complete"]), any(told["current"]))
        for (name, number), told in sorted(found.items())
    ]


def mark_of(told: Any) -> Any:
    """Find our mark in what the cluster tells of an index; nothing if it has none."""
    return (((told or {}).get("mappings") or {}).get("_meta") or {}).get(OWNER)


def read_mark(cluster: Cluster, index: str) -> dict[str, Any]:
    """Read the mark of an index; empty if it has none or is not there."""
    told = cluster.ask(
        "GET", f"/{index}", to=f"look at {index}", missing_ok=True,
        params={"features": "mappings", "filter_path": "*.mappings._meta"},
    )  # fmt: skip
    return dict(mark_of((told or {}).get(index)) or {})


def is_mark(mark: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether an index's `_meta` is one that kbtools wrote."""
    return isinstance(mark, dict) and {"kb", "version", "mapping", "complete"} <= mark.keys()


def current_version(cluster: Cluster, kb: str) -> Version:
    """Find the version that the alias points at; raise KBMissing where there is none, NameTaken for a stranger."""
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
    """Refuse a name that is an index, a data stream or an alias of something that kbtools did not make."""
    told = cluster.ask(
        "GET", f"/{kb}", to=f"look up {kb}", missing_ok=True,
        params={"features": "mappings", "filter_path": "*.mappings._meta"},
    )  # fmt: skip
    resolved = cluster.ask("GET", f"/_alias/{kb}", to=f"look up the alias {kb}", missing_ok=True)
    if told is None:
        return
    behind = sorted(resolved or {}) if resolved is not None else [kb]
    strangers = [index for index in behind if not is_mark(mark_of(told.get(index)))]
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
    """Point the alias at the newest complete version before the current one."""
    current = current_version(cluster, kb)
    versions = list_versions(cluster, kb)
    older = [version for version in versions if version.complete and version.number < current.number]
    if not older:
        raise KBMissing(f"{kb}: no complete version before {current.number} to roll back to", name=kb)
    switch(cluster, kb, older[-1], versions)
    return older[-1]


def delete_versions(cluster: Cluster, versions: Sequence[Version]) -> list[str]:
    """Delete the indexes of versions, each looked at again first: only one that carries our mark goes."""
    deleted = []
    for version in versions:
        for index in version.indexes.values():
            mark = read_mark(cluster, index)
            if is_mark(mark) and (mark["kb"], mark["version"]) == (version.kb, version.number):
                cluster.ask("DELETE", f"/{index}", to=f"delete {index}", missing_ok=True)
                deleted.append(index)
    return deleted
