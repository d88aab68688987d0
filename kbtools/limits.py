"""The limits of a result: how many candidates and answers it gives, and from which confidence on it answers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BadArgument

TOP = 10
"""Candidates of a result that fit on a screen with their scores."""

ANSWERS = 20
"""Answers of a result: the winner of a broad question has thousands of objects."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A map from confidence to the share that is right: (steps,) each, both ascending; between steps, a line."""

    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]

    def apply(self, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Calibrate confidences; 0, which is no candidate at all, stays 0."""
        calibrated = np.interp(confidence, self.confidence, self.correct)
        return np.where(confidence > 0, calibrated, 0.0)


def read_limit(limit: int | None, name: str) -> int | None:
    """Check a limit, 0 and None give all, which None stands for; raise BadArgument for what is no limit."""
    # True is an int to Python, and no limit.
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise BadArgument(f"{name} is a whole number, 0 for all, found {limit!r}", name=name)
    return limit or None


def require_text(text: str, name: str) -> None:
    """Check that an argument is a text; raise BadArgument where it is not."""
    if not isinstance(text, str):
        raise BadArgument(f"{name} is a str, found {text!r}", name=name)


@dataclass(frozen=True, slots=True)
class Limits:
    """Checked limits; 0 and None give all. A calibration makes confidence the share that is right.

    Raises BadArgument for what is no limit.
    """

    top: int | None = TOP
    answers: int | None = ANSWERS
    abstain: float | None = None
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        for name in ("top", "answers"):
            object.__setattr__(self, name, read_limit(getattr(self, name), name))
        if self.abstain is not None and not (isinstance(self.abstain, int | float) and 0 <= self.abstain <= 1):
            raise BadArgument(f"abstain is a confidence from 0 to 1, found {self.abstain!r}", name="abstain")

    def confidence(self, share: float) -> float | None:
        """Give the confidence in a winner of this share of its pool; nothing where no threshold is set."""
        if self.abstain is None or self.calibration is None:
            return None if self.abstain is None else share
        return float(self.calibration.apply(np.array([share]))[0])
