"""Relation scorers with a network, v(r, q) = f(q)·E(r) (paper, Eq. 10)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.network import TrainedNetwork
from kbtools.scorers.networks.training_settings import TrainingSettings
from kbtools.scorers.networks.words import UNKNOWN, load_words
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import relation_words

if TYPE_CHECKING:
    from kbtools.scorers.relations.relation_training import RelationTask


def name_words(relation: str) -> list[str]:
    """Split the name of a relation or a type into the words that a network reads, one at least."""
    return relation_words(relation) or [UNKNOWN]


class RelationNetwork(TrainedNetwork):
    """A relation scorer with a network; a subclass names its encoder, and whether a symbol stands for the mention."""

    what = "relations"

    @classmethod
    def rows_of(cls, kb: KnowledgeBase) -> Sequence[str]:
        return kb.relations

    @classmethod
    def names_of(cls, rows: Sequence[str]) -> list[list[str]]:
        return [name_words(relation) for relation in rows]

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> "RelationTask":
        """Make an untrained scorer, and what it learns."""
        from kbtools.scorers.relations.relation_training import RelationTask

        scorer = cls.new(
            settings.encoder,
            rows=kb.relations,
            texts=[cls.text(question) for question in splits.train.questions],
            words=load_words(settings.source.words),
            seed=settings.fit.seed,
        )
        return RelationTask(scorer, settings.objective, kb=kb, splits=splits)

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.score_questions(questions).astype(np.float64)
