"""How kbtools writes to disk: records with a format name and version, folders that appear whole or not at all."""

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack

from kbtools.errors import BuildLocked, DiskFull, KBUnusable, OutputUnusable

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def write_record(path: Path, record: dict[str, Any], *, name: str, version: int) -> None:
    """Write a record under a temporary name, flush it to the disk, rename it."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(msgpack.packb({"format": name, "version": version, "record": record}))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_record(path: Path, *, name: str, version: int) -> dict[str, Any]:
    """Read a record; raise KBUnusable where it is damaged or of another format or version."""
    try:
        wrapped = msgpack.unpackb(path.read_bytes())
        found, record = (wrapped["format"], wrapped["version"]), wrapped["record"]
    except (ValueError, KeyError, TypeError, msgpack.UnpackException) as error:
        raise KBUnusable(f"{path}: damaged ({error!r}); index again", path=str(path)) from error
    if found != (name, version):
        raise KBUnusable(
            f"{path}: found format {found[0]!r} version {found[1]!r}, expected {name!r} version {version}; "
            "index again with this version of kbtools, or use the version that wrote it",
            path=str(path),
            found=found,
        )
    return dict(record)


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the right to build a folder; it ends with the process, however that ends."""
    lock = target.with_name(f".{target.name}.lock")
    while True:
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BuildLocked(
                    f"{target}: another process is building it; wait for that one, or choose another --out",
                    path=str(target),
                ) from error
            if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


@contextmanager
def built_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder that takes the target's place when the block ends well, and vanishes otherwise.

    What a killed build left beside the target is removed first. Raises BuildLocked, DiskFull, OutputUnusable.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target):
            temporary = target.with_name(f".{target.name}.building")
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            try:
                yield temporary
                flush_folder(temporary)
                swap(temporary, target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull(
                f"{target}: no space left on the disk; nothing was changed, free some space and run it again",
                path=str(target),
            ) from error
        if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
            raise OutputUnusable(f"{target}: cannot be written ({error.strerror})", path=str(target)) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Tell whether an error of any library means that the disk is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    text = str(error).lower()
    return "no space left" in text or "disk quota exceeded" in text or "max_temp_directory_size" in text


def flush_folder(folder: Path) -> None:
    """Flush every file of a folder to the disk."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def swap(new: Path, target: Path) -> None:
    """Put a folder in the target's place in one step, so that a reader finds the old one or the new one."""
    if target.exists() and not exchange(new, target):
        old = target.with_name(f".{target.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
        new.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    elif new.exists() and not target.exists():
        new.rename(target)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one system call, where the system has it (Linux)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    paths = [ctypes.c_char_p(os.fsencode(path)) for path in (one, other)]
    return bool(rename(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE) == 0)
