"""The untrained system, with and without a taught head, compared with the trained one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.answering.resampling import mean_interval
from kbtools.answering.teaching import expect
from kbtools.ranking.contracts import Teachable
from kbtools.ranking.system import System
from kbtools.ranking.taught import TaughtQuestion, read_taught

_MOST_LEARNED = 10_000
"""The most training questions that a head learns; with more, trained networks catch up."""

_FEW = 300
"""Validation questions below which differences of 3 points are chance."""


@dataclass(frozen=True, slots=True, eq=False)
class Untrained:
    """The share of validation questions that the trained system, the untrained system and its head answer right.

    `head` is None if no scorer of the untrained system can learn one. `low` and `high` are the 95 % interval of the
    better of the others minus the trained system.
    """

    system: System
    questions: int
    trained: float
    untrained: float
    head: float | None
    low: float
    high: float

    @property
    def best(self) -> str:
        """The best of the three: the trained system, unless another one is significantly better."""
        if self.low <= 0:
            return "trained"
        return "head" if self.head is not None and self.head >= self.untrained else "untrained"

    def lines(self) -> list[str]:
        """Return sentences on the figures and their consequences."""
        head = "" if self.head is None else f", with the head of kbtools teach {self.head:.1%}"
        ahead = f"{100 * self.low:+.1f} to {100 * self.high:+.1f} points (95 %)"
        lines = [
            f"right of {self.questions:,} validation questions: trained {self.trained:.1%}, "
            f"untrained {self.untrained:.1%}{head}; the better of the others is ahead by {ahead}"
        ]
        if self.best != "trained":
            lines.append("the untrained system answers questions, because it is better than the trained one")
        if self.head is not None and self.head > max(self.trained, self.untrained):
            lines.append("the head is best: teach the training questions with kbtools teach KB FILE")
        if self.questions < _FEW:
            lines.append(f"{self.questions:,} validation questions are too few for a choice; use {_FEW:,} or more")
        return lines


def measure_untrained(
    answerer: Answerer,
    trained: NDArray[np.float64],
    *,
    learn: Sequence[AnnotatedQuestion],
    valid: Sequence[AnnotatedQuestion],
) -> Untrained:
    """Return how the system without models, and its head, answer validation questions.

    `trained` is the probability that the trained system answers each of them right: (questions,).
    """
    system = answerer.system()
    rights = [expect(answerer.opened(system), valid)]
    if any(isinstance(answerer.parts.scorer(name), Teachable) for name in system.scorers):
        questions = [TaughtQuestion(gold.text, gold.subject, gold.relation) for gold in learn[:_MOST_LEARNED]]
        taught = read_taught(answerer.kb, questions)
        rights.append(expect(answerer.open_system(system, taught), valid) if taught else rights[0])
    best = max(rights, key=lambda right: float(right.mean()))
    low, high = mean_interval(best - trained)
    shares = [float(right.mean()) for right in (trained, *rights)]
    return Untrained(system, len(valid), shares[0], shares[1], shares[2] if rights[1:] else None, low, high)
