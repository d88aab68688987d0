"""Files and folders that appear whole or not at all: written beside their place, then put there in one step."""

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
"""The file of a knowledge base's folder that tells what it holds."""

_FULL = ("no space left", "disk quota exceeded", "file too large", "max_temp_directory_size")
"""The words of libraries for a full disk, a full quota, and the limit on a file's size."""

_NO_MEMORY = (
    "cannot allocate memory",
    "malloc of size",
    "bad_alloc",
    "can't start new thread",
    "worker thread",
    "allocation failure",
    "failed to map segment",
)
"""The words of libraries for a system that gives no memory, or no thread, which needs some."""

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""The folder that paths are relative to, and the flag of an exchange: constants of linux/fcntl.h and linux/fs.h."""


_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{16}\.new", re.DOTALL)
"""The names of files that are being written, which `new_file` makes up."""

WORK_PREFIX = ".kbtools-work-"
"""How the names of folders for temporary files begin."""

_ABANDONED = 3_600.0
"""Seconds after which a file or folder that nobody holds is what a killed process left: no record takes as long."""


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write that takes the place of another at the end, whole or not at all; raise DiskFull.

    It is made under a name that nobody can guess, so that no link of somebody else lies there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            # Flushed before it is renamed: else a crash may leave the new name on an empty file.
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and is_disk_full(error):
            raise DiskFull(
                f"{path}: no space left on the disk; nothing was changed, free some space and run it again",
                path=str(path),
            ) from error
        raise
    _remove_unfinished(path)


def _remove_unfinished(path: Path) -> None:
    """Remove what killed processes left of a file."""
    for name in os.listdir(path.parent):
        if name.startswith(f".{path.name}.") and _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                if time.time() - (path.parent / name).lstat().st_mtime > _ABANDONED:
                    (path.parent / name).unlink()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty folder among the system's temporary files, which is removed at the end.

    It is locked as long as it is used, so that a later process knows what a killed one left, and removes that.
    """
    remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=WORK_PREFIX))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # on a file system without locks nobody else can lock and remove it either
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield folder
    finally:
        for _ in range(2):  # a thread of tantivy may put a lock there meanwhile
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@functools.cache
def remove_abandoned(place: Path) -> None:
    """Remove the temporary folders that killed processes of this user left, once a process."""
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
    """Make a folder if it is not there; raise OutputUnusable where a link lies, which leads out of its parent."""
    if path.is_symlink():
        raise OutputUnusable(f"{path}: is a symbolic link; remove it", path=str(path))
    path.mkdir(parents=True, exist_ok=True)


def beside(target: Path, role: str) -> Path:
    """Return the path of what a build keeps beside its target: `lock`, the folder `building`, or the `old` one."""
    return target.with_name(f".{target.name}.{role}")


def is_being_built(target: Path) -> bool:
    """Return whether a process is building a folder."""
    try:
        descriptor = os.open(beside(Path(os.path.realpath(target)), "lock"), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # without locks nothing is built
        return isinstance(error, BlockingIOError)
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the right to build a folder; it ends with the process, however that ends.

    The lock is an empty file beside the folder, gone afterwards; a link or a file of others in its place is let be.
    Raises BuildLocked while another holds it, OutputUnusable for a link and for a file system without locks.
    """
    lock = beside(target, "lock")
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OutputUnusable(f"{lock}: is a symbolic link; remove it", path=str(lock)) from error
            raise
        try:
            _lock_file(descriptor, target)
            # Whoever held the lock may have unlinked the file between our opening and locking it.
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
    """Lock the open file that stands for the right to build a folder; raise as `locked` does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BuildLocked(
            f"{target}: another process is building it; wait for it, or choose another --out", path=str(target)
        ) from error
    except OSError as error:
        raise OutputUnusable(
            f"{target}: its file system does not lock files ({error.strerror}), so concurrent writes could "
            "damage it; choose a folder on another file system",
            path=str(target),
        ) from error


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def folder_identity(path: Path) -> tuple[int, int, bytes] | None:
    """Return what differs between a knowledge base and the one that takes its place, None while there is none.

    File systems use the number of a removed folder again, so that the digest of the manifest is part of it.
    """
    try:
        status, manifest = path.stat(), (path / MANIFEST).read_bytes()
    except OSError:
        return None
    return status.st_dev, status.st_ino, hashlib.sha256(manifest).digest()


_Ours = Callable[[Path], bool]
"""Tells of a path inside a folder, relative to it, whether kbtools writes such a file or folder there.

Unfinished files are always ours."""


def find_stranger(folder: Path, ours: _Ours) -> Path | None:
    """Find the first file or folder that kbtools did not write, relative to `folder`; links count as files."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return Path(folder.name)
    for place, folders, files in os.walk(folder):
        for name in sorted(folders + files):
            path = Path(place, name).relative_to(folder)
            if not ours(path) and not _UNFINISHED.fullmatch(name):
                return path
    return None


def require_ours(folder: Path, ours: _Ours) -> None:
    """Refuse a folder that holds what kbtools did not write; raise OutputUnusable."""
    if stranger := find_stranger(folder, ours):
        raise OutputUnusable(
            f"{folder}: holds {str(stranger)!r}, which would be overwritten; move it away, or choose a new folder",
            path=str(folder),
        )


def remove_ours(folder: Path, ours: _Ours) -> None:
    """Remove what kbtools wrote from a folder, and the folder if that was all; what cannot be removed stays."""
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
    """Make the folders above a target, and remove those that stay empty if the block fails."""
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
    """Yield a temporary folder that takes the target's place when the block ends well, and vanishes otherwise.

    A link is followed: the folder behind it is replaced. What a killed build left beside the target is removed first.
    Only what is `ours` is ever removed: a target, or a leftover, that holds anything else is refused, at the start and
    again just before it would be replaced. Raises BuildLocked, DiskFull, MemoryExhausted, OutputUnusable.
    """
    place = Path(os.path.realpath(target))
    if os.path.ismount(place):
        raise OutputUnusable(f"{target}: is a mount point; choose a folder inside it", path=str(target))
    try:
        with made_parents(place), locked(place):
            temporary = beside(place, "building")
            for folder in (beside(place, "old"), temporary, place):
                require_ours(folder, ours)
            # Only once nothing strange was found: what a killed build left is put back, then removed.
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
    except (KBToolsError, BrokenPipeError):  # the pipe is that of who reads of the build, not the disk's
        raise
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull(
                f"{target}: no space left on the disk; nothing was changed, free some space and run it again",
                path=str(target),
            ) from error
        if is_out_of_memory(error):
            raise MemoryExhausted(
                f"{target}: out of memory ({error}); raise the limit (ulimit -v) or close other programs",
                path=str(target),
            ) from error
        if isinstance(error, OSError) and _is_below(error.filename, place.parent):
            raise OutputUnusable(
                f"{target}: cannot be written ({error.strerror or error}); choose another folder", path=str(target)
            ) from error
        raise


def link_or_copy(source: Path, target: Path) -> None:
    """Link a file under a second name, or copy it on a file system that knows no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _is_below(name: str | bytes | int | None, folder: Path) -> bool:
    """Return whether the file that an error names is in a folder; one that names none is taken to be."""
    return not isinstance(name, str | bytes) or Path(os.fsdecode(name)).is_relative_to(folder)


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error of any library means that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    text = str(error).lower()
    return any(sign in text for sign in _FULL)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of any library means that the system gives no more memory."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(sign in str(error).lower() for sign in _NO_MEMORY)


def _flush_folder(folder: Path) -> None:
    """Flush every file of a folder to the disk; one that has another name was flushed when it got the first."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_file() and path.stat().st_nlink > 1:
            continue
        flush(path)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one system call, where the system has it (Linux)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    paths = [ctypes.c_char_p(os.fsencode(path)) for path in (first, second)]
    return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)


def swap(new: Path, target: Path, ours: _Ours, *, exchange: Callable[[Path, Path], bool] = exchange) -> None:
    """Put a folder in the target's place in one step, so that a reader finds the old one or the new one."""
    if not target.exists():
        new.rename(target)
    elif not exchange(new, target):
        # Two renames in place of one exchange: a kill between them is undone by `restore`.
        old = beside(target, "old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        remove_ours(old, ours)
    # Else a loss of power could bring the old one back after this was reported as done.
    flush(target.parent)


def restore(target: Path, ours: _Ours) -> None:
    """Undo what a kill between the two renames of `swap` left, where the system cannot exchange folders."""
    old = beside(target, "old")
    if old.exists() and not target.exists():
        old.rename(target)
    remove_ours(old, ours)
