"""The network of `encoder` as torch trains it and as GPUs compute it: one pretrained encoder of questions and of names,
to which each relation may add."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.encoders.pretrained import PretrainedFiles, PretrainedRecord, make_tokenizer, split_texts
from kbtools.scorers.encoders.sentence_forward import SHARPNESS, UNSEEN
from kbtools.scorers.encoders.transformer import Transformer
from kbtools.scorers.encoders.transformer_config import TransformerConfig
from kbtools.scorers.networks.checkpoint import Checkpoint, Graph
from kbtools.scorers.networks.devices import arrays, restore_network, scoring
from kbtools.scorers.networks.export import export_graph
from kbtools.scorers.networks.words import group_by_length

TEXTS_AT_ONCE = 256
"""Texts in one batch: more are no faster on a CPU."""


class SentenceEncoder(nn.Module):
    """A transformer with its tokenizer, from texts to vectors of length 1: (texts, dim)."""

    def __init__(self, record: PretrainedRecord) -> None:
        super().__init__()
        self.record = record
        self.tokenizer = make_tokenizer(record)
        self.transformer = Transformer(TransformerConfig.read(record.config))

    @property
    def dim(self) -> int:
        return self.transformer.config.dim

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Split texts into tokens."""
        return split_texts(self.tokenizer, texts)

    def pool(self, states: Tensor, length: int) -> Tensor:
        """Return a vector of length 1 for the states of each text: (batch · length, dim) -> (batch, dim)."""
        texts = states.view(-1, length, self.dim)
        pooled = texts[:, 0] if self.record.pooling == "first" else texts.mean(dim=1)
        return nn.functional.normalize(pooled, dim=-1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Encode texts of one length: tokens (batch, length) -> (batch, dim)."""
        return self.pool(self.transformer(tokens), tokens.shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode any number of texts, without gradients: (texts, dim)."""
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        tokens = self.tokens(texts)
        with scoring(len(texts)):
            for rows in group_by_length(tokens, most=TEXTS_AT_ONCE):
                group = torch.tensor([tokens[row] for row in rows], device=self.device)
                vectors[rows] = self(group).cpu().numpy()
        return vectors

    def graph(self) -> Graph:
        """Export the encoder of texts of one length."""
        tokens = torch.ones(1, 2, dtype=torch.int64, device=self.device)
        return export_graph(self, {"tokens": (tokens, ("batch", "length"))})[0]


def build_encoder(files: PretrainedFiles) -> SentenceEncoder:
    """Build an encoder of its files."""
    encoder = SentenceEncoder(files.record)
    tensors = {name: torch.from_numpy(array) for name, array in files.weights.items()}
    encoder.transformer.load_state_dict(tensors, assign=True)
    return encoder.requires_grad_(False).eval()


def export_encoder(record: PretrainedRecord) -> Graph:
    """Export an encoder without its weights."""
    encoder = SentenceEncoder(record)
    for weight in encoder.parameters():
        # The exporter takes two weights for one if they are equal, as those of new norms are.
        nn.init.normal_(weight)
    return encoder.graph()


class EncoderNetwork(nn.Module):
    """Scores f(q)·E(r), where E(r) is the vector of a relation's name and a learned part beside it."""

    names: Tensor

    def __init__(self, encoder: SentenceEncoder, relations: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("names", torch.zeros(relations, encoder.dim))
        self.learned = nn.Parameter(torch.zeros(relations, encoder.dim))

    def compare(self, vectors: Tensor, rows: Tensor | None = None, *, dropped: float = 0.0) -> Tensor:
        """Compare f(q) with E(r) of all relations, or of some that learn: vectors (batch, dim) -> (batch, relations).

        `dropped` is how often a relation that learns has to do without its learned part.
        """
        if rows is None:
            relations = SHARPNESS * (self.names + self.learned)
            return vectors @ relations.T + UNSEEN * (self.learned == 0).all(dim=1)
        kept = torch.rand(len(rows), 1, device=rows.device) >= dropped
        return SHARPNESS * vectors @ (self.names[rows] + self.learned[rows] * kept).T

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Score texts of any length, without gradients: (texts, relations)."""
        self.eval()
        vectors = torch.from_numpy(self.encoder.encode(texts)).to(self.learned.device)
        with torch.inference_mode():
            scores: NDArray[np.float32] = self.compare(vectors).float().cpu().numpy()
        return scores

    def checkpoint(self) -> Checkpoint:
        """Return all that the network is rebuilt from but its rows."""
        return Checkpoint(asdict(self.encoder.record), (), (), arrays(self), self.encoder.graph())


def rebuild_encoder_network(saved: Checkpoint, relations: int, *, folder: Path, device: str) -> EncoderNetwork:
    """Rebuild a trained network."""
    network = EncoderNetwork(SentenceEncoder(PretrainedRecord(**saved.config)), relations)
    return restore_network(network, saved.weights, folder=folder, device=device)
