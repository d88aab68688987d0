"""A subject scorer: entities with many names are more popular."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.question import MarkedQuestion


class AliasCount:
    """A scorer by the logarithm of the number of a subject's names."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        counts = np.array([len(names) for names in self.kb.names_of(subjects)], dtype=np.float64)
        scores: NDArray[np.float64] = np.log1p(counts)
        return scores
