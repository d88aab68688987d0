"""Pretrained sentence encoders in the format of sentence-transformers: a folder, or an installed package with one.

Nothing is downloaded. The folder holds `config.json`, `tokenizer.json` and weights, and may specify the pooling.
Families of transformers differ in their sizes and in the names of their weights. Vectors of relations and graphs, which
an encoder computes once, are stored in the user's cache.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from kbtools.entry_points import import_object
from kbtools.errors import MissingDependency, ModelUnusable
from kbtools.ranking.models import WEIGHTS as VARIABLE
from kbtools.ranking.models import WEIGHTS_PACKAGE
from kbtools.record_files import file_digest
from kbtools.scorers.networks.checkpoint import Weights, read_weights
from kbtools.user_cache import keep

PACKAGE = WEIGHTS_PACKAGE
"""The package that contains all-MiniLM-L6-v2."""

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "mean": "mean", "cls": "first"}
_MODULES = ("Transformer", "Pooling", "Normalize")

_LONGEST = 256
"""Tokens read of a text if the folder sets no limit."""

logger = logging.getLogger(__name__)

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
"""Families of models, each with the names of weights that differ from BERT's."""

_OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Families that count positions from the one after the padding's."""

_SIZES = {
    "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim", "hidden_act": "activation",
}  # fmt: skip
"""The settings of BERT, and their names in DistilBERT."""

_BUCKETS = 32
"""Default number of MPNet's distance classes."""


@dataclass(frozen=True, slots=True)
class PretrainedRecord:
    """Everything that rebuilds an encoder besides its weights: `config.json`, the tokenizer, pooling and a limit."""

    config: dict[str, Any]
    tokenizer: str
    pooling: str
    longest: int


@dataclass(frozen=True, slots=True, eq=False)
class PretrainedFiles:
    """A pretrained encoder as stored in its folder, its weights by our names, and an identifying digest."""

    record: PretrainedRecord
    weights: Weights
    digest: str


def read_files(source: str = "") -> PretrainedFiles:
    """Read an encoder from a folder or an installed package: `source`, else that of KBTOOLS_ENCODER, else `minilm`.

    Raises MissingDependency if neither exists, ModelUnusable for a folder that is incomplete or holds another kind of
    model.
    """
    folder = find_folder(source or os.environ.get(VARIABLE) or PACKAGE)
    record = _read_encoder(folder)
    weights = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise _unusable(folder, f"it has no weights ({' or '.join(_WEIGHTS)})")
    try:
        config = TransformerConfig.read(record.config)
        make_tokenizer(record)
    except KeyError as error:
        raise _unusable(folder, f"its configuration lacks {error}") from error
    except Exception as error:  # For an unreadable tokenizer or invalid sizes.
        raise _unusable(folder, str(error)) from error
    try:
        named = name_weights(_load_weights(weights), config, record.config["model_type"])
    except KeyError as error:
        raise _unusable(folder, f"its weights lack {error}") from error
    if any(named[name].shape != shape for name, shape in config.shapes().items()):
        raise _unusable(folder, "the sizes of its weights do not match its configuration")
    digest = hashlib.sha256(f"{_weights_digest(weights)} {record}".encode()).hexdigest()
    return PretrainedFiles(record, named, digest)


def _weights_digest(path: Path) -> str:
    """Hash a file of weights once per state of the file: hashing 83 MB takes a tenth of the time of a first answer."""
    state = path.stat()
    key = f"{path.resolve()} {state.st_size} {state.st_mtime_ns} {state.st_ino}"
    return keep("digests", key, lambda: file_digest(path).encode()).decode()


def make_tokenizer(record: PretrainedRecord) -> Tokenizer:
    """Build the tokenizer, which truncates texts at the limit."""
    return _read_tokenizer(record.tokenizer, record.longest)


@lru_cache(2)
def _read_tokenizer(text: str, longest: int) -> Tokenizer:
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    return tokenizer


def split_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Split texts into tokens, including the start and end tokens."""
    # One by one: the tokenizer would split a batch on its own threads, which do not survive a fork.
    return [tokenizer.encode(text).ids for text in texts]


def find_folder(source: str) -> Path:
    """Return the named folder, or the one that a package of that name contains."""
    if Path(source).is_dir():
        return Path(source)
    spec = find_spec(source) if source.isidentifier() else None
    homes = spec.submodule_search_locations or () if spec else ()
    folders = [path.parent for home in homes for path in sorted(Path(home).rglob("config.json"))]
    if not folders:
        raise MissingDependency(
            f"no folder and no installed package {source!r} with a pretrained encoder; install all-MiniLM-L6-v2 with "
            f"kbtools encoder install, or name a folder in {VARIABLE}",
            module=source,
        )
    return min(folders, key=lambda folder: len(folder.parts))


def _read_encoder(folder: Path) -> PretrainedRecord:
    """Read the small files of an encoder; raise ModelUnusable if one is missing or damaged."""
    config, tokenizer = _read_json(folder / "config.json"), _read_text(folder / "tokenizer.json")
    modules = _read_json(folder / "modules.json") if (folder / "modules.json").is_file() else []
    pooling, limit = "mean", None
    for module in modules:
        kind = module["type"].rsplit(".", 1)[-1]
        if kind not in _MODULES:
            raise _unusable(folder, f"it has a module {kind!r}, but only {', '.join(_MODULES)} are supported")
        if kind == "Pooling":
            pooling = _read_pooling(folder / module["path"] / "config.json")
    if (folder / "sentence_bert_config.json").is_file():
        limit = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    room = config.get("max_position_embeddings", _LONGEST) - config.get("pad_token_id", 0) - 1
    return PretrainedRecord(config, tokenizer, pooling, min(limit or _LONGEST, room))


def _read_pooling(path: Path) -> str:
    """Return how a vector is made from the states."""
    record = _read_json(path)
    named = record.get("pooling_mode")
    flags = [name for name, value in record.items() if name.startswith("pooling_mode") and value is True]
    kinds = [named] if isinstance(named, str) else flags
    if len(kinds) != 1 or kinds[0] not in _POOLING:
        raise _unusable(
            path, f"it uses the pooling {', '.join(kinds) or 'nothing'}, but only mean and cls are supported"
        )
    return _POOLING[kinds[0]]


def _load_weights(path: Path) -> Weights:
    """Read the weights of a file; raise ModelUnusable if it is damaged."""
    read: Callable[[Path], Weights] = read_weights
    if path.suffix != ".safetensors":
        read = import_object("kbtools.scorers.networks.devices:read_tensors")
    try:
        return read(path)
    except Exception as error:  # Zip files and unpicklers each raise their own.
        raise _unusable(path, f"it is damaged ({type(error).__name__})") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise _unusable(path, f"it is not JSON ({error})") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _unusable(path.parent, f"{path.name} cannot be read ({reason})") from error


def _unusable(path: Path, reason: str) -> ModelUnusable:
    return ModelUnusable.at(path, f"not a pretrained encoder that kbtools can read: {reason}")


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """The sizes of a transformer; `offset` is the first token's position, `distances` the number of their classes."""

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
        """Read the sizes in `config.json`; raise KeyError if one is missing, ValueError for another architecture."""
        family = config["model_type"]
        if family not in FAMILIES:
            raise ValueError(f"models of type {family!r} are not read, only {', '.join(FAMILIES)}")
        sizes = {name: config[other if family == "distilbert" else name] for name, other in _SIZES.items()}
        if sizes["hidden_act"] != "gelu":
            raise ValueError(f"activation {sizes['hidden_act']!r} is not supported, only 'gelu'")
        return cls(
            words=config["vocab_size"],
            positions=config["max_position_embeddings"],
            dim=sizes["hidden_size"],
            hidden=sizes["intermediate_size"],
            layers=sizes["num_hidden_layers"],
            heads=sizes["num_attention_heads"],
            epsilon=config.get("layer_norm_eps", 1e-12),
            offset=config.get("pad_token_id", 1) + 1 if family in _OFFSET else 0,
            segments=family not in ("distilbert", "mpnet"),
            distances=config.get("relative_attention_num_buckets", _BUCKETS) if family == "mpnet" else 0,
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
            prefix = f"layers.{number}."
            for name, (rows, columns) in linear.items():
                shapes |= {f"{prefix}{name}.weight": (rows, columns), f"{prefix}{name}.bias": (rows,)}
            for norm in ("first_norm", "second_norm"):
                shapes |= {f"{prefix}{norm}.{kind}": (dim,) for kind in ("weight", "bias")}
        return shapes | ({"distances.weight": (self.distances, self.heads)} if self.distances else {})


def name_weights(weights: Weights, config: TransformerConfig, family: str) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a file by the names of `Transformer`; raise KeyError if one is missing."""
    named = {_as_bert(name, family): np.asarray(array, dtype=np.float32) for name, array in weights.items()}
    words = {"words.weight": named["embeddings.word_embeddings.weight"]}
    positions = named["embeddings.position_embeddings.weight"]
    if config.segments:  # A question has one segment, whose vector is the same at every position.
        positions = positions + named["embeddings.token_type_embeddings.weight"][0]
    result = {**words, "positions.weight": positions, **_affine(named, "norm", "embeddings.LayerNorm")}
    for number in range(config.layers):
        prefix, source = f"layers.{number}.", f"encoder.layer.{number}."
        for kind in ("weight", "bias"):
            parts = [named[f"{source}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            result[f"{prefix}attention.{kind}"] = np.concatenate(parts)
        result |= _affine(named, f"{prefix}attended", f"{source}attention.output.dense")
        result |= _affine(named, f"{prefix}first_norm", f"{source}attention.output.LayerNorm")
        result |= _affine(named, f"{prefix}hidden", f"{source}intermediate.dense")
        result |= _affine(named, f"{prefix}output", f"{source}output.dense")
        result |= _affine(named, f"{prefix}second_norm", f"{source}output.LayerNorm")
    if config.distances:
        result["distances.weight"] = named["encoder.relative_attention_bias.weight"]
    return result


def _affine(named: Mapping[str, NDArray[np.float32]], prefix: str, source: str) -> dict[str, NDArray[np.float32]]:
    return {f"{prefix}.{kind}": named[f"{source}.{kind}"] for kind in ("weight", "bias")}


def _as_bert(name: str, family: str) -> str:
    """Return BERT's name for a weight; some files prefix the model's own name."""
    name = re.sub(rf"^{family.removeprefix('xlm-').replace('camembert', 'roberta')}\.", "", name)
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    for pattern, bert in FAMILIES[family].items():
        name = re.sub(pattern, bert, name)
    short: Sequence[str] = ("query", "key", "value")
    return re.sub(r"\.self\.([qkv])\.", lambda match: f".self.{short['qkv'.index(match[1])]}.", name)
