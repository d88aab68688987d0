"""The limits of a result: how many candidates and answers it gives, and from which confidence on it answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real

from kbtools.errors import BadArgument
from kbtools.quick_records import quick_record

TOP = 10
"""Candidates of a result that fit on a screen with their scores."""

ANSWERS = 20
"""Answers of a result: the winner of a broad question has thousands of objects."""

DOUBTFUL = 0.15
"""Confidence below which an answer is marked as doubtful. Of 4,000 validation questions of FBSQ it marks 8 %, which are
0.3 % of the right answers, with static vectors alone 10 % and 0.5 %; of the right answers about the Human Phenotype
Ontology none. See benchmarks/zero_shot.py."""


def read_limit(limit: int | None, name: str) -> int | None:
    """Check a limit, 0 and None give all, which None stands for; raise BadArgument for what is no limit."""
    return None if limit is None else read_count(limit, name, zero="all") or None


def read_count(count: object, name: str, *, zero: str) -> int:
    """Check a whole number, NumPy's too; raise BadArgument for what is none, or below zero."""
    if type(count) is int and count >= 0:  # told sooner than what is a whole number of any kind
        return count
    # True is an int to Python, and no count.
    whole = -1 if isinstance(count, bool) or not isinstance(count, Integral) else int(count)
    if whole < 0:
        raise BadArgument(f"{name} is a whole number, 0 for {zero}, found {count!r}", name=name)
    return whole


def read_share(share: object, name: str, *, what: str) -> float:
    """Check a number from 0 to 1, NumPy's too; raise BadArgument for what is none."""
    number = -1.0 if isinstance(share, bool) or not isinstance(share, Real) else float(share)
    if not 0 <= number <= 1:  # nor is NaN
        raise BadArgument(f"{name} is a {what} from 0 to 1, found {share!r}", name=name)
    return number


def require_texts(texts: object, name: str, *, what: str, single: str) -> None:
    """Check that texts come as an iterable, and not as one text alone; raise BadArgument where they do not."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        alone = f"one {type(texts).__name__}; use {single}" if isinstance(texts, str) else repr(texts)
        raise BadArgument(f"{what} come as a list or another iterable, found {alone}", name=name)


def require_text(text: str, name: str) -> None:
    """Check that an argument is a text; raise BadArgument where it is not."""
    if not isinstance(text, str):
        raise BadArgument(f"{name} is a str, found {text!r}", name=name)


@quick_record
@dataclass(frozen=True, slots=True)
class Limits:
    """Checked limits; 0 and None give all. Raises BadArgument for what is no limit."""

    top: int | None = TOP
    answers: int | None = ANSWERS
    abstain: float | None = None

    def __post_init__(self) -> None:
        for name in ("top", "answers"):
            object.__setattr__(self, name, read_limit(getattr(self, name), name))
        if self.abstain is not None:
            object.__setattr__(self, "abstain", read_share(self.abstain, "abstain", what="confidence"))
