"""Reading whole rows of delimited tables in columns with Arrow."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray


def parse_cells(
    text: bytes,
    heads: Sequence[str],
    *,
    delimiter: str,
    quotes: bool = False,
    on_ragged: Callable[[pyarrow.csv.InvalidRow], str] | None = None,
) -> pa.Table | None:
    """Divide whole rows into columns of text; return None if Arrow cannot, as for a row of another length."""
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(text),
            # A single block, so that row numbers count from its start.
            read_options=pyarrow.csv.ReadOptions(column_names=heads, use_threads=False, block_size=len(text) + 1),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, quote_char='"' if quotes else False, double_quote=quotes, escape_char=False,
                newlines_in_values=quotes, ignore_empty_lines=False, invalid_row_handler=on_ragged,
            ),
            # Every column is text; otherwise Arrow would guess numbers and dates.
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(heads, pa.string()), strings_can_be_null=False
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        return None


def unquote_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove the quotes of every cell that is quoted as a whole, as `delimited_rows` does for one cell."""
    quoted = pc.and_(
        pc.starts_with(column, '"'), pc.and_(pc.ends_with(column, '"'), pc.greater(pc.binary_length(column), 1))
    )
    if not pc.any(quoted).as_py():
        return column
    inner = pc.utf8_slice_codeunits(column, 1, -1)
    # A quote left after removing the doubled ones is single: then the cell is not quoted as a whole.
    whole = pc.and_(quoted, pc.invert(pc.match_substring(pc.replace_substring(inner, '""', ""), '"')))
    return pc.if_else(whole, pc.replace_substring(inner, '""', '"'), column)


def row_ends(text: bytes, separator: str) -> NDArray[np.int64] | None:
    """Return the ends of the rows whose quotes are closed; None if a quote is misplaced.

    Replaces a parser with two states, outside and inside quotes, by operations on runs of quotes. Outside, a run must
    begin its cell, and opens it if its length is odd; inside, an odd run closes the cell and must end it.
    """
    # With a line end before it, the first cell begins like any other.
    data = np.frombuffer(b"\n" + text, dtype=np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    newlines = np.flatnonzero(data == ord("\n"))[1:]
    if not len(quotes):
        return newlines
    first = np.flatnonzero(np.diff(quotes, prepend=-2) > 1)
    starts = quotes[first]
    lengths = np.diff(first, append=len(quotes))
    odd = lengths % 2 == 1
    inside = (np.cumsum(odd) - odd) % 2 == 1
    before, after = data[starts - 1], data[np.minimum(starts + lengths, len(data) - 1)]
    opens, ends = ~inside, (inside & odd) | (~inside & ~odd)
    if not (_divides(before[opens], separator).all() and _divides(after[ends], separator).all()):
        return None
    outside: NDArray[np.int64] = newlines[np.searchsorted(starts[odd], newlines) % 2 == 0]
    return outside


def row_lines(text: bytes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the line on which each row begins, from 0, given the ends of the rows."""
    newlines = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
    return np.searchsorted(newlines, np.concatenate([[0], ends[:-1]]), side="right")


def _divides(characters: NDArray[np.uint8], separator: str) -> NDArray[np.bool_]:
    """Return a mask of the characters between cells."""
    between: NDArray[np.bool_] = (characters == ord(separator)) | (characters == ord("\n"))
    return between
