"""Encoders: f or g of the paper, from the words of a text to a vector."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from kbtools.scorers.networks.checkpoint import Graph
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.weight_files import Weights
from kbtools.scorers.networks.word_embedding import WordEmbedding
from kbtools.scorers.networks.words import WordVectors, collect_words


class Encoder(nn.Module, ABC):
    """A network from texts of one length, in words, to vectors: (batch, dim)."""

    names: ClassVar[bool] = False
    """Whether the encoder also reads the names of relations, of any length, in place of a learned table."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = tuple(vocabulary)

    @classmethod
    @abstractmethod
    def collect(cls, texts: Sequence[Sequence[str]], *, words: WordVectors, config: EncoderConfig) -> list[str]:
        """List the vocabulary of an encoder for such texts: words, or parts of words, by row."""
        ...

    @property
    def dim(self) -> int:
        """Give the dimensions of the vectors."""
        return self.config.dim

    @classmethod
    def build(cls, config: EncoderConfig, vocabulary: Sequence[str]) -> Self:
        return cls(config, vocabulary)

    def initialise(self, words: WordVectors) -> None:
        """Start from word vectors; an encoder that reads none leaves them."""

    @abstractmethod
    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        """Make the tensors that `forward` takes from texts of one length, at least 1."""
        ...

    @abstractmethod
    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the vectors of texts: (batch, dim)."""
        ...

    def graph(self) -> tuple[Graph | None, Weights]:
        """Return what ONNX Runtime computes in place of torch, if anything, and the weights that only it needs."""
        return None, {}


class WordEncoder(Encoder):
    """An encoder that starts from a vector for each word; a subclass says what `forward` makes of them."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], *, words_dim: int | None = None) -> None:
        super().__init__(config, vocabulary)
        self.embedding = WordEmbedding(vocabulary, words_dim or config.dim, word_dropout=config.word_dropout)

    @classmethod
    def collect(cls, texts: Sequence[Sequence[str]], *, words: WordVectors, config: EncoderConfig) -> list[str]:
        return collect_words(texts, words, most=config.known_words)

    def initialise(self, words: WordVectors) -> None:
        self.embedding.initialise(words, spare=self.config.spare)

    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        return (self.embedding.look_up(texts),)


def moved(inputs: tuple[Tensor, ...], device: torch.device) -> tuple[Tensor, ...]:
    """Bring collated tensors to a network's device."""
    # Without waiting: the copy to a GPU runs while the next tensors are collated.
    return inputs if device.type == "cpu" else tuple(tensor.to(device, non_blocking=True) for tensor in inputs)
