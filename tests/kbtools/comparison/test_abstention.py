"""Confidence is that of the cell, and a calibration is refused where it does not belong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import verdict
from kbtools.answering.questions import read_annotated
from kbtools.comparison.calibration import calibrate_system
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.run_folder import Run
from kbtools.errors import RunMismatch, RunUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.system import System
from kbtools.ranking.weights import Weights

STEEP = Calibration((0.5, 0.6), (0.1, 0.9))


def system(answerer: Answerer, pruning: str) -> System:
    return answerer.system(pruning=pruning)


@pytest.fixture(scope="module")
def calibrated(sample_memory: Answerer, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("calibrated") / "run"
    files = examples / "sample.test.txt", examples / "sample.valid.txt"
    return compare(sample_memory, Request(files[0], out, Grid(("n-gram+",)), Path("sample.kb"), valid=files[1]))


def test_confidence_is_that_of_the_cell(calibrated: Run, sample_memory: Answerer, examples: Path) -> None:
    cell = calibrated.cells[Cell("n-gram+", "lexical", "popularity")]
    questions = list(read_annotated(examples / "sample.test.txt"))

    results = [sample_memory.query(one.text, pruning="n-gram+", abstain=0) for one in questions]

    assert [one.confidence for one in results] == pytest.approx(cell["confidence"].tolist(), abs=1e-4)


def test_an_unsure_result_keeps_its_candidates_and_loses_its_answers(sample_memory: Answerer) -> None:
    result = sample_memory.query("who wrote it", top=2, abstain=0.9)

    assert (len(result.candidates), result.answers, result.answers_total, result.answered) == (2, (), 0, False)
    assert verdict(result) == "no answer: confidence 0.57"


def test_a_sure_result_keeps_its_answers(sample_memory: Answerer) -> None:
    result = sample_memory.query("who wrote it", abstain=0.5)

    assert (result.answers, result.answered) == (sample_memory.query("who wrote it").answers, True)


def test_confidence_is_calibrated(sample_memory: Answerer) -> None:
    raw = sample_memory.query("who wrote it", abstain=0).confidence
    steep = replace(sample_memory.system(), calibration=STEEP)
    calibrated = sample_memory.query("who wrote it", abstain=0, system=steep).confidence

    assert calibrated == pytest.approx(0.1 + 8 * (raw - 0.5), abs=1e-5)


def test_no_candidates_give_no_answer_at_any_confidence(sample_memory: Answerer) -> None:
    result = sample_memory.query("zzz", abstain=0)

    assert (result.confidence, result.answered) == (0.0, False)


def test_a_calibrated_cell_is_read(calibrated: Run, sample_memory: Answerer) -> None:
    found = calibrate_system(calibrated, sample_memory, system(sample_memory, "n-gram+")).calibration

    assert found
    assert 0 <= min(found.correct) <= max(found.correct) <= 1


def test_a_cell_that_was_not_compared_is_named(calibrated: Run, sample_memory: Answerer) -> None:
    with pytest.raises(RunUnusable, match="n-gram / lexical / popularity is not calibrated there"):
        calibrate_system(calibrated, sample_memory, system(sample_memory, "n-gram"))


def test_a_run_without_validation_questions_calibrates_nothing(sample_run: Run, sample_memory: Answerer) -> None:
    with pytest.raises(RunUnusable, match="run kbtools compare --valid"):
        calibrate_system(sample_run, sample_memory, system(sample_memory, "n-gram"))


def test_a_calibration_of_another_knowledge_base_is_refused(calibrated: Run, tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(RunMismatch, match=r"compared on the knowledge base sample\.kb, not on this one"):
        calibrate_system(calibrated, Answerer(tiny_memory), system(Answerer(tiny_memory), "n-gram+"))


def test_a_calibration_of_other_models_is_refused(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path, tmp_path: Path
) -> None:
    answerer = Answerer(sample_memory.kb, models=tmp_path / "models")
    run = compare(answerer, request_for(valid=examples / "sample.valid.txt"))
    (tmp_path / "models" / "relation" / "lexical").mkdir(parents=True)
    (tmp_path / "models" / "relation" / "lexical" / "weights").write_text("other", encoding="utf-8")

    with pytest.raises(RunMismatch, match="was compared with other models or weights than these"):
        calibrate_system(run, answerer, system(answerer, "n-gram+"))


def test_a_calibration_of_other_weights_is_refused(calibrated: Run, sample_memory: Answerer) -> None:
    answerer = Answerer(sample_memory.kb)
    answerer.parts.keep(system(answerer, "n-gram+").weighted(Weights(relation=0.5)))

    with pytest.raises(RunMismatch, match="was compared with other models or weights than these"):
        calibrate_system(calibrated, answerer, system(answerer, "n-gram+"))
