"""Checks of arguments, and the limits of a result: its candidates, its answers and its lowest confidence."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real

from kbtools.errors import BadArgument
from kbtools.quick_records import quick_record

TOP = 10
"""Default number of candidates: they fit on a screen with their scores."""

ANSWERS = 20
"""Default number of answers: a broad question has thousands of objects."""

DOUBTFUL = 0.15
"""Confidence below which an answer is marked as doubtful. It marks 8 % of 4,000 validation questions of FBSQ, among
them 0.3 % of the right answers (with static vectors alone 10 % and 0.5 %), and no right answer about the Human
Phenotype Ontology. See benchmarks/zero_shot.py."""


def read_limit(limit: int | None, name: str) -> int | None:
    """Return a limit, None if it is 0 or None; raise BadArgument for anything but a whole number."""
    return None if limit is None else read_count(limit, name, zero="all") or None


def read_count(count: object, name: str, *, zero: str) -> int:
    """Return a whole number, also from a NumPy one; raise BadArgument for anything else, or below zero."""
    if type(count) is int and count >= 0:  # faster than the check for other integer types
        return count
    # True is an int in Python, but not a count.
    whole = -1 if isinstance(count, bool) or not isinstance(count, Integral) else int(count)
    if whole < 0:
        raise BadArgument(f"{name} is a whole number, 0 for {zero}, found {count!r}", name=name)
    return whole


def read_share(share: object, name: str, *, what: str) -> float:
    """Return a number from 0 to 1 as a float; raise BadArgument for anything else."""
    number = -1.0 if isinstance(share, bool) or not isinstance(share, Real) else float(share)
    if not 0 <= number <= 1:  # NaN fails too
        raise BadArgument(f"{name} is a {what} from 0 to 1, found {share!r}", name=name)
    return number


def require_texts(texts: object, name: str, *, what: str, single: str) -> None:
    """Raise BadArgument unless texts come as an iterable; a single text is refused too."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        alone = f"one {type(texts).__name__}; use {single}" if isinstance(texts, str) else repr(texts)
        raise BadArgument(f"{what} come as a list or another iterable, found {alone}", name=name)


def require_text(text: str, name: str) -> None:
    """Raise BadArgument unless an argument is a str."""
    if not isinstance(text, str):
        raise BadArgument(f"{name} is a str, found {text!r}", name=name)


@quick_record
@dataclass(frozen=True, slots=True)
class Limits:
    """Checked limits; 0 and None mean no limit. Raises BadArgument for an invalid one."""

    top: int | None = TOP
    answers: int | None = ANSWERS
    abstain: float | None = None

    def __post_init__(self) -> None:
        for name in ("top", "answers"):
            object.__setattr__(self, name, read_limit(getattr(self, name), name))
        if self.abstain is not None:
            object.__setattr__(self, "abstain", read_share(self.abstain, "abstain", what="confidence"))
