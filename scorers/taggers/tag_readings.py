"""Labelled questions as a tagger reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.taggers.crf import SUBJECT

Bits = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Labelled questions as a tagger reads them: words, bits of the gazetteer, and which words are the mention."""

    texts: Sequence[list[str]]
    bits: Sequence[Bits]
    spans: Sequence[tuple[int, int]]

    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(text) for text in self.texts], dtype=np.int64)

    def tags(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the gold tags of questions of one length: (batch, length)."""
        tags = np.zeros((len(rows), len(self.texts[rows[0]])), dtype=np.int64)
        for place, row in enumerate(rows):
            first, last = self.spans[row]
            tags[place, first : last + 1] = SUBJECT
        return tags

    def of(self, rows: NDArray[np.int64]) -> tuple[list[list[str]], list[Bits]]:
        """Give the words and the bits of some questions."""
        return [self.texts[row] for row in rows], [self.bits[row] for row in rows]
