"""What a relation scorer is: v(r, q) of the paper (Eq. 10), for questions whose mention is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.ngrams import Question


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the characters of it that name the subject; the rest speaks of the relation."""

    question: Question
    start: int
    end: int

    def context(self) -> list[str]:
        """List the words outside the mention."""
        return [
            token.text
            for token in self.question.tokens
            if token.is_word and not (self.start <= token.start and token.end <= self.end)
        ]


class RelationScorer(Protocol):
    """Score every relation of a knowledge base for each question; made once, with the relations by row."""

    def __init__(self, relations: Sequence[str]) -> None: ...

    def score(self, asked: Sequence[Asked]) -> NDArray[np.float64]:
        """Give v(r, q): (questions, relations), higher is better, log-probabilities up to a constant per question."""
        ...
