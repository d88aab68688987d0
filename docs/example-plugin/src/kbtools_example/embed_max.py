"""A scorer with its own network: the largest value of each dimension over the word vectors of a question."""

from torch import Tensor

from kbtools.scorers.networks.word_networks import WordEncoder
from kbtools.scorers.relations.relation import RelationNetwork


class EmbedMax(WordEncoder):
    """The largest value of each dimension over the words."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> (batch, dim)."""
        return self.embedding(tokens).amax(dim=1)


class EmbedMaxScorer(RelationNetwork):
    """The relation scorer `embed-max`."""

    encoder = EmbedMax
