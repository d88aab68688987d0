"""Confidence is measured as said, and the fitted map is the best ascending one."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.answering.answerer import Answerer
from kbtools.comparison.calibration import (  # fmt: skip
    BINS,
    auroc,
    calibration_error,
    calibration_figures,
    reliability,
    risk_coverage,
    run_calibration,
)
from kbtools.comparison.column_store import Columns
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.run_folder import Run, open_run
from kbtools.comparison.system_training import FOLDS, MOST_LOST
from kbtools.errors import RunMismatch, SourceEmpty
from kbtools.ranking.confidence import Calibration, fit_calibration

ANSWERS = st.lists(st.tuples(st.floats(0.01, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=20)


def columns(answers: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([one for one, _ in answers]), np.array([one for _, one in answers])


@given(ANSWERS)
def test_the_fitted_map_ascends(answers: list[tuple[float, float]]) -> None:
    fitted = fit_calibration(*columns(answers))

    assert (np.diff(fitted.correct) > 0).all()
    assert (np.diff(fitted.confidence) > 0).all()


@given(ANSWERS)
def test_the_fitted_map_keeps_within_what_was_seen(answers: list[tuple[float, float]]) -> None:
    confidence, correct = columns(answers)

    fitted = fit_calibration(confidence, correct)

    assert correct.min() - 1e-9 <= min(fitted.correct) <= correct.mean() + 1e-9
    assert correct.mean() - 1e-9 <= max(fitted.correct) <= correct.max() + 1e-9


def test_violators_are_pooled() -> None:
    fitted = fit_calibration(np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]))

    assert fitted.confidence == pytest.approx([0.1, 0.25, 0.9])
    assert fitted.correct == pytest.approx([0.0, 0.5, 1.0])


def test_questions_without_an_answer_teach_nothing_and_stay_without_confidence() -> None:
    fitted = fit_calibration(np.array([0.0, 0.5]), np.array([0.0, 1.0]))

    assert fitted.apply(np.array([0.0, 0.5])).tolist() == [0.0, 1.0]
    assert fitted.confidence == (0.5,)


def test_nothing_to_fit_gives_no_confidence() -> None:
    assert fit_calibration(np.zeros(3), np.zeros(3)).apply(np.array([0.7])).tolist() == [0.0]


def test_between_steps_is_a_line() -> None:
    assert Calibration((0.2, 0.6), (0.0, 1.0)).apply(np.array([0.4])) == pytest.approx([0.5])


def test_bins_hold_every_answered_question() -> None:
    bins = reliability(np.array([0.0, 0.05, 0.5, 1.0]), np.array([0.0, 0.0, 1.0, 1.0]))

    assert [(one.count, one.confidence, one.correct) for one in bins] == [(1, 0.05, 0.0), (1, 0.5, 1.0), (1, 1.0, 1.0)]


def test_the_error_is_the_gap_between_claimed_and_kept() -> None:
    assert calibration_error(np.array([0.9, 0.9]), np.array([1.0, 0.0])) == pytest.approx(0.4)
    assert calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0
    assert calibration_error(np.array([0.95, 0.05]), np.array([1.0, 0.0])) == pytest.approx(0.05)


@given(ANSWERS)
def test_a_bin_counts_by_its_answers(answers: list[tuple[float, float]]) -> None:
    bins: dict[int, list[tuple[float, float]]] = {}
    for confidence, correct in answers:
        bins.setdefault(min(int(confidence * 10), 9), []).append((confidence, correct))
    gaps = [abs(sum(one for one, _ in own) - sum(right for _, right in own)) for own in bins.values()]

    assert calibration_error(*columns(answers)) == pytest.approx(sum(gaps) / len(answers))


def test_risk_falls_with_coverage_of_honest_confidence() -> None:
    coverage, risk = risk_coverage(np.array([0.9, 0.8, 0.8, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]))

    assert coverage.tolist() == [0.25, 0.75]
    assert risk == pytest.approx([0.0, 1 / 3])


@pytest.mark.parametrize(
    ("confidence", "right", "expected"),
    [([0.9, 0.1], [1, 0], 1.0), ([0.1, 0.9], [1, 0], 0.0), ([0.5, 0.5], [1, 0], 0.5), ([0.5, 0.6], [1, 1], 0.5)],
)
def test_auroc_counts_pairs(confidence: list[float], right: list[float], expected: float) -> None:
    assert auroc(np.array(confidence), right=np.array(right)) == expected


@given(ANSWERS)
def test_auroc_is_that_of_a_plain_loop(answers: list[tuple[float, float]]) -> None:
    won = pairs = 0.0
    for one, right in answers:
        for other, also in answers:
            won += right * (1 - also) * ((one > other) + (one == other) / 2)
            pairs += right * (1 - also)
    confidence, correct = columns(answers)

    assert auroc(confidence, right=correct) == pytest.approx(won / pairs if pairs else 0.5)


def test_figures_of_a_cell_weigh_answers_by_how_right_they_are(sample_run: Run) -> None:
    cell, outcomes = next(iter(sample_run.cells.items()))
    confidence, outside = np.linspace(0.1, 0.9, 36), np.linspace(0.0, 0.3, 36)
    strict = np.array([0.0, 0.5, 1.0, 1.0] * 9)
    arrays = {**outcomes.arrays, "confidence": confidence, "strict": strict, "confidence_without": outside}
    run = replace(sample_run, cells={cell: Columns("print", arrays, outcomes.facts)})

    (found,) = calibration_figures(run)

    assert found.error == calibration_error(confidence, strict)
    assert found.when_right == pytest.approx(np.average(confidence, weights=strict))
    assert found.when_wrong == pytest.approx(np.average(confidence, weights=1 - strict))
    assert found.outside == pytest.approx(0.15)
    both = np.concatenate([confidence, outside])
    assert found.auroc == auroc(both, right=np.concatenate([strict, np.zeros(36)])) != auroc(confidence, right=strict)


def test_confidence_is_calibrated_on_validation_questions(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    run = compare(sample_memory, request_for(valid=examples / "sample.valid.txt"))

    assert run.valid is not None
    assert run.valid.cells.keys() == run.cells.keys()
    assert all(run_calibration(run, cell) is not None for cell in run.cells)
    for found in calibration_figures(run):
        fitted, outcomes = run_calibration(run, found.cell), run.cells[found.cell]
        assert fitted
        assert found.calibrated_error == calibration_error(fitted.apply(outcomes["confidence"]), outcomes["strict"])
        assert found.calibrated_error != found.error


def test_without_validation_questions_nothing_is_calibrated(sample_run: Run) -> None:
    assert {one.calibrated_error for one in calibration_figures(sample_run)} == {None}


def test_an_empty_validation_file_is_refused_before_anything_is_computed(
    sample_memory: Answerer, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    (tmp_path / "blank.txt").write_text("\n", encoding="utf-8")

    with pytest.raises(SourceEmpty, match="no questions, expected"):
        compare(sample_memory, replace(request_for(), valid=tmp_path / "blank.txt"))

    assert not (tmp_path / "run").exists()


def test_a_run_stopped_on_its_validation_questions_can_be_opened(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    run = compare(sample_memory, request_for(valid=examples / "sample.valid.txt"))
    shutil.rmtree(run.folder / "valid" / "cells")

    assert open_run(run.folder).valid is None


def test_other_validation_questions_are_refused_before_anything_is_computed(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    compare(sample_memory, request_for(valid=examples / "sample.valid.txt"))
    cells = request_for().out / "cells"
    shutil.rmtree(cells)

    with pytest.raises(RunMismatch, match="results are not merged"):
        compare(sample_memory, request_for(valid=examples / "sample.train.txt"))

    assert list(cells.iterdir()) == []


def test_questions_that_no_system_can_answer_teach_nothing(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    run = compare(sample_memory, request_for(valid=examples / "sample.valid.txt"))
    cell, valid = next(iter(run.cells)), run.valid
    assert valid is not None
    fault = (valid.strict(cell) < 1).astype(np.int8)
    gold = Columns("print", {**valid.gold.arrays, "fault": fault})

    fitted = run_calibration(replace(run, valid=replace(valid, gold=gold)), cell)

    assert fitted is not None
    assert fitted.correct == (1.0,)


def test_a_tie_that_is_half_right_teaches_half(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    run = compare(sample_memory, request_for(valid=examples / "sample.valid.txt"))
    cell, valid = next(iter(run.cells)), run.valid
    assert valid is not None
    outcomes = valid.cells[cell]
    tied = replace(outcomes, arrays={**outcomes.arrays, "strict": np.full(len(outcomes["strict"]), 0.5)})

    fitted = run_calibration(replace(run, valid=replace(valid, cells={**valid.cells, cell: tied})), cell)

    assert fitted is not None
    assert fitted.correct == (0.5,)


def test_chosen_numbers_stay_as_they_were_measured() -> None:
    assert (BINS, FOLDS, MOST_LOST) == (10, 5, 0.0005)
