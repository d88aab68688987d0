"""The network of `encoder`: one pretrained encoder of questions and of names, to which each relation may add."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.encoders.encoder_forward import SHARPNESS, UNSEEN
from kbtools.scorers.encoders.pretrained import PretrainedFiles, PretrainedRecord
from kbtools.scorers.encoders.sentence_encoder import SentenceEncoder, build_encoder
from kbtools.scorers.networks.checkpoint import Checkpoint
from kbtools.scorers.networks.devices import arrays, restore_network


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

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score texts of any length, without gradients: (texts, relations)."""
        self.eval()
        vectors = self.encoder.encode(texts)
        with torch.inference_mode():
            scores: NDArray[np.float32] = self.compare(vectors).float().cpu().numpy()
        return scores

    def state(self) -> Mapping[str, NDArray[Any]]:
        """Give the weights by their names."""
        return arrays(self)


def make_encoder_network(files: PretrainedFiles, relations: int) -> EncoderNetwork:
    """Make a network that has learned nothing yet, and knows no name."""
    return EncoderNetwork(build_encoder(files), relations)


def rebuild_encoder_network(saved: Checkpoint, relations: int, *, folder: Path, device: str) -> EncoderNetwork:
    """Rebuild a trained network."""
    network = EncoderNetwork(SentenceEncoder(PretrainedRecord(**saved.config)), relations)
    return restore_network(network, saved.weights, folder=folder, device=device)
