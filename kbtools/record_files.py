"""Records on disk with a format name, a version and a checksum, and digests of files."""

import errno
import hashlib
import math
from dataclasses import is_dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import msgpack

from kbtools.errors import KBUnusable
from kbtools.storage import new_file


def write_record(path: Path, record: dict[str, Any], *, name: str, version: int) -> None:
    """Write a record with its checksum."""
    wrapped = {"format": name, "version": version, "record": record, "checksum": record_checksum(record)}
    with new_file(path) as file:
        file.write(msgpack.packb(wrapped))


def record_checksum(record: dict[str, Any]) -> bytes:
    """Return the hash of a record, which is the same after packing and unpacking."""
    return hashlib.sha256(msgpack.packb(record)).digest()


def read_record(path: Path, *, name: str, version: int, cure: str) -> dict[str, Any]:
    """Return a record; `cure` is advice such as "index again".

    Raises KBUnusable if the record is damaged or of another format or version.
    """
    try:
        if path.exists() and not path.is_file():  # reading a device or pipe may never end
            raise OSError(errno.EINVAL, "not a regular file")
        packed = path.read_bytes()
    except OSError as error:
        raise KBUnusable.at(path, f"cannot be read ({error.strerror})") from error
    try:
        wrapped = msgpack.unpackb(packed)
        stamp, record = (wrapped["format"], wrapped["version"]), dict(wrapped["record"])
        changed = wrapped["checksum"] != record_checksum(record)
    except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException) as error:
        raise KBUnusable.at(path, f"damaged ({type(error).__name__}); {cure}") from error
    if stamp != (name, version):
        raise KBUnusable(
            f"{path}: found format {stamp[0]!r:.50} version {stamp[1]!r:.50}, expected {name!r} version {version}; "
            f"{cure} with this version of kbtools, or use the version that wrote it",
            path=str(path),
            found=stamp,
        )
    if changed:
        raise KBUnusable.at(path, f"damaged (its checksum differs); {cure}")
    return record


def fits(value: object, kind: Any) -> bool:
    """Return whether part of a record matches an annotation; a dataclass matches a mapping of its fields.

    Numbers must be finite, and lists match tuples. Untrusted files may have any type anywhere.
    """
    parts, origin = get_args(kind), get_origin(kind)
    if kind is Any:
        return True
    if origin is UnionType:
        return any(fits(value, part) for part in parts)
    if is_dataclass(kind) or is_typeddict(kind):
        hints = _hints_of(kind)
        return (
            isinstance(value, dict)
            and value.keys() == hints.keys()
            and all(fits(value[name], hint) for name, hint in hints.items())
        )
    if origin is dict:
        return isinstance(value, dict) and all(
            isinstance(key, str) and fits(part, parts[1]) for key, part in value.items()
        )
    if origin is tuple and parts[-1] is not ...:
        return isinstance(value, list | tuple) and len(value) == len(parts) and all(map(fits, value, parts))
    if origin in (list, tuple):
        return isinstance(value, list | tuple) and all(fits(part, parts[0]) for part in value)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind)


@lru_cache
def _hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, which takes no longer than reading it (2 GB/s)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
