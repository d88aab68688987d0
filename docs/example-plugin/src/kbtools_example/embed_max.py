"""A scorer with a network of its own: the greatest value of each dimension over a question's word vectors."""

from torch import Tensor

from kbtools.scorers.networks.word_networks import WordEncoder
from kbtools.scorers.relations.relation import RelationNetwork


class EmbedMax(WordEncoder):
    """The greatest value of each dimension over the words."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> (batch, dim)."""
        return self.embedding(tokens).amax(dim=1)


class EmbedMaxScorer(RelationNetwork):
    """The relation scorer `embed-max`."""

    encoder = EmbedMax
