"""Confidence in the first candidate of a question, its calibration, and ties for the first place.

A tie counts as the expected value of a random draw among the tied candidates.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.pools import Pools
from kbtools.ranking.score import MICRO

_LEFT_OUT = np.iinfo(np.int64).min // 2
"""A score below that of every candidate, half the least integer so that differences do not overflow."""


def winner_confidence(
    pools: Pools, scores: NDArray[np.int64], *, of_links: bool = True, among: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return the uncalibrated confidence in the first candidate of each question, 0 without one: (questions,).

    It is exp(score) normalised over the pool, with `of_links` times the confidence in its link; tied candidates count
    as their mean. `among` marks the candidates to consider.
    """
    confidence, filled = np.zeros(len(pools)), np.flatnonzero(pools.counts["pair"])
    if not len(filled):
        return confidence
    scores = scores if among is None else np.where(among, scores, _LEFT_OUT)
    ties = find_ties(scores, pools.first("pair")[filled])
    total = np.add.reduceat(np.exp((scores - ties.spread(ties.best)) / MICRO), ties.starts)
    in_links = ties.expected(pools.link_confidence[pools.link_of_pair]) if of_links else 1.0
    confidence[filled] = np.where(ties.best == _LEFT_OUT, 0.0, in_links / total)
    return confidence


@dataclass(frozen=True, slots=True)
class Calibration:
    """A piecewise linear map from confidence to the share that is right; both ascend."""

    confidence: tuple[float, ...]
    correct: tuple[float, ...]

    def apply(self, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated confidences; 0, which means no candidate, stays 0."""
        calibrated = np.interp(confidence, self.confidence, self.correct)
        return np.where(confidence > 0, calibrated, 0.0)


def fit_calibration(confidence: NDArray[np.float64], correct: NDArray[np.float64]) -> Calibration:
    """Return the ascending map with the least squared error (pool adjacent violators); confidence 0 does not count.

    >>> fit_calibration(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.0, 1.0, 0.0, 1.0])).correct
    (0.0, 0.5, 1.0)
    """
    answered = confidence > 0
    order = np.argsort(confidence[answered], kind="stable")
    levels, inverse = np.unique(confidence[answered][order], return_inverse=True)
    counts = np.bincount(inverse, minlength=len(levels)).astype(np.float64)
    sums = np.bincount(inverse, weights=correct[answered][order], minlength=len(levels))
    # A step holds the sums of confidence and correctness and the number of answers; a step that does not rise above the
    # one before is merged into it.
    pooled: list[tuple[float, float, float]] = []
    for level, total, count in zip(levels * counts, sums, counts, strict=True):
        pooled.append((float(level), float(total), float(count)))
        while len(pooled) > 1 and pooled[-2][1] * pooled[-1][2] >= pooled[-1][1] * pooled[-2][2]:
            last = pooled.pop()
            pooled[-1] = tuple(map(sum, zip(pooled[-1], last, strict=True)))  # type: ignore[assignment]
    if not pooled:
        return Calibration((0.0, 1.0), (0.0, 0.0))
    table = np.array(pooled)
    return Calibration(tuple((table[:, 0] / table[:, 2]).tolist()), tuple((table[:, 1] / table[:, 2]).tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The candidates tied for the first place in each group of concatenated candidates.

    `starts`, `sizes`, the highest score `best` and the number of ties `count` are (groups,); `tied` marks candidates
    with the highest score: (candidates,).
    """

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    best: NDArray[Any]
    tied: NDArray[np.bool_]
    count: NDArray[np.int64]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of its group for each candidate."""
        return np.repeat(values, self.sizes)

    def expected(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean value of the candidates tied for the first place: (groups,).

        For values that mark one right candidate among k tied ones it is 1/k.
        """
        total: NDArray[np.float64] = np.add.reduceat(np.where(self.tied, values, 0.0), self.starts)
        return total / self.count


def find_ties(scores: NDArray[Any], starts: NDArray[np.int64], *, tolerance: float = 0.0) -> Ties:
    """Return the ties for the first place of each group; groups are not empty, and `starts` ascends from 0.

    Scores within `tolerance` of the best are tied.
    """
    sizes = np.diff(starts, append=len(scores))
    best = np.maximum.reduceat(scores, starts)
    tied = scores >= np.repeat(best - tolerance if tolerance else best, sizes)
    return Ties(starts, sizes, best, tied, np.add.reduceat(tied, starts, dtype=np.int64))


def expected_first(scores: NDArray[Any], right: NDArray[np.bool_], *, tolerance: float = 0.0) -> NDArray[np.float64]:
    """Return the share of right candidates among those tied first in each row: (rows, candidates) -> (rows,)."""
    rows, candidates = scores.shape
    ties = find_ties(scores.reshape(-1), np.arange(rows) * candidates, tolerance=tolerance)
    return ties.expected(right.reshape(-1))
