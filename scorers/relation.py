"""Relation scorers that are trained: v(r, q) = f(q)·E(r) (paper, Eq. 10), with f as an encoder."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.network import TrainedNetwork
from kbtools.scorers.vocabulary import UNKNOWN
from kbtools.text.question import MarkedQuestion
from kbtools.text.relation_words import relation_words


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

    def score(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return self.score_asked(asked).astype(np.float64)
