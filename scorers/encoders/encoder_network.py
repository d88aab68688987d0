"""The network of `encoder` in torch, for training and GPUs: one pretrained encoder of questions and names, to which
each relation may add a learned part.

The transformer is implemented here rather than taken from `transformers`, since training runs only the upper layers,
over texts without padding; tests compare it with `transformers` for each family.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.scorers.encoders.pretrained import (
    PretrainedFiles,
    PretrainedRecord,
    TransformerConfig,
    make_tokenizer,
    split_texts,
)
from kbtools.scorers.encoders.sentence_forward import SHARPNESS, UNSEEN
from kbtools.scorers.networks.checkpoint import Checkpoint, Graph
from kbtools.scorers.networks.devices import arrays, restore_network, scoring
from kbtools.scorers.networks.export import export_graph
from kbtools.scorers.networks.words import group_by_length

_TEXTS_AT_ONCE = 256
"""Texts in one batch: more are no faster on a CPU."""

_FARTHEST = 128
"""The distance at which MPNet's last class begins."""


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
        self.eval()
        vectors = np.empty((len(texts), self.dim), dtype=np.float32)
        tokens = self.tokens(texts)
        with scoring(len(texts)):
            for rows in group_by_length(tokens, most=_TEXTS_AT_ONCE):
                group = torch.tensor([tokens[row] for row in rows], device=self.device)
                vectors[rows] = self(group).cpu().numpy()
        return vectors

    def graph(self) -> Graph:
        """Export the encoder for texts of one length."""
        tokens = torch.ones(1, 2, dtype=torch.int64, device=self.device)
        return export_graph(self, {"tokens": (tokens, ("batch", "length"))})[0]


def build_encoder(files: PretrainedFiles) -> SentenceEncoder:
    """Build an encoder from its files."""
    encoder = SentenceEncoder(files.record)
    tensors = {name: torch.from_numpy(array) for name, array in files.weights.items()}
    encoder.transformer.load_state_dict(tensors, assign=True)
    return encoder.requires_grad_(False).eval()


def export_encoder(record: PretrainedRecord) -> Graph:
    """Export an encoder without its weights."""
    encoder = SentenceEncoder(record)
    for weight in encoder.parameters():
        # The exporter merges equal weights, such as those of new norms.
        nn.init.normal_(weight)
    return encoder.graph()


class EncoderNetwork(nn.Module):
    """A scorer by f(q)·E(r), where E(r) is the vector of a relation's name plus a learned part."""

    names: Tensor

    def __init__(self, encoder: SentenceEncoder, relations: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("names", torch.zeros(relations, encoder.dim))
        self.learned = nn.Parameter(torch.zeros(relations, encoder.dim))

    def compare(self, vectors: Tensor, rows: Tensor | None = None, *, dropped: float = 0.0) -> Tensor:
        """Compare f(q) with E(r) of all relations, or of some in training: vectors (batch, dim) -> (batch, relations).

        `dropped` is the probability that a relation's learned part is left out in training.
        """
        if rows is None:
            relations = SHARPNESS * (self.names + self.learned)
            unseen = (self.learned == 0).all(dim=1)
            return vectors @ relations.T + UNSEEN * (~unseen).float().mean() * unseen
        kept = torch.rand(len(rows), 1, device=rows.device) >= dropped
        return SHARPNESS * vectors @ (self.names[rows] + self.learned[rows] * kept).T

    def score_vectors(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Score texts by their vectors, (texts, dim), without gradients: (texts, relations)."""
        with torch.inference_mode():
            compared = self.compare(torch.from_numpy(vectors).to(self.learned.device))
            scores: NDArray[np.float32] = compared.float().cpu().numpy()
        return scores

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to rebuild the network, except its rows."""
        return Checkpoint(asdict(self.encoder.record), (), (), arrays(self), self.encoder.graph())


def rebuild_encoder_network(saved: Checkpoint, relations: int, *, folder: Path, device: str) -> EncoderNetwork:
    network = EncoderNetwork(SentenceEncoder(PretrainedRecord(**saved.config)), relations)
    transformer = network.encoder.transformer
    return restore_network(network, saved.weights, folder=folder, device=device, encoder=transformer)


class _Layer(nn.Module):
    """Attention and a network with one hidden layer, each added to its input and normalised."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.attention = nn.Linear(config.dim, 3 * config.dim)
        self.attended = nn.Linear(config.dim, config.dim)
        self.first_norm = nn.LayerNorm(config.dim, eps=config.epsilon)
        self.hidden = nn.Linear(config.dim, config.hidden)
        self.output = nn.Linear(config.hidden, config.dim)
        self.second_norm = nn.LayerNorm(config.dim, eps=config.epsilon)

    def forward(self, states: Tensor, length: int, bias: Tensor | None, dropout: float) -> Tensor:
        """States (batch · length, dim) -> (batch · length, dim); bias (heads, length, length)."""
        heads = self.attend(self.attention(states), length, bias)
        states = self.first_norm(states + F.dropout(self.attended(heads), dropout, self.training))
        output = self.output(F.gelu(self.hidden(states)))
        normal: Tensor = self.second_norm(states + F.dropout(output, dropout, self.training))
        return normal

    def attend(self, projected: Tensor, length: int, bias: Tensor | None) -> Tensor:
        """Attention between the tokens of each text: (batch · length, 3 dim) -> (batch · length, dim)."""
        width = projected.shape[1] // (3 * self.heads)
        heads = projected.view(-1, length, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], attn_mask=bias)
        return attended.transpose(1, 2).reshape(-1, self.heads * width)


class Transformer(nn.Module):
    """The states of the tokens of texts of one length, stored end to end."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.words, config.dim)
        self.positions = nn.Embedding(config.positions, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.epsilon)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.layers))
        if config.distances:
            self.distances = nn.Embedding(config.distances, config.heads)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length) -> states (batch · length, dim)."""
        return self.run(self.embed(tokens), tokens.shape[1], first=0, last=self.config.layers)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the states below the first layer: (batch · length, dim)."""
        first = self.config.offset
        embedded = self.words(tokens) + self.positions.weight[first : first + tokens.shape[1]]
        states: Tensor = self.norm(embedded.view(-1, self.config.dim))
        return states

    def run(self, states: Tensor, length: int, *, first: int, last: int, dropout: float = 0.0) -> Tensor:
        """Return the states above the layer before `last`, from those below `first`: (batch · length, dim)."""
        bias = self.distance_bias(length) if self.config.distances else None
        for layer in self.layers[first:last]:
            states = layer(states, length, bias, dropout)
        return states

    def distance_bias(self, length: int) -> Tensor:
        """Return the bias for distances in the attention of MPNet: (heads, length, length)."""
        place = torch.arange(length, device=self.distances.weight.device)
        bias: Tensor = self.distances(_distance_classes(place, self.config.distances))
        return bias.permute(2, 0, 1)


def _distance_classes(place: Tensor, classes: int) -> Tensor:
    """Return the classes of distances, numbered as in T5 and MPNet: exact for near tokens, logarithmic for far ones.

    place (length,) -> (length, length), from the token of a row to that of a column
    """
    distance = place[None, :] - place[:, None]
    half, exact = classes // 2, classes // 4
    far = distance.abs().clamp(min=1).float()
    by_log = exact + ((far / exact).log() / math.log(_FARTHEST / exact) * (half - exact)).long()
    near = torch.where(distance.abs() < exact, distance.abs(), by_log.clamp(max=half - 1))
    return near + half * (distance > 0)
