"""Significance of differences: paired tests of two cells on the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.resampling import Resamples, interval
from kbtools.comparison.grid import Cell


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of cell `one` from cell `other` in strict accuracy.

    `won` and `lost` are the answers that `one` gains and loses, with ties as shares. `mcnemar` is the exact two-sided
    p-value of this split, rounded to whole answers. `low` and `high` are the 95 % interval of the paired bootstrap, and
    `bootstrap` is its two-sided p-value.
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
    """Return the differences of pairs of cells, by default all; values are expected correctness, (questions,) each."""
    cells = list(values)
    sums = resamples.sums(np.stack([values[cell] for cell in cells], axis=1))
    resampled = dict(zip(cells, sums.T / resamples.questions, strict=True))
    return [
        _compare_two(one, other, (values[one], values[other]), resampled[one] - resampled[other])
        for one, other in (combinations(cells, 2) if pairs is None else pairs)
    ]


def _compare_two(
    one: Cell, other: Cell, values: tuple[NDArray[np.float64], NDArray[np.float64]], resampled: NDArray[np.float64]
) -> Difference:
    """Return the difference of two cells, given its resamples."""
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
    """Return the exact two-sided probability that a fair coin splits at least as unevenly.

    >>> mcnemar(1, 5)
    0.21875
    """
    # Integers of any size: 2 to the power of total does not fit into a float beyond about a thousand answers.
    total, term, tail = won + lost, 1, 1
    for k in range(min(won, lost)):
        term = term * (total - k) // (k + 1)
        tail += term
    return round(min(1.0, 2 * tail / (1 << total)), 12)
