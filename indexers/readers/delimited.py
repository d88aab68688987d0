"""Tables with a header and a separator between columns: CSV and TSV, quoted as by spreadsheets and pandas.

Arrow reads a clean block in columns; other blocks are read row by row in Python. Both give the same rows.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import BOM, Block, RecordBatch, Skips, flaw, lines_of
from kbtools.indexers.readers.delimited_columns import parse_cells, row_ends, row_lines, unquote_column
from kbtools.indexers.readers.delimited_rows import LONGEST_CELL, Lines, ReadRow, begins_cell, read_row, split_cells
from kbtools.indexers.readers.entity_layout import EntityLayout
from kbtools.indexers.readers.fact_layout import FactLayout
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source
from kbtools.indexers.readers.table_rows import MOST_COLUMNS, Layout, TableRows, laid_out
from kbtools.indexers.readers.table_shapes import (
    OPENING,
    PAIRS,
    Header,
    as_pairs,
    header_at,
    header_place,
    is_rule,
    leave_out_table,
    next_table,
)
from kbtools.kb.ids import is_literal, literal_text
from kbtools.text.encodings import is_utf_8

SEPARATORS = {
    "\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", "~": "tildes", "^": "carets",
    "\x01": "the control character 1",
}  # fmt: skip

_SEP_LINE = re.compile(rb'"?sep=(.)"?')
"""The first line that tells Excel the separator."""

_BLANK_LINE = re.compile(rb'(?<=\n)[ \t,;|"]*\r?\n')
_SECTION = 1 << 16
"""Bytes searched for the title and the header of another table."""


def layout_of(source: Source, options: ReadOptions, skips: Skips) -> Layout:
    return (EntityLayout if source.format == WIDE else FactLayout)(source, options, skips)


class _DelimitedReader:
    """A reader of tables with a header; `separator` is the usual one, others are recognised."""

    suffixes: ClassVar[tuple[str, ...]]
    sample: ClassVar[bytes]
    separator: ClassVar[str]

    def __init__(self, source: Source, options: ReadOptions, skips: Skips, layout: Layout | None = None) -> None:
        self.layout = layout or layout_of(source, options, skips)
        self.skips = skips
        self.divider = self.separator
        self.header: list[str] = []
        self.short: list[int] = []
        self.ended = False
        """Whether another table began, whose rows are left out."""
        self.ends: NDArray[np.int64] | None = None
        self.has_terms = False
        """Whether cells are terms of RDF, `<http://...>` or `"Berlin"@en`, as in the results of SPARQL queries."""

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        return laid_out(self.layout, self.rows(blocks))

    def rows(self, blocks: Iterable[Block]) -> Iterator[TableRows]:
        """Yield the rows of each block; a row that a quoted cell continues into the next block is completed there."""
        rest = Block(b"", 1)
        for block in blocks:
            joined = Block(rest.text + block.text, rest.first_line if rest.text else block.first_line)
            rows, rest = self.read_block(joined, last=False)
            yield from rows
        if rest.text:
            yield from self.read_block(rest, last=True)[0]
        if self.short:
            lines = ", ".join(map(str, self.short[:10])) + (", ..." if len(self.short) > 10 else "")
            note = f"rows with fewer cells than the header, missing cells taken as empty: lines {lines}"
            self.skips.note(note, line=self.short[0])

    def read_block(self, block: Block, *, last: bool) -> tuple[list[TableRows], Block]:
        """Return the rows of a block, and the incomplete row at its end."""
        if not self.header:
            block = self.read_header(block)
        if block.text and not self.layout.strict:
            block = self.first_table(block)
        if not block.text:
            return [], block
        text = block.text.replace(b"\r\n", b"\n")
        end = self.end_of_rows(text, last=last)
        columns, ragged = (None, []) if end is None else self.in_columns(text[:end])
        count = text.count(b"\n", 0, end)
        # If cells span lines, the number of a row differs from the number of its line.
        spanning = columns is not None and len(columns) + len(ragged) != count
        if end is None or columns is None or (spanning and ragged):
            return self.rows_of(list(lines_of(block)), block, last=last)
        self.skips.lines += count - len(ragged)
        lines: Sequence[int] = range(block.first_line, block.first_line + count)
        if spanning and self.ends is not None:
            lines = (block.first_line + row_lines(text[:end], self.ends)).tolist()
        elif ragged:
            lines = np.delete(np.array(lines), ragged).tolist()
        arrays = [column.combine_chunks() for column in columns.columns]
        rows = [TableRows(self.batch(arrays), lines, (), text[:end], block.first_line)]
        if ragged:
            split = text[:end].split(b"\n")
            rows += self.rows_of([(block.first_line + line, split[line]) for line in ragged], block, last=True)[0]
        return rows, Block(text[end:], block.first_line + count)

    def first_table(self, block: Block) -> Block:
        """Return the part of a block above another table; the lines of that table are counted."""
        start, quotes, seen, cure = 0 if self.ended else len(block.text), 0, 0, ""
        for blank in () if self.ended else _BLANK_LINE.finditer(block.text):
            quotes, seen = quotes + block.text.count(b'"', seen, blank.start()), blank.start()
            following = _first_lines(block.text[blank.end() : blank.end() + _SECTION], 3).decode(errors="replace")
            rows = [[cell.strip() for cell in split_cells(line, self.divider)] for line in following.splitlines()]
            if quotes % 2 == 0 and next_table([[], *rows], self.header) == 1:
                start, self.ended, cure = blank.end(), True, "save it as a file of its own"
                break
        if self.ended:
            line, lines = block.first_line + block.text.count(b"\n", 0, start), block.text[start:].splitlines()
            self.skips.lines += len(lines)
            text = lines[0].decode(errors="replace")
            leave_out_table(self.skips, line=line, text=text, count=len(lines), cure=cure)
        return Block(block.text[:start], block.first_line)

    def batch(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        if self.has_terms and not self.layout.strict:
            columns = [_without_marks(column) for column in columns]
        return pa.RecordBatch.from_arrays(columns, names=self.header)

    def read_header(self, block: Block) -> Block:
        """Find the header in the first lines and return the rest of the block."""
        opening: list[tuple[int, str]] = []
        top = Block(_first_lines(block.text, OPENING), block.first_line)
        if b"\r" in top.text.strip() and b"\n" not in top.text.strip():
            problem = "lines end with carriage returns only; save the file with line feeds, as in CSV UTF-8"
            raise WrongFormat.at(self.skips.path, problem, line=1)
        for number, raw in lines_of(top):
            if not raw.strip():
                continue
            if not opening and (separator := _SEP_LINE.fullmatch(raw)):
                self.divider = separator[1].decode(errors="replace")
                self.skips.lines += 1
                continue
            if raw.count(self.divider.encode()) >= MOST_COLUMNS:
                problem = f"a header of over {MOST_COLUMNS:,} columns; write a fact per row"
                raise WrongFormat.at(self.skips.path, problem, line=number)
            try:
                opening.append((number, raw.decode()))
            except UnicodeDecodeError as error:
                if opening:
                    break
                problem = "found invalid UTF-8 in the header; save the file as UTF-8"
                raise WrongFormat.at(self.skips.path, problem, line=number) from error
        if not opening:
            for number, _ in lines_of(block):
                self.skips.lines += 1
                self.skips.add("blank line", line=number, text="", bad=False)
            return Block(b"", block.first_line)
        whole = len(top.text) == len(block.text) and not self.layout.strict
        if whole and (pairs := as_pairs([split_cells(line, self.divider) for _, line in opening])):
            self.skips.note(PAIRS, line=opening[0][0])
            self.skips.lines += len(opening) - 1
            row = io.StringIO()
            csv.writer(row, delimiter=self.divider, lineterminator="\n").writerows(pairs)
            return self.read_header(Block(row.getvalue().encode(), opening[0][0]))
        header = self.choose_header(opening)
        number, _ = opening[header.last]
        own = {line for line, _ in opening[header.first : header.last]}
        for above, raw in islice(lines_of(top), number - block.first_line):
            if above in own:
                self.skips.lines += 1
            elif not _SEP_LINE.fullmatch(raw):
                self.skips.lines += 1
                kind = "line above the header" if raw.strip() else "blank line"
                self.skips.add(kind, line=above, text=raw.decode(), bad=False)
        self.skips.lines += 1
        end = len(_first_lines(block.text, number + 1 - block.first_line))
        return Block(block.text[end:], number + 1)

    def choose_header(self, opening: Sequence[tuple[int, str]]) -> Header:
        """Choose the header and its separator; another separator is chosen only if the usual one does not fit."""
        marks = list(dict.fromkeys([self.divider, *SEPARATORS]))
        # SPARQL writes `?item` for the column `item`.
        self.has_terms = all(head.startswith("?") for head in opening[0][1].split("\t"))
        if self.has_terms:
            opening = [(opening[0][0], opening[0][1].replace("?", "")), *opening[1:]]
        tables = {mark: [[cell.strip() for cell in split_cells(line, mark)] for _, line in opening] for mark in marks}
        places = ((place, mark) for place in range(len(opening)) for mark in marks)
        fitting = next(((place, mark) for place, mark in places if self.layout.fits(tables[mark][place])), None)
        if fitting:
            place, separator = fitting
        elif self.layout.strict:
            place, separator = 0, self.divider
        else:
            separator = max(marks, key=lambda mark: _regularity(tables[mark]))
            place = header_place(tables[separator], self.layout)
        number, line = opening[place]
        header = Header(tables[separator][place], place, place)
        if not self.layout.strict:
            header = header_at(tables[separator], place)
            below = tables[separator][header.last + 1 :]
            longer = all(len(row) == len(header.heads) + 1 for row in below)
            if separator == "\t" and longer and any(row[-1] for row in below):
                # R's write.table gives the row names no head.
                header = replace(header, heads=["", *header.heads])
        spaced = re.search(r"\S {2,}\S", line)
        advice = "; its columns seem to be separated by several spaces, use tabs" if spaced else ""
        if separator != self.separator:
            self.skips.note(f"columns separated by {SEPARATORS.get(separator, repr(separator))}", line=number)
        if separator == "\t" and not spaced:
            advice = "; to read a file of facts without a header, name it .txt"
        self.layout.begin(header.heads, number, advice=advice)
        self.divider, self.header = separator, header.heads
        return header

    def end_of_rows(self, text: bytes, *, last: bool) -> int | None:
        """Return the end of the last whole row; None if the block is not clean or the end cannot be determined."""
        # Arrow would keep, cut, or print a traceback for what the line reader counts as bad.
        if b"\0" in text or b"\r" in text or BOM in text or not is_utf_8(text):
            return None
        if b'"' not in text or (last and self.divider == "\t"):
            return len(text)
        if self.divider == "\t":
            # Only the last line may begin a cell that continues in the next block.
            end = text.rfind(b"\n", 0, -1) + 1
            return None if begins_cell(text[text.rfind(b"\n", 0, end - 1) + 1 : end].decode(errors="replace")) else end
        self.ends = row_ends(text, self.divider)
        if self.ends is None or (last and not (len(self.ends) and self.ends[-1] == len(text))):
            return None
        return int(self.ends[-1]) if len(self.ends) else 0

    def in_columns(self, text: bytes) -> tuple[pa.Table | None, list[int]]:
        """Read whole rows at once, and list the lines of another length; None if Arrow would read other rows."""
        tabs = self.divider == "\t"
        quotes = b'"' in text and not tabs
        ragged: list[int] = []

        def leave_out(row: pyarrow.csv.InvalidRow) -> str:
            ragged.append(row.number - 1)
            return "skip"

        # The heads are numbered, since Arrow needs unique column names.
        heads = [f"{place} {head}" for place, head in enumerate(self.header)]
        columns = parse_cells(text, heads, delimiter=self.divider, quotes=quotes, on_ragged=leave_out)
        if columns is None:
            return None, []
        # The csv module, which reads irregular rows, refuses longer cells: both must refuse the same ones.
        if not tabs and any(
            pc.max(pc.binary_length(column)).as_py() > csv.field_size_limit()
            for column in columns.columns
            if len(column)
        ):
            return None, []
        if tabs and b'"' in text:
            if ragged:
                return None, []
            columns = columns.from_arrays([unquote_column(column) for column in columns.columns], names=heads)
        return columns, ragged

    def rows_of(self, lines: Lines, block: Block, *, last: bool) -> tuple[list[TableRows], Block]:
        """Read any lines row by row; return the incomplete row at their end as well."""
        rows: dict[int, list[str]] = {}
        rest, place = Block(b"", 0), 0
        while place < len(lines):
            number, raw = lines[place]
            row = read_row(lines, place, separator=self.divider, width=len(self.header))
            if row.open and not last and len(lines) - place < LONGEST_CELL:
                rest = Block(b"".join(line + b"\n" for _, line in lines[place:]), number)
                break
            self.skips.lines += row.lines
            place += row.lines
            if not self.layout.strict and not row.fault and raw.strip():
                row = self.padded(row, number)
            fits = len(row.cells) == len(self.header)
            width_fault = "" if fits else f"{len(row.cells)} columns where {len(self.header)} were expected"
            if not raw.strip():
                self.skips.add("blank line", line=number, text="", bad=False)
            elif fault := row.fault or width_fault or flaw(*row.cells):
                kind, _, reason = fault.partition(": ")
                self.skips.add(kind, line=number, text=raw.decode(errors="backslashreplace"), reason=reason)
            else:
                rows[number] = row.cells
        if not rows:
            return [], rest
        columns = [pa.array(column, pa.string()) for column in zip(*rows.values(), strict=True)]
        return [TableRows(self.batch(columns), list(rows), (), block.text, block.first_line)], rest

    def padded(self, row: ReadRow, number: int) -> ReadRow:
        """Return a row as wide as the header: in tables of entities, empty cells at the end may be missing."""
        width, cells = len(self.header), list(row.cells)
        if len(cells) < width:
            self.short.append(number)
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        return replace(row, cells=cells + [""] * (width - len(cells)))


class CSVReader(_DelimitedReader):
    """The reader `csv`: quotes must be valid, since a cell may contain a comma."""

    suffixes = (".csv",)
    separator = ","
    sample = b'subject,relation,object\nQ1,capital,"New York, City"\nbroken\nQ2,"of\nland",Q1\n'


class TSVReader(_DelimitedReader):
    """The reader `tsv`: a cell counts as quoted only if its quotes match."""

    suffixes = (".tsv", ".tab")
    separator = "\t"
    sample = b'subject\trelation\tobject\nQ1\tcapital\tQ2\nbroken\nQ2\tname\t"The ""Big"" Apple"\n'


def _first_lines(text: bytes, count: int) -> bytes:
    """Return the first lines of a text with their line ends."""
    end = 0
    for _ in range(count):
        end = text.find(b"\n", end) + 1 or len(text)
    return text[:end]


def _regularity(rows: Sequence[Sequence[str]]) -> float:
    """Return how well a separator divides lines: the most frequent number of columns times the share of its lines."""
    lines = [row for row in rows if not is_rule(row)] or rows
    width, count = max(Counter(map(len, lines)).items(), key=lambda pair: (pair[1], pair[0]))
    return (width - 1) * count / len(lines)


def _without_marks(column: pa.Array) -> pa.Array:
    """Return the terms of a column as plain text: addresses without brackets, literals without quotes and language."""
    return pa.array(
        [literal_text(cell) if is_literal(cell) else re.sub(r"^<(.*)>$", r"\1", cell) for cell in column.to_pylist()],
        pa.string(),
    )
