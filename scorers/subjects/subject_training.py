"""The objective of subject scorers over types: the types of gold subjects probable, all others improbable."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.fitting.measures import Namesakes
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.subjects.subject import TypeVectorScorer


class TypeTask:
    """The task of making the types of gold subjects probable, all others improbable (paper, section Approximation)."""

    def __init__(self, scorer: TypeVectorScorer, *, kb: KnowledgeBase, splits: Splits) -> None:
        self.scorer = scorer
        self.network = scorer.trainable
        self.save = scorer.save
        self.kb = kb
        train = splits.train
        # A subject without types would teach that no type is meant.
        known = np.flatnonzero(train.subjects >= 0)
        typed = np.diff(kb.types_of(train.subjects[known].astype(np.uint32)).starts) > 0
        self.rows = known[typed]
        self.texts = [scorer.text(train.questions[row]) for row in self.rows]
        self.subjects = train.subjects[self.rows].astype(np.uint32)
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.namesakes = Namesakes.find(kb, splits.valid)

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the type-wise cross entropy of a batch: (batch,)."""
        scores = self.network.scores([self.texts[row] for row in rows]).float()
        types = self.kb.types_of(self.subjects[rows])
        gold = torch.zeros(scores.shape)
        # For every question, for every type of its subject: gold[question, type] = 1.
        owner = np.repeat(np.arange(len(rows)), np.diff(types.starts))
        gold[torch.from_numpy(owner), torch.from_numpy(types.values.astype(np.int64))] = 1.0
        return type_wise_cross_entropy(scores, types=gold.to(scores.device))

    def measure(self) -> dict[str, float]:
        return {"of namesakes told apart": self.namesakes.share_told_apart(self.scorer)}


def type_wise_cross_entropy(scores: Tensor, *, types: Tensor) -> Tensor:
    """Sum the binary cross entropy of every type (paper, section Approximation), scores before the sigmoid.

    scores (batch, types), types (batch, types) of zeros and ones -> (batch,)
    """
    return F.binary_cross_entropy_with_logits(scores, types, reduction="none").sum(dim=1)
