"""Notes of builds on the cluster: which version is being built from which content, who loads a part and how far.

Note `KB` is the build, note `KB/part` the progress of a part. A note is changed only by a writer that has seen its
last change, so that of two loaders one is refused.
"""

import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import elasticsearch

from kbtools.errors import KBUnusable, ServerError
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.mapping import BUILDS, MAPPING_VERSION, OWNER, read_mapping
from kbtools.indexers.elastic.versions import CONTROL

HELD_HERE: set[str] = set()
"""The tokens of the loads under way in this process."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A loading process, told apart from a later one of the same number."""

    host: str
    boot: str
    pid: int
    started: str
    token: str

    @classmethod
    def here(cls) -> "Owner":
        return cls(socket.gethostname(), boot_id(), os.getpid(), start_of(os.getpid()), secrets.token_hex(8))

    def is_gone(self) -> bool | None:
        """Tell whether the load has ended; nothing if it runs, or ran, on another machine."""
        if (self.host, self.boot) != (socket.gethostname(), boot_id()):
            return None
        if self.pid == os.getpid():
            return self.token not in HELD_HERE
        return start_of(self.pid) != self.started


def boot_id() -> str:
    """Tell one start of a machine from another, as far as the system says."""
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text().strip() if file.exists() else ""


def start_of(pid: int) -> str:
    """Give when a process started, as far as the system says; empty for one that is gone."""
    # The name of a program stands in brackets and may hold brackets and spaces itself: read from the last one on.
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        # No such files, as on macOS: a process of that number is taken to be the same.
        try:
            os.kill(pid, 0)
        except OSError:
            return ""
        return "running"
    # Zombies and dead ones load nothing; field 22 of proc(5) is the start, in ticks since the machine's.
    return "" if state in "ZX" else rest[18]


@dataclass(frozen=True, slots=True)
class PartProgress:
    """The progress of a part: everything before these rows is confirmed; rejections by kind, each with its first."""

    owner: Owner
    part: int
    beat: int = 0
    entities: int = 0
    names: int = 0
    documents: int = 0
    rejected: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    loading: bool = True
    done: bool = False

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "PartProgress":
        try:
            return cls(**{**record, "owner": Owner(**record["owner"])})
        except (TypeError, KeyError) as error:
            raise unreadable() from error


@dataclass(frozen=True, slots=True)
class Build:
    """A version being built: from which content, in how many parts, or by an update of which version."""

    kb: str
    version: int
    digest: str
    parts: int
    mapping: int = MAPPING_VERSION
    base: int = 0

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Build":
        try:
            return cls(**record)
        except TypeError as error:
            raise unreadable() from error


def unreadable() -> KBUnusable:
    """Refuse a note that this kbtools did not write."""
    return KBUnusable(
        f"{CONTROL}: a note in it is none of this kbtools; go on with the version that wrote it, or delete the index "
        f"{CONTROL} if nothing is being loaded or updated",
        index=CONTROL,
    )


def has_control(cluster: Cluster) -> bool:
    """Tell whether the index of notes is there."""
    return bool(cluster.ask("GET", f"/{CONTROL}", to="look for the notes of builds", missing_ok=True))


def ensure_control(cluster: Cluster) -> None:
    """Make the index of notes where it is missing."""
    if has_control(cluster):
        return
    body = read_mapping(BUILDS)
    body["mappings"]["_meta"] = {OWNER: {"mapping": MAPPING_VERSION}}
    try:
        cluster.ask("PUT", f"/{CONTROL}", body, to=f"create the index {CONTROL}")
    except ServerError as error:
        if "resource_already_exists" not in str(error):
            raise


def note_path(name: str) -> str:
    return f"/{CONTROL}/_doc/{name.replace('/', '%2F')}"


def read_note(cluster: Cluster, name: str) -> tuple[dict[str, Any], dict[str, int]] | None:
    """Read a note and what its next change must state."""
    answer = cluster.ask("GET", note_path(name), to="read the notes of builds", missing_ok=True)
    if not answer or not answer.get("found"):
        return None
    return dict(answer["_source"].get("record") or {}), stamp_of(answer)


def stamp_of(answer: dict[str, Any]) -> dict[str, int]:
    """Give what the next change of a note must state, to be refused if the note has changed meanwhile."""
    return {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}


def write_note(
    cluster: Cluster,
    name: str,
    kb: str,
    record: dict[str, Any],
    stamp: dict[str, int] | None,
    patience: Patience | None = None,
) -> dict[str, int]:
    """Write a note, new if there is no stamp; raise `Taken` if another loader was first."""
    try:
        answer = cluster.ask(
            "PUT", note_path(name), {"kb": kb, "record": record}, to="note the progress of a build", patience=patience,
            params={"op_type": "create"} if stamp is None else stamp,
        )  # fmt: skip
    except ServerError as error:
        if isinstance(error.__cause__, elasticsearch.ConflictError):
            raise Taken(name) from error
        raise
    return stamp_of(answer)


class Taken(Exception):
    """A note that another loader wrote first."""


def read_build(cluster: Cluster, kb: str) -> tuple[Build, dict[str, int]] | None:
    """Read the build of a knowledge base that is under way or was left behind."""
    note = read_note(cluster, kb)
    return (Build.from_record(note[0]), note[1]) if note else None


def read_part(cluster: Cluster, kb: str, part: int) -> tuple[PartProgress, dict[str, int]] | None:
    """Read the progress of a part."""
    note = read_note(cluster, f"{kb}/{part}")
    return (PartProgress.from_record(note[0]), note[1]) if note else None


def read_parts(cluster: Cluster, kb: str, parts: int) -> list[PartProgress | None]:
    """Read how far every part of a build is."""
    notes = (read_part(cluster, kb, part) for part in range(1, parts + 1))
    return [note[0] if note else None for note in notes]


def drop_notes(cluster: Cluster, kb: str, parts: int) -> None:
    """Remove the notes of a build."""
    for name in [kb, *(f"{kb}/{part}" for part in range(1, parts + 1))]:
        drop_note(cluster, name)


def drop_note(cluster: Cluster, name: str) -> None:
    cluster.ask("DELETE", note_path(name), to="remove the notes of a build", missing_ok=True)
