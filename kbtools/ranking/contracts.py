"""Contracts of scorers, v(r, q) of the paper (Eq. 10) and u(s, r, q) (Eq. 12), for questions with a known mention."""

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
    """A scorer of every relation of a knowledge base for each question.

    An untrained scorer is made with the relations, by row; a trained one is made by its `load` instead.
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
        """Return the columns of `score` for relations given by row, each equal but for rounding: (questions, some)."""
        ...


@runtime_checkable
class Teachable(RelationScorer, Protocol):
    """A relation scorer that compares a vector of the question with each relation, so that a head can be taught."""

    def embed(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Return f(q): (questions, dim)."""
        ...

    def score_embedded(self, vectors: NDArray[np.float32], questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Return v(r, q) of questions with these vectors: (questions, relations)."""
        ...


class SubjectScorer(Protocol):
    """A scorer of subjects for a question: the context score g(q)·E(s) of the paper (Eq. 12)."""

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        """Return u of `subjects[k]` under `questions[which[k]]`: (subjects,), higher is better."""
        ...


@runtime_checkable
class VectorScorer(SubjectScorer, Protocol):
    """A subject scorer whose g(q) and E(s) can be asked for, so that nearest entities can be searched for."""

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
    """A plugin that `kbtools train` makes: rebuilt from a folder with no other knowledge than the knowledge base."""

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a scorer; raise ModelError where the folder is damaged, newer, or of another knowledge base."""
        ...


@runtime_checkable
class ZeroShot(Protocol):
    """A plugin that answers where `kbtools train` has made no model of it too, from what others have trained."""

    @classmethod
    def zero_shot(cls, relations: Sequence[str], *, device: str = "cpu") -> RelationScorer:
        """Make a scorer from what the relations are called, by row."""
        ...

    @classmethod
    def origin(cls) -> str:
        """Return what it starts from; another text means other scores."""
        ...


def log_total(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the sum of exp(scores) along their last axis, which stays with one place."""
    if not scores.shape[-1]:  # a knowledge base without facts has no relation to choose from
        return np.zeros((*scores.shape[:-1], 1))
    peak = scores.max(axis=-1, keepdims=True)
    raised = scores - peak
    np.exp(raised, out=raised)
    total: NDArray[np.float64] = peak + np.log(raised.sum(axis=-1, keepdims=True))
    return total


def as_scores(scores: object, *, scorer: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Convert what a scorer gave, a list or a tensor included, to an array of a shape.

    Raises BrokenPlugin for what holds other than numbers, for another shape, and for a number that is not finite.
    """
    try:
        if hasattr(scores, "detach"):  # a tensor: of any device and precision, with or without gradients
            scores = scores.detach().cpu().double()  # in this order: mps has no doubles
        array = np.asarray(scores)
        numbers = None if scores is None or array.dtype.kind in "USMmc" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):  # lists of unequal lengths, objects that are no numbers
        numbers = None
    if numbers is None:
        raise BrokenPlugin(
            f"scorer {scorer} gave {type(scores).__name__} that holds other than numbers in rows of one length, "
            f"expected an array of numbers {shape}",
            name=scorer,
        )
    if numbers.shape != shape:
        raise BrokenPlugin(f"scorer {scorer} gave scores {numbers.shape}, expected {shape}", name=scorer)
    if not np.isfinite(numbers).all():
        raise BrokenPlugin(f"scorer {scorer} gave a score that is no finite number", name=scorer)
    return numbers
