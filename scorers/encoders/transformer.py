"""The transformer of BERT and its kin, which pretrained encoders of sentences are: tokens to a state for each.

It is written out here, not taken from `transformers`, since training runs the upper layers alone, over texts that are
not padded; tests compare it with `transformers`, family by family.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kbtools.scorers.encoders.transformer_config import TransformerConfig

FARTHEST = 128
"""The distance at which the last class of MPNet begins."""


class Layer(nn.Module):
    """Attention and a network of one hidden layer, each added to its input and normalised."""

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
        """Attend from the tokens of each text to each other: (batch · length, 3 dim) -> (batch · length, dim)."""
        width = projected.shape[1] // (3 * self.heads)
        heads = projected.view(-1, length, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], attn_mask=bias)
        return attended.transpose(1, 2).reshape(-1, self.heads * width)


class Transformer(nn.Module):
    """The states of the tokens of texts of one length, which lie end to end."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.words, config.dim)
        self.positions = nn.Embedding(config.positions, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.epsilon)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
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
        """Return what the attention of MPNet adds for distances: (heads, length, length)."""
        place = torch.arange(length, device=self.distances.weight.device)
        bias: Tensor = self.distances(distance_classes(place, self.config.distances))
        return bias.permute(2, 0, 1)


def distance_classes(place: Tensor, classes: int) -> Tensor:
    """Return the classes of distances as T5 and MPNet number them: exact when near, by logarithm when far.

    place (length,) -> (length, length), from the token of a row to that of a column
    """
    distance = place[None, :] - place[:, None]
    half, exact = classes // 2, classes // 4
    far = distance.abs().clamp(min=1).float()
    by_log = exact + ((far / exact).log() / math.log(FARTHEST / exact) * (half - exact)).long()
    near = torch.where(distance.abs() < exact, distance.abs(), by_log.clamp(max=half - 1))
    return near + half * (distance > 0)
