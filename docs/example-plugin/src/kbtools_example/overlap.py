"""A relation scorer that needs no training: letter trigrams that a question shares with a relation's name."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.text.question import MarkedQuestion


def trigrams(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


class TrigramOverlap:
    """A scorer by the share of a relation's trigrams that the question has outside the mention."""

    def __init__(self, relations: Sequence[str]) -> None:
        self.names = [trigrams(relation) for relation in relations]

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        contexts = [set().union(*map(trigrams, question.context())) for question in questions]
        shares = [[len(name & context) / max(len(name), 1) for name in self.names] for context in contexts]
        return 4.0 * np.array(shares, dtype=np.float64).reshape(len(questions), len(self.names))
