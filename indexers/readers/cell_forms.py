"""The forms of cells in a table of entities: numbers, dates, addresses, ids, and signs for an empty cell."""

import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.indexers.readers.batches import repeated
from kbtools.indexers.readers.table_rows import REWRITTEN, as_text, canonical_column, contains, is_list, trimmed
from kbtools.kb.ids import TOPIC
from kbtools.kb.table_heads import plain_head

_VALUES = {
    "number": r"^[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$",
    "date": r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$",
    "url": r"^(https?|ftp)://\S+$",
}
"""Values recognised by their form; a number with a leading zero is a code and stays text."""

_FIGURES = r"^\s*(\pL{1,3}\s)?[^\pL]*\d[^\pL]*(\s\pL{1,3})?\s*$"
"""Other numbers and dates as people write them: `1,200`, `45 %`, `EUR 40`, `3/2/2001`."""

_SHAPED = rf"{REWRITTEN}|^[QP][1-9]\d*$|^{TOPIC.pattern}$"
"""Cells recognised as ids by their form: those of Freebase and Wikidata."""

PLACEHOLDER = (
    r"^([-–—−]{1,3}|\.{2,3}|…|[nN]/[aA]|n\.a\.|\\N|NULL|null|\(null\)|NaN|nan|NaT|<NA>|"
    r"#(N/A|REF!|DIV/0!|VALUE!|NAME\?|NUM!|NULL!|ERROR!|SPILL!))$"
)
"""A cell that means an empty one: a dash, a null of a database or of pandas, or a formula that failed."""

NOT_AVAILABLE = "NA"
"""R's empty cell, only in a column of numbers or dates: in a column of text, it may be Namibia or sodium."""

_ADDRESS = r"^\s*https?://www\.wikidata\.org/entity/Q\d+\s*$"
"""Wikidata's address of an entity."""

_CODE = r"^\s*([A-Za-z]{1,6}[-_.]?\d{4,}|\S+:\S*\d\S*)\s*$"
"""A code: few letters before at least four digits, or a number of a named register."""

_ROW_NUMBERS = r"(column|unnamed \d+)?( ?\d+)*|index|row ?names"
"""The heads of row numbers: none, which is `column 1` here, `Unnamed: 0`, `...1`, `index`, `rownames`."""

REFERENCE = r"([^\s\]])(?:\[(?:\d{1,3}|[a-z]|(?:note|nb) \d+|citation needed)\])+\s*$"
"""The reference marks at the end of a cell copied from an encyclopedia: `1953[4]`, `Makalu[a][12]`, not `[4][12]`."""

UNIT_OF_HEAD = r"\[[dghlmst]\]\s*$"
"""The unit that a head may end in, as in `Height[m]`; as a reference mark, these letters are rare in heads."""

_MOVED = 0.1
"""The share of the first words of lists that come later too: at least 0.16 in lists of the objects of FBSQ's relations,
for the 25 with most lists and 1,000 subjects each; 0.07 in 10,000 of its people written as `Family, Given`.
"""

_PLAIN = r"^[^\d+\-/<:QPmgfnhw]"
"""The beginning of cells that are certainly text."""


def is_distinct(column: pa.Array, least: float = 0.9) -> bool:
    """Return whether at least this share of the rows have distinct values."""
    if is_list(column.type) or pa.types.is_nested(column.type) or not len(column):
        return False
    texts = trimmed(as_text(column))
    return bool(
        pc.count_distinct(texts).as_py() >= least * len(texts)
        and pc.count(texts.filter(pc.equal(texts, ""))).as_py() <= 0.1 * len(texts)
    )


def is_row_numbers(head: str, column: pa.Array) -> bool:
    """Return whether a column holds the row numbers that R, pandas and readr write: from 0 or 1 on, ascending."""
    if not re.fullmatch(_ROW_NUMBERS, plain_head(head)) or not pa.types.is_string(column.type):
        return False
    cells = column.to_pylist()
    if not all(cell and cell.isdecimal() and len(cell) < 10 for cell in cells):
        return False
    numbers = list(map(int, cells))
    return numbers[0] in (0, 1) and all(a < b for a, b in pairwise(numbers))


def is_address(column: pa.Array) -> bool:
    """Return whether the cells of a column are Wikidata's addresses of entities."""
    return _share_of(column, _ADDRESS) == 1


def is_code(column: pa.Array) -> bool:
    """Return whether nearly all cells are codes, such as `tt0000001` and `MIM:138670`."""
    return _share_of(column, _CODE) >= 0.9


def _share_of(column: pa.Array, pattern: str) -> float:
    """Return the share of the filled cells that match a pattern; 0 for a column that is not text."""
    if not pa.types.is_string(column.type):
        return 0.0
    matching = pc.match_substring_regex(_filled(column), pattern)
    return float(pc.mean(matching).as_py() or 0)


def _filled(column: pa.Array) -> pa.Array:
    return column.filter(pc.not_equal(pc.fill_null(column, ""), ""))


def is_shaped(head: str, column: pa.Array) -> bool:
    """Return whether a head with a digit has the form of most cells below it, as `C-1` above `C-2`."""
    if not pa.types.is_string(column.type) or not re.search(r"\d", head):
        return False
    forms = [pa.array([head]), _filled(column)]
    for pattern, sign in ((r"\pL+", "a"), (r"\d", "9")):
        forms = [pc.replace_substring_regex(form, pattern, sign) for form in forms]
    alike = pc.sum(pc.equal(forms[1], forms[0][0])).as_py() or 0
    return bool(len(forms[1]) > 1 and alike > 0.5 * len(forms[1]))


def is_repeated(head: str, column: pa.Array) -> bool:
    """Return whether a head is also a cell of its column."""
    return pa.types.is_string(column.type) and bool(pc.any(pc.equal(column, head)).as_py())


def is_value(column: pa.Array) -> bool:
    """Return whether most cells of a column of text are numbers, dates or addresses, however they are written."""
    texts = column.filter(pc.is_valid(column))
    written = (*_VALUES.values(), _FIGURES)
    matching = pc.sum(pc.match_substring_regex(texts, "|".join(written))).as_py() or 0
    return bool(len(texts) and matching >= 0.5 * len(texts))


def has_comma_lists(cells: pa.Array) -> bool:
    """Return whether cells are lists with commas: some words come first in one cell and later in another.

    The country of `Bonn, Germany` always comes last, and few family names are given names too.
    """
    lists = [cell.split(", ") for cell in cells[:10_000].to_pylist()]
    firsts = {words[0] for words in lists}
    moved = firsts & {word for first, *words in lists for word in words if word != first}
    return len(moved) > 1 and len(moved) >= _MOVED * len(firsts)


def without_references(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[str]]:
    """Return the rows without reference marks, and the columns that had some.

    A column with an element `[0]`, or with texts that differ in their marks alone, as arrays have them, stays.
    """
    columns, marked = {name: batch[name] for name in batch.schema.names}, []
    for name, column in columns.items():
        if not pa.types.is_string(column.type) or not contains(column, "["):
            continue
        cells = column.filter(pc.match_substring_regex(column, REFERENCE)).unique()
        bare = pc.replace_substring_regex(cells, REFERENCE, r"\1")
        alike = len(bare.unique()) < len(cells) and not is_value(bare)
        if len(cells) and not alike and not pc.any(pc.match_substring(cells, "[0]")).as_py():
            columns[name] = pc.replace_substring_regex(column, REFERENCE, r"\1")
            marked.append(name)
    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns]), marked


def spelt_values(texts: pa.Array, linked: str) -> pa.Array:
    """Write cells as objects of facts: ids recognised by form stay ids, others become cells that the build resolves.

    If they are `linked`, by `key` or by `name`, numbers may be entities too.
    """
    shaped, kinds = None, repeated(linked or "text", len(texts))
    if not pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py():
        for name, pattern in _VALUES.items() if not linked else ():
            kinds = pc.if_else(pc.match_substring_regex(texts, pattern), name, kinds)
        shaped = pc.match_substring_regex(texts, _SHAPED)
        if linked:
            # pandas writes integer keys with a fraction if cells of the column are empty.
            texts = pc.replace_substring_regex(texts, r"^([+-]?\d+)\.0$", r"\1")
    escaped = texts
    for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        escaped = pc.replace_substring(escaped, letter, escape) if contains(texts, letter) else escaped
    cells = pc.binary_join_element_wise('"', escaped, '"^^<cell:', kinds, ">", "")
    if shaped is None or not pc.any(shaped).as_py():
        return cells
    return pc.if_else(shaped, canonical_column(texts), cells)
