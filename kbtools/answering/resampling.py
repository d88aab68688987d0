"""Bootstrap confidence intervals over questions drawn with replacement."""

import numpy as np
from numpy.typing import NDArray

ROUNDS, _SEED = 1000, 0
"""1,000 rounds: other seeds move the ends of an interval by about 0.03 points on 10,724 questions."""

LEVEL = 95.0
"""Per cent of the resamples inside an interval."""

_ROUNDS_AT_ONCE = 100
"""Rounds multiplied at once: 9 MB of counts for 10,724 questions."""


class Resamples:
    """Questions drawn with replacement, the same for every figure, so that cells can be compared in pairs.

    `counts` is how often each question was drawn: (rounds, questions).
    """

    def __init__(self, questions: int, *, rounds: int = ROUNDS, seed: int = _SEED) -> None:
        generator = np.random.default_rng(seed)
        self.questions = questions
        # One byte per count: no question is drawn 256 times, and 1,000 rounds of 10,724 questions take 11 MB.
        self.counts = np.zeros((rounds, questions), dtype=np.uint8)
        for row in self.counts:
            row[:] = np.bincount(generator.integers(questions, size=questions), minlength=questions)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of values (questions, figures) over each resample: (rounds, figures)."""
        # Equal to np.sum(values[drawn], axis=0) for each round, as one product.
        starts = range(0, len(self.counts), _ROUNDS_AT_ONCE)
        return np.concatenate([self.counts[at : at + _ROUNDS_AT_ONCE].astype(np.float64) @ values for at in starts])

    def quantiles(self, values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Return a quantile of each resample, interpolated linearly: (rounds,)."""
        # Equal to np.quantile(values[drawn], share) for each round; sorting once and cumulating counts replaces the
        # draws.
        order = np.argsort(values, kind="stable")
        ordered, position = values[order], share * (self.questions - 1)
        below, above = int(np.floor(position)), int(np.ceil(position))
        drawn = np.cumsum(self.counts[:, order], axis=1, dtype=np.int64)
        low = ordered[np.argmax(drawn > below, axis=1)]
        high = ordered[np.argmax(drawn > above, axis=1)]
        quantiles: NDArray[np.float64] = low + (position - below) * (high - low)
        return quantiles


def interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle 95 % of a bootstrap distribution, without rounds that are nan."""
    valued = resampled[np.isfinite(resampled)]
    if not len(valued):
        return float("nan"), float("nan")
    low, high = np.percentile(valued, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the interval of the mean of values (questions,), 0 and 0 without questions."""
    if not len(values):
        return 0.0, 0.0
    return interval(Resamples(len(values)).sums(values[:, None])[:, 0] / len(values))
