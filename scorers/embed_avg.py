"""Embed-AVG: the average of a question's word vectors (paper, section Evaluation and Baselines)."""

from collections.abc import Sequence

from torch import Tensor

from kbtools.scorers.base import Encoder
from kbtools.scorers.relation import RelationNetwork
from kbtools.scorers.training_settings import EncoderConfig
from kbtools.scorers.words import WordEmbedding, WordVectors, collect_words


class EmbedAverage(Encoder):
    """Average the vectors of the words; `dim` is that of the words, since nothing projects them."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary)
        self.embedding = WordEmbedding(vocabulary, config.dim, word_dropout=config.word_dropout)

    @classmethod
    def collect(cls, texts: Sequence[Sequence[str]], *, words: WordVectors, config: EncoderConfig) -> list[str]:
        return collect_words(texts, words, most=config.known_words)

    def initialise(self, words: WordVectors) -> None:
        self.embedding.initialise(words, spare=self.config.spare)

    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        return (self.embedding.look_up(texts),)

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        """Tokens (batch, length) -> (batch, dim)."""
        averaged: Tensor = self.embedding(tokens).mean(dim=1)
        return averaged


class EmbedAverageScorer(RelationNetwork):
    """The relation scorer `embed-avg`."""

    encoder = EmbedAverage


class EmbedAveragePlusScorer(EmbedAverageScorer):
    """The relation scorer `embed-avg+`: a symbol stands for the mention."""

    symbol = True
