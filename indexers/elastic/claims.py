"""Claims of loaders: a build is begun or joined, and the right to load a part of it kept by signs of life.

A loader that is dead loses its claim to the next.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from kbtools.errors import BuildLocked, ServerError
from kbtools.indexers.elastic.build_notes import (
    HELD_HERE,
    Build,
    Owner,
    PartProgress,
    Taken,
    drop_note,
    read_build,
    read_part,
    read_parts,
    write_note,
)
from kbtools.indexers.elastic.cluster import ONCE, Cluster, Patience
from kbtools.indexers.elastic.mapping import MAPPING_VERSION, ROLES, IndexSettings
from kbtools.indexers.elastic.versions import create_version, delete_versions, list_versions

logger = logging.getLogger(__name__)

BEAT = 5.0
"""Seconds between two signs of life of a loader."""

LEASE = 20.0
"""Seconds without one after which a loader of another machine counts as dead: three may be lost on the way."""


def begin(
    cluster: Cluster, kb: str, digest: str, *, parts: int, settings: IndexSettings, wait: Callable[[float], None]
) -> Build:
    """Join the build of this content that is under way or was killed, or begin a new version."""
    last_number = 0
    while True:
        note = read_build(cluster, kb)
        under_way = note[0] if note else None
        versions = list_versions(cluster, kb)
        if under_way:
            same = [version for version in versions if version.number == under_way.version]
            complete = any(set(ROLES) <= version.indexes.keys() for version in same)
            if complete and under_way == replace(under_way, digest=digest, parts=parts, mapping=MAPPING_VERSION):
                return under_way
            for theirs in read_parts(cluster, kb, under_way.parts):
                if theirs and is_alive(cluster, kb, theirs, wait):
                    raise locked(cluster, kb, theirs)
        build = Build(kb, 1 + max([last_number, *(version.number for version in versions)]), digest, parts)
        version = create_version(cluster, kb, build.version, settings)
        # Another loader was making that version: the next number is free, or made by it too.
        if version is None:
            last_number = build.version
            continue
        try:
            write_note(cluster, kb, kb, asdict(build), note[1] if note else None)
        except Taken:  # by another loader, unless the answer to our own first try was lost
            note = read_build(cluster, kb)
            if note is None or note[0] != build:
                delete_versions(cluster, [version])
                continue
        for part in range(1, (under_way.parts if under_way else 0) + 1):
            drop_note(cluster, f"{kb}/{part}")
        return build


class Claim:
    """The right to load one part; a thread shows signs of life until it is given back."""

    def __init__(self, cluster: Cluster, kb: str, progress: PartProgress, stamp: dict[str, int]) -> None:
        self.cluster, self.kb, self.progress, self.stamp = cluster, kb, progress, stamp
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
            name, stored = f"{self.kb}/{progress.part}", False
            while not stored:
                try:
                    self.stamp = write_note(self.cluster, name, self.kb, asdict(progress), self.stamp, patience)
                    stored = True
                except Taken:
                    self.stamp = self.read_own_stamp(progress)
            self.progress = progress

    def read_own_stamp(self, progress: PartProgress) -> dict[str, int]:
        """Read what our next write must state, where the answer to an earlier one was lost."""
        note = read_part(self.cluster, self.kb, progress.part)
        if note is None or note[0].owner != progress.owner:
            self.lost = locked(self.cluster, self.kb, note[0] if note else None)
            raise self.lost
        return note[1]

    def release(self, **changes: Any) -> None:
        """Stop the signs of life; the note stays, for the next run to go on from."""
        self.stopped.set()
        self.thread.join()
        HELD_HERE.discard(self.progress.owner.token)
        # A note that says `loading` still is harmless: the next loader finds this process gone.
        with suppress(ServerError, BuildLocked):
            self.write(patience=ONCE, loading=False, **changes)


def locked(cluster: Cluster, kb: str, theirs: PartProgress | None) -> BuildLocked:
    """Name the loader that was first."""
    who = f"process {theirs.owner.pid} on {theirs.owner.host}" if theirs else "another process"
    return BuildLocked(
        f"{cluster.connection.where}: {kb!r} is being loaded or updated by {who}; wait for that one, or stop it",
        name=kb,
        owner=asdict(theirs.owner) if theirs else None,
    )


def is_alive(cluster: Cluster, kb: str, theirs: PartProgress, wait: Callable[[float], None]) -> bool:
    """Find out whether the loader of a part still runs: ask the system, else wait for a sign of life."""
    if theirs.done or not theirs.loading:
        return False
    gone = theirs.owner.is_gone()
    if gone is not None:
        return not gone
    who = theirs.owner
    logger.warning("waiting %.0f s to see whether process %d on %s still loads %s", LEASE, who.pid, who.host, kb)
    wait(LEASE)
    again = read_part(cluster, kb, theirs.part)
    return again is not None and again[0].beat != theirs.beat


def claim(cluster: Cluster, kb: str, part: int, *, wait: Callable[[float], None]) -> Claim:
    """Take the right to load a part, from a dead loader too; raise BuildLocked while a living one has it."""
    note = read_part(cluster, kb, part)
    progress, stamp = PartProgress(Owner.here(), part), None
    if note:
        theirs, stamp = note
        if is_alive(cluster, kb, theirs, wait):
            raise locked(cluster, kb, theirs)
        progress = replace(theirs, owner=progress.owner, loading=True, done=False)
    try:
        stamp = write_note(cluster, f"{kb}/{part}", kb, asdict(progress), stamp)
    except Taken:
        note = read_part(cluster, kb, part)
        if note is None or note[0].owner != progress.owner:
            raise locked(cluster, kb, note[0] if note else None) from None
        stamp = note[1]
    return Claim(cluster, kb, progress, stamp)
