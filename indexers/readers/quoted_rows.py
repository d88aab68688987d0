"""Rows whose cells may be quoted: read one at a time in Python, and where they end in a block, told at once."""

import csv
import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
LONGEST_CELL = 1_000
"""Lines that a quoted cell may span; an open quote costs no more than these before its line counts as bad."""

Lines = list[tuple[int, bytes]]
"""Lines of a block with their numbers."""


@dataclass(frozen=True, slots=True)
class ReadRow:
    """Cells of a row and the lines it spans; or what is wrong with it; `open` if a quote is not closed by the end."""

    cells: list[str]
    lines: int = 1
    fault: str = ""
    open: bool = False


def read_row(lines: Lines, place: int, *, separator: str, width: int) -> ReadRow:
    """Read the row that begins at a line of a table with so many columns."""
    raw = lines[place][1]
    if b"\0" in raw:
        return ReadRow([], fault="NUL byte")
    try:
        line = raw.decode()
    except UnicodeDecodeError:
        return ReadRow([], fault="invalid UTF-8")
    if separator == "\t":
        return read_tab_row(lines, place, line, width=width)
    if '"' not in line and "\r" not in line and len(line) < csv.field_size_limit():
        return ReadRow(line.split(separator))
    return read_quoted_row(lines, place, separator=separator)


def fault_of(row: ReadRow, width: int) -> str:
    """Say what is wrong with a row of a table with so many columns; nothing if it can be read."""
    if row.fault or len(row.cells) == width:
        return row.fault
    return f"{len(row.cells)} columns where {width} were expected"


def read_tab_row(lines: Lines, place: int, line: str, *, width: int) -> ReadRow:
    """Read a row of TSV: a quote that is closed on a later line counts only where the lines alone are no rows."""
    literal = ReadRow([unquote(cell) for cell in line.split("\t")])
    if not begins_cell(line):
        return literal
    if place + 1 == len(lines):
        return replace(literal, open=True)
    # Two lines that are whole rows by themselves stay two, whatever quotes they begin with.
    if len(literal.cells) == width and lines[place + 1][1].count(b"\t") + 1 == width:
        return literal
    quoted = read_quoted_row(lines, place, separator="\t")
    return quoted if len(quoted.cells) == width else replace(literal, open=quoted.open)


def read_quoted_row(lines: Lines, place: int, *, separator: str) -> ReadRow:
    """Read a row whose quoted cells may go on for some lines."""
    # By places, since a slice of an iterator passes over all lines before them, for each row anew.
    places = range(place, min(place + LONGEST_CELL, len(lines)))
    ahead = (lines[line][1].decode(errors="surrogateescape") + "\n" for line in places)
    reader = csv.reader(ahead, delimiter=separator, strict=True)
    try:
        return ReadRow(next(reader), lines=reader.line_num)
    except csv.Error as error:
        return ReadRow([], fault=f"no CSV row: {error}", open="unexpected end" in str(error))


def split_cells(line: str, separator: str) -> list[str]:
    """Divide a header, whose cells may be quoted."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return line.split(separator)


def begins_cell(line: str) -> bool:
    """Tell whether a line of TSV may begin a quoted cell that goes on in the next."""
    return any(cell.startswith('"') and not QUOTED.fullmatch(cell) for cell in line.rstrip("\n").split("\t"))


def unquote(cell: str) -> str:
    """Take off the quotes of a cell that is quoted as a whole."""
    quoted = QUOTED.fullmatch(cell)
    return quoted[1].replace('""', '"') if quoted else cell


def unquote_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take off the quotes of every cell that is quoted as a whole, as `unquote` does."""
    quoted = pc.and_(
        pc.starts_with(column, '"'), pc.and_(pc.ends_with(column, '"'), pc.greater(pc.binary_length(column), 1))
    )
    if not pc.any(quoted).as_py():
        return column
    inner = pc.utf8_slice_codeunits(column, 1, -1)
    # What is left of a quote once all doubled ones are gone is single: then the cell is no quoted one.
    whole = pc.and_(quoted, pc.invert(pc.match_substring(pc.replace_substring(inner, '""', ""), '"')))
    return pc.if_else(whole, pc.replace_substring(inner, '""', '"'), column)


def last_row_end(text: bytes, separator: str) -> int | None:
    """Find the end of the last row whose quotes are closed; nothing if a quote stands where it may not.

    Stands for a parser with two states, outside and inside of quotes, over runs of quotes: outside a run must begin
    its cell, and opens it if it is odd; inside an odd run closes the cell, and must end it.
    """
    # With a line end before it, the first cell begins like any other.
    data = np.frombuffer(b"\n" + text, dtype=np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    newlines = np.flatnonzero(data == ord("\n"))[1:]
    if not len(quotes):
        return len(text)
    first = np.flatnonzero(np.diff(quotes, prepend=-2) > 1)
    starts = quotes[first]
    lengths = np.diff(first, append=len(quotes))
    odd = lengths % 2 == 1
    inside = (np.cumsum(odd) - odd) % 2 == 1
    before, after = data[starts - 1], data[np.minimum(starts + lengths, len(data) - 1)]
    opens, ends = ~inside, (inside & odd) | (~inside & ~odd)
    if not (divides(before[opens], separator).all() and divides(after[ends], separator).all()):
        return None
    outside = newlines[np.searchsorted(starts[odd], newlines) % 2 == 0]
    return int(outside[-1]) if len(outside) else 0


def divides(characters: NDArray[np.uint8], separator: str) -> NDArray[np.bool_]:
    """Tell which characters stand between cells."""
    between: NDArray[np.bool_] = (characters == ord(separator)) | (characters == ord("\n"))
    return between
