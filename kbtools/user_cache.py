"""The user's cache, for all that can be computed again: which files were found to be as they were written."""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from kbtools.record_files import file_digest

VARIABLE = "KBTOOLS_CACHE"
"""The environment variable that names another folder than the system's own for what can be computed again."""

SMALL = 1 << 20
"""Bytes up to which a file is read each time: half a millisecond."""

SETTLED = 2_000_000_000
"""Nanoseconds after which another change of a file has another time, on the coarsest file systems."""


def cache_folder() -> Path:
    """Say where to keep what can be computed again: KBTOOLS_CACHE, else the place of caches of the user."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "kbtools"


def identity(state: os.stat_result) -> tuple[int, ...]:
    """Tell one state of a file from another, by a look at it."""
    # The time of the last change of any kind is the system's own, which no program sets.
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def matches_digest(path: Path, digest: str) -> bool:
    """Tell whether a file has a digest; a large one is read once, and again when the file system says it changed."""
    state = path.stat()
    if state.st_size <= SMALL:
        return file_digest(path) == digest
    key = hashlib.sha256(repr((str(path.resolve()), digest, identity(state))).encode()).hexdigest()
    found = cache_folder() / "verified" / key
    if found.is_file():
        return True
    if file_digest(path) != digest:
        return False
    if time.time_ns() - state.st_ctime_ns > SETTLED:
        with suppress(OSError):  # a disk that is full or read-only costs a second look
            found.parent.mkdir(parents=True, exist_ok=True)
            found.touch()
    return True
