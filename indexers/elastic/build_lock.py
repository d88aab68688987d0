"""The lock of a knowledge base on a cluster: one process at a time loads or updates it, and records its progress.

The lock is a note, a document under the name of the knowledge base. Its holder renews it every few seconds. A note not
renewed for STALE seconds, or returned by its holder, is free. A writer must have seen the last change of a note, so
that of two processes one is refused, and a holder whose note was taken over stops.
"""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import elasticsearch

from kbtools.errors import BuildLocked, KBToolsError, KBUnusable, ServerError
from kbtools.indexers.elastic.cluster import ONCE, Cluster, Patience
from kbtools.indexers.elastic.mapping import BUILDS, MAPPING_VERSION, OWNER, read_mapping
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    delete_versions,
    list_versions,
    mark_complete,
    switch,
)

CONTROL = "kbtools-builds"
"""The index that holds the notes."""

_BEAT = 5.0
"""Seconds between two renewals."""

STALE = 120.0
"""Seconds without renewal after which a note is free. Clocks of machines may differ by less than that."""

_Condition = dict[str, int]
"""The number of the last change of a note, which the next change must state."""


@dataclass(frozen=True, slots=True)
class BuildNote:
    """A version being made: its owner and its progress.

    `digest` is that of the loaded content, empty for an update. Everything before the rows `entities` and `forms` is
    stored, except rejected documents; `kinds` holds the first of each kind of these. `beat` is the time of the last
    renewal, in seconds since 1970.
    """

    version: int
    digest: str = ""
    owner: str = ""
    token: str = ""
    beat: float = 0.0
    held: bool = True
    entities: int = 0
    forms: int = 0
    documents: int = 0
    rejected: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    mapping: int = MAPPING_VERSION

    @property
    def is_free(self) -> bool:
        """Return whether another process may take over the note."""
        return not self.held or time.time() - self.beat > STALE

    @property
    def progress(self) -> str:
        """Describe the owner of the note and its progress."""
        rejected = f", {self.rejected:,} rejected" if self.rejected else ""
        state = "left behind by" if self.is_free else "held by"
        return f"{state} {self.owner}, {self.documents:,} documents{rejected}"

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "BuildNote":
        try:
            return cls(**record)
        except TypeError as error:
            raise KBUnusable(
                f"{CONTROL}: another version of kbtools wrote a note in it; go on with that version, or delete the "
                f"index {CONTROL} if nothing is being loaded or updated",
                index=CONTROL,
            ) from error


def _note_path(kb: str) -> str:
    return f"/{CONTROL}/_doc/{kb}"


def read_note(cluster: Cluster, kb: str) -> tuple[BuildNote, _Condition] | None:
    """Return the note of a knowledge base; None if no version of it is being made."""
    answer = cluster.ask("GET", _note_path(kb), to="read the note of a load", missing_ok=True)
    if not answer or not answer.get("found"):
        return None
    return BuildNote.from_record(answer["_source"].get("record") or {}), _condition_of(answer)


def _condition_of(answer: dict[str, Any]) -> _Condition:
    return {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}


def write_note(
    cluster: Cluster, kb: str, note: BuildNote, condition: _Condition | None, *, patience: Patience | None = None
) -> _Condition:
    """Write a note, a new one if there is no condition; raise BuildLocked if another process has changed it."""
    while True:
        try:
            answer = cluster.ask(
                "PUT", _note_path(kb), {"kb": kb, "record": asdict(note)}, to="note the progress of a load",
                patience=patience, params={"op_type": "create"} if condition is None else condition,
            )  # fmt: skip
            return _condition_of(answer)
        except ServerError as error:
            if not isinstance(error.__cause__, elasticsearch.ConflictError):
                raise
            stored = read_note(cluster, kb)
            # It is ours if only the answer to an earlier try was lost.
            if stored is None or stored[0].token != note.token:
                raise _locked(cluster, kb, stored[0] if stored else None) from error
            condition = stored[1]


def drop_note(cluster: Cluster, kb: str, condition: _Condition | None = None) -> None:
    """Remove a note; with a condition, only if it was not changed since."""
    try:
        cluster.ask("DELETE", _note_path(kb), to="remove the note of a load", missing_ok=True, params=condition)
    except ServerError as error:
        if not isinstance(error.__cause__, elasticsearch.ConflictError):
            raise


def _ensure_control(cluster: Cluster) -> None:
    """Create the index of notes unless it exists."""
    if cluster.ask("GET", f"/{CONTROL}", to="look for the notes of loads", missing_ok=True):
        return
    body = read_mapping(BUILDS)
    body["mappings"]["_meta"] = {OWNER: {"mapping": MAPPING_VERSION}}
    try:
        cluster.ask("PUT", f"/{CONTROL}", body, to=f"create the index {CONTROL}")
    except ServerError as error:
        if "resource_already_exists" not in str(error):
            raise


def _locked(cluster: Cluster, kb: str, note: BuildNote | None) -> BuildLocked:
    """Return an error that names the process holding the lock."""
    since = f" (last sign of life {max(0.0, time.time() - note.beat):.0f} s ago)" if note else ""
    return BuildLocked(
        f"{cluster.connection.where}: {kb!r} is being loaded or updated by {note.owner if note else 'another process'}"
        f"{since}; wait for it, or if it was killed, for {STALE:.0f} s without a sign of life, or run the "
        "command with --take-over",
        name=kb,
        owner=note.owner if note else None,
    )


def free_note(cluster: Cluster, kb: str, *, take_over: bool = False) -> tuple[BuildNote | None, _Condition | None]:
    """Return the note left by another process, if any; raise BuildLocked while that process renews it."""
    note, condition = read_note(cluster, kb) or (None, None)
    if note and not note.is_free and not take_over:
        raise _locked(cluster, kb, note)
    return note, condition


class BuildLock:
    """A lock that is held; a thread renews it until it is returned or dropped.

    Its holder changes `note`; each renewal and each `write` stores it on the cluster.
    """

    def __init__(self, cluster: Cluster, kb: str, note: BuildNote, condition: _Condition) -> None:
        self.cluster, self.kb, self.note, self.condition = cluster, kb, note, condition
        self.lost: BuildLocked | None = None
        self.writing = threading.Lock()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.show_life, daemon=True)
        self.thread.start()

    @classmethod
    def take(cls, cluster: Cluster, kb: str, note: BuildNote, condition: _Condition | None) -> "BuildLock":
        """Take the lock by replacing the note that `free_note` returned; raise BuildLocked if it was changed."""
        _ensure_control(cluster)
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        note = replace(note, owner=owner, token=secrets.token_hex(8), beat=time.time(), held=True)
        return cls(cluster, kb, note, write_note(cluster, kb, note, condition))

    def show_life(self) -> None:
        while not self.stopped.wait(_BEAT):
            try:
                self.write()
            except (ServerError, BuildLocked) as error:
                logging.getLogger(__name__).warning("no sign of life could be shown: %s", error)

    def write(self, *, patience: Patience | None = None, held: bool = True) -> None:
        """Write the note in its current state; raise BuildLocked if another process has taken over the lock."""
        with self.writing:
            if self.lost:
                raise self.lost
            note = replace(self.note, beat=time.time(), held=held)
            try:
                self.condition = write_note(self.cluster, self.kb, note, self.condition, patience=patience)
            except BuildLocked as error:
                self.lost = error
                raise

    def make_current(self, version: Version, *, keep: int, base: Version | None = None) -> list[str]:
        """Mark a version as complete and switch to it; delete older ones beyond `keep`, and return their indexes.

        `base` is the version that an update began with. Raises ServerError if it is no longer current.
        """
        cluster = self.cluster
        mark_complete(cluster, version)
        # Checked again just before the switch: the name may have been taken meanwhile.
        versions = list_versions(cluster, self.kb)
        if base and not any(other.current and other.number == base.number for other in versions):
            raise ServerError(f"{self.kb}: another version became current in the meantime; run the same command again")
        check_alias(cluster, self.kb)
        # The last moment at which another process could have taken over; raises an error if one has.
        self.write()
        switch(cluster, self.kb, version, versions)
        former = [other for other in versions if other.complete and other.number < version.number]
        # Versions newer than the base of the update were rolled back and will not be used again.
        undone = [other for other in former if base and other.number > base.number]
        older = [other for other in former if other not in undone]
        return delete_versions(cluster, undone + older[: max(0, len(older) - keep)])

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()

    def give_back(self) -> None:
        """Stop renewing; the note stays, and the next run resumes from it."""
        self.stop()
        # If this fails, the note becomes free without renewals.
        with suppress(ServerError, BuildLocked):
            self.write(patience=ONCE, held=False)

    def drop(self) -> None:
        """Stop renewing and remove the note."""
        self.stop()
        drop_note(self.cluster, self.kb, self.condition)


@contextmanager
def update_lock(cluster: Cluster, kb: str, *, take_over: bool = False) -> Iterator[BuildLock]:
    """Hold the lock for an update, whose version has the number in its note; delete that version if the update fails.

    Raises BuildLocked while another process loads or updates the knowledge base, and if a load was left unfinished.
    """
    left, condition = free_note(cluster, kb, take_over=take_over)
    if left and left.digest:
        raise BuildLocked(
            f"{cluster.connection.where}: a load of {kb!r} was left unfinished; run it again to resume, or drop "
            "it with "
            f"kbtools remove --elasticsearch --kb {kb} --unfinished, then update",
            name=kb,
        )
    versions = list_versions(cluster, kb)
    number = 1 + max([*(version.number for version in versions), left.version if left else 0])
    lock = BuildLock.take(cluster, kb, BuildNote(number), condition)
    try:
        # A killed update left a version that nobody reads.
        delete_versions(cluster, [v for v in versions if left and v.number == left.version and not v.current])
        yield lock
    except BaseException:
        lock.give_back()
        # A failed deletion is repeated by the next update, which finds the version by the note.
        with suppress(KBToolsError):
            at_once = cluster.as_patient_as(ONCE)
            delete_versions(at_once, [v for v in list_versions(at_once, kb) if v.number == number and not v.current])
            if not lock.lost:
                drop_note(at_once, kb, lock.condition)
        raise
    lock.drop()
