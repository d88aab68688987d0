"""Trained scorers with the one network of the paper, every score f(q)·E(x) (Eq. 10), over relations or types."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.networks.checkpoint import SavedNetwork, StoredNetwork, match_rows, other_network, read_checkpoint
from kbtools.scorers.networks.forward import (
    BiGRUForward,
    DotForward,
    EmbedAverageForward,
    Forward,
    LetterTrigramForward,
)
from kbtools.scorers.networks.training_settings import EncoderConfig, TrainingSettings
from kbtools.scorers.networks.words import SYMBOL, UNKNOWN, WordVectors, load_words
from kbtools.text.question import MarkedQuestion

if TYPE_CHECKING:
    from kbtools.scorers.networks.word_networks import DotScorer, Encoder

_BY_ROW = ("table", "bias")
"""The weights with an entry for each row."""


@dataclass(frozen=True, slots=True)
class _BuiltInEncoder:
    """An encoder in two forms: the torch network for training and GPUs, and its forward pass without torch."""

    network: str
    forward: type[Forward]


_TORCH = "kbtools.scorers.networks.word_networks"
"""The module of the torch networks."""

EMBED_AVERAGE = _BuiltInEncoder(f"{_TORCH}:EmbedAverage", EmbedAverageForward)
BIGRU = _BuiltInEncoder(f"{_TORCH}:BiGRU", BiGRUForward)
LETTER_TRIGRAMS = _BuiltInEncoder(f"{_TORCH}:LetterTrigramCNN", LetterTrigramForward)


class Network(StoredNetwork, Protocol):
    """A network over rows."""

    def score_texts(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Score texts of any length: (texts, rows)."""
        ...


def without_torch(device: str) -> bool:
    """Return whether built-in networks are computed without torch."""
    return device == "cpu"


class TrainedNetwork(SavedNetwork):
    """A dot scorer over the relations or the types of a knowledge base; a subclass names its encoder."""

    network: Network
    encoder: ClassVar["type[Encoder] | _BuiltInEncoder"]
    symbol: ClassVar[bool] = False
    """Whether the network reads a symbol in place of the mention."""

    what: ClassVar[str]
    """The kind of rows, for messages: relations or types."""

    biased: ClassVar[bool] = False

    def __init__(self, network: Network, rows: Sequence[str]) -> None:
        self.network = network
        self.rows = tuple(rows)

    @classmethod
    @abstractmethod
    def rows_of(cls, kb: KnowledgeBase) -> Sequence[str]:
        """Return the relations or types that the table has a row for."""
        ...

    @classmethod
    @abstractmethod
    def names_of(cls, rows: Sequence[str]) -> list[list[str]]:
        """Split the name of each row into words."""
        ...

    @classmethod
    def encoder_class(cls) -> "type[Encoder]":
        """Import the torch encoder; raise MissingDependency without torch."""
        if not isinstance(cls.encoder, _BuiltInEncoder):
            return cls.encoder
        encoder: type[Encoder] = import_object(cls.encoder.network)
        return encoder

    @classmethod
    def new(
        cls,
        config: EncoderConfig,
        *,
        rows: Sequence[str],
        texts: Sequence[Sequence[str]],
        words: WordVectors,
        seed: int,
    ) -> Self:
        """Build an untrained network that knows the words of some texts."""
        encoder, make = cls.encoder_class(), import_object(f"{_TORCH}:make_network")
        names = cls.names_of(rows)
        return cls(make(encoder, config, names=names, texts=texts, words=words, biased=cls.biased, seed=seed), rows)

    @classmethod
    def untrained(cls, kb: KnowledgeBase, questions: Sequence[MarkedQuestion], settings: TrainingSettings) -> Self:
        """Build an untrained network that knows the words of some questions."""
        return cls.new(
            settings.encoder,
            rows=cls.rows_of(kb),
            texts=[cls.text(question) for question in questions],
            words=load_words(settings.source.words),
            seed=settings.fit.seed,
        )

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> Self:
        """Rebuild a trained network, its rows in the order of the knowledge base; raise ModelError for other rows."""
        saved, rows = read_checkpoint(folder), cls.rows_of(kb)
        # The table has the order of the training's knowledge base; this one may list its rows in another order.
        saved = saved.in_order(match_rows(folder, trained=saved.rows, present=rows, what=cls.what), by_row=_BY_ROW)
        if isinstance(cls.encoder, _BuiltInEncoder) and without_torch(device):
            with other_network(folder):
                return cls(DotForward(cls.encoder.forward(saved), saved), rows)
        encoder, rebuild = cls.encoder_class(), import_object(f"{_TORCH}:rebuild_network")
        names = cls.names_of(rows)
        return cls(rebuild(encoder, saved, names=names, biased=cls.biased, folder=folder, device=device), rows)

    @property
    def trainable(self) -> "DotScorer":
        """The torch network, for training; made by `new`."""
        trainable: DotScorer = self.network  # type: ignore[assignment]
        return trainable

    @classmethod
    def text(cls, question: MarkedQuestion) -> tuple[str, ...]:
        """Return the words that the network reads; a question without any is one unknown word."""
        return tuple(question.words(symbol=SYMBOL if cls.symbol else None)) or (UNKNOWN,)

    def score_questions(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float32]:
        """Score questions, equal texts only once: (questions, rows)."""
        # With a symbol for the mention many questions have the same text, and share one score.
        texts: dict[tuple[str, ...], int] = {}
        places = [texts.setdefault(self.text(question), len(texts)) for question in questions]
        return self.score_texts(list(texts))[places]

    def score_texts(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Score texts of any length: (texts, rows)."""
        return self.network.score_texts(texts)
