"""The relation scorers over word vectors: Embed-AVG (paper, Evaluation and Baselines) and BiGRU."""

from kbtools.scorers.networks.forward import BiGRUForward, EmbedAverageForward
from kbtools.scorers.networks.network import BuiltInEncoder
from kbtools.scorers.relations.relation import RelationNetwork

EMBED_AVERAGE = BuiltInEncoder("kbtools.scorers.networks.word_networks:EmbedAverage", EmbedAverageForward)
BIGRU = BuiltInEncoder("kbtools.scorers.networks.word_networks:BiGRU", BiGRUForward)


class EmbedAverageScorer(RelationNetwork):
    """The relation scorer `embed-avg`."""

    encoder = EMBED_AVERAGE


class EmbedAveragePlusScorer(EmbedAverageScorer):
    """The relation scorer `embed-avg+`: a symbol stands for the mention."""

    symbol = True


class BiGRUScorer(RelationNetwork):
    """The relation scorer `bigru`."""

    encoder = BIGRU


class BiGRUPlusScorer(BiGRUScorer):
    """The relation scorer `bigru+`: a symbol stands for the mention."""

    symbol = True
