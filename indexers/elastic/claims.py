"""Who is loading a knowledge base, and how far: notes on the cluster, each changed only by the one who owns it.

Note `KB` tells which version is being built from what; note `KB/part` tells who loads a part of it and how far.
"""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import elasticsearch

from kbtools.errors import BuildLocked, ServerError
from kbtools.indexers.elastic.cluster import ONCE, Cluster, Patience
from kbtools.indexers.elastic.mapping import BUILDS, MAPPING_VERSION, OWNER, read_mapping
from kbtools.indexers.elastic.versions import CONTROL

logger = logging.getLogger(__name__)

BEAT = 5.0
"""Seconds between two signs of life of a loader."""

LEASE = 20.0
"""Seconds without one after which a loader of another machine counts as dead."""

KINDS_KEPT = 20


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


HELD_HERE: set[str] = set()
"""The loads under way in this process."""


def boot_id() -> str:
    """Tell one start of a machine from another, as far as the system says."""
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text().strip() if file.exists() else ""


def start_of(pid: int) -> str:
    """Give when a process started, as far as the system says; empty for one that is gone."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        try:
            os.kill(pid, 0)
        except OSError:
            return ""
        return "running"
    return "" if state in "ZX" else rest[18]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a part is: everything before these rows is confirmed; what was rejected, by kind with the first."""

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
    def from_record(cls, record: dict[str, Any]) -> "Progress":
        return cls(**{**record, "owner": Owner(**record["owner"])})


@dataclass(frozen=True, slots=True)
class Build:
    """A version being built: from which content, in how many parts."""

    kb: str
    version: int
    digest: str
    parts: int
    mapping: int = MAPPING_VERSION


def ensure_control(cluster: Cluster) -> None:
    """Make the index of notes where it is missing."""
    if cluster.ask("GET", f"/{CONTROL}", to="look for the notes of builds", missing_ok=True):
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
    found = cluster.ask("GET", note_path(name), to="read the notes of builds", missing_ok=True)
    if not found or not found.get("found"):
        return None
    stamp = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
    return found["_source"]["record"], stamp


def write_note(
    cluster: Cluster,
    name: str,
    kb: str,
    record: dict[str, Any],
    stamp: dict[str, int] | None,
    patience: Patience | None = None,
) -> dict[str, int]:
    """Write a note, new if there is no stamp; raise `Taken` if someone else was there first."""
    try:
        told = cluster.ask(
            "PUT", note_path(name), {"kb": kb, "record": record}, to="note the progress of a build", patience=patience,
            params={"op_type": "create"} if stamp is None else stamp,
        )  # fmt: skip
    except ServerError as error:
        if isinstance(error.__cause__, elasticsearch.ConflictError):
            raise Taken(name) from error
        raise
    return {"if_seq_no": told["_seq_no"], "if_primary_term": told["_primary_term"]}


class Taken(Exception):
    """Someone else wrote the note first."""


def read_parts(cluster: Cluster, kb: str, parts: int) -> list[Progress | None]:
    """Read how far every part of a build is."""
    notes = (read_note(cluster, f"{kb}/{part}") for part in range(1, parts + 1))
    return [Progress.from_record(note[0]) if note else None for note in notes]


def drop_notes(cluster: Cluster, kb: str, parts: int) -> None:
    """Forget a build."""
    for name in [kb, *(f"{kb}/{part}" for part in range(1, parts + 1))]:
        cluster.ask("DELETE", note_path(name), to="remove the notes of a build", missing_ok=True)


class Claim:
    """The right to load one part; a thread shows signs of life until it is given back."""

    def __init__(self, cluster: Cluster, kb: str, progress: Progress, stamp: dict[str, int], parts: int) -> None:
        self.cluster, self.kb, self.progress, self.stamp, self.parts = cluster, kb, progress, stamp, parts
        self.lost: BaseException | None = None
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        HELD_HERE.add(progress.owner.token)
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.thread.start()

    def keep(self) -> None:
        while not self.stopped.wait(BEAT):
            try:
                self.write()
            except (ServerError, BuildLocked) as error:
                self.lost = error if isinstance(error, BuildLocked) else None
                logger.warning("no sign of life could be given: %s", error)

    def write(self, *, patience: Patience | None = None, **changes: Any) -> None:
        """Note progress; raise BuildLocked if another loader has taken over."""
        with self.lock:
            if self.lost:
                raise self.lost
            progress = replace(self.progress, beat=self.progress.beat + 1, **changes)
            name, written = f"{self.kb}/{progress.part}", False
            while not written:
                try:
                    self.stamp = write_note(self.cluster, name, self.kb, asdict(progress), self.stamp, patience)
                    written = True
                except Taken:
                    self.stamp = self.read_own_note(name, progress)
            self.progress = progress

    def read_own_note(self, name: str, progress: Progress) -> dict[str, int]:
        """Find what our next write must state, where the answer to an earlier one was lost."""
        found = read_note(self.cluster, name)
        theirs = Progress.from_record(found[0]) if found else None
        if found is None or theirs is None or theirs.owner != progress.owner:
            self.lost = locked(self.cluster, self.kb, theirs)
            raise self.lost
        return found[1]

    def release(self, **changes: Any) -> None:
        """Stop the signs of life; the note stays, for the next run to go on from."""
        self.stopped.set()
        self.thread.join()
        HELD_HERE.discard(self.progress.owner.token)
        with suppress(ServerError, BuildLocked):
            self.write(patience=ONCE, loading=False, **changes)


def locked(cluster: Cluster, kb: str, theirs: Progress | None) -> BuildLocked:
    """Name the loader that was first."""
    who = f"process {theirs.owner.pid} on {theirs.owner.host}" if theirs else "another process"
    return BuildLocked(
        f"{cluster.connection.where}: {kb!r} is being loaded by {who}; wait for that one, or stop it",
        name=kb,
        owner=asdict(theirs.owner) if theirs else None,
    )


def is_alive(cluster: Cluster, kb: str, theirs: Progress, wait: Callable[[float], None]) -> bool:
    """Find out whether the loader of a part still runs: ask the system, else wait for a sign of life."""
    if theirs.done or not theirs.loading:
        return False
    gone = theirs.owner.is_gone()
    if gone is not None:
        return not gone
    who = theirs.owner
    logger.warning("waiting %.0f s to see whether process %d on %s still loads %s", LEASE, who.pid, who.host, kb)
    wait(LEASE)
    again = read_note(cluster, f"{kb}/{theirs.part}")
    return again is not None and Progress.from_record(again[0]).beat != theirs.beat


def claim(cluster: Cluster, kb: str, build: Build, part: int, *, fresh: bool, wait: Callable[[float], None]) -> Claim:
    """Take the right to load a part, from a dead loader too; raise BuildLocked while a living one has it."""
    name = f"{kb}/{part}"
    found = read_note(cluster, name)
    progress, stamp = Progress(Owner.here(), part), None
    if found:
        theirs, stamp = Progress.from_record(found[0]), found[1]
        if is_alive(cluster, kb, theirs, wait):
            raise locked(cluster, kb, theirs)
        if not fresh:
            progress = replace(theirs, owner=progress.owner, loading=True, done=False)
    try:
        stamp = write_note(cluster, name, kb, asdict(progress), stamp)
    except Taken:
        found = read_note(cluster, name)
        first = Progress.from_record(found[0]) if found else None
        if found is None or first is None or first.owner != progress.owner:
            raise locked(cluster, kb, first) from None
        stamp = found[1]
    return Claim(cluster, kb, progress, stamp, build.parts)
