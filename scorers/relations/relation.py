"""Relation scorers with a network, v(r, q) = f(q)·E(r) (paper, Eq. 10)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.network import BIGRU, EMBED_AVERAGE, LETTER_TRIGRAMS, TrainedNetwork
from kbtools.scorers.networks.training_settings import TrainingSettings
from kbtools.scorers.networks.words import name_words
from kbtools.text.question import MarkedQuestion

if TYPE_CHECKING:
    from kbtools.scorers.fitting.training_loop import Task


class RelationNetwork(TrainedNetwork):
    """A relation scorer with a network; a subclass names its encoder, and sets `symbol` to replace the mention."""

    what = "relations"

    @classmethod
    def rows_of(cls, kb: KnowledgeBase) -> Sequence[str]:
        return kb.relations

    @classmethod
    def names_of(cls, rows: Sequence[str]) -> list[list[str]]:
        return [name_words(relation) for relation in rows]

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> "Task":
        """Build the task of an untrained scorer."""
        make: Callable[..., Task] = import_object("kbtools.scorers.relations.relation_training:RelationTask")
        return make(cls.untrained(kb, splits.train.questions, settings), settings.objective, kb=kb, splits=splits)

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.score_questions(questions).astype(np.float64)


class EmbedAverageScorer(RelationNetwork):
    """The relation scorer `embed-avg`."""

    encoder = EMBED_AVERAGE


class EmbedAveragePlusScorer(EmbedAverageScorer):
    """The relation scorer `embed-avg+`: a symbol replaces the mention."""

    symbol = True


class BiGRUScorer(RelationNetwork):
    """The relation scorer `bigru`."""

    encoder = BIGRU


class BiGRUPlusScorer(BiGRUScorer):
    """The relation scorer `bigru+`: a symbol replaces the mention."""

    symbol = True


class LetterTrigramScorer(RelationNetwork):
    """The relation scorer `ltg-cnn`."""

    encoder = LETTER_TRIGRAMS


class LetterTrigramPlusScorer(LetterTrigramScorer):
    """The relation scorer `ltg-cnn+`: a symbol replaces the mention."""

    symbol = True
