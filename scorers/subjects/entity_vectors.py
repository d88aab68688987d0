"""Subject scorers with a vector for each entity: u(s, r, q) = g(q)·E(s) + alpha·1(s -> r) (paper, Eq. 12)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.networks.checkpoint import Checkpoint, SavedNetwork, StoredNetwork, other_network, read_checkpoint
from kbtools.scorers.networks.forward import BiGRUForward
from kbtools.scorers.networks.network import without_torch
from kbtools.scorers.networks.training_settings import EncoderConfig, TrainingSettings
from kbtools.scorers.networks.words import UNKNOWN, WordVectors, load_words
from kbtools.scorers.subjects.vector_files import check_digest
from kbtools.text.question import MarkedQuestion

if TYPE_CHECKING:
    from kbtools.scorers.fitting.training_loop import Task

_TRAINING = "kbtools.scorers.subjects.subject_training"


class _VectorNetwork(StoredNetwork, Protocol):
    """A network of questions and entities."""

    def questions(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Return g(q) of texts of any length: (texts, dim)."""
        ...

    def subjects(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return E(s): (rows, dim)."""
        ...


class _VectorForward:
    """The network without torch."""

    def __init__(self, saved: Checkpoint) -> None:
        self.saved = saved
        self.encoder, self.table = BiGRUForward(saved), saved.weights["table.weight"]

    def questions(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        return self.encoder.encode(texts) if texts else np.empty((0, self.table.shape[1]), dtype=np.float32)

    def subjects(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.table[rows]

    def checkpoint(self) -> Checkpoint:
        return self.saved


class RandomVectorScorer(SavedNetwork):
    """The subject scorer `random`: E(s) starts at random and is trained with g."""

    network: _VectorNetwork
    starts_from: ClassVar[str | None] = None
    """The model whose vectors initialise E(s)."""

    def __init__(self, network: _VectorNetwork, digest: str) -> None:
        self.network = network
        self.rows = (digest,)

    @classmethod
    def new(
        cls,
        config: EncoderConfig,
        *,
        kb: KnowledgeBase,
        texts: Sequence[Sequence[str]],
        words: WordVectors,
        seed: int,
        folder: Path | None = None,
    ) -> Self:
        """Build an untrained scorer; vectors in a folder, if given, initialise E(s) and set `dim`."""
        make = import_object(f"{_TRAINING}:make_entity_network")
        network = make(config, kb=kb, texts=texts, words=words, seed=seed, folder=folder)
        return cls(network, kb.manifest.digest)

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained scorer; raise CheckpointMismatch for another knowledge base."""
        saved = read_checkpoint(folder)
        check_digest(folder, saved.rows, kb)
        if without_torch(device):
            with other_network(folder):
                return cls(_VectorForward(saved), kb.manifest.digest)
        rebuild = import_object(f"{_TRAINING}:rebuild_entity_network")
        return cls(rebuild(saved, kb, folder=folder, device=device), kb.manifest.digest)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: Splits, settings: TrainingSettings, *, models: Path) -> "Task":
        """Build the task of an untrained scorer."""
        words, seed = load_words(settings.source.words), settings.fit.seed
        folder = model_folder(models, ENTITIES, cls.starts_from) if cls.starts_from else None
        texts = [cls.text(question) for question in splits.train.questions]
        scorer = cls.new(settings.encoder, kb=kb, texts=texts, words=words, seed=seed, folder=folder)
        make: Callable[..., Task] = import_object(f"{_TRAINING}:SubjectTask")
        return make(scorer, settings.objective, kb=kb, splits=splits)

    @staticmethod
    def text(question: MarkedQuestion) -> tuple[str, ...]:
        """Return the words that the network reads; a question without any is one unknown word."""
        return tuple(question.words()) or (UNKNOWN,)

    @property
    def dim(self) -> int:
        return int(self.embed_subjects(np.zeros(0, dtype=np.uint32)).shape[1])

    def score(
        self, questions: Sequence[MarkedQuestion], *, which: NDArray[np.int64], subjects: EntityRows
    ) -> NDArray[np.float64]:
        products = self.embed_questions(questions)[which] * self.embed_subjects(subjects)
        scores: NDArray[np.float64] = products.sum(axis=1).astype(np.float64)
        return scores

    def embed_questions(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        return self.network.questions([self.text(question) for question in questions])

    def embed_subjects(self, subjects: EntityRows) -> NDArray[np.float32]:
        return self.network.subjects(subjects.astype(np.int64))


class TransEVectorScorer(RandomVectorScorer):
    """The subject scorer `transe`: E(s) starts from TransE (paper, section Model Parameterization)."""

    starts_from = "transe"
