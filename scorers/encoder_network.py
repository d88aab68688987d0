"""The network of `encoder`: one pretrained encoder of questions and of names, to which each relation may add."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kbtools.scorers.pretrained import SentenceEncoder

SHARPNESS = 15.0
"""Log-probability of a cosine of 1. Untrained, with n-gram-idf and half of `lexical`, on the first 3,000 validation
questions of FBSQ, of the named: 76.6 % are right, 76.8 % at 10, 76.4 % at 20; with `lexical` alone 69.8 %."""


class EncoderNetwork(nn.Module):
    """Scores f(q)·E(r), where E(r) is the vector of a relation's name and a learned part beside it."""

    names: Tensor

    def __init__(self, encoder: SentenceEncoder, relations: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("names", torch.zeros(relations, encoder.dim))
        self.learned = nn.Parameter(torch.zeros(relations, encoder.dim))

    def scores(self, texts: Sequence[str]) -> Tensor:
        """Give the scores of a batch of texts: (texts, relations)."""
        return self.compare(self.encoder.embed(texts))

    def compare(self, vectors: Tensor, rows: Tensor | None = None, *, dropped: float = 0.0) -> Tensor:
        """Compare f(q) with E(r) of some relations, or of all: vectors (batch, dim) -> (batch, relations).

        `dropped` is how often a relation has to do without its learned part.
        """
        names, learned = (self.names, self.learned) if rows is None else (self.names[rows], self.learned[rows])
        kept = torch.rand(len(names), 1, device=names.device) >= dropped
        return SHARPNESS * vectors @ (names + learned * kept).T
