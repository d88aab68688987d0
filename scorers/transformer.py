"""The transformer of BERT and its kin, which pretrained encoders of sentences are: tokens to a state for each.

It is written out here, not taken from `transformers`, since a question alone takes half of the time so, and since
training runs the upper layers alone; tests compare it with `transformers`, family by family.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FAMILIES: dict[str, dict[str, str]] = {
    "bert": {},
    "roberta": {},
    "xlm-roberta": {},
    "camembert": {},
    "mpnet": {
        r"\.attn\.([qkv])\.": r".self.\1.",
        r"\.attn\.o\.": ".output.dense.",
        r"n\.LayerNorm": "n.output.LayerNorm",
    },
    "distilbert": {
        "^transformer": "encoder",
        r"\.([qkv])_lin": r".self.\1",
        r"\.out_lin": ".output.dense",
        "sa_layer_norm": "attention.output.LayerNorm",
        r"ffn\.lin1": "intermediate.dense",
        r"ffn\.lin2": "output.dense",
        "output_layer_norm": "output.LayerNorm",
    },
}
"""Families of models, each with what its weights are called otherwise than those of BERT."""

OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Families that count positions from the one after the padding's."""

SIZES = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}
SIZES |= {"intermediate_size": "hidden_dim", "hidden_act": "activation"}
"""The settings of BERT, and their names in DistilBERT's."""

BUCKETS, FARTHEST = 32, 128
"""The distances that MPNet tells apart: 32 classes, the last of which begins at 128 tokens."""


Shapes = Sequence[tuple[int, int]]
"""The batch and the length of each group of texts."""


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """The sizes of a transformer; `offset` is the position of the first token, `distances` those that have a bias."""

    words: int
    positions: int
    dim: int
    hidden: int
    layers: int
    heads: int
    epsilon: float
    offset: int
    segments: bool
    distances: int

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Read what `config.json` says; raise KeyError where it lacks a size, ValueError for another architecture."""
        family = config["model_type"]
        if family not in FAMILIES:
            raise ValueError(f"models of type {family!r} are not read, only {', '.join(FAMILIES)}")
        sizes = {name: config[other if family == "distilbert" else name] for name, other in SIZES.items()}
        if sizes["hidden_act"] != "gelu":
            raise ValueError(f"activation {sizes['hidden_act']!r} is not computed, only 'gelu'")
        return cls(
            words=config["vocab_size"],
            positions=config["max_position_embeddings"],
            dim=sizes["hidden_size"],
            hidden=sizes["intermediate_size"],
            layers=sizes["num_hidden_layers"],
            heads=sizes["num_attention_heads"],
            epsilon=config.get("layer_norm_eps", 1e-12),
            offset=config.get("pad_token_id", 1) + 1 if family in OFFSET else 0,
            segments=family not in ("distilbert", "mpnet"),
            distances=config.get("relative_attention_num_buckets", BUCKETS) if family == "mpnet" else 0,
        )


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
        place = torch.arange(length, device=self.distances.weight.device)
        bias: Tensor = self.distances(distance_class(place[None, :] - place[:, None], self.config.distances))
        return bias.permute(2, 0, 1)


def distance_class(distance: Tensor, classes: int) -> Tensor:
    """Number the classes of distances as T5 and MPNet do: exact when near, by logarithm when far, by direction."""
    half, exact = classes // 2, classes // 4
    far = distance.abs().clamp(min=1).float()
    by_log = exact + (torch.log(far / exact) / math.log(FARTHEST / exact) * (half - exact)).long()
    near = torch.where(distance.abs() < exact, distance.abs(), by_log.clamp(max=half - 1))
    return near + half * (distance > 0)


def name_weights(weights: Mapping[str, Tensor], config: TransformerConfig, family: str) -> dict[str, Tensor]:
    """Give the weights of a file under the names of `Transformer`; raise KeyError where one is missing."""
    named = {as_bert(name, family): tensor.float() for name, tensor in weights.items()}
    words = {"words.weight": named["embeddings.word_embeddings.weight"]}
    positions = named["embeddings.position_embeddings.weight"]
    if config.segments:  # a question is of one segment, whose vector is the same at every position
        positions = positions + named["embeddings.token_type_embeddings.weight"][0]
    result = {**words, "positions.weight": positions, **affine(named, "norm", "embeddings.LayerNorm")}
    for number in range(config.layers):
        own, its = f"layers.{number}.", f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            parts = [named[f"{its}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            result[f"{own}attention.{kind}"] = torch.cat(parts)
        result |= affine(named, f"{own}attended", f"{its}attention.output.dense")
        result |= affine(named, f"{own}first_norm", f"{its}attention.output.LayerNorm")
        result |= affine(named, f"{own}hidden", f"{its}intermediate.dense")
        result |= affine(named, f"{own}output", f"{its}output.dense")
        result |= affine(named, f"{own}second_norm", f"{its}output.LayerNorm")
    if config.distances:
        result["distances.weight"] = named["encoder.relative_attention_bias.weight"]
    return result


def affine(named: Mapping[str, Tensor], own: str, its: str) -> dict[str, Tensor]:
    return {f"{own}.{kind}": named[f"{its}.{kind}"] for kind in ("weight", "bias")}


def as_bert(name: str, family: str) -> str:
    """Spell the name of a weight as BERT does; some files put the model's own name before it."""
    name = re.sub(rf"^{family.removeprefix('xlm-').replace('camembert', 'roberta')}\.", "", name)
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    for pattern, bert in FAMILIES[family].items():
        name = re.sub(pattern, bert, name)
    short: Sequence[str] = ("query", "key", "value")
    return re.sub(r"\.self\.([qkv])\.", lambda match: f".self.{short['qkv'.index(match[1])]}.", name)
