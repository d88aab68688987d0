"""Subject scorers with a vector for each entity: u(s, r, q) = g(q)·E(s) + alpha·1(s -> r) (paper, Eq. 12)."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.ranking.model_store import Stamp, class_path
from kbtools.scorers.base import group_by_length, moved
from kbtools.scorers.bigru import BiGRU
from kbtools.scorers.checkpoint import Checkpoint, load_weights, read_checkpoint, write_checkpoint
from kbtools.scorers.devices import AT_ONCE, resolve_device, scoring
from kbtools.scorers.settings import EncoderConfig
from kbtools.scorers.transe import check_digest, entity_count
from kbtools.scorers.vocabulary import UNKNOWN, initialise
from kbtools.scorers.words import WordVectors
from kbtools.text.question import MarkedQuestion


class EntityNetwork(nn.Module):
    """g as a BiGRU, E(s) as a table."""

    def __init__(self, encoder: BiGRU, entities: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.table = nn.Embedding(entities, encoder.config.dim)

    @property
    def device(self) -> torch.device:
        return self.table.weight.device

    def questions(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Give g(q) of texts of one length: (batch, dim)."""
        vectors: Tensor = self.encoder(*moved(self.encoder.collate(texts), self.device))
        return vectors


class RandomVectorScorer:
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
        """Make an untrained scorer; with vectors of entities, `dim` must be theirs."""
        torch.manual_seed(seed)
        network = EntityNetwork(BiGRU(config, BiGRU.collect(texts, words=words, config=config)), entity_count(kb))
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
        load_weights(network, saved.weights, folder)
        return cls(network.to(resolve_device(device)).eval(), kb.manifest.digest)

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the scorer to a folder; without a stamp its plugin is known as `module:Class`."""
        encoder, weights = self.network.encoder, self.network.state_dict()
        config = asdict(encoder.config)
        checkpoint = Checkpoint(config, encoder.vocabulary, (self.digest,), weights)
        write_checkpoint(folder, checkpoint, stamp or Stamp(class_path(type(self))))

    @staticmethod
    def text(asked: MarkedQuestion) -> tuple[str, ...]:
        """Read the words that the network sees; a question without any is one unknown word."""
        return tuple(asked.words()) or (UNKNOWN,)

    @property
    def dim(self) -> int:
        return self.network.table.embedding_dim

    def score(
        self, asked: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        with scoring():
            questions = self.questions(asked)[torch.from_numpy(which).to(self.network.device)]
            scores = (questions * self.subjects(subjects)).sum(dim=1)
        found: NDArray[np.float64] = scores.double().cpu().numpy()
        return found

    def embed_questions(self, asked: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self.questions(asked).float().cpu().numpy()
        return vectors

    def embed_subjects(self, subjects: EntityRows) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self.subjects(subjects).float().cpu().numpy()
        return vectors

    @scoring()
    def questions(self, asked: Sequence[MarkedQuestion]) -> Tensor:
        """Give g(q) of questions of any length: (questions, dim)."""
        texts = [self.text(one) for one in asked]
        vectors = torch.empty(len(texts), self.dim, device=self.network.device)
        self.network.eval()
        for rows in group_by_length(texts, most=AT_ONCE):
            vectors[rows] = self.network.questions([texts[row] for row in rows])
        return vectors

    @scoring()
    def subjects(self, subjects: EntityRows) -> Tensor:
        """Give E(s): (subjects, dim)."""
        table: Tensor = self.network.table(torch.from_numpy(subjects.astype(np.int64)).to(self.network.device))
        return table


class TransEVectorScorer(RandomVectorScorer):
    """The subject scorer `transe`: E(s) starts from TransE (paper, section Model Parameterization)."""

    starts_from = "transe"
