"""Versions of a knowledge base on a cluster: the current one, older ones, and those that a killed build left.

A knowledge base is an alias on the indexes of one version. Only indexes that carry our mark are ever touched.
"""

import re
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from kbtools.errors import KBMissing, NameTaken, ServerError, WrongFormat
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.mapping import (
    MAPPING_VERSION,
    ROLES,
    VECTORS,
    IndexSettings,
    Mark,
    index_body,
    index_name,
    loading_alias,
    number_of,
    role_of,
)

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
"""Names that an alias can have; 100, so that the names of indexes stay below the cluster's 255 bytes."""

CONTROL = "kbtools-builds"
"""The index in which builds under way are noted."""

UNFINISHED_VECTORS = "unfinished vectors"
"""The role of an index of vectors whose loader was killed: it goes with its version, and nobody reads it."""


def check_name(kb: str) -> str:
    """Refuse a name that cannot be an alias."""
    if not NAME.fullmatch(kb) or kb.startswith("kbtools-"):
        raise WrongFormat(
            f"{kb!r}: no name for a knowledge base on Elasticsearch; take at most 100 of a-z, 0-9, '_', '.' and '-', a "
            "letter or digit first, and not the prefix 'kbtools-'",
            name=kb,
        )
    return kb


@dataclass(frozen=True, slots=True)
class Version:
    """A build of a knowledge base: its indexes by role; it is current where the alias points at it."""

    kb: str
    number: int
    indexes: dict[str, str] = field(default_factory=dict)
    mapping: int = 0
    complete: bool = False
    current: bool = False

    @property
    def state(self) -> str:
        """Say in a word where the version stands."""
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
    versions: dict[tuple[str, int], Version] = {}
    for index, described in (indexes or {}).items():
        mark = Mark.of(described)
        if mark is None or (kb is not None and mark.kb != kb):
            continue
        role, number = role_of(index), number_of(index)
        # A copy that was just made of another version still has the mark of that one.
        complete = mark.complete and mark.version == number
        version = versions.get((mark.kb, number)) or Version(mark.kb, number, complete=True)
        versions[mark.kb, number] = replace(
            version,
            indexes=version.indexes | {role if role != VECTORS or complete else UNFINISHED_VECTORS: index},
            mapping=mark.mapping,
            complete=version.complete and (complete or role not in ROLES),
            current=version.current or mark.kb in described.get("aliases", {}),
        )
    return [version for _, version in sorted(versions.items())]


def read_mark(cluster: Cluster, index: str) -> Mark | None:
    """Read the mark of an index; nothing where it has none of ours or is not there."""
    answer = cluster.ask(
        "GET", f"/{index}", to=f"look at {index}", missing_ok=True,
        params={"features": "mappings", "filter_path": "*.mappings._meta"},
    )  # fmt: skip
    return Mark.of((answer or {}).get(index))


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
    indexes = cluster.ask(
        "GET", f"/{kb}", to=f"look up {kb}", missing_ok=True,
        params={"features": "mappings", "filter_path": "*.mappings._meta"},
    )  # fmt: skip
    resolved = cluster.ask("GET", f"/_alias/{kb}", to=f"look up the alias {kb}", missing_ok=True)
    if indexes is None:
        return
    # An alias resolves to the indexes behind it; what does not resolve is an index or a data stream of that name.
    behind = sorted(resolved or {}) if resolved is not None else [kb]
    strangers = [index for index in behind if Mark.of(indexes.get(index)) is None]
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
            if mark and (mark.kb, number_of(index)) == (version.kb, version.number):
                cluster.ask("DELETE", f"/{index}", to=f"delete {index}", missing_ok=True)
                deleted.append(index)
    return deleted


def create_version(cluster: Cluster, kb: str, number: int, settings: IndexSettings) -> Version | None:
    """Make the indexes of a version; nothing where another loader was first."""
    token = secrets.token_hex(8)
    indexes = {role: index_name(kb, number, role) for role in ROLES}

    def is_ours(role: str) -> bool:
        mark = read_mark(cluster, indexes[role])
        return mark is not None and mark.token == token

    def create(role: str) -> bool:
        body = index_body(role, kb=kb, version=number, token=token, settings=settings)
        try:
            cluster.ask("PUT", f"/{indexes[role]}", body, to=f"create {indexes[role]}", params={"timeout": "60s"})
        except ServerError as error:
            if "resource_already_exists" not in str(error):
                raise
            return is_ours(role)  # then only the first answer was lost
        return True

    with ThreadPoolExecutor(len(ROLES)) as pool:  # together, the cluster writes its state once
        futures = [pool.submit(create, role) for role in ROLES]
    try:
        created = {role: indexes[role] for role, future in zip(ROLES, futures, strict=True) if future.result()}
    except ServerError:
        delete_versions(cluster, [Version(kb, number, {role: indexes[role] for role in ROLES if is_ours(role)})])
        raise
    if created != indexes:
        delete_versions(cluster, [Version(kb, number, created)])
        return None
    return Version(kb, number, indexes, MAPPING_VERSION)
