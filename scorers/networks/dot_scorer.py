"""The one network of the paper, every score f(q)·E(x) (Eq. 10), as torch trains it and a GPU computes it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.networks.checkpoint import Checkpoint
from kbtools.scorers.networks.devices import arrays, build_network, restore_network, scoring
from kbtools.scorers.networks.training_settings import EncoderConfig
from kbtools.scorers.networks.word_networks import Encoder, initialise, moved
from kbtools.scorers.networks.words import TEXTS_AT_ONCE, WordVectors, group_by_length

Inputs = tuple[Tensor, ...]

TABLE = "table"
"""The name of the vectors of rows among the weights; torch encodes those of names itself."""

Names = Sequence[Sequence[str]]
"""The words of the names of relations or types, by row."""


class DotScorer(nn.Module):
    """The scores of a text against every row of a table, which is learned, or encoded from the names of its rows."""

    def __init__(self, encoder: Encoder, names: Sequence[Sequence[str]], *, biased: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.names = [tuple(name) for name in names]
        self.known: Tensor | None = None
        self.collated: tuple[tuple[int, ...], Inputs] | None = None
        if not encoder.names:
            self.table = nn.Parameter(torch.empty(len(self.names), encoder.dim))
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
        """Return E(x) of some rows, or of all: (rows, dim). Encoded names are kept at inference, never in training."""
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
        """Return the scores of texts of one length against some rows, or against all: (texts, rows)."""
        scores: Tensor = self.encoder(*self.collate(texts)) @ self.vectors(rows).T
        return scores + self.bias if self.biased else scores

    def collate(self, texts: Sequence[Sequence[str]]) -> Inputs:
        """Build the tensors of texts of one length, on the network's device."""
        return moved(self.encoder.collate(texts), self.device)

    def score_texts(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Score texts of any length, without gradients: (texts, rows)."""
        scores = np.empty((len(texts), len(self.names)), dtype=np.float32)
        self.eval()
        with scoring(len(texts)):
            for rows in group_by_length(texts, most=TEXTS_AT_ONCE):
                scores[rows] = self.scores([texts[row] for row in rows]).float().cpu().numpy()
        return scores

    def checkpoint(self) -> Checkpoint:
        """Return all that the network is rebuilt from but the rows, and the vectors of rows that are encoded."""
        graph, laid_out = self.encoder.graph()
        weights = {**arrays(self), **{f"encoder.{name}": array for name, array in laid_out.items()}}
        if self.encoder.names:
            self.eval()
            self.known = None  # that of the weights as they were before something was loaded
            with scoring(len(self.names)):
                weights[TABLE] = np.asarray(self.vectors().float().cpu().numpy())
        return Checkpoint(asdict(self.encoder.config), self.encoder.vocabulary, (), weights, graph)


def make_network(
    encoder: type[Encoder],
    config: EncoderConfig,
    *,
    names: Names,
    texts: Names,
    words: WordVectors,
    biased: bool,
    seed: int,
) -> DotScorer:
    """Build an untrained network that knows the words of some texts."""
    vocabulary = encoder.collect([*texts, *names] if encoder.names else texts, words=words, config=config)
    torch.manual_seed(seed)
    network = build_network(lambda: DotScorer(encoder(config, vocabulary), names, biased=biased))
    network.initialise(words)
    return network.eval()


def rebuild_network(
    encoder: type[Encoder], saved: Checkpoint, *, names: Names, biased: bool, folder: Path, device: str
) -> DotScorer:
    """Rebuild a trained network."""
    built = encoder(EncoderConfig(**saved.config), saved.vocabulary)
    return restore_network(DotScorer(built, names, biased=biased), saved.weights, folder=folder, device=device)
