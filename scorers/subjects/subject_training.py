"""The objective of subject scorers over types: types of gold subjects become probable, all others improbable; and the
network with a vector for each entity, with its objective (paper, section Approximation).
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.fitting.measures import Namesakes, relation_marks
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.checkpoint import Checkpoint
from kbtools.scorers.networks.devices import arrays, build_network, restore_network, scoring
from kbtools.scorers.networks.training_settings import EncoderConfig, ObjectiveConfig
from kbtools.scorers.networks.word_networks import BiGRU, initialise, moved
from kbtools.scorers.networks.words import TEXTS_AT_ONCE, WordVectors, group_by_length
from kbtools.scorers.subjects.entity_vectors import RandomVectorScorer
from kbtools.scorers.subjects.subject import TypeVectorScorer
from kbtools.scorers.subjects.transe import load_vectors
from kbtools.scorers.subjects.vector_files import entity_count

ALPHA = 1.0
"""The weight of h(r, s) in training; the paper does not give its alpha."""


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
        # gold[question, type] = 1 for every type of every question's subject.
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


class _EntityNetwork(nn.Module):
    """g as a BiGRU, E(s) as a table."""

    def __init__(self, encoder: BiGRU, entities: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.table = nn.Embedding(entities, encoder.dim)

    @property
    def device(self) -> torch.device:
        return self.table.weight.device

    def embed(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Return g(q) of texts of one length: (batch, dim)."""
        vectors: Tensor = self.encoder(*moved(self.encoder.collate(texts), self.device))
        return vectors

    def questions(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self.encoder.dim), dtype=np.float32)
        self.eval()
        with scoring(len(texts)):
            for rows in group_by_length(texts, most=TEXTS_AT_ONCE):
                vectors[rows] = self.embed([texts[row] for row in rows]).float().cpu().numpy()
        return vectors

    def subjects(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        with scoring(len(rows)):
            vectors: NDArray[np.float32] = self.table(torch.from_numpy(rows).to(self.device)).float().cpu().numpy()
        return vectors

    def checkpoint(self) -> Checkpoint:
        graph, laid_out = self.encoder.graph()
        weights = {**arrays(self), **{f"encoder.{name}": array for name, array in laid_out.items()}}
        return Checkpoint(asdict(self.encoder.config), self.encoder.vocabulary, (), weights, graph)


def make_entity_network(
    config: EncoderConfig,
    *,
    kb: KnowledgeBase,
    texts: Sequence[Sequence[str]],
    words: WordVectors,
    seed: int,
    folder: Path | None = None,
) -> _EntityNetwork:
    """Build an untrained network; vectors in a folder, if given, initialise E(s) and set `dim`."""
    vectors = load_vectors(folder, kb) if folder else None
    config = config if vectors is None else replace(config, dim=vectors.shape[1], direct=False)
    torch.manual_seed(seed)
    vocabulary = BiGRU.collect(texts, words=words, config=config)
    network = build_network(lambda: _EntityNetwork(BiGRU(config, vocabulary), entity_count(kb)))
    initialise(network)
    network.encoder.initialise(words)
    if vectors is not None:
        with torch.no_grad():
            network.table.weight.copy_(vectors)
    return network.eval()


def rebuild_entity_network(saved: Checkpoint, kb: KnowledgeBase, *, folder: Path, device: str) -> _EntityNetwork:
    """Rebuild a trained network."""
    encoder = BiGRU(EncoderConfig(**saved.config), saved.vocabulary)
    network = _EntityNetwork(encoder, entity_count(kb))
    return restore_network(network, saved.weights, folder=folder, device=device, encoder=encoder)


class SubjectTask:
    """The task of scoring the gold subject above sampled ones, by u of the gold relation (paper, Approximation).

    Samples are drawn for each batch and shared by its questions.
    """

    def __init__(
        self, scorer: RandomVectorScorer, config: ObjectiveConfig, *, kb: KnowledgeBase, splits: Splits
    ) -> None:
        train = splits.train
        assert isinstance(scorer.network, _EntityNetwork)
        self.network = scorer.network
        self.save = scorer.save
        self.scorer, self.config, self.kb = scorer, config, kb
        self.rows = np.flatnonzero(train.subjects >= 0)
        self.texts = [scorer.text(train.questions[row]) for row in self.rows]
        self.subjects, self.relations = train.subjects[self.rows], train.relations[self.rows]
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.namesakes = Namesakes.find(kb, splits.valid)

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Sum the losses of the samples of a question: (batch,)."""
        return self.sample_losses(rows).sum(dim=1)

    def sample_losses(self, rows: NDArray[np.int64]) -> Tensor:
        """Return max(0, margin - u(gold) + u(sampled)) of each sample: (batch, samples)."""
        device = self.network.device
        questions = self.network.embed([self.texts[row] for row in rows]).float()
        gold = torch.from_numpy(self.subjects[rows]).to(device)
        # Drawn on the CPU, so that a GPU gets the same ones.
        sampled = torch.randint(self.network.table.num_embeddings, (self.config.negatives,))
        has = relation_marks(self.kb, sampled.numpy(), len(self.kb.relations))[:, self.relations[rows]].T
        # The gold subject has the gold relation, so h is 1 for it.
        right = (questions * self.network.table(gold)).sum(dim=1, keepdim=True) + ALPHA
        wrong = questions @ self.network.table(sampled.to(device)).T + ALPHA * torch.from_numpy(has).float().to(device)
        losses = torch.relu(self.config.margin - right + wrong)
        # A sample equal to the gold subject is not a negative.
        return losses.masked_fill(sampled.to(device) == gold[:, None], 0.0)

    def measure(self) -> dict[str, float]:
        return {"of namesakes told apart": self.namesakes.share_told_apart(self.scorer)}
