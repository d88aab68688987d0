"""The rows of a table that do not describe an entity: empty rows, units, repeated headers, totals and notes."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.indexers.readers.cell_forms import is_distinct
from kbtools.indexers.readers.table_rows import (
    BLANK,
    NOTE,
    REPEATED_HEADER,
    RULE,
    TOTAL,
    TOTAL_WORDS,
    UNITS,
    Places,
    TableRows,
    as_text,
    is_list,
)

_TOTAL_CELL = re.compile(rf"({TOTAL_WORDS})\s*((of )?\d+( \w+)?|\(.*\))?\s*[:.]?", re.IGNORECASE)
"""A cell that labels a row of totals: `Total`, `Total 2024`, `Total 3 entries`, `Sum:`."""

_UNIT = re.compile(
    r"[\[(].{1,15}[\])]|[%‰€$£-]|units?|einheit(en)?|unites?|unidad(es)?|unidades?|[°º]\s?[CF]?|"
    r"([kcmdhnµμ]?(g|m|l|L|W|Wh|Pa|s|V|A|mol|Hz)[²³23]?|ha|t|h|min|ppm|in|ft|lb|oz)(/\w+)?|EUR|USD|GBP|CHF|"
    r"years?|jahre?|ans|dd.mm.yyyy|yyyy.mm.dd",
    re.IGNORECASE,
)
"""A cell of the row of units that some tables have below the header."""

_RULE = re.compile(r"[-=:+]+")
"""A cell of the line below the header of a table in Markdown, such as `:---`."""

_LONG_RULE = re.compile(r"[-=+]{4,}")
"""A cell of a line between or below the rows, as SAP and the clients of databases print it."""

_PARTIAL = re.compile(r"(sub|grand|zwischen)", re.IGNORECASE)
"""The beginning of labels that no entity has; full rows may follow such a row."""

_FIGURE = re.compile(r"[^\W\d_]{0,3}\W*\d[\W\d_]*[^\W\d_]*|\W*")
"""Any other cell of a row of totals: a number with its currency or unit, or a dash."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
"""A number in a column with sums, without its commas."""

_NOTE_WORDS = (
    r"(sources?|notes?|remarks?|legend|footnotes?|quellen?|hinweise?|stand|as of|anmerkung(en)?|font[ei]|"
    r"fuentes?|notas?|remarques?)\s*:"
)
_NOTE_SIGNS = rf"[*†‡¹²³]|\(?\d+ (rows?|records?)\b|[(\[]?\d{{1,2}}[)\]]\s|{_NOTE_WORDS}"
"""The beginning of notes; after a word, commas may have split the note into cells."""

_LABELS = 3
"""Columns searched for labels of totals and notes: at most titles and numbers precede them."""


def marginal_rows(rows: TableRows, header: Sequence[str]) -> dict[int, str]:
    """Return the rows that do not describe an entity, with the kind of each.

    A row of totals has its label in the first filled cell, figures in the others, and no full row below it; without a
    label, it is the last row, has no first cell, and the sums of the columns above in the others. A note
    begins like one, or is the only cell of its row, next to a blank line. A row of units is the first row; all its
    cells are units, and its first cell is empty. A line of dashes, as in Markdown, is the first row too.
    """
    columns = rows.columns.columns
    if len(columns) < 2:
        return {}
    filled = np.sum([filled_cells(column) for column in columns], axis=0)
    kinds = dict.fromkeys(np.flatnonzero(filled == 0).tolist(), BLANK)
    suspects = np.union1d([0, *np.flatnonzero(filled == 1)], _labelled_rows(columns[:_LABELS], header)).tolist()
    texts = {row: list(cells) for row, cells in zip(suspects, _cells_of(columns, suspects), strict=True)}
    heads = [head.strip() for head in header]
    for row, cells in texts.items():
        first = next(filter(None, cells), "")
        if row == 0 and filled[0] and _is_units(cells):
            kinds[row] = UNITS
        elif filled[row] and all((_RULE if row == 0 else _LONG_RULE).fullmatch(cell) for cell in cells if cell):
            kinds[row] = RULE
        elif cells == heads:
            kinds[row] = REPEATED_HEADER
        elif re.match(_NOTE_SIGNS if filled[row] == 1 else _NOTE_WORDS, first, re.IGNORECASE) and (
            filled[row] <= len(columns) // 2
        ):
            kinds[row] = NOTE
    for row in reversed(suspects):
        first, *others = filter(None, texts[row]) if filled[row] else [""]
        below = row + 1
        last = below == len(rows.lines) or below in kinds or filled[below] == 1 or rows.is_beside_blank(row, 1)
        if _TOTAL_CELL.fullmatch(first) and all(map(_FIGURE.fullmatch, others)) and (last or _PARTIAL.match(first)):
            kinds[row] = TOTAL
    for row in np.flatnonzero(filled)[-1:].tolist():
        if _has_sums(columns, row):
            kinds[row] = TOTAL
    if len(columns) > 2:
        for row in np.flatnonzero(filled == 1).tolist():
            follows = kinds.get(row - 1) in (BLANK, TOTAL, NOTE, RULE) or rows.is_beside_blank(row, -1)
            if follows or kinds.get(row + 1) == REPEATED_HEADER:
                kinds.setdefault(row, NOTE)
    return kinds


def _has_sums(columns: Sequence[pa.Array], row: int) -> bool:
    """Return whether a row without a first cell has the sums of at least two numbers above in its other cells."""
    places = [place for place, (cell,) in enumerate(zip(*_cells_of(columns, [row]), strict=True)) if cell]
    if 0 in places or any(is_list(columns[place].type) for place in places):
        return False
    for place in places:
        cells = [cell.strip().replace(",", "") for cell in as_text(columns[place][: row + 1]).to_pylist() if cell]
        *numbers, total = [float(cell) if _NUMBER.fullmatch(cell) else math.nan for cell in cells if cell]
        if len(numbers) < 2 or not math.isclose(sum(numbers), total):
            return False
    return True


def _is_units(cells: Sequence[str]) -> bool:
    """Return whether cells are units, the first of them empty or a word for units."""
    first, *others = cells
    headed = not first or (first.isalpha() and len(first) > 3 and _UNIT.fullmatch(first) is not None)
    return headed and all(_UNIT.fullmatch(cell) for cell in others if cell)


def continuing_rows(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows may continue the row above, as OpenRefine writes them: no first cell, and half are empty.

    None may if the other rows do not differ in their first cells.
    """
    if batch.num_columns < 3:
        return np.zeros(batch.num_rows, dtype=bool)
    filled = np.stack([filled_cells(column) for column in batch.columns])
    continuing: NDArray[np.bool_] = ~filled[0] & filled.any(axis=0) & (2 * filled.sum(axis=0) <= len(filled))
    if continuing.any() and not is_distinct(batch.columns[0].filter(pa.array(~continuing))):
        continuing[:] = False
    return continuing


def filled_cells(column: pa.Array) -> NDArray[np.bool_]:
    """Return which cells of a column hold more than white space."""
    if is_list(column.type):
        filled = pc.greater(pc.list_value_length(column), 0)
    elif pa.types.is_string(column.type):
        filled = pc.not_equal(pc.utf8_trim_whitespace(column), "")
    else:
        filled = pc.is_valid(column)
    return pc.fill_null(filled, False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _labelled_rows(columns: Iterable[pa.Array], header: Sequence[str]) -> Places:
    """Return the rows with a cell that begins like a label of totals or of a note, or that repeats its head."""
    labelled_rows: list[Places] = [np.empty(0, dtype=np.int64)]
    for place, column in enumerate(columns):
        if pa.types.is_string(column.type):
            label = rf"^\s*({TOTAL_WORDS}|{_NOTE_SIGNS}|[-=+]{{4,}}$)"
            labelled = pc.match_substring_regex(column, label, ignore_case=True)
            repeated = pc.equal(column, header[place] if place < len(header) and header[place] else None)
            labelled_rows.append(pc.indices_nonzero(pc.or_kleene(labelled, repeated)).to_numpy().astype(np.int64))
    return np.unique(np.concatenate(labelled_rows))


def _cells_of(columns: Sequence[pa.Array], rows: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of some rows as text; a list with values is shown as `[]`."""
    taken = [column.take(pa.array(rows, pa.int64())) for column in columns]
    texts = [["[]" if cell else "" for cell in column.to_pylist()] if is_list(column.type)
             else [(cell or "").strip() for cell in as_text(column).to_pylist()] for column in taken]  # fmt: skip
    yield from zip(*texts, strict=True)
