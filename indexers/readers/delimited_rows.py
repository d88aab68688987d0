"""Reading delimited tables line by line; a quoted cell may span lines."""

import csv
import re
from dataclasses import dataclass, replace

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
LONGEST_CELL = 1_000
"""Most lines that a quoted cell may span; after as many, the line of an open quote counts as bad."""

_FAULTS = {
    "expected after": "text behind a closing quote; double the quotes inside a cell",
    "unexpected end": "a quote that is not closed",
    "new-line character": "a carriage return inside a row; save the file with line feeds",
    "field larger": f"a cell of over {csv.field_size_limit():,} characters",
}
"""What the messages of the csv module mean, by a part of each."""

Lines = list[tuple[int, bytes]]
"""Lines of a block with their numbers."""


@dataclass(frozen=True, slots=True)
class ReadRow:
    """The cells of a row and the number of its lines, or its fault; `open` if a quote is not closed by the end."""

    cells: list[str]
    lines: int = 1
    fault: str = ""
    open: bool = False


def read_row(lines: Lines, place: int, *, separator: str, width: int) -> ReadRow:
    """Read the row that begins at a line of a table with `width` columns."""
    raw = lines[place][1]
    if b"\0" in raw:
        return ReadRow([], fault="NUL byte")
    try:
        line = raw.decode()
    except UnicodeDecodeError:
        return ReadRow([], fault="invalid UTF-8")
    if separator == "\t":
        return _read_tab_row(lines, place, line, width=width)
    if '"' not in line and "\r" not in line and len(line) < csv.field_size_limit():
        return ReadRow(line.split(separator))
    row = _read_quoted_row(lines, place, separator=separator)
    if row.fault and b'\\"' in raw:
        # MySQL writes a quote inside a cell behind a backslash.
        escaped = _read_quoted_row(lines, place, separator=separator, escape="\\")
        return escaped if len(escaped.cells) == width else row
    return row


def _read_tab_row(lines: Lines, place: int, line: str, *, width: int) -> ReadRow:
    """Read a row of TSV; a quote closed on a later line counts only if the lines are not valid rows by themselves."""
    literal = ReadRow([_unquote(cell) for cell in line.split("\t")])
    if not begins_cell(line):
        return literal
    if place + 1 == len(lines):
        return replace(literal, open=True)
    # Two lines that are whole rows by themselves stay separate, even if they begin with quotes.
    if len(literal.cells) == width and lines[place + 1][1].count(b"\t") + 1 == width:
        return literal
    quoted = _read_quoted_row(lines, place, separator="\t")
    return quoted if len(quoted.cells) == width else replace(literal, open=quoted.open)


def _read_quoted_row(lines: Lines, place: int, *, separator: str, escape: str | None = None) -> ReadRow:
    """Read a row whose quoted cells may span lines; a quote inside one is doubled, or follows the sign of escape."""
    # By index, since each slice of an iterator would pass over all lines before it.
    places = range(place, min(place + LONGEST_CELL, len(lines)))
    ahead = (lines[line][1].decode(errors="surrogateescape") + "\n" for line in places)
    reader = csv.reader(ahead, delimiter=separator, strict=True, doublequote=not escape, escapechar=escape)
    try:
        return ReadRow(next(reader), lines=reader.line_num)
    except csv.Error as error:
        reason = next((plain for sign, plain in _FAULTS.items() if sign in str(error)), str(error))
        return ReadRow([], fault=f"invalid CSV row: {reason}", open="unexpected end" in str(error))


def split_cells(line: str, separator: str) -> list[str]:
    """Split a header whose cells may be quoted."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return line.split(separator)


def begins_cell(line: str) -> bool:
    """Return whether a line of TSV may begin a quoted cell that continues on the next line."""
    return any(cell.startswith('"') and not _QUOTED.fullmatch(cell) for cell in line.rstrip("\n").split("\t"))


def _unquote(cell: str) -> str:
    """Remove the quotes of a cell that is quoted as a whole."""
    quoted = _QUOTED.fullmatch(cell)
    return quoted[1].replace('""', '"') if quoted else cell
