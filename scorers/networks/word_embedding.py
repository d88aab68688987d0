"""The table of word vectors that a network learns, and how its parameters start."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from kbtools.scorers.networks.words import SPECIAL, WordVectors

RANGE = 0.08
"""Parameters start uniformly within -RANGE and RANGE (paper, section Experiment Setting)."""


class WordEmbedding(nn.Embedding):
    """A vector for each word; in training, some words become unknown, so that the unknown word is trained.

    The symbol is never dropped. Dimensions beyond those of a given vector start within `spare` of zero: at zero, a
    word that training has not seen is read by its given vector alone.
    """

    def __init__(self, vocabulary: Sequence[str], dim: int, *, word_dropout: float) -> None:
        super().__init__(len(vocabulary), dim, padding_idx=0)
        self.word_dropout = word_dropout
        self.rows = {word: row for row, word in enumerate(vocabulary)}

    def initialise(self, words: WordVectors, *, spare: float = RANGE) -> None:
        """Start from given vectors where there are some (paper, section Experiment Setting)."""
        if not len(words.words):
            return
        # Dimensions that the vectors have are theirs; the rest keep what `initialise` drew, scaled down to `spare`.
        known = {word: row for row, word in enumerate(words.words)}
        rows = [(row, known[word]) for word, row in self.rows.items() if word in known]
        if not rows:
            return
        own, in_vectors = np.array(rows).T
        dim = min(self.embedding_dim, words.vectors.shape[1])
        with torch.no_grad():
            self.weight[torch.from_numpy(own), :dim] = torch.from_numpy(words.vectors[in_vectors, :dim])
            self.weight[torch.from_numpy(own), dim:] *= spare / RANGE

    def look_up(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Give the rows of texts of one length: (batch, length)."""
        return torch.tensor([[self.rows.get(word, 1) for word in text] for text in texts])

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> (batch, length, dim)."""
        if self.training and self.word_dropout:
            dropped = (torch.rand(tokens.shape, device=tokens.device) < self.word_dropout) & (tokens > len(SPECIAL) - 1)
            tokens = tokens.masked_fill(dropped, 1)
        return super().forward(tokens)


def initialise(network: nn.Module) -> None:
    """Draw every parameter uniformly; padding stays zero."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-RANGE, RANGE)
        for module in network.modules():
            if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0
