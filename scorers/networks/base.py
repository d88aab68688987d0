"""Encoders: f or g of the paper, from the words of a text to a vector."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from kbtools.scorers.networks.checkpoint import Graph
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.weight_files import Weights
from kbtools.scorers.networks.words import SPECIAL, WordVectors, collect_words

RANGE = 0.08
"""Parameters start uniformly within -RANGE and RANGE (paper, section Experiment Setting)."""


class WordEmbedding(nn.Embedding):
    """A vector for each word; in training, some words become unknown, so that the unknown word is trained.

    The symbol is never dropped. Dimensions beyond those of a given vector start within `spare` of zero: at zero, a
    word that training has not seen is read by its given vector alone.
    """

    def __init__(self, vocabulary: Sequence[str], dim: int, *, word_dropout: float) -> None:
        super().__init__(len(vocabulary), dim, padding_idx=0)
        self.word_dropout = word_dropout
        self.rows = {word: row for row, word in enumerate(vocabulary)}

    def initialise(self, words: WordVectors, *, spare: float = RANGE) -> None:
        """Start from given vectors where there are some (paper, section Experiment Setting)."""
        if not len(words.words):
            return
        # Dimensions that the vectors have are theirs; the rest keep what `initialise` drew, scaled down to `spare`.
        known = {word: row for row, word in enumerate(words.words)}
        rows = [(row, known[word]) for word, row in self.rows.items() if word in known]
        if not rows:
            return
        own, in_vectors = np.array(rows).T
        dim = min(self.embedding_dim, words.vectors.shape[1])
        with torch.no_grad():
            self.weight[torch.from_numpy(own), :dim] = torch.from_numpy(words.vectors[in_vectors, :dim])
            self.weight[torch.from_numpy(own), dim:] *= spare / RANGE

    def look_up(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Return the rows of texts of one length: (batch, length)."""
        return torch.tensor([[self.rows.get(word, 1) for word in text] for text in texts])

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> (batch, length, dim)."""
        if self.training and self.word_dropout:
            dropped = (torch.rand(tokens.shape, device=tokens.device) < self.word_dropout) & (tokens > len(SPECIAL) - 1)
            tokens = tokens.masked_fill(dropped, 1)
        return super().forward(tokens)


def initialise(network: nn.Module) -> None:
    """Draw every parameter uniformly; padding stays zero."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-RANGE, RANGE)
        for module in network.modules():
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0


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
        """The dimensions of the vectors."""
        return self.config.dim

    def initialise(self, words: WordVectors) -> None:
        """Start from word vectors; an encoder that reads none leaves them."""

    @abstractmethod
    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        """Build the tensors that `forward` takes from texts of one length, at least 1."""
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
    """Move collated tensors to a device."""
    # Without waiting: the copy to a GPU runs while the next tensors are collated.
    return inputs if device.type == "cpu" else tuple(tensor.to(device, non_blocking=True) for tensor in inputs)
