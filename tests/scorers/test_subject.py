"""Subject scorers over type vectors compute what the paper says, and tell namesakes apart."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import BrokenPlugin, CheckpointMismatch
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import SUBJECT, make_subject_scorer
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.networks.training_settings import change_settings
from kbtools.scorers.subjects.subject import TypeVectorAverageScorer, TypeVectorScorer

SMALL = {"words": "random", "dim": 16, "words_dim": 16, "hidden": 16, "epochs": 12, "batch": 16, "learning_rate": 0.02}
ASKED = [
    MarkedQuestion(Question.read("who wrote dune"), 10, 14),
    MarkedQuestion(Question.read("what is the capital of france"), 23, 29),
]


@pytest.fixture(scope="session")
def models(sample_kb: KnowledgeBase, question_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train subject scorers on the sample."""
    folder = tmp_path_factory.mktemp("models")
    splits = Splits.read(sample_kb, **question_files)
    for name in ("type-vector", "type-vector-avg"):
        settings = change_settings(profile_settings("best", SUBJECT, name), SMALL)
        train(sample_kb, splits, part=SUBJECT, name=name, settings=settings, models=folder)
    return folder


@pytest.fixture(scope="session")
def subjects() -> np.ndarray:
    """Give some entities, typed or not."""
    return np.arange(60, dtype=np.uint32)


@pytest.mark.parametrize("name", ["type-vector", "type-vector-avg"])
def test_u_sums_the_probabilities_of_the_types(
    sample_kb: KnowledgeBase, models: Path, subjects: np.ndarray, name: str
) -> None:
    scorer = make_subject_scorer(name, sample_kb, models=models)
    which = np.ones(len(subjects), dtype=np.int64)

    scores = scorer.score(ASKED, which=which, subjects=subjects)

    g = 1 / (1 + np.exp(-scorer.score_questions(ASKED)[1]))  # type: ignore[attr-defined]
    types = sample_kb.types_of(subjects)
    expected = [sum(g[types.values[types.starts[k] : types.starts[k + 1]]]) for k in range(len(subjects))]
    assert scores == pytest.approx(expected, abs=1e-5)


def test_one_linear_map_stands_under_the_sigmoid_of_the_paper(sample_kb: KnowledgeBase, splits: Splits) -> None:
    changes = {"words": "random", "words_dim": 16, "hidden": 8, "known_words": 0}
    settings = change_settings(profile_settings("paper", SUBJECT, "type-vector"), changes)

    network: Any = TypeVectorScorer.task(sample_kb, splits, settings, models=Path()).network.eval()

    encoder: Any = network.encoder
    _, last = encoder.gru(encoder.embedding(encoder.embedding.look_up([["who", "wrote", "it"]]).T))
    states = torch.cat([last[-2], last[-1]], dim=1)
    expected = states @ network.table.T + network.bias
    assert network.table.shape == (len(sample_kb.types), 16)
    assert torch.allclose(network.scores([["who", "wrote", "it"]]), expected, atol=1e-6)


def test_subjects_without_types_teach_nothing(sample_kb: KnowledgeBase, splits: Splits) -> None:
    settings = change_settings(profile_settings("best", SUBJECT, "type-vector-avg"), SMALL)
    types = sample_kb.types_of(np.arange(506, dtype=np.uint32))
    untyped = int(np.flatnonzero(np.diff(types.starts) == 0)[0])
    subjects = splits.train.subjects.copy()
    subjects[:2] = untyped, -1

    task: Any = TypeVectorAverageScorer.task(
        sample_kb, Splits(replace(splits.train, subjects=subjects), splits.valid), settings, models=Path()
    )

    assert task.rows.tolist() == list(range(2, len(subjects)))
    assert task.subjects.tolist() == subjects[2:].tolist()


def test_a_network_without_projection_is_rebuilt(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    settings = change_settings(profile_settings("paper", SUBJECT, "type-vector"), SMALL | {"epochs": 1})
    train(sample_kb, splits, part=SUBJECT, name="type-vector", settings=settings, models=tmp_path)
    which = np.zeros(60, dtype=np.int64)

    scorer = make_subject_scorer("type-vector", sample_kb, models=tmp_path)

    assert np.isfinite(scorer.score(ASKED, which=which, subjects=np.arange(60, dtype=np.uint32))).all()


def test_the_cosine_divides_by_the_length_of_the_type_vector(
    sample_kb: KnowledgeBase, models: Path, subjects: np.ndarray
) -> None:
    which = np.zeros(len(subjects), dtype=np.int64)
    product, cosine = (
        make_subject_scorer(name, sample_kb, models=models).score(ASKED, which=which, subjects=subjects)
        for name in ("type-vector", "type-cosine")
    )

    counts = np.diff(sample_kb.types_of(subjects).starts)
    assert cosine == pytest.approx(product / np.sqrt(np.maximum(counts, 1)))


def test_the_types_that_a_question_asks_for_score_higher(sample_kb: KnowledgeBase, models: Path) -> None:
    scorer = make_subject_scorer("type-cosine", sample_kb, models=models)
    book, country = (sample_kb.rows([entity])[0] for entity in ("m.0c_vk", "m.0f8l9c"))
    subjects = np.array([book, country], dtype=np.uint32)

    wrote = scorer.score(ASKED, which=np.array([0, 0]), subjects=subjects)
    capital = scorer.score(ASKED, which=np.array([1, 1]), subjects=subjects)

    assert wrote[0] - wrote[1] > capital[0] - capital[1]


def test_a_query_uses_it(sample_memory: Answerer, models: Path) -> None:
    result = Answerer(sample_memory.kb, models=models).query("who wrote it", subject="type-cosine")

    assert all("subject" in found.parts for found in result.candidates)


def test_types_in_another_order_have_the_same_scores(
    sample_kb: KnowledgeBase, reordered_kb: KnowledgeBase, models: Path, subjects: np.ndarray
) -> None:
    which = np.zeros(len(subjects), dtype=np.int64)
    before, after = (
        make_subject_scorer("type-vector", kb, models=models).score(ASKED, which=which, subjects=subjects)
        for kb in (sample_kb, reordered_kb)
    )

    assert len(set(before)) > 10
    assert after == pytest.approx(before, abs=1e-5)


def test_other_types_are_refused(tiny_memory: KnowledgeBase, models: Path) -> None:
    with pytest.raises(CheckpointMismatch, match=r"trained on \d+ types"):
        make_subject_scorer("type-vector", tiny_memory, models=models)


def test_a_control_cannot_be_trained(sample_kb: KnowledgeBase, question_files: dict[str, Path], tmp_path: Path) -> None:
    splits = Splits.read(sample_kb, **question_files)
    settings = change_settings(profile_settings("best", SUBJECT, "x"), SMALL)

    with pytest.raises(BrokenPlugin, match="'type-count' cannot be trained"):
        train(sample_kb, splits, part=SUBJECT, name="type-count", settings=settings, models=tmp_path)
