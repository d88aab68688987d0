"""What scorers are: v(r, q) of the paper (Eq. 10) and u(s, r, q) (Eq. 12), for questions whose mention is known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.question import MarkedQuestion


class RelationScorer(Protocol):
    """Score every relation of a knowledge base for each question.

    An untrained scorer is made with the relations, by row; a trained one is made by its `load` instead.
    """

    def score(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Give v(r, q): (questions, relations), higher is better, log-probabilities up to a constant per question."""
        ...


class SubjectScorer(Protocol):
    """Score subjects for a question: the context score g(q)·E(s) of the paper (Eq. 12)."""

    def score(
        self, asked: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        """Give u of `subjects[k]` under `asked[which[k]]`: (subjects,), higher is better."""
        ...


@runtime_checkable
class VectorScorer(SubjectScorer, Protocol):
    """A subject scorer whose g(q) and E(s) can be asked for, so that nearest entities can be searched for."""

    @property
    def dim(self) -> int: ...

    def embed_questions(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Give g(q): (questions, dim)."""
        ...

    def embed_subjects(self, subjects: EntityRows) -> NDArray[np.float32]:
        """Give E(s): (subjects, dim)."""
        ...


@runtime_checkable
class Trained(Protocol):
    """A plugin that `kbtools train` makes: rebuilt from a folder with no other knowledge than the knowledge base."""

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a scorer; raise ModelError where the folder is damaged, newer, or of another knowledge base."""
        ...


class Averaged:
    """Several relation scorers as one: the mean of their log-probabilities over all relations."""

    def __init__(self, scorers: Sequence[RelationScorer]) -> None:
        self.scorers = scorers

    def score(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        total = sum(log_softmax(scorer.score(asked)) for scorer in self.scorers)
        return np.asarray(total) / len(self.scorers)


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normalise scores to log-probabilities along their last axis (paper, Eq. 9)."""
    peak = scores.max(axis=-1, keepdims=True)
    normalised: NDArray[np.float64] = scores - peak - np.log(np.exp(scores - peak).sum(axis=-1, keepdims=True))
    return normalised
