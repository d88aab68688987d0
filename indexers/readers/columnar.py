"""Tables of a fact, a name, a type a row in columnar files: Parquet, and Arrow or Feather, read a piece at a time."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import RecordBatch, Rows
from kbtools.indexers.readers.column_batches import read_columns
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source
from kbtools.indexers.readers.sources import check_source, file_digest, open_source
from kbtools.indexers.readers.table_columns import TableColumns

ROWS = 50_000
"""Rows that are laid out at once: some 10 MB of text."""

PIECE = 1 << 20
"""Bytes that are read of a column at once, however large its row groups are."""

MAGIC = {".parquet": (b"PAR1",), ".arrow": (b"ARROW1", b"\xff\xff\xff\xff"), ".feather": (b"ARROW1",)}


class ColumnarReading(Reading):
    """One pass over a columnar file."""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the rows of the wanted kind; raise TooManyBadLines at the end of a source with too many."""
        path = self.source.path
        table = TableColumns(self.source, self.options, self.skips)
        yield from self.wanted(read_columnar(path, table))
        self.digest = file_digest(path)
        self.progress(path.stat().st_size)


def open_reading(source: Source, options: ReadOptions, progress: Callable[[int], None] = lambda size: None) -> Reading:
    """Begin to read a source, a columnar file by its suffix, unless a reader is named for it."""
    columnar = is_columnar(source.path) and not (source.format or options.format)
    return (ColumnarReading if columnar else Reading)(source, options, progress=progress)


def is_columnar(path: Path) -> bool:
    return path.suffix.lower() in MAGIC


def open_columnar(path: Path) -> Iterable[pa.RecordBatch]:
    """Open a file as record batches; raise WrongFormat where it is another kind of file than its suffix says."""
    check_source(path)
    with open_source(path) as file:
        start = file.read(8)
    suffix = path.suffix.lower()
    if not start.startswith(MAGIC[suffix]):
        own = next((name for name, marks in MAGIC.items() if start.startswith(marks)), "by what it is, .csv or .jsonl")
        if start.startswith(b"FEA1"):
            raise WrongFormat(f"{path}: found Feather's version 1; write it again with version 2", path=str(path))
        raise WrongFormat(f"{path}: found {start!r}, which is no {suffix} data; name it {own}", path=str(path))
    try:
        if suffix == ".parquet":
            from pyarrow import parquet

            return parquet.ParquetFile(path, buffer_size=PIECE).iter_batches(ROWS)  # type: ignore[no-any-return]
        mapped = pa.memory_map(str(path))
        if start.startswith(b"ARROW1"):
            opened = ipc.open_file(mapped)
            return (opened.get_batch(place) for place in range(opened.num_record_batches))
        return ipc.open_stream(mapped)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> WrongFormat:
    return WrongFormat(f"{path}: cannot be read ({error}); the file is cut short or damaged", path=str(path))


def read_columnar(path: Path, table: TableColumns) -> Iterator[RecordBatch]:
    """Read the rows of a file; the number of a row stands where others have that of a line."""
    places: dict[str, str] = {}
    batches = iter(open_columnar(path))
    while True:
        try:
            whole = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, error) from error
        if whole is None:
            return
        places = places or table.check_header(whole.schema.names, 1)
        for start in range(0, whole.num_rows, ROWS):
            yield from read_batch(whole.slice(start, ROWS).select(list(places.values())), list(places), table)


def read_batch(batch: pa.RecordBatch, names: list[str], table: TableColumns) -> Iterator[RecordBatch]:
    """Read rows in columns where those are text, numbered or dated, else one by one, as lists are."""
    first = table.skips.lines + 1
    columns = {name: as_text(column) for name, column in zip(names, batch.columns, strict=True)}
    texts = {name: column for name, column in columns.items() if column is not None}
    odd = list(range(batch.num_rows))
    if len(texts) == len(columns) and batch.num_rows and not any(map(has_nul, texts.values())):
        ready, odd = read_columns(table, texts, first)
        yield from ready
    table.skips.lines += batch.num_rows
    rows = Rows()
    for place, cells in zip(odd, batch.take(pa.array(odd, pa.int64())).to_pylist(), strict=True):
        record = dict(zip(names, map(plain, cells.values()), strict=True))
        table.keep(record, first + place, str(cells), rows)
        rows.mark(first + place)
    yield from rows.batches()


def as_text(column: pa.Array) -> pa.Array | None:
    """Write whole numbers, dates and categories as text; nothing for what is looked at one by one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_temporal)
    return pc.cast(column, pa.string()) if any(is_kind(column.type) for is_kind in kinds) else None


def has_nul(column: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(column, "\0")).as_py())


def plain(cell: Any) -> Any:
    """Write dates as text, in lists too; empty places of a list are left out by who reads it."""
    if isinstance(cell, list):
        return [plain(value) for value in cell]
    return cell.isoformat() if hasattr(cell, "isoformat") else cell
