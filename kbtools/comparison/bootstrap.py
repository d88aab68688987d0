"""Bootstrap: how far figures would move had other questions been asked; one set of resamples for all cells."""

import numpy as np
from numpy.typing import NDArray

ROUNDS, SEED = 1000, 0
LEVEL = 95.0
"""Per cent of the resamples that an interval holds."""

AT_ONCE = 100


class Resamples:
    """Questions drawn with replacement, the same for every figure, so that cells can be compared in pairs.

    `counts` says how often each question was drawn: (rounds, questions).
    """

    def __init__(self, questions: int, *, rounds: int = ROUNDS, seed: int = SEED) -> None:
        generator = np.random.default_rng(seed)
        self.questions = questions
        self.counts = np.zeros((rounds, questions), dtype=np.uint8)
        for row in self.counts:
            row[:] = np.bincount(generator.integers(questions, size=questions), minlength=questions)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum values (questions, figures) over each resample: (rounds, figures)."""
        blocks = range(0, len(self.counts), AT_ONCE)
        return np.concatenate([self.counts[at : at + AT_ONCE].astype(np.float64) @ values for at in blocks])

    def quantiles(self, values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Give a quantile of each resample, between neighbours where it falls between them: (rounds,)."""
        order = np.argsort(values, kind="stable")
        ordered, position = values[order], share * (self.questions - 1)
        below, above = int(np.floor(position)), int(np.ceil(position))
        drawn = np.cumsum(self.counts[:, order], axis=1, dtype=np.int64)
        low = ordered[np.argmax(drawn > below, axis=1)]
        high = ordered[np.argmax(drawn > above, axis=1)]
        found: NDArray[np.float64] = low + (position - below) * (high - low)
        return found


def interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """Give the middle of a bootstrap distribution; rounds that say nothing (no number) are left out."""
    known = resampled[np.isfinite(resampled)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)
