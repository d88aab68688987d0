"""Tables, files and records of a report say the same, and examples of lost questions can be read."""

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_annotated
from kbtools.comparison.calibration import calibration_figures
from kbtools.comparison.column_store import Columns, read_columns, write_columns
from kbtools.comparison.figures import Figure
from kbtools.comparison.grid import Cell, file_name, split_names
from kbtools.comparison.lost_questions import Cause, example_lines, read_examples
from kbtools.comparison.report_files import (
    abstention_section,
    causes_section,
    csv_text,
    figures_csv,
    figures_section,
    make_sections,
    report_json,
    significance_csv,
    taggers_sections,
    write_tables,
)
from kbtools.comparison.run_folder import Provenance, Run, RunOrigin
from kbtools.comparison.significance import Difference
from kbtools.comparison.summary import (
    Report,
    Section,
    best_text,
    html_page,
    html_section,
    is_control,
    make_report,
    markdown_page,
    markdown_table,
    terminal_table,
    verdict_text,
)
from kbtools.errors import OutputUnusable, RunUnusable
from tests.conftest import EXAMPLES


@pytest.fixture(scope="module")
def report(sample_run: Run) -> Report:
    return make_report(sample_run)


def test_the_table_has_a_row_per_cell_and_marks_controls(report: Report) -> None:
    lines = terminal_table(report).splitlines()

    assert [line.split()[:3] for line in lines[1:5]] == [
        ["n-gram", "lexical", "popularity"],
        ["n-gram", "lexical", "none*"],
        ["n-gram", "lexical", "type-count*"],
        ["n-gram", "lexical", "fact-count*"],
    ]
    assert {line.index("default") for line in lines[1:-2]} == {lines[0].index("weights")}
    assert not any(line.startswith(" ") for line in lines)
    end = lines[0].index("accuracy") + len("accuracy")
    assert [line[:end].split()[-1] for line in lines[1:-2]] == [
        f"{100 * cell.figures['accuracy'].value:.1f}" for cell in report.cells
    ]
    assert lines[-2].startswith("n = 36, including questions that no system can answer: 0 unknown subject,")
    assert len(lines) == 1 + len(report.cells) + 2


def test_the_best_cell_is_named_with_those_it_cannot_be_told_from(report: Report) -> None:
    last = terminal_table(report).splitlines()[-1]

    assert "best: 2 cells tie at 92.6: n-gram+ / lexical / none, n-gram-idf / lexical / none; " in last
    assert "not certainly better than" in last


def test_a_sole_best_cell_is_named_alone(report: Report) -> None:
    (first, second) = [cell.cell for cell in report.tied_best]
    without = replace(report, cells=[cell for cell in report.cells if cell.cell != second])

    assert verdict_text(without).startswith(f"{first.label} answers 92.6 % of 36 questions right. The difference from ")
    assert best_text(without).startswith(f"{first.label}, 92.6; not certainly better than ")


def test_cells_that_tie_for_the_first_place_are_all_marked(report: Report) -> None:
    page = html_page(report, make_sections(report), {})
    assert page.index("% of 36 questions right") < page.index("<table>") < page.index("Significance")
    assert 'name="viewport"' in page

    assert page.split("<h2>")[1].count("<tr class=best>") == 2
    assert json.loads(report_json(report))["tied_best"] == [list(cell.cell) for cell in report.tied_best]


def test_a_run_whose_cells_all_tie_crowns_none(report: Report) -> None:
    tied = replace(report, cells=report.tied_best)

    assert verdict_text(replace(tied, against_best=[])) == (
        "n-gram+ / lexical / none and n-gram-idf / lexical / none each answer 92.6 % of 36 questions right."
    )
    assert best_text(tied) == "2 cells tie at 92.6: n-gram+ / lexical / none, n-gram-idf / lexical / none"


def test_markdown_shows_texts_as_they_are() -> None:
    section = Section(
        "title", "lead <script>", ["one|two"], [["a <script> | `b` [c](d) *e* _f_\nnext"]], notes=["<img>"]
    )

    lines = list(markdown_table(section))

    assert lines[0] == "| one\\|two |"
    assert lines[2] == "| a &lt;script&gt; \\| \\`b\\` \\[c\\](d) \\*e\\* \\_f\\_ next |"


def test_no_tag_of_a_name_or_path_reaches_the_page(report: Report) -> None:
    origin = RunOrigin(Provenance("<script>kb", "0"), Provenance("q", "0"), "0")
    cells = [replace(cell, cell=Cell("<script>", *cell.cell[1:])) for cell in report.cells]
    outcomes = {Cell("<script>", *cell[1:]): columns for cell, columns in report.run.cells.items()}
    marked = replace(report, run=replace(report.run, origin=origin, cells=outcomes), cells=cells)

    page = markdown_page(marked, [figures_section(marked), causes_section(marked)])

    assert "<" not in page
    assert page.count("&lt;script&gt;") > len(cells)


def test_an_example_of_a_lost_question_is_no_markup_and_commands_no_terminal() -> None:
    hostile = "<script>`x`|\x1b[31m\u202e\n# y"
    pair = {"name": hostile, "subject": hostile, "relation": hostile}
    winner = pair | {"mention": hostile, "confidence": 0.5}
    record = {"question": hostile, "gold": pair, "found": winner, "tied": 1, "pool": 2}

    page = "\n".join(example_lines(record))

    shown = r"&lt;script&gt;\`x\`\|\\x1b\[31m\\u202e \# y"
    assert page == (
        f"- {shown}\n  - gold: {shown} ({shown}), {shown}\n"
        f"  - found: {shown} ({shown}), {shown}, by {shown}; confidence 0.50, 2 candidates"
    )


def test_no_name_on_a_page_commands_a_terminal() -> None:
    section = Section("title", "lead \x1b[31m", ["head"], [["a\u202eb"]], notes=["c\x07d"])

    page = "\n".join([*markdown_table(section), *html_section(section)])

    assert not set("\x1b\u202e\x07") & set(page)


def test_texts_that_a_spreadsheet_would_compute_are_led_by_an_apostrophe() -> None:
    texts: list[str | float | None] = ["=1+1", "+a", "-b", "@c", "\td", "e=f", -1.5, None]

    (row,) = list(csv.reader(io.StringIO(csv_text(["name"] * 8, [texts]))))[1:]

    assert row == ["'=1+1", "'+a", "'-b", "'@c", "'\td", "e=f", "-1.5", ""]


def test_csv_and_json_hold_the_same_figures(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(figures_csv(report))))
    cells = json.loads(report_json(report))["cells"]

    from_csv = {(row["pruning"], row["scorer"], row["subject"], row["figure"]): row["value"] for row in rows}
    from_json = {
        (cell["pruning"], cell["scorer"], cell["subject"], name): str(figure["value"])
        for cell in cells
        for name, figure in cell["figures"].items()
    }
    assert from_csv == from_json


def test_differences_of_every_two_cells_are_written(sample_run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(significance_csv(sample_run))))

    count = len(sample_run.cells)
    assert len(rows) == count * (count - 1) // 2


def test_files_of_a_run_are_written(report: Report) -> None:
    written = write_tables(report)

    assert [path.name for path in written] == ["report.md", "figures.csv", "figures.json", "significance.csv"]
    assert "## Lost questions by cause" in written[0].read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_named(report: Report, sample_run: Run) -> None:
    gone = Run(sample_run.folder / "gone", sample_run.origin, sample_run.gold, sample_run.cells)

    with pytest.raises(OutputUnusable, match=r"report\.md: cannot be written"):
        write_tables(Report(gone, report.cells, report.against_best))


def test_lost_questions_are_written_with_what_won(sample_run: Run) -> None:
    cell = Cell("n-gram", "lexical", "none")
    page = (sample_run.folder / "errors" / f"{cell.file}.md").read_text(encoding="utf-8")
    lines = (sample_run.folder / "errors" / f"{cell.file}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]

    assert page.startswith("# n-gram / lexical / none\n")
    assert "## namesake tie: " in page
    assert max(map(len, [[one for one in records if one["cause"] == "namesake tie"]])) <= 3
    assert {"question", "gold", "found", "tied", "pool", "cause"} == set(records[0])


def test_names_become_files_and_averages() -> None:
    assert file_name("n-gram+", "my.package:Scorer", "a,b") == "n-gram+~my.package%3AScorer~a,b"
    assert split_names(" n-gram, n-gram+,n-gram ,a&b,") == ("n-gram", "n-gram+", "a,b")


def test_columns_of_another_format_are_named(tmp_path: Path) -> None:
    write_columns(tmp_path / "c", Columns("print", {}, {}))
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes().replace(b"kbtools-columns", b"kbtools-pillars"))

    with pytest.raises(RunUnusable, match="written by another version"):
        read_columns(tmp_path / "c")


@pytest.mark.parametrize(
    ("cell", "control"),
    [
        (Cell("n-gram-idf", "lexical", "popularity"), True),
        (Cell("n-gram-idf", "lexical", "type-vector"), False),
        (Cell("n-gram-idf", "bigru", "popularity"), False),
        (Cell("focused", "bigru", "none"), True),
        (Cell("focused", "bigru", "fact-count"), True),
        (Cell("focused", "bigru", "type-vector"), False),
    ],
)
def test_a_control_trains_nothing_or_only_counts(cell: Cell, control: bool) -> None:
    assert is_control(cell) is control


def test_a_section_without_rows_has_no_table() -> None:
    assert list(markdown_table(Section("title", "lead", ["one", "two"], []))) == []


def test_cells_that_could_be_level_are_named(report: Report) -> None:
    level = [pair.other.label for pair in report.against_best if pair.low <= 0]
    touching = [pair.other.label for pair in report.against_best if pair.low == 0 < pair.high]

    last = terminal_table(report).splitlines()[-1]

    assert touching
    assert all(label in last for label in level)


def test_accuracies_that_only_summing_tells_apart_tie(report: Report) -> None:
    best = report.best
    accuracy = best.figures["accuracy"]
    near = replace(best, figures={**best.figures, "accuracy": replace(accuracy, value=accuracy.value - 1e-12)})

    assert replace(report, cells=[near, best]).tied_best == [near, best]


@pytest.mark.parametrize(("count", "shown"), [(5, "0, 1, 2, 3, 4, which"), (7, "0, 1, 2, 3, 4 and 2 more, which")])
def test_the_first_missing_cells_are_named(report: Report, count: int, shown: str) -> None:
    run = replace(report.run, missing=tuple(map(str, range(count))))

    assert f"missing on disk: {shown}" in terminal_table(replace(report, run=run))


def test_a_difference_may_be_chance_from_two_named_systems_or_a_number_of_them(report: Report) -> None:
    (best, *others) = [cell for cell in report.cells if cell not in report.tied_best[1:]]
    first = replace(report, cells=[report.tied_best[0], *others])
    pairs = [Difference(best.cell, other.cell, 0.1, 0.0, 0.2, 3, 1, 0.5, 0.5) for other in others]

    def verdict(count: int) -> str:
        sure = [replace(pair, low=0.01) for pair in pairs[count:]]
        return verdict_text(replace(first, against_best=[*pairs[:count], *sure]))

    assert verdict(0).endswith("That is reliably better than every other system.")
    assert verdict(1).endswith(f" from {others[0].cell.label} may be chance.")
    assert verdict(2).endswith(f" from {others[0].cell.label} and {others[1].cell.label} may be chance.")
    assert verdict(3).endswith(" from 3 other systems may be chance.")
    assert best_text(replace(first, against_best=[replace(pair, low=0.01) for pair in pairs])).endswith(
        "; better than every other cell"
    )


def test_what_is_no_number_is_a_dash_and_null(report: Report) -> None:
    nothing = Figure(float("nan"), float("nan"), float("nan"), 0.0, 0.0)
    first = replace(report.cells[0], figures={**report.cells[0].figures, "single_subject": nothing})
    without = replace(report, cells=[first])

    (row,) = [row for row in csv.DictReader(io.StringIO(figures_csv(without))) if row["figure"] == "single_subject"]
    (record,) = json.loads(report_json(without))["cells"]

    assert [row[name] for name in ("value", "low", "high", "part", "whole")] == ["", "", "", "0.0", "0.0"]
    assert record["figures"]["single_subject"] == {
        "value": None, "low": None, "high": None, "part": 0.0, "whole": 0.0,
    }  # fmt: skip
    assert "- (-)" in figures_section(without).rows[0]


def test_the_record_says_what_the_tables_say(report: Report) -> None:
    record = json.loads(report_json(report))

    assert (record["json_version"], record["questions_counted"]) == (1, 36)
    assert record["best"] == list(report.best.cell)
    assert (record["excluded"], record["missing"]) == (report.run.excluded(), [])
    assert [cell["control"] for cell in record["cells"]] == [is_control(cell.cell) for cell in report.cells]
    assert [cell["unanswered"] for cell in record["cells"]] == [cell.unanswered for cell in report.cells]
    assert [[(cause["questions"], cause["lost"]) for cause in cell["causes"].values()] for cell in record["cells"]] == [
        list(cell.causes.values()) for cell in report.cells
    ]
    assert [(pair["one"], pair["other"], pair["difference"], pair["won"]) for pair in record["against_best"]] == [
        (list(pair.one), list(pair.other), pair.difference, pair.won) for pair in report.against_best
    ]


def test_sections_hold_the_figures_that_they_name(report: Report) -> None:
    best, other = report.cells[0].cell, report.cells[1].cell
    unsure = Difference(best, other, 0.0123, -0.01, 0.0345, 12.5, 1000.0, 0.0009, 0.001)
    sections = {one.title: one for one in make_sections(replace(report, against_best=[unsure]))}

    assert sections["Significance"].rows == [
        [best.label, other.label, "+1.23", "-1.00 to +3.45", "12.5", "1,000.0", "< 0.001", "0.001"]
    ]
    for row, cell in zip(sections["Figures"].rows, report.cells, strict=True):
        accuracy = cell.figures["accuracy"]
        shown = "{:.1f} ({:.1f}-{:.1f})".format(*(100 * one for one in (accuracy.value, accuracy.low, accuracy.high)))
        assert row[3] == shown
    for row, found in zip(sections["Calibration"].rows, calibration_figures(report.run), strict=True):
        numbers = (found.when_right, found.when_wrong, found.outside)
        assert row == [
            found.cell.label, f"{found.error:.3f}", "-", *(f"{number:.2f}" for number in numbers), f"{found.auroc:.3f}",
        ]  # fmt: skip
    for row, cell in zip(sections["Lost questions by cause"].rows, report.cells, strict=True):
        assert row == [cell.cell.label, *(f"{count} ({lost:.1f})" for count, lost in cell.causes.values())]


def test_abstention_counts_answers_of_enough_confidence(report: Report) -> None:
    cell, count = report.best.cell, len(report.run)
    outcomes = report.run.cells[cell].arrays
    confidence, outside = np.linspace(0, 1, count).round(1), np.linspace(0, 0.8, count).round(1)
    pool = np.where(np.arange(count) < 4, 0, outcomes["pool"])
    arrays = {**outcomes, "confidence": confidence, "confidence_without": outside, "pool": pool}
    run = replace(report.run, cells={**report.run.cells, cell: Columns("print", arrays, report.run.cells[cell].facts)})

    rows = abstention_section(replace(report, run=run)).rows

    for row, least in zip(rows, (0.0, 0.3, 0.5, 0.7, 0.9), strict=True):
        answered = [at for at in range(count) if confidence[at] >= least and pool[at] > 0]
        shares = len(answered) / count, outcomes["strict"][answered].mean(), sum(outside < least) / count
        assert row == [f"{least:.1f}", *(f"{100 * share:.1f}" for share in shares)]


@pytest.mark.parametrize("subject", ["none", "fact-count"])
def test_an_example_is_what_a_query_finds(sample_run: Run, sample_memory: Answerer, subject: str) -> None:
    cell = Cell("n-gram", "lexical", subject)
    questions = {one.text: one for one in read_annotated(EXAMPLES / "sample.test.txt")}
    names = None if subject == "none" else subject

    records = read_examples(sample_run.folder, cell)

    assert records
    for record in records:
        gold = questions[record["question"]]
        result = sample_memory.query(gold.text, pruning="n-gram", subject=names or "none", top=None, abstain=0.0)
        first = result.candidates[0]
        assert record["gold"] == {
            "subject": gold.subject, "relation": gold.relation, "name": sample_memory.entity(gold.subject).name,
        }  # fmt: skip
        assert (record["tied"], record["pool"]) == (result.tied, len(result.candidates))
        assert record["found"] == {
            "subject": first.subject,
            "name": sample_memory.entity(first.subject).name,
            "relation": first.relation,
            "mention": gold.text[first.mention.start : first.mention.end],
            "confidence": pytest.approx(result.confidence, abs=1e-4),
        }


def test_examples_of_each_cause_are_drawn_as_ever_and_in_order(sample_run: Run) -> None:
    cell = Cell("n-gram", "lexical", "none")
    causes, texts = sample_run.causes(cell), [one.text for one in read_annotated(EXAMPLES / "sample.test.txt")]
    expected = []
    for cause in sorted(set(causes.tolist()) - {Cause.NONE}):
        of_cause = np.flatnonzero(causes == cause).tolist()
        chosen = sorted(random.Random(0).sample(of_cause, min(3, len(of_cause))))
        expected += [(texts[at], Cause(cause).label) for at in chosen]

    assert [(one["question"], one["cause"]) for one in read_examples(sample_run.folder, cell)] == expected


def test_an_example_without_candidates_or_names_says_so() -> None:
    gold = {"name": None, "subject": "m.1", "relation": "r"}
    lost = {"question": "q", "gold": gold, "found": None, "tied": 0, "pool": 0}
    found = gold | {"mention": "m", "confidence": 0.125}

    assert list(example_lines(lost)) == ["- q", "  - gold: no name (m.1), r", "  - found: no candidates"]
    assert list(example_lines(lost | {"found": found, "tied": 2, "pool": 1234}))[2] == (
        "  - found: no name (m.1), r, by m; confidence 0.12, 1,234 candidates, 2 tied"
    )


def test_a_tagger_without_a_known_mention_has_no_share(report: Report) -> None:
    marks = {"labelled": np.array([0, 0]), "right": np.array([0, 0])}
    run = replace(report.run, taggers={"mine": Columns("print", marks)})

    assert [section.rows for section in taggers_sections(replace(report, run=run))] == [[["mine", "-"]]]


def test_words_are_aligned_left_and_numbers_right_and_the_best_row_is_marked() -> None:
    section = Section(
        "title", "lead", ["a", "b", "c"], [["x", "y", "1"], ["z", "w", "2"]], words=2, best=[1], notes=["n"]
    )

    assert list(markdown_table(section))[1] == "| --- | --- | ---: |"
    page = "\n".join(html_section(section))
    assert "<th>b</th><th class=number>c</th>" in page
    assert "<tr><td>x</td><td>y</td><td class=number>1</td></tr>" in page
    assert "<tr class=best><td>z</td>" in page
    assert page.endswith("<ul><li>n</li></ul>")
