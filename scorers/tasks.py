"""What relation scorers learn: to rank the gold relation first, by cross entropy or by the paper's hinge."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.dot import DotScorer
from kbtools.scorers.examples import Examples
from kbtools.scorers.losses import cross_entropy, hinge
from kbtools.scorers.negatives import sample_negatives
from kbtools.scorers.relation import RelationNetwork
from kbtools.scorers.settings import ObjectiveConfig


class RelationTask:
    """Rank the gold relation of each training question above the others."""

    def __init__(
        self,
        scorer: RelationNetwork,
        config: ObjectiveConfig,
        *,
        kb: KnowledgeBase,
        train: Examples,
        valid: Examples,
    ) -> None:
        self.scorer = scorer
        self.config = config
        self.kb = kb
        self.texts = [scorer.text(asked) for asked in train.asked]
        self.train, self.valid = train, valid
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.seen, self.gold = np.unique(train.relations, return_inverse=True)
        if not scorer.encoder.names:
            self.seen, self.gold = np.arange(len(scorer.rows)), train.relations

    @property
    def network(self) -> DotScorer:
        return self.scorer.network

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Give the losses of a batch; relations that are read by name compete only if training has seen them.

        To push down the names that no question asks for would unlearn what makes unseen relations readable.
        """
        scores = self.network.scores([self.texts[row] for row in rows], rows=self.seen).float()
        gold = torch.from_numpy(self.gold[rows]).to(scores.device)
        if self.config.objective == "cross-entropy":
            return cross_entropy(scores, gold=gold)
        forbidden = torch.from_numpy(self.relations_of(self.train.subjects[rows])[:, self.seen])
        forbidden[torch.arange(len(rows)), gold.cpu()] = True
        negatives = sample_negatives(forbidden, count=self.config.negatives).to(scores.device)
        return hinge(scores, gold=gold, negatives=negatives, margin=self.config.margin)

    def relations_of(self, subjects: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mark the relations that subjects have: (subjects, relations)."""
        return relation_marks(self.kb, subjects, len(self.scorer.rows))

    def measure(self) -> dict[str, float]:
        """Give the share of validation questions whose relation is first: of those that the subject has, and of all."""
        scores = self.scorer.score_texts([self.scorer.text(asked) for asked in self.valid.asked])
        return measure_relations(scores, self.valid, self.relations_of(self.valid.subjects))


def relation_marks(kb: KnowledgeBase, subjects: NDArray[np.int64], relations: int) -> NDArray[np.bool_]:
    """Mark the relations that subjects have: (subjects, relations); a subject of row -1 has none."""
    marks = np.zeros((len(subjects), relations), dtype=np.bool_)
    present = np.flatnonzero(subjects >= 0)
    pairs = kb.relations_of(subjects[present].astype(np.uint32))
    marks[np.repeat(present, np.diff(pairs.starts)), pairs.values] = True
    return marks


def measure_relations(scores: NDArray[np.float32], examples: Examples, has: NDArray[np.bool_]) -> dict[str, float]:
    """Give the share of questions whose gold relation is first, a tie as its expected value."""
    return {
        "of all relations": first_share(scores, examples.relations),
        "given the subject": first_share(np.where(has, scores, -np.inf), examples.relations),
    }


def first_share(scores: NDArray[np.float32], gold: Sequence[int] | NDArray[np.int64]) -> float:
    """Give the mean probability that gold is drawn from the first of each row: 1/k for one of k that tie."""
    best = scores.max(axis=1)
    right = scores[np.arange(len(scores)), gold] == best
    return float(np.mean((right & np.isfinite(best)) / (scores == best[:, None]).sum(axis=1)))
