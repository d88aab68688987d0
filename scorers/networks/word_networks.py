"""The one network of the paper, every score f(q)·E(x) (Eq. 10), in torch for training and GPUs.

Its encoders, f or g, map the words of a text to a vector: Embed-AVG (paper, Evaluation and Baselines), BiGRU or letter
trigrams.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.networks.checkpoint import Checkpoint, Graph, Weights
from kbtools.scorers.networks.devices import arrays, build_network, restore_network, scoring
from kbtools.scorers.networks.export import export_graph
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.words import (
    SPECIAL,
    TEXTS_AT_ONCE,
    WordVectors,
    collect_words,
    group_by_length,
    letter_trigrams,
)

_RANGE = 0.08
"""Parameters start uniformly within -RANGE and RANGE (paper, section Experiment Setting)."""

_TABLE = "table"
"""The weight with the vectors of rows; those of names are encoded by torch."""

_WINDOW = 3
"""Words seen by a filter: one before, the word, one after."""

_Inputs = tuple[Tensor, ...]

_Texts = Sequence[Sequence[str]]
"""Texts, or names of relations or types by row, as words."""


class WordEmbedding(nn.Embedding):
    """A vector for each word; in training, random words become unknown, so that the unknown word is trained.

    The symbol is never dropped. Dimensions beyond those of a given vector start within `spare` of zero; with 0, a word
    not seen in training is represented by its given vector only.
    """

    def __init__(self, vocabulary: Sequence[str], dim: int, *, word_dropout: float) -> None:
        super().__init__(len(vocabulary), dim, padding_idx=0)
        self.word_dropout = word_dropout
        self.rows = {word: row for row, word in enumerate(vocabulary)}

    def initialise(self, words: WordVectors, *, spare: float = _RANGE) -> None:
        """Start from given vectors if there are any (paper, section Experiment Setting)."""
        if not len(words.words):
            return
        # Dimensions of the vectors are copied; the others keep what `initialise` drew, scaled down to `spare`.
        known = {word: row for row, word in enumerate(words.words)}
        rows = [(row, known[word]) for word, row in self.rows.items() if word in known]
        if not rows:
            return
        known_rows, in_vectors = np.array(rows).T
        dim = min(self.embedding_dim, words.vectors.shape[1])
        with torch.no_grad():
            self.weight[torch.from_numpy(known_rows), :dim] = torch.from_numpy(words.vectors[in_vectors, :dim])
            self.weight[torch.from_numpy(known_rows), dim:] *= spare / _RANGE

    def look_up(self, texts: _Texts) -> Tensor:
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
            parameter.uniform_(-_RANGE, _RANGE)
        for module in network.modules():
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0


class Encoder(nn.Module, ABC):
    """A network from texts of one length, in words, to vectors: (batch, dim)."""

    names: ClassVar[bool] = False
    """Whether the encoder also reads names of relations, of any length, in place of a learned table."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__()
        self.config = config
        self.vocabulary = tuple(vocabulary)

    @classmethod
    @abstractmethod
    def collect(cls, texts: _Texts, *, words: WordVectors, config: EncoderConfig) -> list[str]:
        """Return the vocabulary of an encoder for such texts: words, or parts of words, by row."""
        ...

    @property
    def dim(self) -> int:
        return self.config.dim

    def initialise(self, words: WordVectors) -> None:
        """Start from word vectors; an encoder without word vectors ignores them."""

    @abstractmethod
    def collate(self, texts: _Texts) -> _Inputs:
        """Build the inputs of `forward` from texts of one length, at least 1."""
        ...

    @abstractmethod
    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the vectors of texts: (batch, dim)."""
        ...

    def graph(self) -> tuple[Graph | None, Weights]:
        """Return the graph for ONNX Runtime, if any, and the weights that only the graph needs."""
        return None, {}


class WordEncoder(Encoder):
    """An encoder that starts from a vector for each word; subclasses define `forward`."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str], *, words_dim: int | None = None) -> None:
        super().__init__(config, vocabulary)
        self.embedding = WordEmbedding(vocabulary, words_dim or config.dim, word_dropout=config.word_dropout)

    @classmethod
    def collect(cls, texts: _Texts, *, words: WordVectors, config: EncoderConfig) -> list[str]:
        return collect_words(texts, words, most=config.known_words)

    def initialise(self, words: WordVectors) -> None:
        self.embedding.initialise(words, spare=self.config.spare)

    def collate(self, texts: _Texts) -> _Inputs:
        return (self.embedding.look_up(texts),)


def moved(inputs: _Inputs, device: torch.device) -> _Inputs:
    """Move collated tensors to a device."""
    if device.type == "cuda":  # From pinned memory the copy overlaps with collating the next tensors.
        return tuple(tensor.pin_memory().to(device, non_blocking=True) for tensor in inputs)
    return tuple(tensor.to(device) for tensor in inputs)


class EmbedAverage(WordEncoder):
    """The average of the word vectors; `dim` is that of the words, since there is no projection."""

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        """Tokens (batch, length) -> (batch, dim)."""
        averaged: Tensor = self.embedding(tokens).mean(dim=1)
        return averaged


class BiGRU(WordEncoder):
    """A bidirectional GRU whose final hidden states are projected (paper, Parameterization).

    If `direct`, the following table is the projection: with type vectors, it is the linear layer under the paper's
    sigmoid. Dropout is vertical, only between layers.
    """

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary, words_dim=config.words_dim)
        # PyTorch warns about dropout with a single layer.
        between = config.dropout if config.layers > 1 else 0.0
        self.gru = nn.GRU(config.words_dim, config.hidden, config.layers, bidirectional=True, dropout=between)
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Identity() if config.direct else nn.Linear(2 * config.hidden, config.dim)

    @property
    def dim(self) -> int:
        return 2 * self.config.hidden if self.config.direct else self.config.dim

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        """Tokens (batch, length) -> (batch, dim)."""
        _, last = self.gru(self.dropout(self.embedding(tokens.T)))
        # The last layer's state comes last: forwards after the last word, backwards after the first.
        final = torch.cat([last[-2], last[-1]], dim=1)
        projected: Tensor = self.projection(self.dropout(final))
        return projected

    def graph(self) -> tuple[Graph, Weights]:
        return export_graph(self, {"tokens": (torch.ones(1, 2, dtype=torch.int64), ("batch", "length"))})


class LetterTrigramCNN(Encoder):
    """h_t = tanh(W_c [l_(t-1); l_t; l_(t+1)] + b), the maximum over t, then tanh(W_s h), l_t a bag of trigrams.

    A row of the bag holds the trigram's part of W_c for each place of the window, so that summing the rows of a word
    multiplies W_c by its trigram counts.
    """

    names = True

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary)
        self.rows = {trigram: row for row, trigram in enumerate(vocabulary)}
        self.trigrams = nn.EmbeddingBag(len(vocabulary), _WINDOW * config.hidden, mode="sum", padding_idx=0)
        self.bias = nn.Parameter(torch.zeros(config.hidden))
        self.dropout = nn.Dropout(config.dropout)
        self.semantic = nn.Linear(config.hidden, config.dim)

    @classmethod
    def collect(cls, texts: _Texts, *, words: WordVectors, config: EncoderConfig) -> list[str]:
        known = sorted({word for text in texts for word in text})
        trigrams = (trigram for word in known for trigram in letter_trigrams(word))
        return list(dict.fromkeys([*SPECIAL, *trigrams]))

    def collate(self, texts: _Texts) -> _Inputs:
        """Collate the distinct words of texts of any length, and their places in the texts, by length.

        trigrams (trigrams,), starts (distinct words,), order (batch,), then for each length: words (texts, length)
        """
        distinct: dict[str, int] = {}
        # Each distinct word is computed once.
        groups = group_by_length(texts)
        words = [
            torch.tensor([[distinct.setdefault(word, len(distinct)) for word in texts[row]] for row in group])
            for group in groups
        ]
        bags = [[self.rows.get(part, 1) for part in letter_trigrams(word)] for word in distinct]
        starts = torch.tensor([0, *map(len, bags[:-1])]).cumsum(0)
        order = torch.tensor([row for group in groups for row in group]).argsort()
        return torch.tensor([row for bag in bags for row in bag]), starts, order, *words

    def forward(self, trigrams: Tensor, starts: Tensor, order: Tensor, *words: Tensor) -> Tensor:  # type: ignore[override]
        """Return the vectors of collated texts: (batch, dim)."""
        parts = [part.contiguous() for part in self.trigrams(trigrams, starts).chunk(_WINDOW, dim=1)]
        pooled = torch.cat([self.pool(group, *parts) for group in words])[order]
        return torch.tanh(self.semantic(self.dropout(pooled)))

    def pool(self, words: Tensor, before: Tensor, here: Tensor, after: Tensor) -> Tensor:
        """Return the maximum of h_t over texts of one length: words (texts, length) -> (texts, hidden)."""
        # The row after the last stands for the word beyond either end, which adds nothing.
        nothing = torch.zeros(1, self.config.hidden, device=words.device, dtype=here.dtype)
        beyond = torch.full_like(words[:, :1], len(here))
        windows = (
            F.embedding(words, here)
            + F.embedding(torch.cat([beyond, words[:, :-1]], dim=1), torch.cat([before, nothing]))
            + F.embedding(torch.cat([words[:, 1:], beyond], dim=1), torch.cat([after, nothing]))
        )
        # The maximum of tanh is the tanh of the maximum.
        return torch.tanh(windows.max(dim=1).values + self.bias)


class DotScorer(nn.Module):
    """The scores of a text against every row of a table, which is learned or encoded from the names of its rows."""

    def __init__(self, encoder: Encoder, names: _Texts, *, biased: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = [tuple(name) for name in names]
        self.known: Tensor | None = None
        self.collated: tuple[tuple[int, ...], _Inputs] | None = None
        if not encoder.names:
            self.table = nn.Parameter(torch.empty(len(self.names), encoder.dim))
        if biased:
            self.bias = nn.Parameter(torch.empty(len(self.names)))
        self.biased = biased

    def initialise(self, words: WordVectors) -> None:
        """Draw the parameters, then copy given word vectors."""
        initialise(self)
        self.encoder.initialise(words)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def train(self, mode: bool = True) -> Self:
        if mode:
            self.known = None
            self.collated = None
        return super().train(mode)

    def vectors(self, rows: NDArray[np.int64] | None = None) -> Tensor:
        """Return E(x) of some rows, or of all: (rows, dim). Encoded names are cached only at inference."""
        if not self.encoder.names:
            return self.table if rows is None or len(rows) == len(self.names) else self.table[torch.from_numpy(rows)]
        if rows is None and self.known is not None and not torch.is_grad_enabled():
            return self.known
        vectors = self.encode_names(tuple(range(len(self.names)) if rows is None else rows.tolist()))
        if rows is None and not self.training and not torch.is_grad_enabled():
            self.known = vectors
        return vectors

    def encode_names(self, rows: tuple[int, ...]) -> Tensor:
        """Encode the names of rows; the inputs of the last rows are cached."""
        if self.collated is None or self.collated[0] != rows:
            self.collated = rows, self.collate([self.names[row] for row in rows])
        encoded: Tensor = self.encoder(*self.collated[1])
        return encoded

    def scores(self, texts: _Texts, *, rows: NDArray[np.int64] | None = None) -> Tensor:
        """Return the scores of texts of one length against some rows, or against all: (texts, rows)."""
        scores: Tensor = self.encoder(*self.collate(texts)) @ self.vectors(rows).T
        return scores + self.bias if self.biased else scores

    def collate(self, texts: _Texts) -> _Inputs:
        """Build the tensors of texts of one length, on the network's device."""
        return moved(self.encoder.collate(texts), self.device)

    def score_texts(self, texts: _Texts) -> NDArray[np.float32]:
        """Score texts of any length, without gradients: (texts, rows)."""
        scores = np.empty((len(texts), len(self.names)), dtype=np.float32)
        self.eval()
        with scoring(len(texts)):
            for rows in group_by_length(texts, most=TEXTS_AT_ONCE):
                scores[rows] = self.scores([texts[row] for row in rows]).float().cpu().numpy()
        return scores

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to rebuild the network except the rows, and the vectors of encoded rows."""
        graph, laid_out = self.encoder.graph()
        weights = {**arrays(self), **{f"encoder.{name}": array for name, array in laid_out.items()}}
        if self.encoder.names:
            self.eval()
            self.known = None  # Computed from earlier weights.
            with scoring(len(self.names)):
                weights[_TABLE] = np.asarray(self.vectors().float().cpu().numpy())
        return Checkpoint(asdict(self.encoder.config), self.encoder.vocabulary, (), weights, graph)


def make_network(
    encoder: type[Encoder],
    config: EncoderConfig,
    *,
    names: _Texts,
    texts: _Texts,
    words: WordVectors,
    biased: bool,
    seed: int,
) -> DotScorer:
    """Build an untrained network that knows the words of some texts."""
    vocabulary = encoder.collect([*texts, *names] if encoder.names else texts, words=words, config=config)
    torch.manual_seed(seed)
    network = build_network(lambda: DotScorer(encoder(config, vocabulary), names, biased=biased))
    network.initialise(words)
    return network.eval()


def rebuild_network(
    encoder: type[Encoder], saved: Checkpoint, *, names: _Texts, biased: bool, folder: Path, device: str
) -> DotScorer:
    """Rebuild a trained network."""
    built = encoder(EncoderConfig(**saved.config), saved.vocabulary)
    network = DotScorer(built, names, biased=biased)
    return restore_network(network, saved.weights, folder=folder, device=device, encoder=built)
