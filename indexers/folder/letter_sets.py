"""The letters of names as sets, bit by bit: names two edits apart differ in four letters at most.

Where thousands of names share a part and most pairs of letters with a form, this tells most of those apart that are
further away than two edits, without reading their texts one by one.
"""

import string

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.folder.column_files import StringTable
from kbtools.kb.contract import EDITS

MOST_DIFFERENT = 2 * EDITS
"""Letters in which two edits make names differ: of each that is replaced one goes and one comes."""

UNTOLD = 1 << 63
"""The bit of what normal forms write otherwise: all but ASCII, and `&`, which is the word `and`."""

BITS = np.zeros(256, dtype=np.uint64)
for _place, _letter in enumerate(string.ascii_lowercase + string.digits):
    BITS[[ord(_letter), ord(_letter.upper())]] = 1 << _place
BITS[128:] = BITS[ord("&")] = UNTOLD


def share_letters(form: str, texts: StringTable, rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Tell which of the names at some rows, none of them empty, may be within two edits of a normal form."""
    if not form.isascii():
        return np.ones(len(rows), dtype=bool)
    codes, starts = texts.bytes_at(rows)
    letters = np.bitwise_or.reduceat(BITS[codes], starts)
    own = np.bitwise_or.reduce(BITS[np.frombuffer(form.encode(), dtype=np.uint8)])
    told: NDArray[np.bool_] = np.bitwise_count(letters ^ own) <= MOST_DIFFERENT
    return told | (letters >= UNTOLD)
