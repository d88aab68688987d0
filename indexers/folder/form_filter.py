"""The form filter: a bit for every stored form, by its hash, that spares the store what it would look for in vain.

Of the 55 n-grams of a question five are names: telling the others apart takes half the time of looking them up.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

BITS = 16
"""Bits a name, rounded up to a power of two: of a hundred forms that are not stored three to eight are looked up."""

MOST_BITS = 1 << 32
"""As many as the hash can tell apart."""

BEFORE_SPACE = 0x0F6A7006
"""A hash that goes on to that of nothing with a space: what follows is hashed as if no space were before it."""


class FilterWriter:
    """A collector of the forms of so many names."""

    def __init__(self, names: int) -> None:
        self.bits = np.zeros(min(MOST_BITS, 1 << (BITS * max(names, 1) - 1).bit_length()) // 8, dtype=np.uint8)

    def add(self, forms: "pa.StringArray") -> None:
        keys = forms.cast("binary").to_pylist()
        slots = np.fromiter(map(crc32, keys), dtype=np.uint32, count=len(keys)) & np.uint32(8 * len(self.bits) - 1)
        np.bitwise_or.at(self.bits, slots >> np.uint32(3), np.uint8(1) << (slots & np.uint32(7)).astype(np.uint8))


class FormFilter:
    """A reader of the bits of all stored forms, and of some `also`, which updates brought."""

    def __init__(self, bits: NDArray[np.uint8], *, also: Iterable[str] = ()) -> None:
        self.bits = bits.data  # read by places twice as fast as the array
        self.mask = 8 * len(bits) - 1
        self.also = frozenset(crc32(form.encode()) & self.mask for form in also)

    def keep(self, forms: Sequence[str]) -> list[str]:
        """Keep the forms that may be stored, in order; no stored one is left out."""
        bits, mask, also = self.bits, self.mask, self.also
        return [
            form for form in forms if bits[(slot := crc32(form.encode()) & mask) >> 3] >> (slot & 7) & 1 or slot in also
        ]

    def runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        """List the runs of words that may be stored forms, as `KnowledgeBase.likely_runs` does.

        The hash of a run goes on from that of the run that is a word shorter, so that no form is made.
        """
        bits, mask, also = self.bits, self.mask, self.also
        spaced = [f" {word}".encode() for word in words]
        longest = max(lengths, default=0)
        kept = []
        for first in range(len(words)):
            own = BEFORE_SPACE
            for more, word in enumerate(spaced[first : first + longest]):
                own = crc32(word, own)
                if bits[(slot := own & mask) >> 3] >> (slot & 7) & 1 or slot in also:
                    kept.append((more, first))
        return [(first, first + more) for more, first in sorted(kept) if more + 1 in lengths]
