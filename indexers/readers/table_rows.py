"""Rows of a table before they become record batches: columns of text or lists of text, and their values."""

import re
from ast import literal_eval
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.indexers.readers.batches import ALIAS, BOM, Kind, RecordBatch, Skips, batch_of, repeated
from kbtools.indexers.readers.labels import Languages
from kbtools.kb.ids import TOPIC, canonical_property

SAYING = ("name", "alias", "description")
MOST_COLUMNS = 10_000
"""Most columns of a table; a million columns would cost a minute, and are not a table."""

REWRITTEN = r"^(<|fb:|ns:|/?[mg]/[01]|(https?://)?(www\.|rdf\.)?freebase\.com/)"
"""The beginnings of all spellings that `canonical_id` rewrites."""

TOTAL_WORDS = (
    r"(sub|grand)?[ -]?total(s|e|es|en|t)?( g[eé]n[eé]rale?)?|totaux|totaal|sum|(zwischen|gesamt)?summe|(ins)?gesamt|"
    "somme|somma|suma|summa|razem|celkem|итого|всего|合计|合計|总计|総計|小计|小計"
)
_TOTALS = re.compile(rf"\b({TOTAL_WORDS})\b", re.IGNORECASE)
"""Words in rows without an id in which spreadsheets sum up other rows."""

BLANK, TOTAL, NOTE, REPEATED_HEADER = "blank line", "row of totals", "note", "repeated header"
UNITS, RULE = "row of units", "line of dashes"
"""Kinds of rows that are left out without counting as bad lines."""

NO_TEXT = "neither text nor number"
"""The fault of a cell with an object or a number that is not finite."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StrangeCell:
    """A cell whose value cannot be stored: its row, its column and its fault."""

    row: int
    column: str
    fault: str


@dataclass(slots=True)
class TableRows:
    """Rows in columns of text or lists of text, and the line of each; `text` holds the lines from `first_line` on."""

    columns: pa.RecordBatch
    lines: Sequence[int]
    strange: Sequence[StrangeCell] = ()
    text: bytes = b""
    first_line: int = 0
    split: list[bytes] = field(default_factory=list)

    def shown(self, row: int) -> str:
        """Return a row as written in its file, for a report."""
        if not self.text:
            return str(self.columns.slice(row, 1).to_pylist()[0])
        self.split = self.split or self.text.split(b"\n")
        line = self.split[self.lines[row] - self.first_line]
        return line.rstrip(b"\r").removeprefix(BOM).decode(errors="backslashreplace")

    def is_beside_blank(self, row: int, step: int) -> bool:
        """Return whether the line above a row (step -1) or below it (step 1) is blank."""
        if not self.text:
            pair = sorted((row, row + step))
            return pair[0] >= 0 and pair[1] < len(self.lines) and self.lines[pair[1]] - self.lines[pair[0]] > 1
        self.split = self.split or self.text.split(b"\n")
        place = self.lines[row] - self.first_line + step
        return 0 <= place < len(self.split) and not self.split[place].strip(b' \t\r,;|"')

    def without(self, left_out: Collection[int]) -> "TableRows":
        """Return all rows except some."""
        kept = np.setdiff1d(np.arange(len(self.lines)), list(left_out))
        places = {row: place for place, row in enumerate(kept.tolist())}
        strange = [replace(cell, row=places[cell.row]) for cell in self.strange if cell.row in places]
        lines = [self.lines[row] for row in kept.tolist()]
        return replace(self, columns=self.columns.take(pa.array(kept)), lines=lines, strange=strange)

    def count(self, faults: Mapping[int, str], skips: Skips) -> None:
        """Count the rows that cannot be used by their fault; a blank line is not bad."""
        rows_by_fault: dict[str, list[int]] = {}
        for row, fault in sorted(faults.items()):
            if fault.startswith("no value under"):
                shown = self.shown(row).strip()
                fault = BLANK if not shown else TOTAL if _TOTALS.search(shown) else fault
            rows_by_fault.setdefault(fault, []).append(row)
        for fault, rows in rows_by_fault.items():
            text = "" if fault == BLANK else self.shown(rows[0])
            bad = fault not in (BLANK, TOTAL, NOTE, REPEATED_HEADER, UNITS, RULE)
            skips.add(fault, line=self.lines[rows[0]], text=text, bad=bad, count=len(rows))


class Layout(Protocol):
    """A layout of the rows of a table."""

    strict: bool
    """Whether truth values and nested lists are faults; else they become text and lists."""

    def fits(self, header: Sequence[str]) -> bool:
        """Return whether a line may be the header of the table."""
        ...

    def begin(self, header: Sequence[str], number: int, *, advice: str = "") -> None:
        """Set the header of all rows; raise WrongFormat if a column is missing."""
        ...

    def needs(self, fields: Iterable[str]) -> list[str]:
        """Return the columns that are used."""
        ...

    def lay_out(self, rows: TableRows) -> Iterator[RecordBatch]: ...

    def finish(self) -> None:
        """Note what was not used once all rows are laid out."""
        ...


def laid_out(layout: Layout, rows: Iterable[TableRows]) -> Iterator[RecordBatch]:
    for part in rows:
        if part.columns.num_rows:
            yield from layout.lay_out(part)
    layout.finish()


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of a column, trimmed and not empty, with the row of each, ascending; a list has several."""

    texts: pa.Array
    rows: Places

    def kept(self, mask: pa.Array) -> "Cells":
        if pc.all(mask).as_py():
            return self
        return Cells(self.texts.filter(mask), self.rows[mask.to_numpy(zero_copy_only=False)])

    def sizes(self, count: int) -> Places:
        """Return the number of values of each row."""
        return np.bincount(self.rows, minlength=count)

    def lacking(self, count: int) -> Places:
        """Return the rows without a value, or with one that became empty, as the id `<fb:>` does."""
        emptied = self.rows[pc.equal(self.texts, "").to_numpy(zero_copy_only=False)]
        return np.union1d(np.flatnonzero(self.sizes(count) == 0), emptied)

    def completed(self, count: int) -> "Cells":
        """Return the values, with an empty one for each row without values."""
        absent = np.flatnonzero(self.sizes(count) == 0)
        if not len(absent):
            return self
        rows = np.concatenate([self.rows, absent])
        order = np.argsort(rows, kind="stable")
        return Cells(pa.concat_arrays([self.texts, repeated("", len(absent))]).take(pa.array(order)), rows[order])

    def first_of_each(self, count: int) -> pa.Array:
        """Return the first value of each row; empty if it has none."""
        cells = self.completed(count)
        if len(cells.texts) == count:
            return cells.texts
        return cells.texts.take(pa.array(np.flatnonzero(np.diff(cells.rows, prepend=-1))))

    def beside(self, column: pa.Array) -> pa.Array:
        """Return, for each value, the value of its row in another column."""
        whole = len(self.rows) == len(column) and bool((np.diff(self.rows) == 1).all())
        return column if whole else column.take(pa.array(self.rows))

    def flawed(self) -> list[int]:
        """List the rows with a NUL byte."""
        if not contains(self.texts, "\0"):
            return []
        return self.rows[pc.indices_nonzero(pc.match_substring(self.texts, "\0")).to_numpy()].tolist()  # type: ignore[no-any-return]


def contains(column: pa.Array, letter: str) -> bool:
    """Return whether an ASCII letter occurs in the memory of a column of text, including rows outside its slice."""
    buffer = column.buffers()[2]
    return buffer is not None and bool((np.frombuffer(buffer, np.uint8) == ord(letter)).any())


def read_cells(column: pa.Array, separator: str | None = None, *, words: bool = False) -> Cells:
    """Return the values of a column: lists, and cells with a separator, are split and their empty parts dropped.

    If the separator also separates the `words` of a text, only cells such as `["a", "b"]` are split.
    """
    if separator is not None and not is_list(column.type):
        column = _divided(as_text(column), separator, words=words)
    rows = np.arange(len(column))
    while is_list(column.type):
        rows = rows[pc.list_parent_indices(column).to_numpy()]
        column = pc.list_flatten(column)
    texts = trimmed(as_text(column))
    return Cells(texts, rows).kept(pc.not_equal(texts, ""))


def first_filled(columns: Sequence[pa.Array]) -> pa.Array:
    """Return, row by row, the cell of the first column that has one."""
    if len(columns) == 1:
        return columns[0]
    if any(is_list(column.type) for column in columns):
        kind = pa.list_(pa.string())
        columns = [
            column if is_list(column.type) else pa.array([cell and [cell] for cell in column.to_pylist()], kind)
            for column in columns
        ]
    return pc.coalesce(*columns)


def trimmed(column: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(pc.fill_null(column, "") if column.null_count else column)


def _divided(column: pa.Array, separator: str, *, words: bool) -> pa.Array:
    """Split cells with lists: `["a", "b"]` as pandas writes it, or parts with the separator between them."""
    if not words and not pc.any(pc.match_substring_regex(column, r"^\s*\[.*\]\s*$")).as_py():
        return pc.split_pattern(column, separator)
    lists = [cell and (_listed(cell) or ([cell] if words else cell.split(separator))) for cell in column.to_pylist()]
    return pa.array([[] if cell is None else cell or [""] for cell in lists], pa.list_(pa.string()))


def _listed(cell: str) -> list[str]:
    """Return the values of a cell that holds a Python list; empty if it holds none."""
    if not (cell.strip().startswith("[") and cell.strip().endswith("]")):
        return []
    try:
        values = literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    texts = isinstance(values, list) and all(isinstance(value, str | int | float) for value in values)
    return list(map(str, values)) if texts else []


def as_text(column: pa.Array) -> pa.Array:
    """Write numbers, dates and categories as text; a whole number has no fraction, even in a column of floats."""
    if pa.types.is_dictionary(column.type):
        # Not decoded: polars keeps categories as string views, for which `take` fails.
        return as_text(column.dictionary).take(column.indices)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 1e15))
        numbers = pc.cast(pc.if_else(whole, column, 0), pa.int64())
        return pc.if_else(whole, pc.cast(numbers, pa.string()), pc.cast(column, pa.string()))
    if pa.types.is_timestamp(column.type):
        # A timestamp at midnight is a date.
        texts = pc.replace_substring_regex(pc.cast(column, pa.string()), r"\.0+(Z?)$", r"\1")
        texts = pc.replace_substring_regex(texts, r" 00:00:00$", "")
        return pc.replace_substring(texts, " ", "T")
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def canonical_column(column: pa.Array, beside: pa.Array | None = None) -> pa.Array:
    """Return the ids of a column in canonical form; `beside` holds ids that reveal properties of Freebase."""
    column = _respell(column, pc.match_substring_regex(column, REWRITTEN), "")
    if beside is None:
        return column
    property_of_topic = pc.and_(pc.starts_with(column, "/"), pc.match_substring_regex(beside, f"^({TOPIC.pattern})$"))
    # Any id of Freebase does: it marks the adjacent property as Freebase's.
    return _respell(column, property_of_topic, "m.0abc")


def _respell(column: pa.Array, mask: pa.Array, beside: str) -> pa.Array:
    """Rewrite the ids of some rows, each distinct id once."""
    if not pc.any(mask).as_py():
        return column
    distinct = column.filter(mask).dictionary_encode()
    spelt = [canonical_property(spelling, beside=beside) for spelling in distinct.dictionary.to_pylist()]
    return pc.replace_with_mask(column, mask, pa.array(spelt, pa.string()).take(distinct.indices))


def language_ranks(languages: Languages, tags: pa.Array) -> pa.Array:
    """Return the position of each language among the wanted ones; null if it is not wanted."""
    distinct = tags.dictionary_encode()
    ranks = [languages[tag] for tag in distinct.dictionary.to_pylist()]
    return pa.array(ranks, pa.uint8()).take(distinct.indices)


def named_batch(
    kind: str, entities: pa.Array, ranks: pa.Array, texts: pa.Array, tags: pa.Array, line: int
) -> RecordBatch:
    """Build a table of names, aliases, descriptions or names of relations; aliases have a rank of their own."""
    if kind == "alias":
        ranks = pa.repeat(pa.scalar(ALIAS, pa.uint8()), len(texts))
    kinds: dict[str, Kind] = {"description": "descriptions", "relation": "relations"}
    return batch_of(kinds.get(kind, "names"), [entities, ranks, texts, pc.ascii_lower(tags)], line)
