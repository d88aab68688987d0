"""A tagger that needs no training: mentions consist of content words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.pruners import words_of
from kbtools.text.function_words import FUNCTION_WORDS
from kbtools.text.question import Question


class ContentWords:
    """A tagger that prefers spans with many content words and few function words."""

    def __init__(self, kb: KnowledgeBase) -> None: ...

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        return [self.spans_of(words_of(question)) for question in questions]

    def spans_of(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return log p(w|q): (words, words), minus infinity if a span would end before it begins."""
        gains = [-2.0 if word in FUNCTION_WORDS else 1.0 for word in words]
        until = np.cumsum([0.0, *gains])
        sums = np.where(np.triu(np.ones((len(words), len(words)))) == 1, until[1:] - until[:-1, np.newaxis], -np.inf)
        spans: NDArray[np.float64] = sums - np.logaddexp.reduce(sums, axis=None)
        return spans
