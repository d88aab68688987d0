"""Contracts of scorers, v(r, q) (paper, Eq. 10) and u(s, r, q) (Eq. 12), for questions with a known mention."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BrokenPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.text.question import MarkedQuestion


class RelationScorer(Protocol):
    """A scorer of every relation of a knowledge base.

    An untrained scorer is called with the relations, by row; a trained one is made by its `load`.
    """

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Return v(r, q): (questions, relations), higher is better, log-probabilities up to a constant per question."""
        ...


@runtime_checkable
class Selective(RelationScorer, Protocol):
    """A relation scorer that scores some relations faster than all of them."""

    def score_some(
        self, questions: Sequence[MarkedQuestion], relations: NDArray[np.unsignedinteger]
    ) -> NDArray[np.float64]:
        """Return the columns of `score` for some relations, given by row, equal up to rounding: (questions, some)."""
        ...


@runtime_checkable
class Teachable(RelationScorer, Protocol):
    """A relation scorer that compares question vectors with relations, so that a head can be taught."""

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Return f(q): (questions, dim)."""
        ...

    def score_embedded(self, vectors: NDArray[np.float32], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Return v(r, q) of questions with these vectors: (questions, relations)."""
        ...


class SubjectScorer(Protocol):
    """A scorer of subjects: the context score g(q)·E(s) of the paper (Eq. 12)."""

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        """Return u of `subjects[k]` for `questions[which[k]]`: (subjects,), higher is better."""
        ...


@runtime_checkable
class VectorScorer(SubjectScorer, Protocol):
    """A subject scorer that returns g(q) and E(s), so that nearest entities can be searched."""

    @property
    def dim(self) -> int: ...

    def embed_questions(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Return g(q): (questions, dim)."""
        ...

    def embed_subjects(self, subjects: EntityRows) -> NDArray[np.float32]:
        """Return E(s): (subjects, dim)."""
        ...


@runtime_checkable
class Trained(Protocol):
    """A plugin made by `kbtools train`, which is loaded from a folder and the knowledge base alone."""

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Return a saved scorer; raise ModelError if the folder is damaged, newer, or of another knowledge base."""
        ...


@runtime_checkable
class ZeroShot(Protocol):
    """A plugin that also works without a model from `kbtools train`, using published weights."""

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> RelationScorer:
        """Return a scorer made from the labels of the relations, by row."""
        ...

    @classmethod
    def origin(cls) -> str:
        """Return an identity of the published weights, which changes with the scores."""
        ...


def log_total(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exp(scores) along the last axis, which is kept with length 1."""
    if not scores.shape[-1]:  # a knowledge base without facts
        return np.zeros((*scores.shape[:-1], 1))
    peak = scores.max(axis=-1, keepdims=True)
    raised = scores - peak
    np.exp(raised, out=raised)
    total: NDArray[np.float64] = peak + np.log(raised.sum(axis=-1, keepdims=True))
    return total


def as_scores(scores: object, *, scorer: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the scores of a scorer, also from a list or a tensor, as an array of this shape.

    Raises BrokenPlugin for values that are not numbers, another shape, or a number that is not finite.
    """
    try:
        if hasattr(scores, "detach"):  # a tensor on any device
            scores = scores.detach().cpu().double()  # in this order: mps has no doubles
        array = np.asarray(scores)
        numbers = None if scores is None or array.dtype.kind in "USMmc" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):  # ragged lists, or objects that are not numbers
        numbers = None
    if numbers is None:
        raise BrokenPlugin(
            f"scorer {scorer} gave {type(scores).__name__} with ragged rows or values that are not numbers, "
            f"expected an array of numbers {shape}",
            name=scorer,
        )
    if numbers.shape != shape:
        raise BrokenPlugin(f"scorer {scorer} gave scores {numbers.shape}, expected {shape}", name=scorer)
    if not np.isfinite(numbers).all():
        raise BrokenPlugin(f"scorer {scorer} gave a score that is not finite", name=scorer)
    return numbers
