"""Records on disk with a format name, a version and a checksum, and the digests of files."""

import hashlib
from pathlib import Path
from typing import Any

import msgpack

from kbtools.errors import KBUnusable
from kbtools.storage import new_file


def write_record(path: Path, record: dict[str, Any], *, name: str, version: int) -> None:
    """Write a record with its checksum."""
    wrapped = {"format": name, "version": version, "record": record, "checksum": record_checksum(record)}
    with new_file(path) as file:
        file.write(msgpack.packb(wrapped))


def record_checksum(record: dict[str, Any]) -> bytes:
    """Hash a record; what was unpacked is packed to the same bytes."""
    return hashlib.sha256(msgpack.packb(record)).digest()


def read_record(path: Path, *, name: str, version: int, cure: str) -> dict[str, Any]:
    """Read a record; `cure` says what makes it anew, such as "index again".

    Raises KBUnusable where the record is damaged or of another format or version.
    """
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise KBUnusable(f"{path}: cannot be read ({error.strerror})", path=str(path)) from error
    try:
        wrapped = msgpack.unpackb(packed)
        stamp, record = (wrapped["format"], wrapped["version"]), dict(wrapped["record"])
        changed = wrapped["checksum"] != record_checksum(record)
    except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException) as error:
        raise KBUnusable(f"{path}: damaged ({type(error).__name__}); {cure}", path=str(path)) from error
    if stamp != (name, version):
        raise KBUnusable(
            f"{path}: found format {stamp[0]!r:.50} version {stamp[1]!r:.50}, expected {name!r} version {version}; "
            f"{cure} with this version of kbtools, or use the version that wrote it",
            path=str(path),
            found=stamp,
        )
    if changed:
        raise KBUnusable(f"{path}: damaged (its checksum is another); {cure}", path=str(path))
    return record


def file_digest(path: Path) -> str:
    """Hash a file: SHA-256, which processors of today compute as fast as a disk reads (2 GB/s)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
