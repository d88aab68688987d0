"""Encoders over word vectors: Embed-AVG (paper, Evaluation and Baselines) and BiGRU."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kbtools.scorers.networks.base import Encoder, WordEncoder
from kbtools.scorers.networks.checkpoint import Graph
from kbtools.scorers.networks.export import export_graph
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.weight_files import Weights
from kbtools.scorers.networks.words import SPECIAL, WordVectors, group_by_length, letter_trigrams


class EmbedAverage(WordEncoder):
    """The average of the word vectors; `dim` is that of the words, since nothing projects them."""

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        """Tokens (batch, length) -> (batch, dim)."""
        averaged: Tensor = self.embedding(tokens).mean(dim=1)
        return averaged


class BiGRU(WordEncoder):
    """Gated recurrent units in both directions, whose final hidden states are projected (paper, Parameterization).

    A direct one leaves the projection to the table that comes after: of type vectors, that is the linear layer under
    the paper's sigmoid. Dropout is vertical, between layers only.
    """

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary, words_dim=config.words_dim)
        # PyTorch warns of a dropout between the layers of one layer.
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


WINDOW = 3
"""Words that a filter sees: one before, the word, one after."""


class LetterTrigramCNN(Encoder):
    """h_t = tanh(W_c [l_(t-1); l_t; l_(t+1)] + b), the greatest over t, then tanh(W_s h), l_t a bag of trigrams.

    A row of the bag holds the trigram's part of W_c for each place of the window, so that summing the rows of a word
    multiplies W_c with its trigram counts.
    """

    names = True

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary)
        self.rows = {trigram: row for row, trigram in enumerate(vocabulary)}
        self.trigrams = nn.EmbeddingBag(len(vocabulary), WINDOW * config.hidden, mode="sum", padding_idx=0)
        self.bias = nn.Parameter(torch.zeros(config.hidden))
        self.dropout = nn.Dropout(config.dropout)
        self.semantic = nn.Linear(config.hidden, config.dim)

    @classmethod
    def collect(cls, texts: Sequence[Sequence[str]], *, words: WordVectors, config: EncoderConfig) -> list[str]:
        known = sorted({word for text in texts for word in text})
        trigrams = (trigram for word in known for trigram in letter_trigrams(word))
        return list(dict.fromkeys([*SPECIAL, *trigrams]))

    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        """Read the distinct words of texts of any length once, and place them in the texts, by length.

        trigrams (trigrams,), starts (distinct words,), order (batch,), then for each length: words (texts, length)
        """
        distinct: dict[str, int] = {}
        # A word is read once, however often the texts hold it.
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
        parts = [part.contiguous() for part in self.trigrams(trigrams, starts).chunk(WINDOW, dim=1)]
        pooled = torch.cat([self.pool(group, *parts) for group in words])[order]
        return torch.tanh(self.semantic(self.dropout(pooled)))

    def pool(self, words: Tensor, before: Tensor, here: Tensor, after: Tensor) -> Tensor:
        """Return the greatest h_t of texts of one length: words (texts, length) -> (texts, hidden)."""
        # The row after the last stands for the word beyond either end, which adds nothing.
        nothing = torch.zeros(1, self.config.hidden, device=words.device, dtype=here.dtype)
        beyond = torch.full_like(words[:, :1], len(here))
        windows = (
            F.embedding(words, here)
            + F.embedding(torch.cat([beyond, words[:, :-1]], dim=1), torch.cat([before, nothing]))
            + F.embedding(torch.cat([words[:, 1:], beyond], dim=1), torch.cat([after, nothing]))
        )
        # The greatest tanh is the tanh of the greatest.
        return torch.tanh(windows.max(dim=1).values + self.bias)
