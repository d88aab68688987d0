"""The one network of the paper: every score is f(q)·E(x) (Eq. 10), whatever f and E are."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.base import Encoder, moved
from kbtools.scorers.vocabulary import initialise
from kbtools.scorers.words import WordVectors

Inputs = tuple[Tensor, ...]

BY_ROW = ("table", "bias")
"""The parameters of a `DotScorer` that have an entry for each row."""


class DotScorer(nn.Module):
    """Score a text against every row of a table; the table is learned, or encoded from the names of its rows."""

    def __init__(self, encoder: Encoder, names: Sequence[Sequence[str]], *, biased: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = [tuple(name) for name in names]
        self.known: Tensor | None = None
        self.collated: tuple[tuple[int, ...], Inputs] | None = None
        if not encoder.names:
            self.table = nn.Parameter(torch.empty(len(self.names), encoder.config.dim))
        if biased:
            self.bias = nn.Parameter(torch.empty(len(self.names)))
        self.biased = biased

    def initialise(self, words: WordVectors) -> None:
        """Draw the parameters, and take over given word vectors."""
        initialise(self)
        self.encoder.initialise(words)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def train(self, mode: bool = True) -> Self:
        if mode:
            self.known = None
            self.collated = None
        return super().train(mode)

    def vectors(self, rows: NDArray[np.int64] | None = None) -> Tensor:
        """Give E(x) of some rows, or of all: (rows, dim). Encoded names are kept at inference, never in training."""
        if not self.encoder.names:
            return self.table if rows is None or len(rows) == len(self.names) else self.table[torch.from_numpy(rows)]
        if rows is None and self.known is not None and not torch.is_grad_enabled():
            return self.known
        vectors = self.encode_names(tuple(range(len(self.names)) if rows is None else rows.tolist()))
        if rows is None and not self.training and not torch.is_grad_enabled():
            self.known = vectors
        return vectors

    def encode_names(self, rows: tuple[int, ...]) -> Tensor:
        """Encode the names of rows; what was collated for the last rows is kept."""
        if self.collated is None or self.collated[0] != rows:
            self.collated = rows, self.collate([self.names[row] for row in rows])
        encoded: Tensor = self.encoder(*self.collated[1])
        return encoded

    def scores(self, texts: Sequence[Sequence[str]], *, rows: NDArray[np.int64] | None = None) -> Tensor:
        """Give the scores of texts of one length against some rows, or against all: (texts, rows)."""
        scores: Tensor = self.encoder(*self.collate(texts)) @ self.vectors(rows).T
        return scores + self.bias if self.biased else scores

    def forward(self, *inputs: Tensor) -> Tensor:
        """Give the scores of collated texts against all rows: (batch, rows)."""
        scores: Tensor = self.encoder(*inputs) @ self.vectors().T
        return scores + self.bias if self.biased else scores

    def collate(self, texts: Sequence[Sequence[str]]) -> Inputs:
        """Make the tensors of texts of one length, on the network's device."""
        return moved(self.encoder.collate(texts), self.device)
