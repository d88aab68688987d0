"""The relation scorers that read questions and names of relations by their letter trigrams."""

from kbtools.scorers.networks.forward import LetterTrigramForward
from kbtools.scorers.networks.network import BuiltInEncoder
from kbtools.scorers.relations.relation import RelationNetwork


class LetterTrigramScorer(RelationNetwork):
    """The relation scorer `ltg-cnn`."""

    encoder = BuiltInEncoder("kbtools.scorers.networks.ltg_network:LetterTrigramCNN", LetterTrigramForward)


class LetterTrigramPlusScorer(LetterTrigramScorer):
    """The relation scorer `ltg-cnn+`: a symbol stands for the mention."""

    symbol = True
