"""The training of `encoder`: its upper layers learn from states of the lower ones, which are computed once."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.encoders.encoder import EncoderScorer
from kbtools.scorers.fitting.measures import measure_relations, relation_marks
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.training_settings import PretrainedConfig
from kbtools.scorers.networks.words import group_by_length

_TEXTS_AT_ONCE = 256
"""Texts whose frozen states are computed together."""


class EncoderTask:
    """The task of ranking the gold relations of each distinct text above the others.

    Questions that differ only in their mention are one text, weighted by their number, whose gold is the distribution
    of its relations. As with `ltg-cnn`, only relations seen in training compete, so that the names of others stay
    readable; dropping the learned part of a relation at random teaches the layers to read its name.
    """

    def __init__(
        self,
        scorer: EncoderScorer,
        texts: Sequence[str],
        config: PretrainedConfig,
        *,
        kb: KnowledgeBase,
        splits: Splits,
    ) -> None:
        self.scorer = scorer
        self.network = scorer.trainable
        self.save = scorer.save
        self.config = config
        self.kb = kb
        self.valid = splits.valid
        self.transformer = self.network.encoder.transformer
        self.layers = len(self.transformer.layers)
        self.frozen = max(self.layers - config.trained_layers, 0)
        self.transformer.layers[self.frozen :].requires_grad_(True)
        seen, gold = np.unique(splits.train.relations, return_inverse=True)
        self.seen = torch.from_numpy(seen)
        counts: dict[str, Counter[int]] = {}
        for text, relation in zip(texts, gold.tolist(), strict=True):
            counts.setdefault(text, Counter())[relation] += 1
        totals = torch.tensor([golds.total() for golds in counts.values()], dtype=torch.float32)
        self.weights = totals / totals.mean()
        # The relations of each text, and the share of each.
        self.golds = [(list(golds), torch.tensor(list(golds.values())) / golds.total()) for golds in counts.values()]
        self.tokens = self.network.encoder.tokens(list(counts))
        self.lengths = np.array([len(tokens) for tokens in self.tokens], dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.states: Tensor | None = None

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the losses of texts of one length: (batch,)."""
        if self.states is None:
            self.states = self.frozen_states()
        device = self.states.device
        length = int(self.lengths[rows[0]])
        states = self.states[self.places(rows).to(device)].float()
        states = self.transformer.run(states, length, first=self.frozen, last=self.layers, dropout=self.config.dropout)
        vectors = self.network.encoder.pool(states, length)
        scores = self.network.compare(vectors, self.seen.to(device), dropped=self.config.learned_dropout)
        gold = torch.zeros(scores.shape)
        for place, row in enumerate(rows.tolist()):
            relations, shares = self.golds[row]
            gold[place, relations] = shares
        losses: Tensor = -(gold.to(device) * scores.float().log_softmax(dim=1)).sum(dim=1)
        return losses * self.weights[torch.from_numpy(rows)].to(device)

    def places(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the positions of the states of texts of one length: (batch · length,)."""
        return torch.from_numpy(self.starts[rows][:, None] + np.arange(self.lengths[rows[0]])).view(-1)

    def frozen_states(self) -> Tensor:
        """Return the states below the first trained layer of the tokens of all texts, end to end: (tokens, dim).

        They are stored in half precision: 160 MB for the 209,341 tokens of FBSQ's texts.
        """
        device = self.network.encoder.device
        size = int(self.lengths.sum()), self.transformer.config.dim
        states = torch.empty(size, dtype=torch.float16, device=device)
        self.transformer.eval()
        with torch.no_grad():
            for rows in group_by_length(self.tokens, most=_TEXTS_AT_ONCE):
                group = torch.tensor([self.tokens[row] for row in rows], device=device)
                below = self.transformer.run(self.transformer.embed(group), group.shape[1], first=0, last=self.frozen)
                states[self.places(np.array(rows)).to(device)] = below.half()
        self.transformer.train()
        return states

    def measure(self) -> dict[str, float]:
        """Return the share of questions whose relation is first, among the relations of the subject and among all."""
        scores = self.scorer.score(self.valid.questions)
        has = relation_marks(self.kb, self.valid.subjects, scores.shape[1])
        return measure_relations(scores, self.valid, has)
