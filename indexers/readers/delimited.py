"""Tables with a header whose columns a separator divides: CSV and TSV, quoted as spreadsheets and pandas write them.

A block is read in columns by Arrow; its odd rows, and a block that is not clean, are read row by row in Python. Both
give the same rows.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import RecordBatch, Rows
from kbtools.indexers.readers.column_batches import parse_cells, read_columns
from kbtools.indexers.readers.lines import BOM, Block, lines_of
from kbtools.indexers.readers.quoted_rows import (
    LONGEST_CELL,
    Lines,
    ReadRow,
    begins_cell,
    fault_of,
    last_row_end,
    read_row,
    split_cells,
    unquote_column,
)
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.table_columns import TableColumns

SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ReadBlock(Protocol[T_co]):
    """A reader of the rows of a block, which gives what is left of it, a row without its end."""

    def __call__(self, block: Block, *, last: bool) -> tuple[Iterable[T_co], Block]: ...


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """A block as columns of text, the lines of rows with another number of columns, and whether cells span lines."""

    columns: pa.Table
    ragged: list[int]
    spanning: bool


class DelimitedReader:
    """A reader of tables whose first line is a header; `separator` is the usual one, others are recognised."""

    suffixes: ClassVar[tuple[str, ...]]
    sample: ClassVar[bytes]
    separator: ClassVar[str]

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.table = TableColumns(source, options, skips)
        self.skips = skips
        self.divider = self.separator
        self.header: list[str] = []
        self.places: dict[str, int] = {}

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        return carry_rests(blocks, self.read_block)

    def read_block(self, block: Block, *, last: bool) -> tuple[list[RecordBatch], Block]:
        """Read the rows of a block; give what is left of it, a row without its end."""
        if not self.header:
            block = self.read_header(block)
        if not block.text:
            return [], block
        text = block.text.replace(b"\r\n", b"\n")
        end = self.end_of_rows(text, last=last)
        parsed = None if end is None else self.in_columns(text[:end])
        # Where cells span lines, the number of a row is not that of its line: then nobody could say where a row is.
        if end is None or parsed is None or (parsed.spanning and parsed.ragged):
            return self.by_rows(block, last=last)
        columns = {name: parsed.columns.column(place).combine_chunks() for name, place in self.places.items()}
        batches, odd = read_columns(self.table, columns, block.first_line)
        if odd and parsed.spanning:
            return self.by_rows(block, last=last)
        lines = text[:end].count(b"\n")
        self.skips.lines += lines - len(odd) - len(parsed.ragged)
        if odd or parsed.ragged:
            # `odd` counts the rows that Arrow gave; the lines that it left out stand between them.
            whole = np.setdiff1d(np.arange(lines), parsed.ragged)[odd].tolist() + parsed.ragged
            split = text[:end].split(b"\n")
            batches += self.odd_rows([(block.first_line + line, split[line]) for line in sorted(whole)])
        return batches, Block(text[end:], block.first_line + lines)

    def read_header(self, block: Block) -> Block:
        """Take the first line that is not blank for the header, and give the rest of the block."""
        for number, raw in lines_of(block):
            self.skips.lines += 1
            if not raw.strip():
                self.skips.add("blank line", line=number, text="", bad=False)
                continue
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                raise WrongFormat(
                    f"{self.skips.path}:{number}: found invalid UTF-8 in the header; save the file as UTF-8",
                    path=self.skips.path,
                    line=number,
                ) from error
            self.choose_header(line, number)
            after = number + 1 - block.first_line
            return Block(block.text.split(b"\n", after)[after], number + 1)
        return Block(b"", block.first_line)

    def choose_header(self, line: str, number: int) -> None:
        """Divide the header by the usual separator, or by another if only that one gives the columns needed."""
        for separator in (self.separator, *SEPARATORS):
            header = [head.strip() for head in split_cells(line, separator)]
            if not self.table.missing(self.table.heads(header)):
                break
        else:
            separator, header = self.separator, [head.strip() for head in split_cells(line, self.separator)]
        advice = (
            "; its columns seem to be divided by several spaces, write tabs" if re.search(r"\S {2,}\S", line) else ""
        )
        if self.table.kind == "facts" and separator == "\t" and len(self.table.missing(self.table.heads(header))) == 3:
            advice += "; a file of facts without a header is read when it is named .txt"
        heads = self.table.check_header(header, number, advice=advice)
        self.places = {name: header.index(head) for name, head in heads.items()}
        if separator != self.separator:
            self.skips.note(f"columns divided by {SEPARATORS[separator]}", line=number)
        self.divider, self.header = separator, header

    def end_of_rows(self, text: bytes, *, last: bool) -> int | None:
        """Find the end of the last whole row; nothing if the block is not clean, or not to be told."""
        # Arrow would keep, or cut at, what the line reader counts as bad.
        if b"\0" in text or b"\r" in text or BOM in text or not is_utf_8(text):
            return None
        if b'"' not in text or last:
            return len(text)
        if self.divider == "\t":
            # Only the last line may begin a cell that goes on in the next block.
            end = text.rfind(b"\n", 0, -1) + 1
            return None if begins_cell(text[text.rfind(b"\n", 0, end - 1) + 1 : end].decode(errors="replace")) else end
        return last_row_end(text, self.divider)

    def in_columns(self, text: bytes) -> ParsedBlock | None:
        """Read whole rows at once; nothing if Arrow would read them otherwise than the line reader does."""
        tabs = self.divider == "\t"
        quotes = b'"' in text and not tabs
        if quotes and last_row_end(text, self.divider) != len(text):
            return None
        ragged: list[int] = []

        def leave_out(row: pyarrow.csv.InvalidRow) -> str:
            ragged.append(row.number - 1)
            return "skip"

        # Numbered, since Arrow takes no two columns of one name.
        heads = [f"{place} {head}" for place, head in enumerate(self.header)]
        columns = parse_cells(text, heads, delimiter=self.divider, quotes=quotes, on_ragged=leave_out)
        if columns is None:
            return None
        # The csv module, which reads odd rows, refuses longer cells: both must refuse the same ones.
        if not tabs and any(
            pc.max(pc.binary_length(column)).as_py() > csv.field_size_limit()
            for column in columns.columns
            if len(column)
        ):
            return None
        if tabs and b'"' in text:
            if ragged:
                return None
            columns = columns.from_arrays([unquote_column(column) for column in columns.columns], names=heads)
        return ParsedBlock(columns, ragged, spanning=len(columns) + len(ragged) != text.count(b"\n"))

    def by_rows(self, block: Block, *, last: bool) -> tuple[list[RecordBatch], Block]:
        """Read row by row, whatever the block holds; give what is left of it, a row without its end."""
        rows, lines, place = Rows(), list(lines_of(block)), 0
        while place < len(lines):
            row = read_row(lines, place, separator=self.divider, width=len(self.header))
            if row.open and not last and len(lines) - place < LONGEST_CELL:
                rest = b"".join(line + b"\n" for _, line in lines[place:])
                return list(rows.batches()), Block(rest, lines[place][0])
            self.keep(row, *lines[place], rows)
            place += row.lines
        return list(rows.batches()), Block(b"", 0)

    def odd_rows(self, lines: Lines) -> Iterator[RecordBatch]:
        """Read the rows of single lines."""
        rows = Rows()
        for number, raw in lines:
            self.keep(read_row([(number, raw)], 0, separator=self.divider, width=len(self.header)), number, raw, rows)
        return rows.batches()

    def keep(self, row: ReadRow, number: int, raw: bytes, rows: Rows) -> None:
        """Turn a row into rows of its kind, or count why not."""
        self.skips.lines += row.lines
        line = raw.decode(errors="backslashreplace")
        if not raw.strip():
            self.skips.add("blank line", line=number, text="", bad=False)
        elif fault := fault_of(row, len(self.header)):
            kind, _, reason = fault.partition(": ")
            self.skips.add(kind, line=number, text=line, reason=reason)
        else:
            record = {name: row.cells[column] for name, column in self.places.items()}
            self.table.keep(record, number, line, rows)
            rows.mark(number)


def carry_rests(blocks: Iterable[Block], read_block: ReadBlock[T]) -> Iterator[T]:
    """Read blocks, carrying the start of a row that a quoted cell continues in the next one."""
    rest = Block(b"", 1)
    for block in blocks:
        joined = Block(rest.text + block.text, rest.first_line if rest.text else block.first_line)
        read, rest = read_block(joined, last=False)
        yield from read
    if rest.text:
        yield from read_block(rest, last=True)[0]


def is_utf_8(text: bytes) -> bool:
    """Tell whether bytes are text; Arrow would print a traceback for a row of another length that is none."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class CSVReader(DelimitedReader):
    """The reader `csv`: strict about quotes, since a comma may stand in a cell."""

    suffixes = (".csv",)
    separator = ","
    sample = b'subject,relation,object\nQ1,capital,"New York, City"\nbroken\nQ2,"of\nland",Q1\n'


class TSVReader(DelimitedReader):
    """The reader `tsv`: a cell is quoted if its quotes are whole, and taken as it is otherwise."""

    suffixes = (".tsv", ".tab")
    separator = "\t"
    sample = b'subject\trelation\tobject\nQ1\tcapital\tQ2\nbroken\nQ2\tname\t"The ""Big"" Apple"\n'
