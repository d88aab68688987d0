"""Subject scorers with a vector for each entity: u(s, r, q) = g(q)·E(s) + alpha·1(s -> r) (paper, Eq. 12)."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.entities.transe import check_digest, entity_count, load_vectors
from kbtools.scorers.fitting.measures import Namesakes, relation_marks
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.base import initialise, moved
from kbtools.scorers.networks.checkpoint import Checkpoint, SavedNetwork, read_checkpoint
from kbtools.scorers.networks.devices import arrays, build_network, restore_network, scoring
from kbtools.scorers.networks.training_settings import EncoderConfig, ObjectiveConfig, TrainingSettings
from kbtools.scorers.networks.word_networks import BiGRU
from kbtools.scorers.networks.words import TEXTS_AT_ONCE, UNKNOWN, WordVectors, group_by_length, load_words
from kbtools.text.question import MarkedQuestion

ALPHA = 1.0
"""The weight of h(r, s) in training; the paper does not give its alpha."""


class EntityNetwork(nn.Module):
    """g as a BiGRU, E(s) as a table."""

    def __init__(self, encoder: BiGRU, entities: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.table = nn.Embedding(entities, encoder.dim)

    @property
    def device(self) -> torch.device:
        return self.table.weight.device

    def questions(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Return g(q) of texts of one length: (batch, dim)."""
        vectors: Tensor = self.encoder(*moved(self.encoder.collate(texts), self.device))
        return vectors


class RandomVectorScorer(SavedNetwork):
    """The subject scorer `random`: E(s) starts at random and is trained with g."""

    starts_from: ClassVar[str | None] = None
    """The model whose vectors E(s) starts from."""

    def __init__(self, network: EntityNetwork, digest: str) -> None:
        self.network = network
        self.digest = digest

    @classmethod
    def new(
        cls,
        config: EncoderConfig,
        *,
        kb: KnowledgeBase,
        texts: Sequence[Sequence[str]],
        words: WordVectors,
        seed: int,
        vectors: Tensor | None = None,
    ) -> Self:
        """Build an untrained scorer; with vectors of entities, `dim` must be theirs."""
        torch.manual_seed(seed)
        vocabulary = BiGRU.collect(texts, words=words, config=config)
        network = build_network(lambda: EntityNetwork(BiGRU(config, vocabulary), entity_count(kb)))
        initialise(network)
        network.encoder.initialise(words)
        if vectors is not None:
            with torch.no_grad():
                network.table.weight.copy_(vectors)
        return cls(network.eval(), kb.manifest.digest)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained scorer; raise CheckpointMismatch for another knowledge base."""
        saved = read_checkpoint(folder)
        check_digest(folder, saved.rows, kb)
        network = EntityNetwork(BiGRU(EncoderConfig(**saved.config), saved.vocabulary), entity_count(kb))
        return cls(restore_network(network, saved.weights, folder=folder, device=device), kb.manifest.digest)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> "SubjectTask":
        """Build an untrained scorer's task; vectors that E(s) starts from set `dim`."""
        words, config, vectors = load_words(settings.source.words), settings.encoder, None
        if cls.starts_from:
            vectors = load_vectors(model_folder(models, ENTITIES, cls.starts_from), kb)
            config = replace(config, dim=vectors.shape[1], direct=False)
        texts = [cls.text(question) for question in splits.train.questions]
        scorer = cls.new(config, kb=kb, texts=texts, words=words, seed=settings.fit.seed, vectors=vectors)
        return SubjectTask(scorer, settings.objective, kb=kb, splits=splits)

    def checkpoint(self) -> Checkpoint:
        encoder = self.network.encoder
        return Checkpoint(asdict(encoder.config), encoder.vocabulary, (self.digest,), arrays(self.network))

    @staticmethod
    def text(question: MarkedQuestion) -> tuple[str, ...]:
        """Read the words that the network sees; a question without any is one unknown word."""
        return tuple(question.words()) or (UNKNOWN,)

    @property
    def dim(self) -> int:
        return self.network.table.embedding_dim

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        with scoring(len(questions)):
            vectors = self.questions(questions)[torch.from_numpy(which).to(self.network.device)]
            scores = (vectors * self.subjects(subjects)).sum(dim=1)
        products: NDArray[np.float64] = scores.double().cpu().numpy()
        return products

    def embed_questions(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self.questions(questions).float().cpu().numpy()
        return vectors

    def embed_subjects(self, subjects: EntityRows) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self.subjects(subjects).float().cpu().numpy()
        return vectors

    def questions(self, questions: Sequence[MarkedQuestion]) -> Tensor:
        """Return g(q) of questions of any length: (questions, dim)."""
        texts = [self.text(question) for question in questions]
        self.network.eval()
        with scoring(len(texts)):
            vectors = torch.empty(len(texts), self.dim, device=self.network.device)
            for rows in group_by_length(texts, most=TEXTS_AT_ONCE):
                vectors[rows] = self.network.questions([texts[row] for row in rows])
        return vectors

    def subjects(self, subjects: EntityRows) -> Tensor:
        """Return E(s): (subjects, dim)."""
        with scoring(len(subjects)):
            table: Tensor = self.network.table(torch.from_numpy(subjects.astype(np.int64)).to(self.network.device))
        return table


class TransEVectorScorer(RandomVectorScorer):
    """The subject scorer `transe`: E(s) starts from TransE (paper, section Model Parameterization)."""

    starts_from = "transe"


class SubjectTask:
    """The task of scoring the gold subject above sampled ones, by u of the gold relation (paper, Approximation).

    The samples are drawn anew for each batch, and its questions share them.
    """

    def __init__(
        self,
        scorer: RandomVectorScorer,
        config: ObjectiveConfig,
        *,
        kb: KnowledgeBase,
        splits: Splits,
    ) -> None:
        train = splits.train
        self.network = scorer.network
        self.save = scorer.save
        self.scorer, self.config, self.kb = scorer, config, kb
        self.rows = np.flatnonzero(train.subjects >= 0)
        self.texts = [scorer.text(train.questions[row]) for row in self.rows]
        self.subjects, self.relations = train.subjects[self.rows], train.relations[self.rows]
        self.lengths = np.array([len(text) for text in self.texts], dtype=np.int64)
        self.namesakes = Namesakes.find(kb, splits.valid)

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Sum max(0, margin - u(gold) + u(sampled)) over the samples of a question: (batch,)."""
        device = self.network.device
        questions = self.network.questions([self.texts[row] for row in rows]).float()
        gold = torch.from_numpy(self.subjects[rows]).to(device)
        # Drawn on the CPU, so that a GPU draws the same ones.
        sampled = torch.randint(self.network.table.num_embeddings, (self.config.negatives,))
        has = relation_marks(self.kb, sampled.numpy(), len(self.kb.relations))[:, self.relations[rows]].T
        # The gold relation is one that the gold subject has, so h is 1 for it.
        right = (questions * self.network.table(gold)).sum(dim=1, keepdim=True) + ALPHA
        wrong = questions @ self.network.table(sampled.to(device)).T + ALPHA * torch.from_numpy(has).float().to(device)
        losses = torch.relu(self.config.margin - right + wrong)
        # A sample that is the gold subject itself is no negative.
        return losses.masked_fill(sampled.to(device) == gold[:, None], 0.0).sum(dim=1)

    def measure(self) -> dict[str, float]:
        return {"of namesakes told apart": self.namesakes.share_told_apart(self.scorer)}
