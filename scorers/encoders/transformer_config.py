"""The families of transformers that encoders of sentences are: their sizes, and what their weights are called."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.scorers.networks.checkpoint import Weights

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

BUCKETS = 32
"""The classes of distances that MPNet tells apart, where its configuration does not say."""


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

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights, by our names."""
        dim, hidden = self.dim, self.hidden
        shapes: dict[str, tuple[int, ...]] = {
            "words.weight": (self.words, dim),
            "positions.weight": (self.positions, dim),
            "norm.weight": (dim,),
            "norm.bias": (dim,),
        }
        linear = {"attention": (3 * dim, dim), "attended": (dim, dim), "hidden": (hidden, dim), "output": (dim, hidden)}
        for number in range(self.layers):
            own = f"layers.{number}."
            for name, (rows, columns) in linear.items():
                shapes |= {f"{own}{name}.weight": (rows, columns), f"{own}{name}.bias": (rows,)}
            for norm in ("first_norm", "second_norm"):
                shapes |= {f"{own}{norm}.{kind}": (dim,) for kind in ("weight", "bias")}
        return shapes | ({"distances.weight": (self.distances, self.heads)} if self.distances else {})


def name_weights(weights: Weights, config: TransformerConfig, family: str) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a file under the names of `Transformer`; raise KeyError where one is missing."""
    named = {as_bert(name, family): np.asarray(array, dtype=np.float32) for name, array in weights.items()}
    words = {"words.weight": named["embeddings.word_embeddings.weight"]}
    positions = named["embeddings.position_embeddings.weight"]
    if config.segments:  # a question is of one segment, whose vector is the same at every position
        positions = positions + named["embeddings.token_type_embeddings.weight"][0]
    result = {**words, "positions.weight": positions, **affine(named, "norm", "embeddings.LayerNorm")}
    for number in range(config.layers):
        own, its = f"layers.{number}.", f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            parts = [named[f"{its}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            result[f"{own}attention.{kind}"] = np.concatenate(parts)
        result |= affine(named, f"{own}attended", f"{its}attention.output.dense")
        result |= affine(named, f"{own}first_norm", f"{its}attention.output.LayerNorm")
        result |= affine(named, f"{own}hidden", f"{its}intermediate.dense")
        result |= affine(named, f"{own}output", f"{its}output.dense")
        result |= affine(named, f"{own}second_norm", f"{its}output.LayerNorm")
    if config.distances:
        result["distances.weight"] = named["encoder.relative_attention_bias.weight"]
    return result


def affine(named: Mapping[str, NDArray[np.float32]], own: str, its: str) -> dict[str, NDArray[np.float32]]:
    return {f"{own}.{kind}": named[f"{its}.{kind}"] for kind in ("weight", "bias")}


def as_bert(name: str, family: str) -> str:
    """Spell the name of a weight as BERT does; some files put the model's own name before it."""
    name = re.sub(rf"^{family.removeprefix('xlm-').replace('camembert', 'roberta')}\.", "", name)
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    for pattern, bert in FAMILIES[family].items():
        name = re.sub(pattern, bert, name)
    short: Sequence[str] = ("query", "key", "value")
    return re.sub(r"\.self\.([qkv])\.", lambda match: f".self.{short['qkv'.index(match[1])]}.", name)
