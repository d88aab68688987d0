"""What subject scorers with a vector for each entity learn: the paper's hinge over sampled subjects."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.entity_vectors import EntityNetwork, RandomVectorScorer
from kbtools.scorers.examples import Examples
from kbtools.scorers.settings import ObjectiveConfig
from kbtools.scorers.tasks import relation_marks
from kbtools.scorers.type_task import Namesakes

ALPHA = 1.0
"""The weight of h(r, s) in training; the paper does not give its alpha."""


class SubjectTask:
    """Score the gold subject above sampled ones, by u(s, r, q) with the gold relation (paper, Approximation).

    The samples are drawn anew for each batch, and its questions share them.
    """

    def __init__(
        self,
        scorer: RandomVectorScorer,
        config: ObjectiveConfig,
        *,
        kb: KnowledgeBase,
        train: Examples,
        valid: Examples,
    ) -> None:
        self.scorer, self.config, self.kb = scorer, config, kb
        self.kept = np.flatnonzero(train.subjects >= 0)
        self.texts = [scorer.text(train.asked[row]) for row in self.kept]
        self.subjects, self.relations = train.subjects[self.kept], train.relations[self.kept]
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.valid = Namesakes.find(kb, valid)

    @property
    def network(self) -> EntityNetwork:
        return self.scorer.network

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Sum max(0, margin - u(gold) + u(sampled)) over the samples of a question: (batch,)."""
        device = self.network.device
        questions = self.network.questions([self.texts[row] for row in rows]).float()
        gold = torch.from_numpy(self.subjects[rows]).to(device)
        sampled = torch.randint(self.network.table.num_embeddings, (self.config.negatives,))
        has = relation_marks(self.kb, sampled.numpy(), len(self.kb.relations))[:, self.relations[rows]].T
        right = (questions * self.network.table(gold)).sum(dim=1, keepdim=True) + ALPHA
        wrong = questions @ self.network.table(sampled.to(device)).T + ALPHA * torch.from_numpy(has).float().to(device)
        losses = torch.relu(self.config.margin - right + wrong)
        return losses.masked_fill(sampled.to(device) == gold[:, None], 0.0).sum(dim=1)

    def measure(self) -> dict[str, float]:
        return {"of namesakes told apart": self.valid.share_told_apart(self.scorer)}
