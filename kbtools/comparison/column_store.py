"""Columns on disk: the results of a stage of a comparison, with the fingerprint of its inputs."""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable, OutputUnusable, RunUnusable
from kbtools.record_files import fits, read_record, write_record
from kbtools.storage import new_file

FORMAT_NAME, FORMAT_VERSION = "kbtools-columns", 1
_LEVEL = 1
"""The fastest level of zlib: columns shrink several times in the time that writing them takes."""
LARGEST = 1 << 31
"""The most bytes of a file's columns, since a crafted file unpacks to a thousand times its size. 10,000 questions take
0.1 GB."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One-dimensional arrays by name, and other facts."""

    fingerprint: str
    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]


def write_columns(path: Path, columns: Columns) -> None:
    """Write columns to a file, completely or not at all; raise OutputUnusable if it cannot be written."""
    packed = {name: [array.dtype.str, zlib.compress(array.tobytes(), _LEVEL)] for name, array in columns.arrays.items()}
    record = {"fingerprint": columns.fingerprint, "facts": dict(columns.facts), "columns": packed}
    with named_failure(path):
        write_record(path, record, name=FORMAT_NAME, version=FORMAT_VERSION)


def write_text(path: Path, text: str) -> Path:
    """Write a text to a file, completely or not at all; raise OutputUnusable if it cannot be written."""
    # Bytes of a path or name that are not UTF-8 become escapes; Python would refuse to write them.
    return write_file(path, text.encode(errors="backslashreplace"))


def write_file(path: Path, content: bytes) -> Path:
    """Write a file completely or not at all; raise OutputUnusable if it cannot be written."""
    with named_failure(path), new_file(path) as file:
        file.write(content)
    return path


@contextmanager
def named_failure(path: Path) -> Iterator[None]:
    """Raise OutputUnusable with the path and the reason if writing fails, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise OutputUnusable.at(path, f"cannot be written ({error.strerror})") from error


def read_columns(path: Path) -> Columns:
    """Return columns; raise RunUnusable if the file is damaged or of another version."""
    try:
        record = read_record(path, name=FORMAT_NAME, version=FORMAT_VERSION, cure="delete it and compare again")
        arrays, left = {}, LARGEST
        for name, (kind, packed) in record["columns"].items():
            # Reading one byte more than allowed reveals a column that is too large.
            content = (stream := zlib.decompressobj()).decompress(packed, left + 1)
            if not stream.eof or len(content) > left:
                raise ValueError("a column is truncated or too large")
            arrays[name], left = np.frombuffer(content, dtype=np.dtype(kind)), left - len(content)
        facts, cell = record["facts"], ["", "", "", ""]
        if not fits(facts, dict[str, Any]) or not fits(facts.get("cell", cell), tuple[str, str, str, str]):
            raise ValueError("a field is missing or has another type")
        return Columns(record["fingerprint"], arrays, facts)
    except (KBUnusable, zlib.error, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunUnusable.at(
            path, "damaged or written by another version of kbtools; delete it and run kbtools compare again"
        ) from error


def find_columns(path: Path, fingerprint: str) -> Columns | None:
    """Return columns if the file is intact and has this fingerprint, else None."""
    if not path.is_file():
        return None
    try:
        columns = read_columns(path)
    except RunUnusable:
        return None
    return columns if columns.fingerprint == fingerprint else None


def digest(*parts: object) -> str:
    """Return the fingerprint of some facts, equal for equal facts."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
