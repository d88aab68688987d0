"""A scorer that needs no training: the letter trigrams that a question shares with the name of a relation."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.text.question import MarkedQuestion


def trigrams(text: str) -> set[str]:
    return {text[at : at + 3] for at in range(len(text) - 2)}


class TrigramOverlap:
    """Score each relation by the share of its trigrams that the question has outside the mention."""

    def __init__(self, relations: Sequence[str]) -> None:
        self.names = [trigrams(relation) for relation in relations]

    def score(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        spoken = [set().union(*map(trigrams, one.context())) for one in asked]
        shares = [[len(name & words) / max(len(name), 1) for name in self.names] for words in spoken]
        return 4.0 * np.array(shares, dtype=np.float64).reshape(len(asked), len(self.names))
