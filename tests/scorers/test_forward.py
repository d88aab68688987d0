"""Networks without torch score as torch does."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.entry_points import SCORERS, SUBJECT_SCORERS, TAGGERS, load_class
from kbtools.errors import MissingDependency
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.models import RELATION, SUBJECT, TAGGER, make_relation_scorer, model_folder
from kbtools.suites.claims import LONG, marked_questions, world
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
pytest.importorskip("onnxruntime", reason="forward passes need onnxruntime: pip install 'kbtools[models]'")

import torch

from kbtools.scorers.fitting.training import small_task
from kbtools.scorers.networks.network import without_torch
from tests.encoder_folders import write_encoder

PLUGINS = [
    (SCORERS, "embed-avg"),
    (SCORERS, "embed-avg+"),
    (SCORERS, "ltg-cnn"),
    (SCORERS, "ltg-cnn+"),
    (SCORERS, "bigru"),
    (SCORERS, "bigru+"),
    (SUBJECT_SCORERS, "type-vector"),
    (SUBJECT_SCORERS, "type-vector-avg"),
]
QUESTIONS = [*marked_questions(), MarkedQuestion(Question.read(LONG), 0, 0), MarkedQuestion(Question.read("?!"), 0, 0)]

Load = Callable[..., Any]


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Make a network with weights up to 1, and load it without torch or with it."""

    def load(group: str, name: str, *, by_torch: bool, device: str = "cpu") -> Any:
        plugin, folder = load_class(group, name), tmp_path / "model"
        if not folder.exists():
            task = small_task(plugin, world(), marked_questions(), models=tmp_path)
            torch.manual_seed(2)
            with torch.no_grad():
                for parameter in task.network.parameters():
                    parameter.uniform_(-1, 1)
            task.save(folder, Stamp(name))
        with monkeypatch.context() as patch:
            for module in ("networks.network", "taggers.tagger", "encoders.encoder", "subjects.entity_vectors"):
                patch.setattr(f"kbtools.scorers.{module}.without_torch", lambda device: not by_torch)
            return plugin.load(folder, world(), device=device)

    return load


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
def test_vectors_of_sentences_are_those_of_torch(tmp_path: Path, pooling: str) -> None:
    pytest.importorskip("tokenizers", reason="pretrained encoders need tokenizers: pip install 'kbtools[minilm]'")
    from kbtools.scorers.encoders.encoder_network import build_encoder
    from kbtools.scorers.encoders.pretrained import read_files
    from kbtools.scorers.encoders.sentence_forward import SentenceForward

    files = read_files(str(write_encoder(tmp_path / "encoder", pooling=pooling)))
    texts = ["who wrote it", "", "where was the author of it born", "who wrote it", "x" * 200, "東京 in it"]
    encoder = SentenceForward.of_files(files)

    expected = build_encoder(files).encode(texts)
    assert encoder.encode(texts) == pytest.approx(expected, abs=1e-5)
    assert np.concatenate([encoder.encode([text]) for text in texts]) == pytest.approx(expected, abs=1e-5)
    assert encoder.encode([]).shape == (0, 16)


def test_a_trained_encoder_scores_as_by_torch(
    loaded: Load, small_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))

    scores = loaded(SCORERS, "encoder", by_torch=False).score(QUESTIONS)

    assert scores == pytest.approx(loaded(SCORERS, "encoder", by_torch=True).score(QUESTIONS), abs=1e-5)


@pytest.mark.parametrize(("group", "name"), PLUGINS)
def test_scores_are_those_of_torch(loaded: Load, group: str, name: str) -> None:
    expected = loaded(group, name, by_torch=True)
    scorer = loaded(group, name, by_torch=False)

    assert isinstance(expected.network, torch.nn.Module)
    assert not isinstance(scorer.network, torch.nn.Module)
    assert scorer.score_questions(QUESTIONS) == pytest.approx(expected.score_questions(QUESTIONS), abs=1e-5)
    assert scorer.score_questions([]).shape == expected.score_questions([]).shape


@pytest.mark.parametrize("name", ["random", "transe"])
def test_vectors_of_questions_and_entities_are_those_of_torch(loaded: Load, name: str) -> None:
    expected, scorer = (loaded(SUBJECT_SCORERS, name, by_torch=by_torch) for by_torch in (True, False))
    subjects, which = np.array([2, 0, 1, 2], dtype=np.uint32), np.array([0, 0, 1, 4])

    scores = scorer.score(QUESTIONS, which=which, subjects=subjects)

    assert isinstance(expected.network, torch.nn.Module)
    assert not isinstance(scorer.network, torch.nn.Module)
    assert scores == pytest.approx(expected.score(QUESTIONS, which=which, subjects=subjects), abs=1e-5)
    assert scorer.embed_questions(QUESTIONS) == pytest.approx(expected.embed_questions(QUESTIONS), abs=1e-5)
    assert scorer.embed_questions([]).shape == expected.embed_questions([]).shape == (0, scorer.dim)


@pytest.mark.parametrize("few", [0, 1_000])
def test_texts_of_several_lengths_are_read_in_one_pass_as_each_alone(
    loaded: Load, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    scorer = loaded(SCORERS, "bigru", by_torch=False)
    alone = [scorer.score_questions([question])[0] for question in QUESTIONS]
    monkeypatch.setattr("kbtools.scorers.networks.forward.FEW", few)

    assert scorer.score_questions(QUESTIONS) == pytest.approx(np.array(alone), abs=1e-6)


@pytest.mark.parametrize("name", ["bigru-crf", "bigru-crf+"])
def test_spans_are_those_of_torch(loaded: Load, name: str) -> None:
    questions = [marked.question for marked in QUESTIONS]

    spans = loaded(TAGGERS, name, by_torch=False).spans(questions)

    expected = loaded(TAGGERS, name, by_torch=True).spans(questions)
    for own, other in zip(spans, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-7, atol=1e-5)


@pytest.mark.parametrize(("group", "name"), PLUGINS[1:8:2])
def test_more_texts_than_fit_in_a_batch_are_scored_as_each_alone(
    loaded: Load, group: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = loaded(group, name, by_torch=False).network
    texts = [["who", "wrote", "it"], ["who"], ["what", "is", "it"], ["it"], ["where", "it"]]
    alone = np.concatenate([network.score_texts([text]) for text in texts])
    monkeypatch.setattr("kbtools.scorers.networks.forward.TEXTS_AT_ONCE", 2)

    np.testing.assert_allclose(network.score_texts(texts), alone, atol=1e-5)


@pytest.mark.parametrize(("group", "name"), [*PLUGINS[:1], (TAGGERS, "bigru-crf")])
def test_what_was_loaded_is_saved_as_it_was(loaded: Load, tmp_path: Path, group: str, name: str) -> None:
    network = loaded(group, name, by_torch=False)

    network.save(tmp_path / "again", Stamp(name))

    written = [(tmp_path / folder / "weights.safetensors").read_bytes() for folder in ("model", "again")]
    assert written[0] == written[1]


def test_vectors_of_names_lie_with_the_model(loaded: Load) -> None:
    encoded = loaded(SCORERS, "ltg-cnn", by_torch=True).network.vectors().detach().numpy()

    assert loaded(SCORERS, "ltg-cnn", by_torch=False).network.table == pytest.approx(encoded, abs=1e-6)


@pytest.mark.parametrize("name", ["embed-avg", "ltg-cnn", "bigru", "encoder"])
def test_an_encoder_in_bfloat16_scores_about_as_in_float32(
    loaded: Load, small_encoder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))
    scorer = loaded(SCORERS, name, by_torch=True, device="cpu-bf16")

    scores = scorer.score(QUESTIONS)

    exact = loaded(SCORERS, name, by_torch=True).score(QUESTIONS)
    assert (scores != exact).any()
    assert scores == pytest.approx(exact, abs=0.02 * np.abs(exact).max())
    assert {weight.dtype for weight in scorer.network.encoder.parameters()} == {torch.bfloat16}
    assert (torch.tensor(scores).bfloat16().double().numpy() != scores).any()  # they are compared in float32


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cuda-bf16", "cpu-bf16", "mps"])
def test_a_gpu_is_torchs(device: str) -> None:
    assert without_torch("cpu")
    assert not without_torch(device)


def test_without_onnx_runtime_the_extra_is_named(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(SCORERS, "bigru", by_torch=False)
    monkeypatch.delitem(sys.modules, "kbtools.scorers.networks.sessions")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    with pytest.raises(MissingDependency, match=r"needs onnxruntime; install it with pip install .*\[models\]'"):
        loaded(SCORERS, "bigru", by_torch=False)


@pytest.mark.parametrize("subject", ["type-cosine", "random"])
def test_a_query_with_trained_models_imports_no_torch(
    sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subject: str
) -> None:
    kb = EmbeddedKB(sample_path)
    parts = {
        (RELATION, SCORERS): ["embed-avg", "bigru", "ltg-cnn+"],
        (SUBJECT, SUBJECT_SCORERS): ["type-vector", "random"],
        (TAGGER, TAGGERS): ["bigru-crf+"],
    }
    monkeypatch.setenv("KBTOOLS_ENCODER", str(write_encoder(tmp_path / "pretrained")))
    text = "who is the author of dune"
    questions = [MarkedQuestion(Question.read(text), 21, 25)]
    for (part, group), names in parts.items():
        for name in names:
            task = small_task(load_class(group, name), kb, questions, models=tmp_path)
            task.save(model_folder(tmp_path, part, name), Stamp(name))
    make_relation_scorer("encoder", kb)  # torch makes the graph of a new encoder
    hide = "import sys; sys.modules['torch'] = None; from kbtools.cli.main import main; main()"
    scorers = "embed-avg,bigru,ltg-cnn+,encoder"
    options = f"--scorer {scorers} --subject {subject} --pruning focused-idf --tagger bigru-crf+".split()
    command = ["query", "--kb", str(sample_path), "--models", str(tmp_path), *options, text]

    asked = subprocess.run([sys.executable, "-c", hide, *command], capture_output=True, text=True)

    assert asked.returncode == 0, asked.stderr
    assert "answers: " in asked.stdout
