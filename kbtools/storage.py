"""How kbtools writes to disk: records with a format name and version, folders that appear whole or not at all."""

import ctypes
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgpack

from kbtools.errors import BuildLocked, DiskFull, KBToolsError, KBUnusable, OutputUnusable

FULL = ("no space left", "disk quota exceeded", "file too large", "max_temp_directory_size")
"""How libraries word a full disk, a full quota, and the limit on a file's size."""

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def write_record(path: Path, record: dict[str, Any], *, name: str, version: int) -> None:
    """Write a record with its checksum under a temporary name, flush it to the disk, rename it."""
    wrapped = {"format": name, "version": version, "record": record, "checksum": record_checksum(record)}
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(msgpack.packb(wrapped))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def record_checksum(record: dict[str, Any]) -> bytes:
    """Hash a record; what was unpacked is packed to the same bytes."""
    return hashlib.sha256(msgpack.packb(record)).digest()


def read_record(path: Path, *, name: str, version: int, cure: str) -> dict[str, Any]:
    """Read a record; `cure` says what makes it anew, such as "index again".

    Raises KBUnusable where the record is damaged or of another format or version. Older records have no checksum.
    """
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise KBUnusable(f"{path}: cannot be read ({error.strerror})", path=str(path)) from error
    try:
        wrapped = msgpack.unpackb(packed)
        found, record = (wrapped["format"], wrapped["version"]), dict(wrapped["record"])
        changed = wrapped.get("checksum", record_checksum(record)) != record_checksum(record)
    except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException) as error:
        raise KBUnusable(f"{path}: damaged ({error!r}); {cure}", path=str(path)) from error
    if found != (name, version):
        raise KBUnusable(
            f"{path}: found format {found[0]!r} version {found[1]!r}, expected {name!r} version {version}; "
            f"{cure} with this version of kbtools, or use the version that wrote it",
            path=str(path),
            found=found,
        )
    if changed:
        raise KBUnusable(f"{path}: damaged (its checksum is another); {cure}", path=str(path))
    return record


def beside(target: Path, role: str) -> Path:
    """Name what a build keeps beside its target: its `lock`, the folder it is `building`, the `old` one."""
    return target.with_name(f".{target.name}.{role}")


def is_being_built(target: Path) -> bool:
    """Tell whether a process is building a folder."""
    try:
        with beside(Path(os.path.realpath(target)), "lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the right to build a folder; it ends with the process, however that ends."""
    lock = beside(target, "lock")
    while True:
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BuildLocked(
                    f"{target}: another process is building it; wait for that one, or choose another --out",
                    path=str(target),
                ) from error
            if not is_same_file(file, lock):
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def is_same_file(file: IO[Any], path: Path) -> bool:
    """Tell whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


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
def built_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder that takes the target's place when the block ends well, and vanishes otherwise.

    A link is followed: the folder behind it is replaced. What a killed build left beside the target is removed first.
    Raises BuildLocked, DiskFull, OutputUnusable.
    """
    place = Path(os.path.realpath(target))
    if os.path.ismount(place):
        raise OutputUnusable(f"{target}: is a mount point; choose a folder inside it", path=str(target))
    try:
        with made_parents(place), locked(place):
            restore(place)
            temporary = beside(place, "building")
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            try:
                yield temporary
                flush_folder(temporary)
                swap(temporary, place)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    except (KBToolsError, BrokenPipeError):  # the pipe is that of who reads of the build, not the disk's
        raise
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull(
                f"{target}: no space left on the disk; nothing was changed, free some space and run it again",
                path=str(target),
            ) from error
        if isinstance(error, OSError):
            raise OutputUnusable(
                f"{target}: cannot be written ({error.strerror or error}); choose another --out", path=str(target)
            ) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Tell whether an error of any library means that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    text = str(error).lower()
    return any(sign in text for sign in FULL)


def flush_folder(folder: Path) -> None:
    """Flush every file of a folder to the disk."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one system call, where the system has it (Linux)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    paths = [ctypes.c_char_p(os.fsencode(path)) for path in (one, other)]
    return bool(rename(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE) == 0)


def swap(new: Path, target: Path, *, exchange: Callable[[Path, Path], bool] = exchange) -> None:
    """Put a folder in the target's place in one step, so that a reader finds the old one or the new one."""
    if not target.exists():
        new.rename(target)
    elif not exchange(new, target):
        old = beside(target, "old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def restore(target: Path) -> None:
    """Undo what a kill between the two renames of `swap` left, where the system cannot exchange folders."""
    old = beside(target, "old")
    if old.exists() and not target.exists():
        old.rename(target)
    shutil.rmtree(old, ignore_errors=True)
