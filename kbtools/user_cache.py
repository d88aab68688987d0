"""The user's cache, for all that can be computed again; one that others may write to is not used."""

import functools
import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kbtools.errors import DiskFull, KBUnusable
from kbtools.record_files import file_digest, read_record, write_record

logger = logging.getLogger(__name__)

FORMAT_NAME, FORMAT_VERSION = "kbtools-cache", 1

VARIABLE = "KBTOOLS_CACHE"
"""The environment variable that names another folder than the system's own for what can be computed again."""

SMALL = 1 << 20
"""Bytes up to which a file is read each time: half a millisecond."""

SETTLED = 2_000_000_000
"""Nanoseconds after which another change of a file has another time, on the coarsest file systems."""


def cache_folder() -> Path:
    """Return the folder for what can be computed again: KBTOOLS_CACHE, else the place of caches of the user."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kbtools"


def own_cache(name: str) -> Path | None:
    """Return a folder of the cache, made if it is not there; None where there can be none, or others may write."""
    return checked_folder(cache_folder() / name)


@functools.cache
def checked_folder(folder: Path) -> Path | None:
    """Make a folder of the cache, and check who may write to it, once a process.

    What lies there is believed, so that somebody else who writes to it would decide answers.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()
        cache = (folder, folder.parent)
        place = next((place for place in (folder, *folder.parents) if is_shared(place, inside=place in cache)), None)
    except OSError as error:  # a disk that is full or read-only costs time, and nothing else
        logger.info("%s: the cache is not used (%s)", folder, error.strerror)
        return None
    if place:
        logger.warning("%s: other users may write to it, so the cache is not used; see %s", place, VARIABLE)
    return None if place else folder


def keep(folder: str, key: str, make: Callable[[], bytes], *, place: str = "") -> bytes:
    """Return what was made for a key before, or make it; of a `place` the last is kept, else that of every key."""
    cache = own_cache(folder)
    if cache is None:
        return make()
    made_from = hashlib.sha256(key.encode()).hexdigest()
    path = cache / f"{hashlib.sha256(place.encode()).hexdigest() if place else made_from}.msgpack"
    try:
        record = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="it is rebuilt")
        if record["made_from"] == made_from and isinstance(record["content"], bytes):
            return record["content"]
    except (KBUnusable, KeyError):  # missing, damaged, or of another version
        pass
    made = make()
    try:
        record = {"made_from": made_from, "content": made}
        write_record(path, record, name=FORMAT_NAME, version=FORMAT_VERSION)
    except (OSError, DiskFull) as error:  # a disk that is full or read-only costs seconds the next time, and no more
        logger.info("%s: not kept (%s)", path, error)
    return made


def is_shared(folder: Path, *, inside: bool) -> bool:
    """Return whether somebody else may put files into a folder of the cache, or replace one that is above it."""
    state = folder.stat()
    if state.st_uid not in (os.getuid(), 0):
        return True
    if inside:
        return bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    # In a folder like /tmp all may write, but nobody can rename or remove what belongs to others.
    return bool(state.st_mode & stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX


def identity(state: os.stat_result) -> tuple[int, ...]:
    """Return a mark of the state of a file, from its size and times; another state has another mark."""
    # The time of the last change of any kind is the system's own, which no program sets.
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def matches_digest(path: Path, digest: str) -> bool:
    """Return whether a file has a digest; a large one is read once, and again when the file system says it changed."""
    state = path.stat()
    if state.st_size <= SMALL:
        return file_digest(path) == digest
    key = hashlib.sha256(repr((str(path.resolve()), digest, identity(state))).encode()).hexdigest()
    folder = own_cache("verified")
    if folder and (folder / key).is_file():
        return True
    if file_digest(path) != digest:
        return False
    if folder and time.time_ns() - state.st_ctime_ns > SETTLED:
        with suppress(OSError):  # a disk that is full or read-only costs a second look
            (folder / key).touch()
    return True
