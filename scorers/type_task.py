"""What a subject scorer over type vectors learns: the types of the gold subject, each on its own."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import SubjectScorer
from kbtools.scorers.dot import DotScorer
from kbtools.scorers.examples import Examples
from kbtools.scorers.losses import type_wise_cross_entropy
from kbtools.scorers.subject import TypeVectorScorer


class TypeTask:
    """Make the types of the gold subjects probable, and all others improbable (paper, section Approximation)."""

    def __init__(self, scorer: TypeVectorScorer, *, kb: KnowledgeBase, train: Examples, valid: Examples) -> None:
        self.scorer = scorer
        self.kb = kb
        known = np.flatnonzero(train.subjects >= 0)
        typed = np.diff(kb.types_of(train.subjects[known].astype(np.uint32)).starts) > 0
        self.kept = known[typed]
        self.texts = [scorer.text(train.asked[row]) for row in self.kept]
        self.subjects = train.subjects[self.kept].astype(np.uint32)
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.valid = Namesakes.find(kb, valid)

    @property
    def network(self) -> DotScorer:
        return self.scorer.network

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Give the type-wise cross entropy of a batch: (batch,)."""
        scores = self.network.scores([self.texts[row] for row in rows]).float()
        types = self.kb.types_of(self.subjects[rows])
        gold = torch.zeros(scores.shape)
        owner = np.repeat(np.arange(len(rows)), np.diff(types.starts))
        gold[torch.from_numpy(owner), torch.from_numpy(types.values.astype(np.int64))] = 1.0
        return type_wise_cross_entropy(scores, types=gold.to(scores.device))

    def measure(self) -> dict[str, float]:
        return {"of namesakes told apart": self.valid.share_told_apart(self.scorer)}


class Namesakes:
    """Questions whose mention names several entities that have the gold relation: one of them is meant."""

    def __init__(self, examples: Examples, rows: list[int], entities: list[NDArray[np.uint32]]) -> None:
        self.examples, self.rows, self.entities = examples, rows, entities

    @classmethod
    def find(cls, kb: KnowledgeBase, examples: Examples) -> "Namesakes":
        rows, entities = [], []
        for row, mention in enumerate(examples.mentions):
            matches = kb.lookup([mention.form]).get(mention.form, ()) if mention else ()
            if not matches:
                continue
            named = np.unique(np.concatenate([match.entities for match in matches]))
            pairs = kb.relations_of(named)
            has = pairs.values == examples.relations[row]
            able = named[np.repeat(np.arange(len(named)), np.diff(pairs.starts))[has]]
            if len(able) > 1 and examples.subjects[row] in able:
                rows.append(row)
                entities.append(able)
        return cls(examples, rows, entities)

    def share_told_apart(self, scorer: SubjectScorer) -> float:
        """Give the share of questions whose gold subject scores highest, a tie as its expected value."""
        if not self.rows:
            return 0.0
        which = np.repeat(np.arange(len(self.rows)), [len(found) for found in self.entities])
        subjects = np.concatenate(self.entities)
        scores = scorer.score([self.examples.asked[row] for row in self.rows], which=which, subjects=subjects)
        best = np.full(len(self.rows), -np.inf)
        np.maximum.at(best, which, scores)
        first = np.isclose(scores, best[which], rtol=0, atol=1e-9)
        right = first & (subjects == self.examples.subjects[self.rows][which])
        ties = np.bincount(which, weights=first)
        return float(np.mean(np.bincount(which, weights=right) / ties))
