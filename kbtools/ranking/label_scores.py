"""Relations with several labels: a relation has the score of its best label."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.contracts import RelationScorer, Teachable, as_scores
from kbtools.text.question import MarkedQuestion


class _LabelScorer:
    """An adapter from a scorer of labels to a relation scorer; `counts` is the number of labels of each relation."""

    def __init__(self, scorer: RelationScorer, counts: Sequence[int]) -> None:
        self.scorer = scorer
        self.labels = sum(counts)
        self.firsts = list(accumulate(counts, initial=0))[:-1]

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.best(self.scorer.score(questions))

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best label score of each relation: (questions, relations)."""
        shape = len(scores), self.labels
        every = as_scores(scores, scorer=type(self.scorer).__name__, shape=shape)
        best: NDArray[np.float64] = np.maximum.reduceat(every, self.firsts, axis=1)
        return best


class _TeachableLabelScorer(_LabelScorer):
    """A label scorer that compares vectors, so that a head can be taught."""

    scorer: Teachable

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        return self.scorer.embed(questions)

    def score_embedded(self, vectors: NDArray[np.float32], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.best(self.scorer.score_embedded(vectors, questions))


def best_of_labels(scorer: RelationScorer, counts: Sequence[int]) -> RelationScorer:
    """Return a relation scorer from a scorer of labels."""
    if all(count == 1 for count in counts):
        return scorer
    return (_TeachableLabelScorer if isinstance(scorer, Teachable) else _LabelScorer)(scorer, counts)
