"""Files and folders that are written completely or not at all: under a temporary name, then renamed."""

import ctypes
import errno
import fcntl
import functools
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kbtools.errors import BuildLocked, DiskFull, KBToolsError, MemoryExhausted, OutputUnusable

MANIFEST = "manifest.msgpack"
"""The file in a knowledge base's folder that describes it."""

_FULL = ("no space left", "disk quota exceeded", "file too large", "max_temp_directory_size")
"""Words in error messages of libraries for a full disk, a full quota, or a file size limit."""

_NO_SPACE = "no space left on the disk; nothing was changed, free some space and run it again"

_NO_MEMORY = (
    "cannot allocate memory", "malloc of size", "bad_alloc", "can't start new thread", "worker thread",
    "allocation failure", "failed to map segment",
)  # fmt: skip
"""Words in error messages of libraries for missing memory, or for a thread that could not get any."""

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""The current folder, and the flag for an exchange, from linux/fcntl.h and linux/fs.h."""

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{16}\.new", re.DOTALL)
"""The names of unfinished files, as `new_file` chooses them."""

WORK_PREFIX = ".kbtools-work-"
"""The prefix of temporary folders."""

_ABANDONED = 3_600.0
"""Seconds after which an unlocked file or folder is a leftover of a killed process; writing takes less."""


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces another at the end, completely or not at all; raise DiskFull.

    Its temporary name is random, so that nobody can place a link there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            # Flushed before the rename, since a crash could leave the new name on an empty file.
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and is_disk_full(error):
            raise DiskFull.at(path, _NO_SPACE) from error
        raise
    _remove_unfinished(path)


def _remove_unfinished(path: Path) -> None:
    """Remove unfinished versions of a file that killed processes left."""
    for name in os.listdir(path.parent):
        if name.startswith(f".{path.name}.") and _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                if time.time() - (path.parent / name).lstat().st_mtime > _ABANDONED:
                    (path.parent / name).unlink()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty temporary folder, which is removed at the end.

    It is locked while in use, so that later processes can remove the folders of killed ones.
    """
    remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=WORK_PREFIX))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # without locks, nobody else can remove it either
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield folder
    finally:
        for _ in range(2):  # a thread of tantivy may create a lock file meanwhile
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@functools.cache
def remove_abandoned(place: Path) -> None:
    """Remove temporary folders that killed processes of this user left, once per process."""
    names: list[str] = []
    with suppress(OSError):
        names = [name for name in os.listdir(place) if name.startswith(WORK_PREFIX)]
    for name in names:
        with suppress(OSError):
            descriptor = os.open(place / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                state = os.fstat(descriptor)
                if state.st_uid == os.getuid() and time.time() - state.st_mtime > _ABANDONED:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(place / name, ignore_errors=True)
            finally:
                os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder if it does not exist; raise OutputUnusable for a symbolic link, which may lead elsewhere."""
    if path.is_symlink():
        raise OutputUnusable.at(path, "is a symbolic link; remove it")
    path.mkdir(parents=True, exist_ok=True)


def beside(target: Path, role: str) -> Path:
    """Return the path beside a target for its `lock`, the folder `building`, or the `old` folder."""
    return target.with_name(f".{target.name}.{role}")


def is_being_built(target: Path) -> bool:
    """Return whether a process is building a folder."""
    try:
        descriptor = os.open(beside(Path(os.path.realpath(target)), "lock"), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # a file system without locks has no builds
        return isinstance(error, BlockingIOError)
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the lock for building a folder, which is also released when the process dies.

    The lock is an empty file beside the folder, removed afterwards; other files and links there are not touched. Raises
    BuildLocked if another process holds it, OutputUnusable for a link or a file system without locks.
    """
    lock = beside(target, "lock")
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OutputUnusable.at(lock, "is a symbolic link; remove it") from error
            raise
        try:
            _lock_file(descriptor, target)
            # The previous holder may have unlinked the file before we locked it.
            if not _is_same_file(descriptor, lock):
                continue
            try:
                yield
            finally:
                if _is_same_file(descriptor, lock) and not os.fstat(descriptor).st_size:
                    lock.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def _lock_file(descriptor: int, target: Path) -> None:
    """Lock an open lock file; raise as `locked` does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BuildLocked.at(target, "another process is building it; wait for it, or choose another --out") from error
    except OSError as error:
        raise OutputUnusable.at(
            target,
            f"its file system does not lock files ({error.strerror}), so concurrent writes could "
            "damage it; choose a folder on another file system",
        ) from error


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def folder_identity(path: Path) -> tuple[int, int, bytes] | None:
    """Return an identity that changes when a knowledge base is replaced, None if there is none.

    It includes the manifest's digest, since file systems reuse the numbers of removed folders.
    """
    try:
        status, manifest = path.stat(), (path / MANIFEST).read_bytes()
    except OSError:
        return None
    return status.st_dev, status.st_ino, hashlib.sha256(manifest).digest()


_Ours = Callable[[Path], bool]
"""A function that returns whether kbtools writes a path, relative to its folder; unfinished files always count."""


def find_stranger(folder: Path, ours: _Ours) -> Path | None:
    """Return the first file or folder that kbtools did not write, relative to `folder`; links count as files."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return Path(folder.name)
    for place, folders, files in os.walk(folder):
        for name in sorted(folders + files):
            path = Path(place, name).relative_to(folder)
            if not ours(path) and not _UNFINISHED.fullmatch(name):
                return path
    return None


def require_ours(folder: Path, ours: _Ours) -> None:
    """Raise OutputUnusable if a folder has files that kbtools did not write."""
    if stranger := find_stranger(folder, ours):
        raise OutputUnusable.at(
            folder, f"contains {str(stranger)!r}, which would be overwritten; move it away, or choose a new folder"
        )


def remove_ours(folder: Path, ours: _Ours) -> None:
    """Remove the files of kbtools from a folder, and the folder if it is empty then; ignore errors."""
    if folder.is_symlink():
        return
    for place, folders, files in os.walk(folder, topdown=False):
        for name in [*files, *folders]:
            path = Path(place, name)
            if ours(path.relative_to(folder)) or _UNFINISHED.fullmatch(name):
                with suppress(OSError):
                    (path.rmdir if path.is_dir() and not path.is_symlink() else path.unlink)()
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def made_parents(target: Path) -> Iterator[None]:
    """Create the parent folders of a target; remove those that are still empty if the block fails."""
    missing = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise


@contextmanager
def built_folder(target: Path, *, ours: _Ours) -> Iterator[Path]:
    """Yield a temporary folder that replaces the target if the block succeeds, and is removed otherwise.

    A link is followed, and its folder replaced. Leftovers of a killed build are removed first. Only files that are
    `ours` are ever removed: a target or leftover with other files is refused, at the start and again before it is
    replaced. Raises BuildLocked, DiskFull, MemoryExhausted, OutputUnusable.
    """
    place = Path(os.path.realpath(target))
    if os.path.ismount(place):
        raise OutputUnusable.at(target, "is a mount point; choose a folder inside it")
    try:
        with made_parents(place), locked(place):
            temporary = beside(place, "building")
            for folder in (beside(place, "old"), temporary, place):
                require_ours(folder, ours)
            # Only after all folders were checked: leftovers of a killed build are restored, then removed.
            restore(place, ours)
            remove_ours(temporary, ours)
            temporary.mkdir()
            try:
                yield temporary
                _flush_folder(temporary)
                require_ours(place, ours)
                swap(temporary, place, ours)
            finally:
                remove_ours(temporary, ours)
    except (KBToolsError, BrokenPipeError):  # the pipe belongs to the reader of progress, not to the disk
        raise
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull.at(target, _NO_SPACE) from error
        if is_out_of_memory(error):
            raise MemoryExhausted.at(
                target, f"out of memory ({error}); raise the limit (ulimit -v) or close other programs"
            ) from error
        if isinstance(error, OSError) and _is_below(error.filename, place.parent):
            raise OutputUnusable.at(
                target, f"cannot be written ({error.strerror or error}); choose another folder"
            ) from error
        raise


def link_or_copy(source: Path, target: Path) -> None:
    """Link a file under a second name, or copy it if the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _is_below(name: str | bytes | int | None, folder: Path) -> bool:
    """Return whether the file of an error is in a folder, True if the error names no file."""
    return not isinstance(name, str | bytes) or Path(os.fsdecode(name)).is_relative_to(folder)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error of any library means that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    text = str(error).lower()
    return any(sign in text for sign in _FULL)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of any library means that memory ran out."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(sign in str(error).lower() for sign in _NO_MEMORY)


def _flush_folder(folder: Path) -> None:
    """Flush every file of a folder to disk, except files with another name, which are flushed already."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_file() and path.stat().st_nlink > 1:
            continue
        flush(path)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one system call; return whether the system could (Linux)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    paths = [ctypes.c_char_p(os.fsencode(path)) for path in (first, second)]
    return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)


def swap(new: Path, target: Path, ours: _Ours, *, exchange: Callable[[Path, Path], bool] = exchange) -> None:
    """Replace the target by a folder in one step, so that readers find either the old or the new one."""
    if not target.exists():
        new.rename(target)
    elif not exchange(new, target):
        # Two renames instead of an exchange; `restore` undoes a kill between them.
        old = beside(target, "old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        remove_ours(old, ours)
    # Otherwise a power failure could undo the exchange after success was reported.
    flush(target.parent)


def restore(target: Path, ours: _Ours) -> None:
    """Undo a kill between the two renames of `swap`, on systems without an exchange."""
    old = beside(target, "old")
    if old.exists() and not target.exists():
        old.rename(target)
    remove_ours(old, ours)
