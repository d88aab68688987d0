"""The objective of relation scorers: the gold relation of a question above the others."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.fitting.measures import measure_relations, relation_marks
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.network import TrainedNetwork
from kbtools.scorers.networks.training_settings import ObjectiveConfig


class RelationTask:
    """The task of ranking the gold relation of each training question above the others."""

    def __init__(self, scorer: TrainedNetwork, config: ObjectiveConfig, *, kb: KnowledgeBase, splits: Splits) -> None:
        self.scorer = scorer
        self.network = scorer.trainable
        self.save = scorer.save
        self.config = config
        self.kb = kb
        self.train, self.valid = splits.train, splits.valid
        self.texts = [scorer.text(question) for question in self.train.questions]
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.seen, self.gold = np.unique(self.train.relations, return_inverse=True)
        if not self.network.encoder.names:
            self.seen, self.gold = np.arange(len(scorer.rows)), self.train.relations

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the losses of a batch; relations read by name compete only if seen in training.

        Lowering names that no question asks for would make unseen relations unreadable.
        """
        scores = self.network.scores([self.texts[row] for row in rows], rows=self.seen).float()
        gold = torch.from_numpy(self.gold[rows]).to(scores.device)
        if self.config.objective == "cross-entropy":
            return cross_entropy(scores, gold=gold)
        has = relation_marks(self.kb, self.train.subjects[rows], len(self.scorer.rows))
        # Drawn on the device: for all relations of FB5M the CPU takes 41 ms per batch.
        forbidden = torch.from_numpy(has[:, self.seen]).to(scores.device)
        # The gold relation is never a negative, even if the knowledge base lacks the fact.
        forbidden.scatter_(1, gold[:, None], True)
        negatives = sample_negatives(forbidden, count=self.config.negatives)
        return hinge(scores, gold=gold, negatives=negatives, margin=self.config.margin)

    def measure(self) -> dict[str, float]:
        """Return the share of questions whose relation is first, among the relations of the subject and among all."""
        scores = self.scorer.score_texts([self.scorer.text(question) for question in self.valid.questions])
        return measure_relations(scores, self.valid, relation_marks(self.kb, self.valid.subjects, scores.shape[1]))


def hinge(scores: Tensor, *, gold: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Sum max(0, margin - v(gold) + v(negative)) over the negatives of a question (paper, section Approximation).

    scores (batch, rows), gold (batch,), negatives (batch, negatives) -> (batch,)
    """
    right = scores.gather(1, gold[:, None])
    return torch.relu(margin - right + scores.gather(1, negatives)).sum(dim=1)


def cross_entropy(scores: Tensor, *, gold: Tensor) -> Tensor:
    """Return -log p(gold|q), p as in Eq. 9 of the paper: scores (batch, rows), gold (batch,) -> (batch,)."""
    return F.cross_entropy(scores, gold, reduction="none")


def sample_negatives(forbidden: Tensor, *, count: int) -> Tensor:
    """Draw rows uniformly, with replacement, from those not forbidden: relations that the subject lacks.

    forbidden (batch, rows) of booleans -> (batch, count). If all rows of a question are forbidden, any may be drawn.
    """
    # Equal weights for allowed rows, zero for the others.
    allowed = (~forbidden).float()
    allowed[allowed.sum(dim=1) == 0] = 1.0
    return torch.multinomial(allowed, count, replacement=True)
