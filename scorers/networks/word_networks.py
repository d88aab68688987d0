"""Encoders over word vectors: Embed-AVG (paper, Evaluation and Baselines) and BiGRU."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kbtools.scorers.networks.base import WordEncoder
from kbtools.scorers.networks.checkpoint import Graph
from kbtools.scorers.networks.export import export_graph
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.weight_files import Weights


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
