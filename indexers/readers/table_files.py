"""Binary tables (Parquet, Arrow, SQLite, DuckDB, spreadsheets), and the choice of a source's reader."""

import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from kbtools.entry_points import import_optional
from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import RecordBatch, Skips
from kbtools.indexers.readers.delimited import CSVReader, TSVReader, layout_of
from kbtools.indexers.readers.entity_columns import find_head
from kbtools.indexers.readers.entity_layout import EntityLayout
from kbtools.indexers.readers.formats import DATABASES, SPREADSHEETS, suffix_of
from kbtools.indexers.readers.json_documents import may_be_document
from kbtools.indexers.readers.json_lines import JSONLinesReader, plain_text
from kbtools.indexers.readers.reading import WIDE, Reading, ReadOptions, Source
from kbtools.indexers.readers.release import CountsReading
from kbtools.indexers.readers.sources import check_source, open_source
from kbtools.indexers.readers.table_rows import BLANK, NO_TEXT, Layout, StrangeCell, TableRows, is_list, laid_out
from kbtools.indexers.readers.table_shapes import PAIRS, as_pairs, header_at, header_place, leave_out_table, next_table
from kbtools.text.encodings import is_utf_8

ROWS = 50_000
"""Rows laid out at once: some 10 MB of text."""

_PIECE = 1 << 20
"""Bytes of a column read at once, however large its row groups are."""

_MOST_CELLS = 100_000_000
"""Most cells of a sheet between its first and its last; calamine takes 32 bytes for each, and aborts without them."""

_CURE = "delete what is far from the table, or save it as .csv"

_LONGEST_TAG = 256
"""Bytes of the tag of a cell, with its place, format and type."""

_COLUMN = re.compile(rb' r="([A-Z]{1,3})\d+"[^<>/]*>')
_ROW = re.compile(rb' r="[A-Z]{1,3}(\d{1,7})"[^<>/]*>')
"""The columns and rows of cells with content; `<c r="XFD9" s="1"/>` has only a format, and takes no memory."""

MAGIC = {".parquet": (b"PAR1",), ".arrow": (b"ARROW1", b"\xff\xff\xff\xff"), ".feather": (b"ARROW1",)}
BINARY = (*MAGIC, *DATABASES, *SPREADSHEETS)


class TableReading(Reading):
    """A pass over a binary table, or one with an entity per row."""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the rows of the wanted kind; raise TooManyBadLines at the end of a source with too many."""
        path, suffix = self.source.path, suffix_of(self.source.path)
        check_source(path)
        layout = layout_of(self.source, self.options, self.skips)
        if (suffix in DATABASES) != bool(self.options.wide.query) and self.source.format == WIDE:
            if suffix not in DATABASES:
                raise WrongFormat.at(path, "--query is for .sqlite and .duckdb")
            raise WrongFormat.at(path, f"give --query 'SELECT ...' with it{_tables_of(path, suffix)}")
        try:
            yield from self.wanted(laid_out(layout, self.rows(layout)))
        except (pa.ArrowException, OSError, sqlite3.Error) as error:
            raise WrongFormat.at(path, f"cannot be read ({error})") from error
        if not self.meter.size:
            with open_source(path) as file:
                while piece := file.read(_PIECE):
                    self.meter.update(piece)
            self.progress(self.meter.size)

    def rows(self, layout: Layout) -> Iterator[TableRows]:
        """Return the rows of the table, by its suffix or, for text, by its beginning."""
        path, suffix, query = self.source.path, suffix_of(self.source.path), self.options.wide.query
        if suffix in SPREADSHEETS:
            return _sheet_rows(path, self.options.wide.sheet, layout, self.skips)
        if suffix == ".duckdb":
            return _numbered(_query_duckdb(path, query), layout, self.skips)
        if suffix in DATABASES:
            return _numbered(_query_sqlite(path, query), layout, self.skips)
        if suffix in MAGIC:
            return _numbered(open_columnar(path), layout, self.skips)
        return self.text_rows(layout, suffix)

    def text_rows(self, layout: Layout, suffix: str) -> Iterator[TableRows]:
        blocks = self.blocks()
        first = next(blocks)
        readers: dict[str, Any] = {"jsonl": JSONLinesReader, "tsv": TSVReader, "csv": CSVReader}
        named = next((name for name in readers if suffix in readers[name].suffixes), "")
        name = (
            self.options.format
            or named
            or ("jsonl" if first.text.startswith(b"{") or may_be_document(first.text) else "csv")
        )
        make = readers.get(name, CSVReader)
        rows: Iterator[TableRows] = make(self.source, self.options, self.skips, layout).rows(chain([first], blocks))
        return rows

    def header(self) -> list[str]:
        """Return the columns of a table of entities that its header names."""
        layout = EntityLayout(self.source, self.options, self.skips)
        next(self.rows(layout), None)
        return layout.header


def check_columns(sources: Sequence[Source], options: ReadOptions) -> None:
    """Raise an error if an option names a column that no table has; JSON Lines are exempt: fields may come later."""
    wide = options.wide
    named = {"id": (wide.subject,), "name": wide.name, "alias": wide.alias, "type": wide.type}
    named |= {"description": wide.description, "link-column": wide.link}
    if not any(any(heads) for heads in named.values()):
        return
    header: list[str] = []
    for source in sources:
        suffix = suffix_of(source.path)
        if source.format == WIDE and suffix not in DATABASES:
            if suffix in JSONLinesReader.suffixes:
                return
            header += TableReading(source, options).header()
    # `label@de` means the column `label`, and `label` any of the columns `label@de` and `label@en`.
    stems = [*header, *(name.rpartition("@")[0] for name in header)]
    for option, heads in named.items():
        for head in filter(None, heads):
            if header and not find_head(head, stems) and not find_head(head.rpartition("@")[0], header):
                problem = f"found the columns {header[:20]!r}, none of them {head!r}"
                raise WrongFormat(f"{problem}; change --{option}", path=str(sources[0].path))


def open_reading(source: Source, options: ReadOptions, progress: Callable[[int], None] = lambda size: None) -> Reading:
    """Open a source for reading: a binary table by its suffix, unless a reader is named."""
    if source.kind == "counts":
        return CountsReading(source, options, progress=progress)
    binary = suffix_of(source.path) in BINARY and not (source.format or options.format)
    return (TableReading if binary or source.format == WIDE else Reading)(source, options, progress=progress)


def open_columnar(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a file; raise WrongFormat if its content does not match its suffix."""
    check_source(path)
    with open_source(path) as file:
        start = file.read(8)
    suffix = path.suffix.lower()
    if not start.startswith(MAGIC[suffix]):
        right = next(
            (name for name, marks in MAGIC.items() if start.startswith(marks)), "by its content, .csv or .jsonl"
        )
        if start.startswith(b"FEA1"):
            raise WrongFormat.at(path, "found Feather's version 1; write it again with version 2")
        raise WrongFormat.at(path, f"found {start!r}, which is not {suffix} data; name it {right}")
    try:
        if suffix == ".parquet":
            from pyarrow import parquet

            yield from parquet.ParquetFile(path, buffer_size=_PIECE).iter_batches(ROWS)
            return
        with pa.memory_map(str(path)) as mapped:
            if start.startswith(b"ARROW1"):
                opened = ipc.open_file(mapped)
                yield from (opened.get_batch(place) for place in range(opened.num_record_batches))
                return
            # Several streams may follow one another, each with its own columns.
            while mapped.tell() < mapped.size():
                yield from ipc.open_stream(mapped)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> WrongFormat:
    return WrongFormat.at(path, f"cannot be read ({error}); the file is cut short or damaged")


def _numbered(batches: Iterable[pa.RecordBatch], layout: Layout, skips: Skips) -> Iterator[TableRows]:
    """Yield rows without line numbers, numbered in order; columns of objects are left out."""
    names: list[str] = []
    for batch in batches:
        if batch.schema.names != names:
            names, left_out = batch.schema.names, set[str]()
            if not layout.strict:
                left_out = {field.name for field in batch.schema if _holds_objects(field.type)}
                if left_out:
                    skips.note(f"columns of objects, left out: {', '.join(map(repr, sorted(left_out)))}", line=1)
                # The row numbers that pandas writes into the file.
                left_out |= {name for name in names if re.fullmatch(r"__index_level_\d+__", name)}
            used = [place for place, name in enumerate(names) if name not in left_out]
            heads = [names[place] for place in used]
            layout.begin(heads, 1)
        for start in range(0, batch.num_rows, ROWS):
            part, first = batch.slice(start, ROWS), skips.lines + 1
            skips.lines += part.num_rows
            strange: list[StrangeCell] = []
            columns = [_plain_column(part.column(place), names[place], strange) for place in used]
            rows = pa.RecordBatch.from_arrays(columns, names=heads)
            yield TableRows(rows, range(first, first + part.num_rows), strange)


def _plain_column(column: pa.Array, name: str, strange: list[StrangeCell]) -> pa.Array:
    """Return a column of values; objects and numbers that are not finite become null and strange."""
    if _holds_objects(column.type):
        faulty, column = pc.is_valid(column), pa.nulls(len(column), pa.string())
    elif pa.types.is_floating(column.type):
        faulty = pc.invert(pc.fill_null(pc.is_finite(column), True))
    else:
        return column
    strange.extend(StrangeCell(row, name, NO_TEXT) for row in pc.indices_nonzero(faulty).to_pylist())
    return column


def _holds_objects(kind: pa.DataType) -> bool:
    """Return whether the values of a column, or of its lists, are bytes or structures."""
    while is_list(kind):
        kind = kind.value_type
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(pa.types.is_nested(kind) or binary)


def _tables_of(path: Path, suffix: str) -> str:
    """Return a part of an error that lists the tables and views of a database, empty if there are none to read."""
    ask = _query_duckdb if suffix == ".duckdb" else _query_sqlite
    catalogue = "duckdb_tables()" if suffix == ".duckdb" else "sqlite_master WHERE type IN ('table', 'view')"
    column = "table_name" if suffix == ".duckdb" else "name"
    try:
        batches = list(ask(path, f"SELECT {column} FROM {catalogue} ORDER BY {column} LIMIT 20"))
    except (WrongFormat, sqlite3.Error):
        return ""
    names = [name for batch in batches for name in batch.column(0).to_pylist()]
    return f", such as 'SELECT * FROM {names[0]}'; its tables are {', '.join(names)}" if names else ""


def _query_duckdb(path: Path, query: str) -> Iterator[pa.RecordBatch]:
    """Query a DuckDB file, opened read-only."""
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            statements = connection.extract_statements(query)
            # COPY writes files even if the database is read-only; a PIVOT counts as several statements.
            reading = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
            if len(statements) != 1 or statements[0].type not in reading:
                raise WrongFormat.at(path, f"--query takes one SELECT, found {query!r:.60}")
            relation: Any = connection.sql(query)
            yield from relation.to_arrow_reader(ROWS)
    except duckdb.Error as error:
        raise WrongFormat.at(path, str(error)) from error


def _query_sqlite(path: Path, query: str) -> Iterator[pa.RecordBatch]:
    """Query an SQLite file, opened read-only; every value is returned as text."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        # VACUUM INTO attaches and writes another file.
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
        )
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(ROWS):
            texts = [[None if value is None else str(value) for value in column] for column in zip(*rows, strict=True)]
            yield pa.record_batch([pa.array(column, pa.string()) for column in texts], names=names)


def _require_bounded(path: Path) -> None:
    """Raise WrongFormat if a cell of an .xlsx file lies so far out that the sheet would not fit in memory."""
    if not is_zipfile(path):
        return
    with suppress(BadZipFile, zlib.error), ZipFile(path) as archive:  # The reader reports what is damaged.
        for name in archive.namelist():
            if not name.startswith("xl/worksheets/"):
                continue
            column, row, end = b"@", 0, b""
            with archive.open(name) as file:
                while piece := file.read(_PIECE):
                    # As sets: there are a million cells, but few columns.
                    column = max({column, *_COLUMN.findall(end + piece)}, key=lambda column: (len(column), column))
                    row = max(row, *map(int, {b"0", *_ROW.findall(end + piece)}))
                    end = piece[-_LONGEST_TAG:]
            width = sum(26**place * (letter - 64) for place, letter in enumerate(reversed(column)))
            if width * row > _MOST_CELLS:
                last = f"{column.decode()}{row}"
                raise WrongFormat.at(path, f"a sheet reaches to the cell {last}; {_CURE}")


def _sheet_rows(path: Path, sheet: str, layout: Layout, skips: Skips) -> Iterator[TableRows]:
    """Yield the rows under the header of the named sheet of a spreadsheet, or of the first one with a table."""
    python_calamine = import_optional("python_calamine", f"{path}: reading spreadsheets")
    _require_bounded(path)
    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
        if sheet and sheet not in book.sheet_names:
            sheets_there = ", ".join(map(repr, book.sheet_names))
            raise WrongFormat.at(path, f"no sheet {sheet!r}; the sheets are {sheets_there}")

        names = [sheet] if sheet else book.sheet_names
        opened = {name: book.get_sheet_by_name(name) for name in names}
        sheets = [(name, list(sheet.to_python(skip_empty_area=False))) for name, sheet in opened.items()]
    except python_calamine.CalamineError as error:
        with path.open("rb") as file:
            start = file.read(_PIECE)
        if start.lstrip().startswith(b"<"):
            problem = "found HTML or XML, which some programs export under this suffix; open it and save it as .xlsx"
            raise WrongFormat.at(path, problem) from error
        if is_utf_8(start):
            raise WrongFormat.at(path, "found text, which is not a spreadsheet; name it .csv") from error
        if "Cell limit exceeded" in str(error):  # of .ods
            raise WrongFormat.at(path, f"a sheet has over {_MOST_CELLS:,} cells; {_CURE}") from error
        raise _damaged(path, error) from error
    filled = [(name, rows) for name, rows in sheets if rows] or sheets[:1]
    filled.sort(key=lambda sheet: not _is_table(sheet[1]))
    if len(filled) > 1:
        others = ", ".join(repr(name) for name, _ in filled[1:])
        skips.note(f"the sheet {filled[0][0]!r} is read; use --sheet for another: {others}", line=1)
    cells = [[_sheet_text(value) for value in row] for row in filled[0][1]]
    filled_cells = [[cell for cell in row if cell] for row in cells if any(row)]
    if pairs := as_pairs(filled_cells):
        skips.note(PAIRS, line=1)
        cells = list(map(list, pairs))
    place = header_place(cells, layout)
    skips.lines += len(cells)
    header = list[str]()
    if cells:
        found = header_at(cells, place)
        header, place = found.heads, found.last
    # All rows are as wide as the widest of the sheet; columns without head and cells are dropped.
    while header and not (header[-1] or any(row[len(header) - 1] for row in cells[place:])):
        header.pop()
    layout.begin(header, place + 1)
    for (top, left), (bottom, right) in opened[filled[0][0]].merged_cell_ranges or ():
        # Only the first of merged cells has their value.
        for row in range(max(top, place) + 1, min(bottom + 1, len(cells))) if left == right and top > place else ():
            cells[row][left] = cells[top][left]
    if other := next_table(cells[place + 1 :], header):
        number, left_out = place + 2 + other, cells[place + 1 + other :]
        cure = "move it to a sheet of its own"
        leave_out_table(skips, line=number, text=str(left_out[0]), count=len(left_out), cure=cure)
        cells = cells[: place + 1 + other]
    below = dict(enumerate(cells[place + 1 :], place + 2))
    rows = {number: row for number, row in below.items() if any(row)}
    if blank := [number for number in below if number not in rows]:
        skips.add(BLANK, line=blank[0], text="", bad=False, count=len(blank))
    if rows:
        columns = [pa.array([row[at] for row in rows.values()], pa.string()) for at in range(len(header))]
        yield TableRows(pa.RecordBatch.from_arrays(columns, names=header), list(rows))


def _is_table(rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether at least two rows of a sheet have several cells, unlike those of a page of remarks."""
    return sum(sum(str(cell).strip() != "" for cell in row) > 1 for row in rows) > 1


def _sheet_text(value: Any) -> str:
    """Write a cell of a spreadsheet as text: a date without an hour is a day, a whole number has no fraction."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00")
    return plain_text(value, strict=False) or str(value)
