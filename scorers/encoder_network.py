"""The network of `encoder`: one pretrained encoder of questions and of names, to which each relation may add."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from kbtools.scorers.pretrained import SentenceEncoder

SHARPNESS = 15.0
"""Log-probability of a cosine of 1. Untrained, with n-gram-idf and half of `lexical`, on the first 3,000 validation
questions of FBSQ, of the named: 76.6 % are right, 76.8 % at 10, 76.4 % at 20; with `lexical` alone 69.8 %."""


UNSEEN = 1.0
"""What a relation gains that has learned nothing, beside those that questions were seen of. On FBSQ's validation split,
of the questions of such relations, given the subject, 96.3 % are right, 94.4 % without it, 98.1 % at 1.5; of all
relations the right one is first in 77.4 %, 77.5 % without it, 77.1 % at 1.5."""


class EncoderNetwork(nn.Module):
    """Scores f(q)·E(r), where E(r) is the vector of a relation's name and a learned part beside it."""

    names: Tensor

    def __init__(self, encoder: SentenceEncoder, relations: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("names", torch.zeros(relations, encoder.dim))
        self.learned = nn.Parameter(torch.zeros(relations, encoder.dim))
        self.known: tuple[tuple[int, int, int], Tensor, Tensor] | None = None

    def scores(self, texts: Sequence[str]) -> Tensor:
        """Give the scores of a batch of texts: (texts, relations)."""
        return self.compare(self.encoder.embed(texts))

    def relations(self) -> tuple[Tensor, Tensor]:
        """Give E(r) of all relations as sharp as they count, and their gains; at inference they are computed once."""
        present = self.names._version, self.learned._version, self.learned.data_ptr()
        if self.known is not None and self.known[0] == present and not torch.is_grad_enabled():
            return self.known[1:]
        relations, gains = SHARPNESS * (self.names + self.learned), UNSEEN * (self.learned == 0).all(dim=1)
        self.known = None if torch.is_grad_enabled() else (present, relations, gains)
        return relations, gains

    def compare(self, vectors: Tensor, rows: Tensor | None = None, *, dropped: float = 0.0) -> Tensor:
        """Compare f(q) with E(r) of all relations, or of some that learn: vectors (batch, dim) -> (batch, relations).

        `dropped` is how often a relation that learns has to do without its learned part.
        """
        if rows is None:
            relations, gains = self.relations()
            return vectors @ relations.T + gains
        kept = torch.rand(len(rows), 1, device=rows.device) >= dropped
        return SHARPNESS * vectors @ (self.names[rows] + self.learned[rows] * kept).T
