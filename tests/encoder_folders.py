"""Small pretrained encoders for tests: random weights, and a tokenizer that knows letters."""

import json
import string
from pathlib import Path
from typing import Any

from kbtools.scorers.networks.checkpoint import write_weights

PARTS = ("who", "wrote", "##s", "born", "where", "it", "person", "place", "film", "author")
SMALL = {"vocab_size": 200, "max_position_embeddings": 64, "hidden_act": "gelu"}
SIZES = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
SIZES_OF_DISTILBERT = {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32}


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of word pieces that splits unknown words into letters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = [*string.ascii_lowercase, *string.digits]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters), *PARTS]
    tokenizer = Tokenizer(models.WordPiece({piece: row for row, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))


def write_encoder(folder: Path, *, pooling: str = "mean_tokens", seed: int = 5) -> Path:
    """Write a small BERT in the format of sentence-transformers."""
    import torch

    config = {"model_type": "bert", "pad_token_id": 0, "type_vocab_size": 2, **SMALL, **SIZES}
    (folder / "1_Pooling").mkdir(parents=True)
    write_json(folder / "config.json", config)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 48})
    write_json(folder / "1_Pooling" / "config.json", {f"pooling_mode_{pooling}": True, "word_embedding_dimension": 16})
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    write_json(folder / "modules.json", modules)
    write_tokenizer(folder)
    random = torch.Generator().manual_seed(seed)
    weights = {
        name: 1.0 * name.endswith("LayerNorm.weight") + 0.3 * torch.randn(shape, generator=random)
        for name, shape in shapes().items()
    }
    write_weights(folder / "model.safetensors", {name: tensor.numpy() for name, tensor in weights.items()})
    return folder


def shapes() -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of a small BERT."""
    dim, hidden = SIZES["hidden_size"], SIZES["intermediate_size"]
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (200, dim),
        "embeddings.position_embeddings.weight": (64, dim),
        "embeddings.token_type_embeddings.weight": (2, dim),
        "embeddings.LayerNorm.weight": (dim,),
        "embeddings.LayerNorm.bias": (dim,),
    }
    for number in range(SIZES["num_hidden_layers"]):
        linear = {f"attention.self.{part}": (dim, dim) for part in ("query", "key", "value")}
        linear |= {
            "attention.output.dense": (dim, dim),
            "intermediate.dense": (hidden, dim),
            "output.dense": (dim, hidden),
        }
        for name, shape in linear.items():
            sizes |= {f"encoder.layer.{number}.{name}.weight": shape, f"encoder.layer.{number}.{name}.bias": shape[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            sizes |= {f"encoder.layer.{number}.{name}.{kind}": (dim,) for kind in ("weight", "bias")}
    return sizes


def write_json(path: Path, record: Any) -> None:
    path.write_text(json.dumps(record), encoding="utf-8")
