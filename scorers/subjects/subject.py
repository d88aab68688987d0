"""Subject scorers over types: g(q)·E(s) of u(s, r, q) (paper, Eq. 12), E(s) a type vector.

It also has controls that only count, without reading the question; any subject network must beat them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.errors import NothingToLearn
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.network import BIGRU, EMBED_AVERAGE, Network, TrainedNetwork
from kbtools.scorers.networks.training_settings import TrainingSettings
from kbtools.scorers.networks.words import name_words
from kbtools.text.question import MarkedQuestion

if TYPE_CHECKING:
    from kbtools.scorers.fitting.training_loop import Task


class TypeVectorScorer(TrainedNetwork):
    """The subject scorer `type-vector`: g is a BiGRU with a sigmoid, E(s) a bag of types of zeros and ones."""

    encoder = BIGRU
    what = "types"
    biased = True
    model: ClassVar[str | None] = None
    """The name of the model to load, if it differs from the scorer's."""

    def __init__(self, network: Network, rows: Sequence[str], kb: KnowledgeBase | None = None) -> None:
        super().__init__(network, rows)
        self.kb = kb

    @classmethod
    def rows_of(cls, kb: KnowledgeBase) -> Sequence[str]:
        return kb.types

    @classmethod
    def names_of(cls, rows: Sequence[str]) -> list[list[str]]:
        return [name_words(kind) for kind in rows]

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        scorer = super().load(folder, kb, device=device)
        scorer.kb = kb
        return scorer

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> "Task":
        """Build an untrained scorer's task; raise NothingToLearn if the knowledge base has no types."""
        if not kb.types:
            raise NothingToLearn(
                "the knowledge base has no types, which subject scorers over types learn from; index it with --types, "
                "or train the subject scorer random"
            )
        scorer = cls.untrained(kb, splits.train.questions, settings)
        scorer.kb = kb
        make: Callable[..., Task] = import_object("kbtools.scorers.subjects.subject_training:TypeTask")
        return make(scorer, kb=kb, splits=splits)

    @property
    def dim(self) -> int:
        return len(self.rows)

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        probable = self.probable_types(questions)
        types, counts, owner = self.types_of(subjects)
        # The sum over the types of every subject of the probability that its question gives each.
        gained = probable[which[owner], types]
        products = np.bincount(owner, weights=gained, minlength=len(subjects)).astype(np.float64)
        return self.similarity(products, counts)

    def embed_questions(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        return self.probable_types(questions).astype(np.float32)

    def embed_subjects(self, subjects: EntityRows) -> NDArray[np.float32]:
        types, _, owner = self.types_of(subjects)
        vectors = np.zeros((len(subjects), self.dim), dtype=np.float32)
        vectors[owner, types] = 1.0
        return vectors

    def probable_types(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        """Return g(q), the probability of each type: (questions, types)."""
        probable: NDArray[np.float64] = 1 / (1 + np.exp(-self.score_questions(questions).astype(np.float64)))
        return probable

    def types_of(self, subjects: EntityRows) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
        """Return the types of subjects, the number of each subject's types, and the subject of each type."""
        if self.kb is None:
            raise ValueError("a subject scorer needs its knowledge base")
        types = self.kb.types_of(subjects)
        counts = np.diff(types.starts)
        return types.values, counts, np.repeat(np.arange(len(subjects)), counts)

    def similarity(self, products: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return g(q)·E(s) unchanged."""
        return products


class TypeCosineScorer(TypeVectorScorer):
    """The subject scorer `type-cosine`: the cosine instead of the product, so that many types are no advantage.

    |g(q)| is the same for every subject and left out. It uses the model of `type-vector`. Beyond the paper.
    """

    model: ClassVar[str | None] = "type-vector"

    def similarity(self, products: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Divide g(q)·E(s) by the length of E(s), the root of its number of types."""
        return products / np.sqrt(np.maximum(counts, 1))


class TypeVectorAverageScorer(TypeVectorScorer):
    """The subject scorer `type-vector-avg`: g is an Embed-AVG (paper, section Additional Analysis)."""

    encoder = EMBED_AVERAGE


class FactCount:
    """The subject scorer `fact-count`: the logarithm of the number of a subject's facts."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        counted: NDArray[np.float64] = np.log1p(self.counts(subjects))
        return counted

    def counts(self, subjects: EntityRows) -> NDArray[np.int64]:
        return self.kb.fact_counts(subjects)


class TypeCount(FactCount):
    """The subject scorer `type-count`: the logarithm of the number of a subject's types."""

    def counts(self, subjects: EntityRows) -> NDArray[np.int64]:
        return np.diff(self.kb.types_of(subjects).starts)
