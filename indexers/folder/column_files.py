"""Columns and string tables as plain files: written in one pass, opened without reading them."""

import ctypes
import hashlib
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kbtools.indexers.folder.checksums import cannot_open
from kbtools.kb.rows import Grouped

if TYPE_CHECKING:
    import pyarrow as pa

_SMALL = 256 * 1024
"""Largest file, in bytes, that is read, not mapped: with millions of entities, 12 of 16 files are larger."""

_STARTS_AT_ONCE = 250_000
"""Values written at once if a column repeats a value."""

_DONTNEED = 4
"""MADV_DONTNEED of Linux."""

_MAPS, _STATM = Path("/proc/self/maps"), Path("/proc/self/statm")


class ColumnWriter:
    """A writer of the values of one column, which also hashes them."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.file: IO[bytes] = path.open("wb")
        self.digest = hashlib.sha256()
        self.count = 0

    def write(self, values: NDArray[Any]) -> None:
        data = np.ascontiguousarray(values, dtype=self.dtype).tobytes()
        self.file.write(data)
        self.digest.update(data)
        self.count += len(values)

    def close(self) -> str:
        self.file.close()
        return self.digest.hexdigest()


class StartsWriter:
    """A writer of the start of each row's run among values sorted by row, and of the end of the last run."""

    def __init__(self, column: ColumnWriter) -> None:
        self.column = column
        self.values = 0
        self.rows = 0
        """Number of rows written so far."""

    def write(self, rows: NDArray[np.uint32]) -> None:
        """Write the starts for the rows of the next values; rows ascend over all calls."""
        if not len(rows):
            return
        first, end = int(rows[0]), int(rows[-1]) + 1
        self.rows += int(np.count_nonzero(rows[1:] != rows[:-1])) + (first >= self.column.count)
        # Earlier rows without a start have no values.
        self.fill(first)
        self.column.write(self.values + np.searchsorted(rows, np.arange(self.column.count, end, dtype=rows.dtype)))
        self.values += len(rows)

    def fill(self, end: int) -> None:
        """Write the start of the rows before `end` that have no value."""
        while (missing := min(end - self.column.count, _STARTS_AT_ONCE)) > 0:
            self.column.write(np.full(missing, self.values))

    def close(self, rows: int) -> str:
        """Complete a column of `rows` rows; return its hash."""
        self.fill(rows + 1)
        return self.column.close()


class StringWriter:
    """A writer of strings by row: their UTF-8 end to end, and the start of each."""

    def __init__(self, path: Path) -> None:
        self.bytes = ColumnWriter(path.with_name(path.name + ".utf8"), np.uint8)
        self.starts = ColumnWriter(path.with_name(path.name + ".starts"), np.uint64)
        # One more start than strings: the end of the last.
        self.starts.write(np.zeros(1))

    def write(self, strings: "pa.StringArray") -> None:
        _, offsets, letters = strings.buffers()
        if not len(strings):
            return
        edges = np.frombuffer(offsets, dtype=np.int32)[strings.offset : strings.offset + len(strings) + 1]
        ends = edges[1:].astype(np.uint64) + np.uint64(self.bytes.count) - np.uint64(edges[0])
        self.bytes.write(np.frombuffer(letters or b"", dtype=np.uint8)[edges[0] : edges[-1]])
        self.starts.write(ends)

    def close(self) -> str:
        try:
            digest = self.bytes.close()
        finally:
            # On a full disk either may fail, and neither may be left to be flushed when garbage-collected.
            starts = self.starts.close()
        return digest + starts


def _map_file(path: Path) -> mmap.mmap | bytes:
    """Map a file into memory, read-only; a small one is read, since each map needs a descriptor."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size <= _SMALL:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise cannot_open(path, error) from error


def read_column(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Open a column without reading it."""
    return np.frombuffer(_map_file(path), dtype=np.dtype(dtype).newbyteorder("<"))


class StringTable:
    """Strings by row, read from a mapped file."""

    def __init__(self, path: Path) -> None:
        self.bytes = _map_file(path.with_name(path.name + ".utf8"))
        self.starts = memoryview(_map_file(path.with_name(path.name + ".starts"))).cast("Q")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> str:
        return self.bytes[self.starts[row] : self.starts[row + 1]].decode()

    def take(self, rows: Iterable[int]) -> list[str]:
        """Return several strings, in half the time of one by one."""
        data, starts = self.bytes, self.starts
        return [data[starts[row] : starts[row + 1]].decode() for row in rows]

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def find(self, string: str) -> int | None:
        """Return the row of a string in a sorted table, or None."""
        encoded = string.encode(errors="surrogatepass")  # Half a surrogate pair is in no table.
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.bytes[self.starts[middle] : self.starts[middle + 1]] < encoded:
                low = middle + 1
            else:
                high = middle
        present = low < len(self) and self.bytes[self.starts[low] : self.starts[low + 1]] == encoded
        return low if present else None

    def bytes_at(self, rows: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return several strings end to end, and the start of each."""
        starts = np.frombuffer(self.starts, dtype="<u8")
        first = starts[rows].astype(np.int64)
        lengths = starts[rows + 1].astype(np.int64) - first
        begin = lengths.cumsum() - lengths
        places = (first - begin).repeat(lengths)
        places += np.arange(len(places))
        return np.frombuffer(self.bytes, dtype=np.uint8)[places], begin

    def places_of(self, string: str, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places of a string among some rows, without reading strings of another length."""
        starts, wanted = np.frombuffer(self.starts, dtype="<u8"), np.frombuffer(string.encode(), dtype=np.uint8)
        first = starts[rows].astype(np.int64)
        places = np.flatnonzero(starts[rows + 1].astype(np.int64) - first == len(wanted))
        letters = np.frombuffer(self.bytes, dtype=np.uint8)[first[places, None] + np.arange(len(wanted))]
        same: NDArray[np.int64] = places[(letters == wanted).all(axis=1)]
        return same

    def find_among(self, string: str, rows: NDArray[np.uint32]) -> int | None:
        """Return the row of a string among some rows that are in the order of their strings, or None."""
        place = bisect_left(rows, string, key=self.__getitem__)
        return int(rows[place]) if place < len(rows) and self[rows[place]] == string else None


def release_pages(folder: Path, *, beyond: int = 0) -> None:
    """Drop the pages of every mapped file in a folder from this process; they are loaded again when read.

    Does nothing while files, including libraries, have at most `beyond` bytes in memory. Needs Linux's list of
    mappings; elsewhere it does nothing, and the system reclaims pages when it needs them.
    """
    if not _MAPS.exists():
        return
    resident = int(_STATM.read_text(encoding="ascii").split()[2]) * mmap.PAGESIZE
    if beyond and resident <= beyond:
        return
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    inside = os.path.realpath(folder) + os.sep
    for line in _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        # `r--s`: shared and read-only, as `_map_file` maps; private pages of others would be lost.
        if len(fields) == 6 and fields[1].startswith("r--s") and fields[5].startswith(inside):
            start, end = (int(edge, 16) for edge in fields[0].split("-"))
            advise(start, end - start, _DONTNEED)


def within(grouped: Grouped, count: int) -> Grouped:
    """Return the values unchanged; raise IndexError if a row is beyond the end of the table it refers to."""
    if len(grouped.values) and (last := int(np.maximum.reduce(grouped.values))) >= count:
        raise IndexError(f"row {last} of a table of {count}")
    return grouped


def gather(starts: NDArray[Any], values: NDArray[Any], rows: NDArray[Any]) -> Grouped:
    """Collect the runs of several rows of a table stored run after run."""
    bounds, positions = spread(starts, rows, len(values))
    return Grouped(bounds, values[positions])


def spread(starts: NDArray[Any], rows: NDArray[Any], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the places of the runs of several rows among `size` values, and the start of each run in that list."""
    rows = rows.astype(np.int64)
    begin, end = starts.take(rows), starts.take(rows + 1)
    lengths = end - begin
    # Faster than `any` for a few values, and than finding their minimum and maximum.
    if np.logical_or.reduce((lengths < 0) | (end > size)):
        raise IndexError("a run that begins behind its end, or ends behind the values")
    bounds = np.zeros(len(begin) + 1, dtype=np.int64)
    lengths.cumsum(out=bounds[1:])
    # The place of every value of every row's run, without a loop over the rows.
    places = (begin - bounds[:-1]).repeat(lengths)
    places += np.arange(len(places))
    return bounds, places


def facts_at(columns: Mapping[str, NDArray[Any]], subjects: NDArray[Any]) -> NDArray[np.int64]:
    """Return the facts of subjects, in their order, then by relation and object: (facts, 3)."""
    starts, firsts = columns["fact.first"], columns["fact.first_object"]
    if len(subjects) == 1:  # Two thirds of the time of the general case.
        first, last = starts[int(subjects[0]) :][:2].tolist()
        edges = firsts[first : last + 1]
        relations, targets, counts = columns["fact.relation"][first:last], columns["fact.object"], np.diff(edges)
        facts = np.empty((int(edges[-1] - edges[0]), 3), dtype=np.int64)
        facts[:, 0], facts[:, 1], facts[:, 2] = subjects[0], relations.repeat(counts), targets[edges[0] : edges[-1]]
        return facts
    bounds, pairs = spread(starts, subjects, len(columns["fact.relation"]))
    runs, objects = spread(firsts, pairs, len(columns["fact.object"]))
    counts = np.diff(runs)
    by_pair = (np.repeat(subjects, np.diff(bounds)), columns["fact.relation"][pairs])
    facts_by_column = (*(np.repeat(column, counts) for column in by_pair), columns["fact.object"][objects])
    return np.stack(facts_by_column, axis=1).astype(np.int64)
