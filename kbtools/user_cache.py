"""The user's cache of results that can be computed again; a cache that others can write to is not used."""

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
"""The environment variable with the folder of the cache."""

SMALL = 1 << 20
"""The largest size of a file whose digest is computed each time, in half a millisecond."""

SETTLED = 2_000_000_000
"""Nanoseconds after which another change gets another time stamp, on the coarsest file systems."""


def cache_folder() -> Path:
    """Return the folder of the cache: KBTOOLS_CACHE, or else the user's default."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kbtools"


def own_cache(name: str) -> Path | None:
    """Return a folder of the cache, created if needed; None if it cannot be created or others may write to it."""
    return checked_folder(cache_folder() / name)


@functools.cache
def checked_folder(folder: Path) -> Path | None:
    """Create a folder of the cache and check who may write to it, once per process.

    The content is trusted, so another writer could decide answers.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()
        cache = (folder, folder.parent)
        place = next((place for place in (folder, *folder.parents) if is_shared(place, inside=place in cache)), None)
    except OSError as error:  # a full or read-only disk only costs time
        logger.info("%s: the cache is not used (%s)", folder, error.strerror)
        return None
    if place:
        logger.warning("%s: other users may write to it, so the cache is not used; see %s", place, VARIABLE)
    return None if place else folder


def keep(folder: str, key: str, make: Callable[[], bytes], *, place: str = "") -> bytes:
    """Return the cached result of a key, or compute and store it; one result is stored per `place`, else per key."""
    cache = own_cache(folder)
    if cache is None:
        return make()
    made_from = hashlib.sha256(key.encode()).hexdigest()
    path = cache / f"{hashlib.sha256(place.encode()).hexdigest() if place else made_from}.msgpack"
    try:
        record = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="it is rebuilt")
        if record["made_from"] == made_from and isinstance(record["content"], bytes):
            return record["content"]
    except (KBUnusable, KeyError):  # missing, damaged or of another version
        pass
    content = make()
    try:
        record = {"made_from": made_from, "content": content}
        write_record(path, record, name=FORMAT_NAME, version=FORMAT_VERSION)
    except (OSError, DiskFull) as error:  # a full or read-only disk only costs time
        logger.info("%s: not cached (%s)", path, error)
    return content


def is_shared(folder: Path, *, inside: bool) -> bool:
    """Return whether other users may put files into a folder of the cache, or replace a folder above it."""
    state = folder.stat()
    if state.st_uid not in (os.getuid(), 0):
        return True
    if inside:
        return bool(state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    # Everyone may write to a folder like /tmp, but not rename or remove the files of others.
    return bool(state.st_mode & stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX


def identity(state: os.stat_result) -> tuple[int, ...]:
    """Return the identity of a file's state, from its size and times."""
    # No program can set the change time (ctime).
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def matches_digest(path: Path, digest: str) -> bool:
    """Return whether a file has a digest; a large file is read again only when the file system reports a change."""
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
        with suppress(OSError):  # a full or read-only disk only costs time
            (folder / key).touch()
    return True
