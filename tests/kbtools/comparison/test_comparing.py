"""A comparison from Python or from a request: its options, its table, and what it says about its inputs."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.comparing import Comparison
from kbtools.comparison.experiment import Request, compare, make_systems
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.run_folder import Run
from kbtools.comparison.summary import Report
from kbtools.errors import BadArgument, UnknownPlugin
from kbtools.kb.contract import KnowledgeBase
from tests.conftest import World
from tests.kbtools.comparison.test_weights import FaintScorer

FAINT = f"{FaintScorer.__module__}:{FaintScorer.__name__}"
GOLD = AnnotatedQuestion("m.078ffw", "book.written_work.author", "m.042xh", "who wrote harry potter")


@pytest.fixture(scope="module")
def tuned(sample_memory: Answerer, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Compare two systems, of which only the second gains by other weights."""
    systems = [sample_memory.system(pruning="n-gram", scorer=scorer) for scorer in ("lexical", FAINT)]
    files, out = (examples / "sample.test.txt", examples / "sample.valid.txt"), tmp_path_factory.mktemp("python")
    return kbtools.compare(sample_memory, files[0], systems=systems, valid=files[1], tune=True, limit=20, out=out)


def test_the_limit_holds_for_both_lists_of_questions(tuned: Comparison, examples: Path) -> None:
    run = tuned.report.run

    assert run.valid
    assert (len(run), len(run.valid)) == (20, 20)
    names = Path(run.origin.questions.path).name, Path(run.valid.origin.questions.path).name
    assert names == ("sample.test.txt", "sample.valid.txt")


def test_a_comparison_has_a_row_for_each_system(tuned: Comparison) -> None:
    pytest.importorskip("pandas")
    rows = tuned.to_frame().to_dict("records")

    for row, cell in zip(rows, tuned.report.cells, strict=True):
        assert tuple(row[name] for name in Cell._fields) == cell.cell
        assert row["weights"] == tuned.report.run.weights_text(cell.cell)
        assert {name: row[name] for name in cell.figures} == pytest.approx(
            {name: figure.value for name, figure in cell.figures.items()}, nan_ok=True
        )
        accuracy = cell.figures["accuracy"]
        assert (row["accuracy_low"], row["accuracy_high"]) == (accuracy.low, accuracy.high)


def test_compared_systems_have_the_weights_of_their_cells(tuned: Comparison, sample_memory: Answerer) -> None:
    run, cell = tuned.report.run, Cell("n-gram", FAINT, "popularity")
    usual = sample_memory.system(pruning="n-gram", scorer=FAINT).weights

    weights = {cell: system.weights for cell, system in tuned.systems.items()}

    assert weights == {cell: run.system(cell, tuned.systems[cell]).weights for cell in run.cells}
    assert weights[cell] != usual
    assert tuned.best == tuned.systems[tuned.report.best.cell]


def test_any_system_is_calibrated_and_without_one_the_best(tuned: Comparison) -> None:
    (other,) = [system for system in tuned.systems.values() if system != tuned.best]

    assert tuned.calibrated(other) == replace(other, calibration=tuned.calibrated(other).calibration)
    assert tuned.calibrated().scorers == tuned.best.scorers != other.scorers
    assert tuned.calibrated().calibration


def test_a_comparison_is_shown_as_its_table(tuned: Comparison) -> None:
    assert repr(tuned) == "<Comparison of 2 systems on 20 questions>"
    assert tuned._repr_html_().startswith("<pre>pruning ")
    run = replace(tuned.report.run, missing=("<script>",))
    marked = replace(tuned, report=Report(run, tuned.report.cells, tuned.report.against_best))
    assert "&lt;script&gt;" in marked._repr_html_()


def test_the_picture_that_is_named_is_drawn(tuned: Comparison) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    titles = [tuned.plot(name).axes[0].get_title() for name in ("recall", "risk", "frequency")]

    assert titles == ["Recall against pool size", "Risk and coverage", "Accuracy by relation frequency"]
    assert tuned.plot().axes[0].get_title() == "Subject and relation right, per cent"


def test_results_are_left_only_in_a_folder_that_is_named(sample_memory: Answerer, tmp_path: Path) -> None:
    kept = kbtools.compare(sample_memory, [GOLD], out=tmp_path / "run")
    gone = kbtools.compare(sample_memory, [GOLD])

    assert (tmp_path / "run" / "run.msgpack").is_file()
    assert kept.report.run.folder == tmp_path / "run"
    assert not gone.report.run.folder.exists()
    assert gone.report.run.origin.questions.path == "1 given in Python"
    assert gone.report.run.origin.kb.path == "given in Python"


def test_without_systems_the_one_that_answers_queries_is_compared(sample_memory: Answerer) -> None:
    assert list(kbtools.compare(sample_memory, [GOLD]).systems.values()) == [sample_memory.system()]
    with pytest.raises(BadArgument, match="one or more"):
        make_systems(sample_memory, [])


def test_rows_that_are_no_questions_are_refused(sample_memory: Answerer) -> None:
    with pytest.raises(BadArgument, match="a question is subject, relation, object and text"):
        kbtools.compare(sample_memory, [("a", "b", "c", 4)])  # type: ignore[list-item]


def test_a_run_names_its_knowledge_base_and_the_view_of_it(make_kb: Callable[..., KnowledgeBase]) -> None:
    world = World((("Q1", "near", "Q2"),), (), spoken=(("Q1", "Eins", "de"), ("Q1", "One", "en")), language="en,de")
    views = Answerer(make_kb("embedded", world))
    row = [("Q1", "near", "Q2", "what is near eins")]

    paths = [
        kbtools.compare(view, row).report.run.origin.kb.path.partition("world.kb")[2]
        for view in (views, views.both_ways(), views.in_languages("de,en"), views.in_languages("de").both_ways())
    ]

    assert paths == ["", " with inverse relations", " in de, en", " in de with inverse relations"]


def test_progress_tells_validation_from_test_questions(
    sample_memory: Answerer, request_for: Callable[..., Request], examples: Path
) -> None:
    calls: dict[str, list[tuple[int, int]]] = defaultdict(list)
    request = request_for(grid=Grid(("n-gram",)), valid=examples / "sample.valid.txt", limit=7, tune=True, errors=2)

    run = compare(
        Answerer(sample_memory.kb), request, watch=lambda stage, done, total: calls[stage].append((done, total))
    )

    assert all(own[0] == (0, 7) for own in calls.values())
    computed = {"pools of n-gram", "lexical over n-gram", "pools of n-gram-idf", "fact-count over n-gram"}
    assert computed | {f"validation, {stage}" for stage in computed} <= calls.keys()
    assert {calls[stage][-1] for stage in computed} == {(7, 7)}
    weights = [stage for stage in calls if "weights of" in stage]
    assert len(weights) == len(run.cells)
    assert all(stage.startswith("validation, ") and calls[stage][-1] == (7, 7) for stage in weights)
    assert list((run.folder / "errors").iterdir())
    assert not (run.folder / "valid" / "errors").exists()


def test_a_scorer_that_is_asked_only_in_doubt_is_known_before_anything_is_written(
    sample_memory: Answerer, request_for: Callable[..., Request]
) -> None:
    with pytest.raises(UnknownPlugin, match="'nobody'"):
        compare(sample_memory, request_for(grid=Grid(("n-gram",), ("lexical/nobody",))))

    assert not request_for().out.exists()


def test_the_first_questions_are_compared(sample_run: Run, sample_memory: Answerer, sample_questions: Path) -> None:
    first = kbtools.compare(sample_memory, sample_questions, systems=[sample_memory.system(pruning="n-gram")], limit=3)
    given = kbtools.compare(
        sample_memory,
        read_gold(sample_questions, sample_memory.kb)[:3],
        systems=[sample_memory.system(pruning="n-gram")],
    )

    (cell,) = first.systems
    assert first.report.run.strict(cell).tolist() == given.report.run.strict(cell).tolist()
    assert first.report.run.origin.questions.digest == given.report.run.origin.questions.digest
    assert first.report.run.strict(cell).tolist() == sample_run.strict(cell)[:3].tolist()
