"""The paper's tables stand in its layout, and another order is said and explained."""

from dataclasses import replace

import numpy as np
from paper_tables import TABLE_1, paper_sections, table_1_cells

from kbtools.comparison.column_store import Columns
from kbtools.comparison.grid import Cell
from kbtools.comparison.run_folder import Run
from kbtools.comparison.summary import make_report

BETTER, WORSE = Cell("focused", "bigru", "type-vector"), Cell("focused", "embed-avg", "type-vector")


def with_accuracy(run: Run, shares: dict[Cell, float]) -> Run:
    """Make runs whose cells are right on the first so many of the questions."""
    base = run.cells[Cell("n-gram+", "lexical", "none")]
    cells = {}
    for cell, share in shares.items():
        strict = (np.arange(len(run)) < share * len(run)).astype(np.float64)
        cells[cell] = Columns("print", {**base.arrays, "strict": strict})
    return replace(run, cells=cells)


def test_table_1_has_thirty_cells() -> None:
    assert len(table_1_cells()) == 30
    assert table_1_cells()[BETTER] == 75.7
    assert list(TABLE_1)[-1] == ("focused", "bigru")


def test_a_run_without_the_papers_cells_shows_none_of_its_tables(sample_run: Run) -> None:
    assert paper_sections(make_report(sample_run)) == []


def test_the_papers_value_stands_beside_that_of_the_run(sample_run: Run) -> None:
    sections = paper_sections(make_report(with_accuracy(sample_run, {BETTER: 0.5})))

    assert [section.title.split(":")[0] for section in sections] == [
        "The paper's Table 1", "Order against the paper", "The paper's Table 2",
    ]  # fmt: skip
    assert sections[0].rows[-1] == ["Focused Pruning", "BiGRU", "75.2 / -", "75.5 / -", "75.7 / 50.0"]
    assert sections[2].rows[-1][-1] == "75.7 / 50.0"


def test_table_3_compares_subject_networks(sample_run: Run) -> None:
    averaged = Cell("focused", "bigru", "type-vector-avg")

    sections = paper_sections(make_report(with_accuracy(sample_run, {averaged: 0.5, BETTER: 0.75})))

    assert sections[-1].rows[-1] == ["BiGRU", "75.4 / 50.0", "75.7 / 75.0"]


def test_the_papers_order_is_confirmed(sample_run: Run) -> None:
    order = paper_sections(make_report(with_accuracy(sample_run, {BETTER: 0.75, WORSE: 0.5})))[1]

    assert order.rows == []
    assert order.lead == "Every two cells of Table 1 that differ in one part stand in the paper's order."


def test_another_order_is_said_with_its_cause(sample_run: Run) -> None:
    order = paper_sections(make_report(with_accuracy(sample_run, {BETTER: 0.5, WORSE: 0.75})))[1]

    ((higher, lower, points, _, paper, cause),) = order.rows
    assert (higher, lower, points, paper) == (WORSE.label, BETTER.label, "+25.00", "-3.6")
    assert cause.endswith(" answers")
    assert float(cause.split(", ")[1].split()[0]) > 0
