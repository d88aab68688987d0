"""A scorer with a network of its own: the greatest value of each dimension over a question's word vectors."""

from collections.abc import Sequence

from torch import Tensor

from kbtools.scorers.base import Encoder
from kbtools.scorers.relation import RelationNetwork
from kbtools.scorers.training_settings import EncoderConfig
from kbtools.scorers.words import WordEmbedding, WordVectors, collect_words


class EmbedMax(Encoder):
    """Take the greatest value of each dimension over the words."""

    def __init__(self, config: EncoderConfig, vocabulary: Sequence[str]) -> None:
        super().__init__(config, vocabulary)
        self.embedding = WordEmbedding(vocabulary, config.dim, word_dropout=config.word_dropout)

    @classmethod
    def collect(cls, texts: Sequence[Sequence[str]], *, words: WordVectors, config: EncoderConfig) -> list[str]:
        return collect_words(texts, words, most=config.known_words)

    def initialise(self, words: WordVectors) -> None:
        self.embedding.initialise(words)

    def collate(self, texts: Sequence[Sequence[str]]) -> tuple[Tensor, ...]:
        return (self.embedding.look_up(texts),)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> (batch, dim)."""
        return self.embedding(tokens).amax(dim=1)


class EmbedMaxScorer(RelationNetwork):
    """The relation scorer `embed-max`."""

    encoder = EmbedMax
