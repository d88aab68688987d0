"""Confidence made the share that is right: an ascending map, and its fit on questions with known answers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A map from confidence to the share that is right: (steps,) each, both ascending; between steps, a line."""

    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]

    def apply(self, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Calibrate confidences; 0, which is no candidate at all, stays 0."""
        calibrated = np.interp(confidence, self.confidence, self.correct)
        return np.where(confidence > 0, calibrated, 0.0)


def calibrate(calibration: Calibration | None, confidence: float) -> float:
    """Calibrate one confidence, where there is a map."""
    return confidence if calibration is None else float(calibration.apply(np.array([confidence]))[0])


def fit_calibration(confidence: NDArray[np.float64], correct: NDArray[np.float64]) -> Calibration:
    """Fit the ascending map with the least squared error: pool adjacent violators. Questions without answer are out.

    >>> fit_calibration(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.0, 1.0, 0.0, 1.0])).correct.tolist()
    [0.0, 0.5, 1.0]
    """
    answered = confidence > 0
    order = np.argsort(confidence[answered], kind="stable")
    levels, inverse = np.unique(confidence[answered][order], return_inverse=True)
    counts = np.bincount(inverse, minlength=len(levels)).astype(np.float64)
    sums = np.bincount(inverse, weights=correct[answered][order], minlength=len(levels))
    # A step is the sums of confidence and correctness and the count of its answers; one that does not rise above the
    # step before it is merged into that.
    pooled: list[tuple[float, float, float]] = []
    for level, total, count in zip(levels * counts, sums, counts, strict=True):
        pooled.append((float(level), float(total), float(count)))
        while len(pooled) > 1 and pooled[-2][1] * pooled[-1][2] >= pooled[-1][1] * pooled[-2][2]:
            last = pooled.pop()
            pooled[-1] = tuple(map(sum, zip(pooled[-1], last, strict=True)))  # type: ignore[assignment]
    if not pooled:
        return Calibration(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    table = np.array(pooled)
    return Calibration(table[:, 0] / table[:, 2], table[:, 1] / table[:, 2])
