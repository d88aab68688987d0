"""The transformer of BERT and its kin, which pretrained encoders of sentences are: tokens to a state for each.

It is written out here, not taken from `transformers`, since a question alone takes half of the time so, and since
training runs the upper layers alone; tests compare it with `transformers`, family by family.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kbtools.scorers.encoders.transformer_config import TransformerConfig, distance_classes

Shapes = Sequence[tuple[int, int]]
"""The batch and the length of each group of texts."""


class PackedLinear(nn.Linear):
    """A linear map whose matrix lies, at inference on a CPU, as oneDNN computes with it.

    That is x @ W.T + b, for ten rows in less than half of the time. The contiguous weights stay for training.
    """

    packed: Tensor | None = None
    packed_of: tuple[int, int] = (0, 0)
    """The place and the version of the weights that were packed, which training and loading change."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled() or x.dtype != torch.float32 or not packs(x.device):
            return super().forward(x)
        present = self.weight.data_ptr(), self.weight._version
        if self.packed is None or self.packed_of != present:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach())
            self.packed_of = present
        linear: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return linear


def packs(device: torch.device) -> bool:
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return device.type == "cpu" and available and not torch.is_autocast_enabled("cpu")


def shapes_of(groups: Sequence[Tensor]) -> Shapes:
    return [(len(group), group.shape[1]) for group in groups]


def sizes_of(shapes: Shapes) -> list[int]:
    """Give the tokens of each group."""
    return [batch * length for batch, length in shapes]


class Layer(nn.Module):
    """Attention and a network of one hidden layer, each added to its input and normalised."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.attention = PackedLinear(config.dim, 3 * config.dim)
        self.attended = PackedLinear(config.dim, config.dim)
        self.first_norm = nn.LayerNorm(config.dim, eps=config.epsilon)
        self.hidden = PackedLinear(config.dim, config.hidden)
        self.output = PackedLinear(config.hidden, config.dim)
        self.second_norm = nn.LayerNorm(config.dim, eps=config.epsilon)

    def forward(self, states: Tensor, shapes: Shapes, biases: Sequence[Tensor | None], dropout: float) -> Tensor:
        """States (tokens, dim) -> (tokens, dim); tokens see those of their text. Biases (heads, length, length)."""
        groups = torch.split(self.attention(states), sizes_of(shapes))
        heads = torch.cat([self.attend(*group) for group in zip(groups, shapes, biases, strict=True)])
        states = self.first_norm(states + F.dropout(self.attended(heads), dropout, self.training))
        output = self.output(F.gelu(self.hidden(states)))
        normal: Tensor = self.second_norm(states + F.dropout(output, dropout, self.training))
        return normal

    def attend(self, projected: Tensor, shape: tuple[int, int], bias: Tensor | None) -> Tensor:
        """Let the tokens of each text see each other: (batch · length, 3 dim) -> (batch · length, dim)."""
        width = projected.shape[1] // (3 * self.heads)
        heads = projected.view(*shape, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], attn_mask=bias)
        return attended.transpose(1, 2).reshape(len(projected), -1)


class Transformer(nn.Module):
    """The states of the tokens of texts: groups of texts of one length lie end to end, so that nothing is padded."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.words, config.dim)
        self.positions = nn.Embedding(config.positions, config.dim)
        self.norm = nn.LayerNorm(config.dim, eps=config.epsilon)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        if config.distances:
            self.distances = nn.Embedding(config.distances, config.heads)

    def forward(self, groups: Sequence[Tensor]) -> Tensor:
        """Tokens (batch, length) of each group -> states (tokens of all groups, dim)."""
        return self.run(self.embed(groups), shapes_of(groups), first=0, last=self.config.layers)

    def embed(self, groups: Sequence[Tensor]) -> Tensor:
        """Give the states below the first layer: (tokens, dim)."""
        first = self.config.offset
        parts = [self.words(group) + self.positions.weight[first : first + group.shape[1]] for group in groups]
        embedded: Tensor = self.norm(torch.cat([part.view(-1, self.config.dim) for part in parts]))
        return embedded

    def run(self, states: Tensor, shapes: Shapes, *, first: int, last: int, dropout: float = 0.0) -> Tensor:
        """Give the states above the layer before `last`, from those below `first`: (tokens, dim)."""
        biases = [self.distance_bias(length) if self.config.distances else None for _, length in shapes]
        for layer in self.layers[first:last]:
            states = layer(states, shapes, biases, dropout)
        return states

    def distance_bias(self, length: int) -> Tensor:
        """Give what the attention of MPNet adds for distances: (heads, length, length)."""
        classes = torch.from_numpy(distance_classes(length, self.config.distances)).to(self.distances.weight.device)
        bias: Tensor = self.distances(classes)
        return bias.permute(2, 0, 1)
