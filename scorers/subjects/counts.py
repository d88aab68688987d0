"""Controls for subject scorers, which count and know nothing of the question; any subject network must beat them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.question import MarkedQuestion


class FactCount:
    """The subject scorer `fact-count`: the logarithm of the number of a subject's facts."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        counted: NDArray[np.float64] = np.log1p(self.kb.fact_counts(subjects))
        return counted


class TypeCount:
    """The subject scorer `type-count`: the logarithm of the number of a subject's types."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        counted: NDArray[np.float64] = np.log1p(np.diff(self.kb.types_of(subjects).starts))
        return counted
