"""Ties for the first place: part of the result, and scored as what a fair draw among the tied would give."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The first places of groups of candidates that lie end to end.

    `starts` and `sizes` say where the groups are, `best` is the highest score of each and `count` how many share it:
    (groups,); `tied` marks those that do: (candidates,).
    """

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    best: NDArray[Any]
    tied: NDArray[np.bool_]
    count: NDArray[np.int64]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat a value of each group for each of its candidates."""
        return np.repeat(values, self.sizes)

    def expected(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the expected value of a candidate drawn from those tied for the first place: (groups,).

        Of marks for what is right this is 1/k where one of k tied candidates is.
        """
        total: NDArray[np.float64] = np.add.reduceat(np.where(self.tied, values, 0.0), self.starts)
        return total / self.count


def find_ties(scores: NDArray[Any], starts: NDArray[np.int64], *, tolerance: float = 0.0) -> Ties:
    """Find who shares the first place of each group; no group is empty, and `starts` ascends from 0.

    Scores tie where they differ from the best by at most `tolerance`.
    """
    sizes = np.diff(starts, append=len(scores))
    best = np.maximum.reduceat(scores, starts)
    tied = scores >= np.repeat(best - tolerance if tolerance else best, sizes)
    return Ties(starts, sizes, best, tied, np.add.reduceat(tied, starts, dtype=np.int64))


def expected_first(scores: NDArray[Any], right: NDArray[np.bool_], *, tolerance: float = 0.0) -> NDArray[np.float64]:
    """Return for each row the chance that a draw from its first place is right: (rows, candidates) -> (rows,)."""
    rows, candidates = scores.shape
    ties = find_ties(scores.reshape(-1), np.arange(rows) * candidates, tolerance=tolerance)
    return ties.expected(right.reshape(-1))
