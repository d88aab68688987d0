"""BiGRU: two layers of gated recurrent units in both directions, and a projection (paper, Model Parameterization)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kbtools.scorers.base import Encoder
from kbtools.scorers.relation import RelationNetwork
from kbtools.scorers.training_settings import EncoderConfig
from kbtools.scorers.words import WordEmbedding, WordVectors, collect_words


class BiGRU(Encoder):
    """Project the final hidden states of both directions; dropout is vertical, between layers only."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary)
        self.embedding = WordEmbedding(vocabulary, config.words_dim, word_dropout=config.word_dropout)
        self.gru = nn.GRU(
            config.words_dim,
            config.hidden,
            config.layers,
            bidirectional=True,
            dropout=config.dropout if config.layers > 1 else 0.0,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(2 * config.hidden, config.dim)

    @classmethod
    def collect(cls, texts: Sequence[Sequence[str]], *, words: WordVectors, config: EncoderConfig) -> list[str]:
        return collect_words(texts, words, most=config.known_words)

    def initialise(self, words: WordVectors) -> None:
        self.embedding.initialise(words, spare=self.config.spare)

    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        return (self.embedding.look_up(texts),)

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        """Tokens (batch, length) -> (batch, dim)."""
        _, last = self.gru(self.dropout(self.embedding(tokens.T)))
        final = torch.cat([last[-2], last[-1]], dim=1)
        projected: Tensor = self.projection(self.dropout(final))
        return projected


class BiGRUScorer(RelationNetwork):
    """The relation scorer `bigru`."""

    encoder = BiGRU


class BiGRUPlusScorer(BiGRUScorer):
    """The relation scorer `bigru+`: a symbol stands for the mention."""

    symbol = True
