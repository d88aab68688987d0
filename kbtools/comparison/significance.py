"""Certainty of figures: bootstrap intervals over questions, and paired tests of two cells on the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.grid import Cell

ROUNDS, SEED = 1000, 0
"""1,000 rounds: with other seeds the ends of an interval move by some 0.03 points on 10,724 questions."""

LEVEL = 95.0
"""Per cent of the resamples that an interval holds."""

ROUNDS_AT_ONCE = 100
"""Rounds that are multiplied in one go: 9 MB of counts for 10,724 questions."""


class Resamples:
    """Questions drawn with replacement, the same for every figure, so that cells can be compared in pairs.

    `counts` says how often each question was drawn: (rounds, questions).
    """

    def __init__(self, questions: int, *, rounds: int = ROUNDS, seed: int = SEED) -> None:
        generator = np.random.default_rng(seed)
        self.questions = questions
        # A byte a count: none is drawn 256 times, and 1,000 rounds of 10,724 questions stay under 11 MB.
        self.counts = np.zeros((rounds, questions), dtype=np.uint8)
        for row in self.counts:
            row[:] = np.bincount(generator.integers(questions, size=questions), minlength=questions)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum values (questions, figures) over each resample: (rounds, figures)."""
        # The product is np.sum(values[drawn], axis=0) for each round, without drawing the values.
        starts = range(0, len(self.counts), ROUNDS_AT_ONCE)
        return np.concatenate([self.counts[at : at + ROUNDS_AT_ONCE].astype(np.float64) @ values for at in starts])

    def quantiles(self, values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Return a quantile of each resample, between neighbours where it falls between them: (rounds,)."""
        # np.quantile(values[drawn], share) for each round: values are sorted once, and cumulated counts say where
        # the drawn value of a rank stands among them.
        order = np.argsort(values, kind="stable")
        ordered, position = values[order], share * (self.questions - 1)
        below, above = int(np.floor(position)), int(np.ceil(position))
        drawn = np.cumsum(self.counts[:, order], axis=1, dtype=np.int64)
        low = ordered[np.argmax(drawn > below, axis=1)]
        high = ordered[np.argmax(drawn > above, axis=1)]
        quantiles: NDArray[np.float64] = low + (position - below) * (high - low)
        return quantiles


def interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle 95 % of a bootstrap distribution; rounds without a value (nan) are left out."""
    valued = resampled[np.isfinite(resampled)]
    if not len(valued):
        return float("nan"), float("nan")
    low, high = np.percentile(valued, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Difference:
    """Cell `one` against cell `other` in strict accuracy.

    `won` and `lost` sum the answers that `one` gains and loses, where a tie is a share of an answer; `mcnemar` is the
    exact two-sided probability of a split as uneven, rounded to whole answers, if neither were better. `low` and
    `high` bound 95 % of the paired bootstrap, and `bootstrap` is its two-sided probability.
    """

    one: Cell
    other: Cell
    difference: float
    low: float
    high: float
    won: float
    lost: float
    mcnemar: float
    bootstrap: float


def compare_cells(
    values: Mapping[Cell, NDArray[np.float64]], resamples: Resamples, pairs: Sequence[tuple[Cell, Cell]] | None = None
) -> list[Difference]:
    """Compare cells in pairs, all pairs by default; values are expected correctness, (questions,) each."""
    cells = list(values)
    sums = resamples.sums(np.stack([values[cell] for cell in cells], axis=1))
    resampled = dict(zip(cells, sums.T / resamples.questions, strict=True))
    return [
        compare_two(one, other, (values[one], values[other]), resampled[one] - resampled[other])
        for one, other in (combinations(cells, 2) if pairs is None else pairs)
    ]


def compare_two(
    one: Cell, other: Cell, values: tuple[NDArray[np.float64], NDArray[np.float64]], resampled: NDArray[np.float64]
) -> Difference:
    """Compare two cells whose difference was resampled."""
    difference = values[0] - values[1]
    won, lost = float(difference[difference > 0].sum()), float((-difference[difference < 0]).sum())
    low, high = interval(resampled)
    # The observed sample counts as one more round, so that no probability is 0 (Davison and Hinkley 1997, 4.2).
    beyond = min(np.count_nonzero(resampled <= 0), np.count_nonzero(resampled >= 0))
    bootstrap = min(1.0, 2 * (int(beyond) + 1) / (len(resampled) + 1))
    return Difference(
        one, other, float(difference.mean()), low, high, won, lost, mcnemar(round(won), round(lost)), bootstrap
    )


def mcnemar(won: int, lost: int) -> float:
    """Return the exact two-sided probability of a split as uneven as this one, by a fair coin.

    >>> mcnemar(1, 5)
    0.21875
    """
    # Whole numbers as long as need be: 2 to the power of total has no room in a float beyond some thousand answers.
    total, term, tail = won + lost, 1, 1
    for k in range(min(won, lost)):
        term = term * (total - k) // (k + 1)
        tail += term
    return round(min(1.0, 2 * tail / (1 << total)), 12)
