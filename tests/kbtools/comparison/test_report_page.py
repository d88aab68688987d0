"""The pictures are drawn, and the page stands alone."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.comparison.calibration import reliability, risk_coverage, run_calibration
from kbtools.comparison.column_store import Columns
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.lost_questions import read_examples
from kbtools.comparison.pictures import PICTURES, draw_one, draw_pictures
from kbtools.comparison.report_files import (
    examples_sections,
    make_sections,
    write_page,
    write_page_with_pictures,
)
from kbtools.comparison.run_folder import Run
from kbtools.comparison.summary import Report, html_page, make_report
from kbtools.errors import RunUnusable

VOID = {"meta", "img", "br"}


class Tags(HTMLParser):
    """Collect what a page loads, and the tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(sample_memory: Answerer, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = tmp_path_factory.mktemp("reports") / "a run"
    grid = Grid(("n-gram+",))
    request = Request(examples / "sample.test.txt", out, grid, Path("<sample>.kb"), valid=examples / "sample.valid.txt")
    return make_report(compare(sample_memory, request))


@pytest.fixture(scope="module")
def page(report: Report) -> Path:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    return write_page_with_pictures(report)


def test_every_picture_is_written_as_png_and_svg(page: Path) -> None:
    written = sorted(path.name for path in (page.parent / "pictures").iterdir())

    names = ["accuracy", "calibration", "frequency", "recall", "risk"]
    assert written == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]


def test_the_page_needs_nothing_beside_it(page: Path) -> None:
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))

    assert tags.open == []
    assert len(tags.sources) == 5
    assert all(source.startswith("data:image/svg+xml;base64,") for source in tags.sources)


def test_what_is_written_again_is_the_same(page: Path, report: Report) -> None:
    before = page.read_bytes()

    assert write_page_with_pictures(report).read_bytes() == before


def test_without_pictures_the_page_has_the_tables(report: Report) -> None:
    text = write_page(report).read_text(encoding="utf-8")

    assert "<img" not in text
    assert re.findall("<h2>(.*?)</h2>", text)[:3] == ["Figures", "Significance", "Lost questions by cause"]


def test_the_page_names_its_files_with_escapes_and_the_first_twelve_digits_of_their_content(report: Report) -> None:
    kb, questions = report.run.origin.kb, report.run.origin.questions
    page = write_page(report).read_text(encoding="utf-8")

    assert f"&lt;sample&gt;.kb (content {kb.digest[:12]})" in page
    assert f"sample.test.txt (content {questions.digest[:12]})" in page


def test_a_run_where_nothing_is_found_is_drawn(sample_memory: Answerer, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    (tmp_path / "questions.txt").write_text("m.078ffw\tbook.written_work.author\tm.042xh\tqqq", encoding="utf-8")
    request = Request(tmp_path / "questions.txt", tmp_path / "run", Grid(("n-gram",)), Path("sample.kb"))

    page = write_page_with_pictures(make_report(compare(sample_memory, request)))

    assert page.stat().st_size > 0
    assert draw_pictures(make_report(compare(sample_memory, request)))["recall"].axes[0].get_xscale() == "linear"


def test_no_two_labels_of_a_picture_overlap(sample_run: Run) -> None:
    """Draw as many cells, with as long names, as a large comparison has."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    columns = next(iter(sample_run.cells.values()))
    pruners = ["n-gram", "n-gram+", "n-gram-idf", "focused", "focused-kb", "focused-k", "my_package.pruners:MyPruner"]
    scorers, subjects = ["embed-avg", "bigru", "ltg-cnn+", "bigru,ltg-cnn+"], ["type-vector", "none", "popularity"]
    large = {Cell(*names): columns for names in product(pruners, scorers, subjects)}

    figures = draw_pictures(make_report(replace(sample_run, cells=large)))

    assert {name: overlaps(figure) for name, figure in figures.items()} == {name: [] for name in figures}
    assert figures["accuracy"].get_size_inches()[0] > 5


@pytest.fixture(scope="module")
def drawn(report: Report) -> dict[str, Any]:
    """Return the axes of every picture."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    return {name: figure.axes[0] for name, figure in draw_pictures(report).items()}


def lines_of(axes: Any) -> dict[str, np.ndarray]:
    """Return the points of every line by its label: (points, 2)."""
    return {line.get_label(): np.array(line.get_xydata()) for line in axes.get_lines()}


def test_recall_is_drawn_with_its_interval_for_each_pruner(report: Report, drawn: dict[str, Any]) -> None:
    points = {bar.get_label(): bar for bar in drawn["recall"].containers}

    assert points.keys() == {cell.cell.pruning for cell in report.cells}
    for pruning, bar in points.items():
        figures = next(cell.figures for cell in report.cells if cell.cell.pruning == pruning)
        pool, recall = figures["pool_mean"].value, figures["recall"]
        line, _, (ends,) = bar.lines
        assert line.get_xydata().tolist() == [[pool, pytest.approx(100 * recall.value)]]
        ((low, high),) = ends.get_segments()
        assert (low[1], high[1]) == pytest.approx((100 * recall.low, 100 * recall.high))
    assert drawn["recall"].get_ylim()[1] <= 100.5
    assert drawn["recall"].get_xscale() == "log"
    assert {1, 2, 5, 10, 20, 50, 100} <= set(drawn["recall"].xaxis.get_major_locator().tick_values(1, 100))


def test_accuracy_is_drawn_by_scorer_and_pruner(report: Report) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    axes = draw_one(PICTURES["accuracy"], report).axes[0]
    columns, rows = (
        [label.get_text() for label in labels] for labels in (axes.get_xticklabels(), axes.get_yticklabels())
    )
    expected = {cell.cell.names: 100 * cell.figures["accuracy"].value for cell in report.cells}
    grid = [[expected[(column, *row.split(" / "))] for column in columns] for row in rows]

    assert np.array(axes.images[0].get_array()) == pytest.approx(np.array(grid))
    written = {(text.get_position(), text.get_text(), text.get_color()) for text in axes.texts}
    middle = (min(expected.values()) + max(expected.values())) / 2
    assert written == {
        ((column, row), f"{value:.1f}", "white" if value < middle else "black")
        for row, values in enumerate(grid)
        for column, value in enumerate(values)
    }
    assert {colour for *_, colour in written} == {"white", "black"}


def test_calibration_is_drawn_as_ranked_and_as_calibrated(report: Report, drawn: dict[str, Any]) -> None:
    cell = report.best.cell
    outcomes, fitted = report.run.cells[cell], run_calibration(report.run, cell)
    assert fitted
    kinds = {"as ranked": outcomes["confidence"], "calibrated on validation": fitted.apply(outcomes["confidence"])}

    lines = lines_of(drawn["calibration"])

    assert lines.keys() == {"honest", *kinds}
    assert lines["honest"].tolist() == [[0, 0], [1, 1]]
    for kind, confidence in kinds.items():
        bins = reliability(confidence, outcomes["strict"])
        assert lines[kind].tolist() == [[bar.confidence, bar.correct] for bar in bins]


def test_the_most_accurate_cells_are_drawn_as_lines(sample_run: Run) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'kbtools[report]'")
    frequency = np.repeat([1, 2, 3, 4, 10, 30, 31, 100, 101, 500], 4)[: len(sample_run)]
    gold = Columns("print", {**sample_run.gold.arrays, "relation_frequency": frequency})
    report = make_report(replace(sample_run, gold=gold))
    accuracy = {cell.cell.label: cell.figures["accuracy"].value for cell in report.cells}
    best = sorted(accuracy, key=lambda label: -accuracy[label])[:6]
    cells = {cell.cell.label: report.run.cells[cell.cell] for cell in report.cells}
    groups = {"1": [1], "2-3": [2, 3], "4-10": [4, 10], "11-30": [30], "31-100": [31, 100], "101+": [101]}

    pictures = {name: figure.axes[0] for name, figure in draw_pictures(report).items()}

    risks, frequencies = lines_of(pictures["risk"]), lines_of(pictures["frequency"])
    assert list(risks) == list(frequencies) == best
    for label in best:
        coverage, risk = risk_coverage(cells[label]["confidence"], cells[label]["strict"])
        assert risks[label] == pytest.approx(100 * np.stack([coverage, risk], axis=1))
        right = [100 * cells[label]["strict"][np.isin(frequency, some)].mean() for some in groups.values()]
        assert frequencies[label] == pytest.approx(np.stack([np.arange(6), right], axis=1))
    assert [text.get_text() for text in pictures["frequency"].get_xticklabels()] == [
        f"{name}\nn = {np.isin(frequency, some).sum()}" for name, some in groups.items()
    ]


def overlaps(figure: Any) -> list[tuple[str, str]]:
    """List the pairs of labels of a picture that share some of its area."""
    figure.draw_without_rendering()
    (axes, *_) = figure.axes
    shown = [*axes.get_xticklabels(), *axes.get_xticklabels(minor=True), *axes.get_yticklabels(), *axes.texts]
    shown += [axes.title, axes.xaxis.label, axes.yaxis.label]
    shown += [text for legend in [axes.get_legend(), *figure.legends] if legend for text in legend.get_texts()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown if text.get_text() and text.get_visible()]
    frame = axes.get_window_extent()
    boxes = [(text, box) for text, box in boxes if is_within(box, frame, figure)]
    return [(one, other) for (one, box), (other, beside) in combinations(boxes, 2) if box.overlaps(beside)]


def is_within(box: Any, frame: Any, figure: Any) -> bool:
    """Tell whether a label is drawn at all: ticks beyond the ends of an axis are not."""
    return bool(
        frame.x0 - 1 <= (box.x0 + box.x1) / 2 <= frame.x1 + 1 or frame.y0 - 1 <= (box.y0 + box.y1) / 2 <= frame.y1 + 1
    )


def test_lost_questions_are_shown_with_what_won(sample_run: Run) -> None:
    page = html_page(make_report(sample_run), make_sections(make_report(sample_run)), {})

    assert "<h2>Lost questions</h2><p>n-gram+ / lexical / none: some of each cause" in page
    assert page.count("<td>relation tie</td>") == 3


def test_without_examples_no_lost_questions_are_shown(report: Report) -> None:
    assert examples_sections(report) == []


def test_lost_questions_have_the_names_of_both_pairs(sample_run: Run) -> None:
    report = make_report(sample_run)
    (section,) = examples_sections(report)

    pairs = [
        [
            f"{pair['name'] or 'no name'} ({pair['subject']}), {pair['relation']}" if pair else "no candidates"
            for pair in (example["gold"], example["found"])
        ]
        for example in read_examples(sample_run.folder, report.best.cell)
    ]
    assert [row[2:] for row in section.rows] == pairs
    assert not any(pair.startswith("no name") for row in pairs for pair in row)


def test_damaged_examples_are_named(sample_run: Run, tmp_path: Path) -> None:
    best = make_report(sample_run).best.cell
    (tmp_path / "errors").mkdir()
    (tmp_path / "errors" / f"{best.file}.jsonl").write_text('{"question": "wh', encoding="utf-8")

    with pytest.raises(RunUnusable, match="damaged; run kbtools compare --errors again"):
        make_sections(make_report(replace(sample_run, folder=tmp_path)))
