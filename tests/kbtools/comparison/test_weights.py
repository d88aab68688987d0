"""A comparison counts weights as queries do."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluation import expected_accuracy
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import find_gold, score_gold
from kbtools.answering.questions import read_annotated, read_gold
from kbtools.comparison import stages
from kbtools.comparison.calibration import calibrate_system, run_calibration
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid, cell_weights, weights_text
from kbtools.comparison.report_files import figures_csv, figures_section, report_json
from kbtools.comparison.run_folder import Run
from kbtools.comparison.summary import make_report, markdown_page, terminal_table
from kbtools.comparison.weight_search import choose_system, choose_weights, tune_weights
from kbtools.errors import SourceMissing
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.system import System
from kbtools.ranking.trained import read_systems
from kbtools.ranking.weights import DEFAULT, EQUATION_4, PRESETS, WITH_SUBJECT, Weights
from kbtools.scorers.relations.lexical import LexicalScorer
from kbtools.text.question import MarkedQuestion

WEIGHTS = {
    "cold": Weights(relation=4.0, mention=0.2),
    "flat": Weights(relation=0.1, rung=0.0, similarity=3.0, popularity=0.0),
    "subject": replace(WITH_SUBJECT, subject=1.5, sharpness=2.0, alpha=3.0),
    "both": Weights(subject=0.5, sharpness=0.5, alpha=0.0, popularity=0.3),
}


def choose(answerer: Answerer, grid: Grid, weights: Weights) -> None:
    """Give an answerer chosen weights for every cell, as if training had chosen them."""
    for cell in grid.cells():
        answerer.parts.keep(answerer.system(**cell._asdict()).weighted(weights))


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram-idf"])
@pytest.mark.parametrize(
    ("weights", "subject"), [("cold", None), ("flat", None), ("subject", "fact-count"), ("both", "type-count")]
)
def test_chosen_weights_count_as_in_queries(
    sample_memory: Answerer, request_for: Callable[..., Request], weights: str, subject: str | None, pruning: str
) -> None:
    answerer = Answerer(sample_memory.kb)
    request = request_for(grid=Grid((pruning,)))
    choose(answerer, Grid((pruning,)), WEIGHTS[weights])
    gold = read_gold(request.questions, answerer.kb)

    run = compare(answerer, request)

    results = [answerer.query(one.text, pruning=pruning, subject=subject, top=None) for one in gold]
    outcomes = run.cells[Cell(pruning, "lexical", subject or "popularity")]
    assert outcomes["strict"].mean() == pytest.approx(expected_accuracy(results, gold))
    assert outcomes["tied"].tolist() == [one.tied for one in results]


def test_new_weights_join_the_cell_again(sample_memory: Answerer, request_for: Callable[..., Request]) -> None:
    answerer, cell = Answerer(sample_memory.kb), Cell("n-gram", "lexical", "popularity")
    before = compare(answerer, request_for(grid=Grid(("n-gram",)))).cells[cell].fingerprint
    choose(answerer, Grid(("n-gram",)), WEIGHTS["flat"])

    after = compare(answerer, request_for(grid=Grid(("n-gram",)))).cells[cell].fingerprint

    assert after != before


def test_namesakes_are_not_told_apart_without_a_subject_scorer(
    sample_memory: Answerer, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    path = tmp_path / "springfield.txt"
    path.write_text(
        "m.0ftxc\tlocation.location.containedby\tm.03v0t\twhat is springfield contained by", encoding="utf-8"
    )

    run = compare(sample_memory, request_for(questions=path))

    outcomes = run.cells[Cell("n-gram-idf", "lexical", "none")]
    assert outcomes["tied"].tolist() == [2]
    assert outcomes["bound"].tolist() == [0.5]
    assert outcomes["oracle"].tolist() == [0.5]


def weightings(run: Run) -> dict[Cell, tuple[str, Weights]]:
    return {cell: (columns.facts["weighting"], cell_weights(columns.facts)) for cell, columns in run.cells.items()}


def test_without_tuning_every_cell_counts_by_default(
    sample_memory: Answerer, request_for: Callable[..., Request]
) -> None:
    run = compare(sample_memory, request_for())

    usual = {cell: ("default", sample_memory.system(**cell._asdict()).weights) for cell in run.cells}
    assert weightings(run) == usual
    assert usual[Cell("n-gram", "lexical", "none")][1] == replace(DEFAULT, popularity=0.0)


def test_weights_that_were_chosen_for_some_cells_count_for_none(
    sample_memory: Answerer, request_for: Callable[..., Request]
) -> None:
    answerer = Answerer(sample_memory.kb)
    choose(answerer, Grid(("n-gram",)), WEIGHTS["flat"])

    run = compare(answerer, request_for(grid=Grid(("n-gram", "n-gram+"))))

    assert {kind for kind, _ in weightings(run).values()} == {"default"}


def test_weights_that_were_chosen_for_all_cells_are_said_to_be(
    sample_memory: Answerer, request_for: Callable[..., Request]
) -> None:
    answerer = Answerer(sample_memory.kb)
    choose(answerer, Grid(("n-gram",)), WEIGHTS["flat"])

    run = compare(answerer, request_for(grid=Grid(("n-gram",))))

    assert {kind for kind, _ in weightings(run).values()} == {"chosen"}


@pytest.fixture(scope="module")
def tuned(sample_memory: Answerer, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compare with weights chosen on the validation questions."""
    out = tmp_path_factory.mktemp("tuned") / "run"
    files = examples / "sample.test.txt", examples / "sample.valid.txt"
    request = Request(files[0], out, Grid(("n-gram",)), Path("sample.kb"), valid=files[1], tune=True)
    return compare(sample_memory, request)


def test_tuning_chooses_for_every_cell_on_the_validation_questions(
    tuned: Run, sample_memory: Answerer, examples: Path
) -> None:
    assert tuned.valid is not None
    assert {kind for kind, _ in weightings(tuned).values()} == {"tuned"}
    assert weightings(tuned) == weightings(tuned.valid)
    questions = list(read_annotated(examples / "sample.valid.txt"))
    system = sample_memory.system(pruning="n-gram", scorer="lexical", subject="type-count")
    scores = score_gold(sample_memory.opened(system), find_gold(sample_memory.kb, questions))
    chosen = choose_weights(lambda weights: float(scores.expected(WeightedSum(weights)).mean()), subject=True)
    assert weightings(tuned)[Cell("n-gram", "lexical", "type-count")] == ("tuned", chosen)


class FaintScorer(LexicalScorer):
    """A scorer whose relations count so little that popularity outweighs them, until it is tuned away."""

    def score(self, questions: Sequence[MarkedQuestion]) -> NDArray[np.float64]:
        return super().score(questions) / 50


def test_tuning_is_never_worse_on_what_it_was_tuned_on(sample_memory: Answerer, examples: Path, tmp_path: Path) -> None:
    files = examples / "sample.test.txt", examples / "sample.valid.txt"
    grid = Grid(("n-gram",), scorer=("lexical", f"{__name__}:FaintScorer"))
    request = Request(files[0], tmp_path / "untuned", grid, Path("sample.kb"), valid=files[1])

    untuned = compare(sample_memory, request)
    tuned = compare(sample_memory, replace(request, out=tmp_path / "tuned", tune=True))

    assert tuned.valid is not None
    assert untuned.valid is not None
    gains = {cell: tuned.valid.strict(cell).mean() - untuned.valid.strict(cell).mean() for cell in tuned.cells}
    assert min(gains.values()) >= 0
    assert max(gains.values()) > 0


def test_tuning_measures_the_defaults_and_its_choice_and_keeps_it(sample_memory: Answerer, examples: Path) -> None:
    answerer = Answerer(sample_memory.kb)
    usual = answerer.system(pruning="n-gram", scorer=f"{__name__}:FaintScorer")
    questions = read_gold(examples / "sample.valid.txt", answerer.kb)
    scores = score_gold(answerer.opened(usual), find_gold(answerer.kb, questions))

    found = tune_weights(answerer, questions, usual.weighted(WEIGHTS["cold"]))

    assert found.system == choose_system(usual, scores)
    assert found.weights == found.system.weights != usual.weights
    assert (found.before, found.after) == tuple(
        scores.accuracy(WeightedSum(weights)) for weights in (usual.weights, found.weights)
    )
    assert found.right.tolist() == scores.expected(WeightedSum(found.weights)).tolist()
    assert found.questions == len(questions)
    assert answerer.system(pruning="n-gram", scorer=f"{__name__}:FaintScorer") == found.system


def test_popularity_counts_nothing_where_nothing_may_tell_subjects_apart(tuned: Run) -> None:
    without = {cell: weights.popularity for cell, (_, weights) in weightings(tuned).items() if cell.subject == "none"}

    assert set(without.values()) == {0.0}


def test_tuned_weights_are_kept(
    tuned: Run, sample_memory: Answerer, examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "choose_system", lambda system, scores: pytest.fail("tuned again"))
    files = examples / "sample.test.txt", examples / "sample.valid.txt"

    again = compare(
        sample_memory, Request(files[0], tuned.folder, Grid(("n-gram",)), Path("sample.kb"), valid=files[1], tune=True)
    )

    assert weightings(again) == weightings(tuned)


def test_a_table_never_shows_tuned_cells_beside_others(
    tuned: Run, sample_memory: Answerer, examples: Path, tmp_path: Path
) -> None:
    shutil.copytree(tuned.folder, tmp_path / "run")
    request = Request(examples / "sample.test.txt", tmp_path / "run", Grid(("n-gram+",)), Path("sample.kb"))

    run = compare(sample_memory, request)

    assert {kind for kind, _ in weightings(run).values()} == {"default"}
    assert {cell.pruning for cell in run.cells} == {"n-gram+", "n-gram-idf"}


def test_tuning_without_validation_questions_is_refused(
    sample_memory: Answerer, request_for: Callable[..., Request]
) -> None:
    with pytest.raises(SourceMissing, match="name their file with --valid"):
        compare(sample_memory, request_for(tune=True))

    assert not request_for().out.exists()


@pytest.mark.parametrize(
    ("kind", "weights", "subject", "expected"),
    [
        ("default", DEFAULT, "popularity", "default"),
        ("tuned", DEFAULT, "popularity", "tuned: as the defaults"),
        ("tuned", replace(DEFAULT, relation=0.8, rung=0.05), "popularity", "tuned: relation 0.8, rung 0.05"),
        ("tuned", replace(DEFAULT, popularity=0.0), "none", "tuned: as the defaults"),
        ("chosen", replace(WITH_SUBJECT, sharpness=2.0), "type-vector", "chosen: sharpness 2"),
        (
            "tuned",
            replace(WITH_SUBJECT, subject=0.0),
            "type-vector",
            "tuned: subject 0 (subject scores do not count)",
        ),
    ],
)
def test_weights_are_written_where_they_differ(kind: str, weights: Weights, subject: str, expected: str) -> None:
    assert weights_text(kind, weights, Cell("n-gram", "lexical", subject)) == expected


def test_every_cell_says_its_weights_everywhere(tuned: Run) -> None:
    report, cell = make_report(tuned), Cell("n-gram", "lexical", "type-count")
    text = tuned.weights_text(cell)

    rows = list(csv.DictReader(io.StringIO(figures_csv(report))))
    records = json.loads(report_json(report))["cells"]

    assert terminal_table(report).count(text) >= 1
    assert text in markdown_page(report, [figures_section(report)])
    assert {row["weights"] for row in rows if tuple(row[name] for name in Cell._fields) == cell} == {text}
    (record,) = [one for one in records if tuple(one[name] for name in Cell._fields) == cell]
    assert (record["weighting"], Weights(**record["weights"])) == weightings(tuned)[cell]


def test_a_calibration_lends_the_weights_that_it_was_tuned_with(tuned: Run, sample_memory: Answerer) -> None:
    answerer, cell = Answerer(sample_memory.kb), Cell("n-gram-idf", "lexical", "type-count")

    system = calibrate_system(tuned, answerer, answerer.system(**cell._asdict()))

    assert system.weights == weightings(tuned)[cell][1]


def test_validation_cells_of_other_weights_calibrate_nothing(
    tuned: Run, sample_memory: Answerer, examples: Path, tmp_path: Path
) -> None:
    shutil.copytree(tuned.folder, tmp_path / "run")
    cell = Cell("n-gram", "lexical", "type-count")

    run = compare(
        sample_memory, Request(examples / "sample.test.txt", tmp_path / "run", Grid(("n-gram",)), Path("sample.kb"))
    )

    assert run.valid is not None
    assert run_calibration(tuned, cell) is not None
    assert run_calibration(run, cell) is None


def test_without_any_subject_chosen_popularity_counts_nothing(sample_memory: Answerer) -> None:
    answerer = Answerer(sample_memory.kb)
    choose(answerer, Grid(("n-gram",)), WEIGHTS["both"])

    found = {
        name: answerer.system(**Cell("n-gram", "lexical", name)._asdict()).weights.popularity
        for name in ("none", "popularity")
    }

    assert found == {"none": 0.0, "popularity": 0.3}


class Weighed:
    """Scores that are level under all weights, and remember which popularities were tried."""

    def __init__(self) -> None:
        self.popularities: set[float] = set()

    def accuracy(self, scoring: WeightedSum) -> float:
        self.popularities.add(scoring.weights.popularity)
        return 0.5


@pytest.mark.parametrize(("subject", "tried"), [("none", 1), ("popularity", 4)])
def test_tuning_tries_popularity_only_where_it_may_count(subject: str, tried: int) -> None:
    scores = Weighed()

    choose_system(System("n-gram", ("lexical",), subject, None, DEFAULT), scores)  # type: ignore[arg-type]

    assert len(scores.popularities) == tried


def test_models_with_weights_of_their_own_have_them_in_every_cell(
    sample_memory: Answerer, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    read_systems(tmp_path).choose(System("n-gram", ("lexical",), "popularity", None, PRESETS[EQUATION_4]))

    run = compare(Answerer(sample_memory.kb, models=tmp_path), request_for(grid=Grid(("n-gram",))))

    assert set(weightings(run).values()) == {(EQUATION_4, PRESETS[EQUATION_4])}
