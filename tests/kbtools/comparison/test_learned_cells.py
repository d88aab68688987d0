"""Cells that a learned ranker ranks: as queries do, beside the weighted sum, computed again when it is fitted anew."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from evaluation import expected_accuracy
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_gold
from kbtools.comparison.calibration import calibrate_system
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.report_files import figures_csv
from kbtools.comparison.summary import make_report, terminal_table
from kbtools.comparison.system_training import train_cascade, train_ranker
from kbtools.errors import ModelMissing
from kbtools.ranking.features import Features
from kbtools.ranking.model_store import Stamp, read_model, write_model
from tests.kbtools.ranking.test_cascade import READING

QUERY: dict[str, Any] = {"pruning": "n-gram", "scorer": "lexical", "subject": "fact-count"}

pytestmark = pytest.mark.usefixtures("trusted_plugins")


class Linear:
    """A ranker that adds two features up, as sharply as it was told when it was fitted."""

    sharpness = 1.0

    def __init__(self, sharpness: float) -> None:
        self.own = sharpness

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        return cls(cls.sharpness)

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls(read_model(folder).contents["sharpness"])

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        contents = {"sharpness": self.own}
        write_model(folder, stamp or Stamp(""), contents, file="nothing", write=lambda path: path.write_bytes(b""))

    def score(self, features: Features) -> NDArray[np.float64]:
        return self.explain(features).sum(axis=1)

    def explain(self, features: Features) -> NDArray[np.float64]:
        counting = np.array([name in ("relation.lexical.pool", "namesakes") for name in features.names])
        return np.where(counting, self.own * features.values, 0.0)


LINEAR = f"{__name__}:Linear"
CELL = Cell("n-gram", "lexical", "fact-count", LINEAR)
GRID = Grid(("n-gram",), subject=("fact-count", "none"))


@pytest.fixture
def fitted(sample_memory: Answerer, examples: Path, tmp_path: Path) -> Answerer:
    """Give an answerer for whose scorers a ranker was fitted."""
    answerer = Answerer(sample_memory.kb, models=tmp_path / "models")
    questions = read_gold(examples / "sample.valid.txt", answerer.kb)
    train_ranker(answerer, questions, answerer.system(**QUERY), ranker=LINEAR)
    return Answerer(sample_memory.kb, models=tmp_path / "models")


def learned(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.learned]


def test_a_fitted_ranker_stands_beside_the_weighted_sum_and_ranks_as_in_queries(
    fitted: Answerer, request_for: Callable[..., Request]
) -> None:
    request = request_for(grid=GRID)
    gold = read_gold(request.questions, fitted.kb)

    run = compare(fitted, request)

    results = [fitted.query(one.text, top=None, abstain=0.0, **QUERY) for one in gold]
    outcomes = run.cells[CELL]
    assert learned(list(run.cells)) == [CELL]
    assert CELL._replace(ranker="weighted-sum") in run.cells
    assert {one.ranker for one in results} == {LINEAR}
    assert outcomes["strict"].mean() == pytest.approx(expected_accuracy(results, gold))
    assert outcomes["tied"].tolist() == [one.tied for one in results]
    assert outcomes["confidence"].tolist() == pytest.approx([one.confidence for one in results], abs=1e-4)


def test_a_cascade_ranks_as_in_queries(
    sample_memory: Answerer, examples: Path, tmp_path: Path, request_for: Callable[..., Request]
) -> None:
    models, query = tmp_path / "models", QUERY | {"scorer": f"lexical,{READING}"}
    answerer = Answerer(sample_memory.kb, models=models)
    questions = read_gold(examples / "sample.valid.txt", answerer.kb)
    system = train_cascade(answerer, questions, answerer.system(**query), ranker=LINEAR, in_doubt=[READING]).system
    assert system.cascade
    answerer.parts.keep(replace(system, cascade=replace(system.cascade, threshold=0.5)))
    trained = Answerer(sample_memory.kb, models=models)
    request = request_for(grid=Grid(("n-gram",), scorer=(query["scorer"],), subject=("fact-count",), ranker=(LINEAR,)))
    gold = read_gold(request.questions, sample_memory.kb)

    outcomes = compare(trained, request).cells[CELL._replace(scorer=query["scorer"])]

    results = [trained.query(one.text, top=None, abstain=0.0, **query) for one in gold]
    assert {one.scored_by for one in results if one.candidates} == {"lexical", query["scorer"]}
    assert outcomes["strict"].mean() == pytest.approx(expected_accuracy(results, gold))
    assert outcomes["confidence"].tolist() == pytest.approx([one.confidence for one in results], abs=1e-4)


def test_tables_name_the_ranker(fitted: Answerer, request_for: Callable[..., Request]) -> None:
    report = make_report(compare(fitted, request_for(grid=GRID)))

    assert CELL.label == f"n-gram / lexical / fact-count / {LINEAR}"
    assert f"fact-count*  {LINEAR} " in terminal_table(report)
    assert f"learned by {LINEAR}" in terminal_table(report)
    assert f"n-gram,lexical,fact-count,{LINEAR},accuracy," in figures_csv(report)


def test_rankers_that_are_named_must_have_been_fitted(fitted: Answerer, request_for: Callable[..., Request]) -> None:
    none, one, more = (
        request_for(grid=Grid(("n-gram",), subject=subjects, ranker=names))
        for subjects, names in ((("fact-count",), ()), (("fact-count",), (LINEAR,)), (("type-count",), (LINEAR,)))
    )

    assert learned(list(compare(fitted, none).cells)) == []
    assert learned(list(compare(fitted, one).cells)) == [CELL]
    with pytest.raises(ModelMissing, match="was fitted for the pruner and scorers 'n-gram lexical type-count'"):
        compare(fitted, more)


def test_a_ranker_that_is_fitted_anew_joins_its_cell_again_alone(
    fitted: Answerer, request_for: Callable[..., Request], examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compare(fitted, request_for(grid=GRID))
    monkeypatch.setattr(Linear, "sharpness", 0.5)
    assert fitted.models
    questions = read_gold(examples / "sample.valid.txt", fitted.kb)
    train_ranker(fitted, questions, fitted.system(**QUERY), ranker=LINEAR)

    after = compare(Answerer(fitted.kb, models=fitted.models), request_for(grid=GRID))

    changed = [cell for cell in after.cells if after.cells[cell].fingerprint != before.cells[cell].fingerprint]
    assert changed == [CELL]
    assert not np.array_equal(after.cells[CELL]["confidence"], before.cells[CELL]["confidence"])


def test_a_calibration_is_that_of_the_ranker_that_answers(
    fitted: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    run = compare(fitted, request_for(grid=GRID, valid=examples / "sample.valid.txt"))

    by_ranker = calibrate_system(run, fitted, fitted.system(**QUERY))
    by_sum = calibrate_system(run, fitted, fitted.system(**QUERY, ranker="weighted-sum"))

    assert by_ranker.calibration != by_sum.calibration
