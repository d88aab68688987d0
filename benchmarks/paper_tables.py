"""The paper's Tables 1 to 3 in its layout: its values, for SimpleQuestions over FB5M, next to those of a run."""

from collections.abc import Iterator, Mapping, Sequence

from kbtools.answering.resampling import Resamples
from kbtools.comparison.figures import CellFigures
from kbtools.comparison.grid import Cell
from kbtools.comparison.lost_questions import Cause
from kbtools.comparison.significance import compare_cells
from kbtools.comparison.summary import Report, Section

NETWORKS = {"embed-avg": "Embed-AVG", "ltg-cnn": "LTG-CNN", "ltg-cnn+": "LTG-CNN+", "bigru": "BiGRU"}
SUBJECTS = {"random": "Random", "transe": "Pretrain", "type-vector": "Type Vec"}
PRUNINGS = {"n-gram": "N-Gram", "n-gram+": "N-Gram+", "focused": "Focused Pruning"}
AVERAGED = "type-vector-avg"
"""The subject scorer whose network is an Embed-AVG."""

TABLE_1 = {
    ("n-gram", "embed-avg"): (39.4, 42.2, 50.9),
    ("n-gram", "ltg-cnn"): (32.8, 36.8, 45.6),
    ("n-gram", "bigru"): (43.7, 46.7, 55.7),
    ("n-gram+", "embed-avg"): (53.8, 57.0, 58.7),
    ("n-gram+", "ltg-cnn"): (46.3, 50.9, 56.0),
    ("n-gram+", "bigru"): (58.3, 61.6, 62.6),
    ("focused", "embed-avg"): (71.4, 71.7, 72.1),
    ("focused", "ltg-cnn"): (67.6, 67.9, 68.6),
    ("focused", "ltg-cnn+"): (70.2, 70.4, 71.1),
    ("focused", "bigru"): (75.2, 75.5, 75.7),
}
"""Accuracy by pruning method, relation network and entity representation, in the order of SUBJECTS."""

TABLE_2 = {
    "n-gram": (94.8, 85.7, 58.7, 55.7),
    "n-gram+": (92.9, 91.3, 67.2, 62.6),
    "focused": (94.9, 92.7, 65.6, 75.7),
}
"""Pruning recall, single-subject, multi-subject and overall accuracy, of BiGRU and type vectors."""

TABLE_3 = {"embed-avg": (71.6, 72.1), "ltg-cnn": (68.0, 68.6), "ltg-cnn+": (70.4, 71.1), "bigru": (75.4, 75.7)}
"""Accuracy with an Embed-AVG and with a BiGRU as the subject network, under focused pruning and type vectors."""

LEAD = "The paper's value, then that of this run; a dash where the run lacks the cell."

FiguresByCell = Mapping[Cell, CellFigures]


def paper_sections(report: Report) -> list[Section]:
    """Return the paper's tables that share a cell with the run."""
    figures = {cell.cell: cell for cell in report.cells}
    sections = []
    if table_1_cells().keys() & figures.keys():
        sections += [table_1(figures), order_section(report)]
    if figures.keys() & {Cell(pruning, "bigru", "type-vector") for pruning in TABLE_2}:
        sections.append(table_2(figures))
    if figures.keys() & {Cell("focused", scorer, AVERAGED) for scorer in TABLE_3}:
        sections.append(table_3(figures))
    return sections


def table_1_cells() -> dict[Cell, float]:
    """Return the paper's value of each cell of Table 1."""
    return {
        Cell(pruning, scorer, subject): value
        for (pruning, scorer), values in TABLE_1.items()
        for subject, value in zip(SUBJECTS, values, strict=True)
    }


def beside(value: float, cells: FiguresByCell, cell: Cell, figure: str = "accuracy") -> str:
    """Format the paper's value and that of a run."""
    return f"{value:.1f} / " + (f"{100 * cells[cell].figures[figure].value:.1f}" if cell in cells else "-")


def table_1(cells: FiguresByCell) -> Section:
    rows = [
        [PRUNINGS[pruning], NETWORKS[scorer]]
        + [beside(value, cells, Cell(pruning, scorer, name)) for name, value in zip(SUBJECTS, values, strict=True)]
        for (pruning, scorer), values in TABLE_1.items()
    ]
    head = ["Pruning method", "Relation network", *SUBJECTS.values()]
    return Section("The paper's Table 1: accuracy", LEAD, head, rows, words=2)


def table_2(cells: FiguresByCell) -> Section:
    rows = []
    for pruning, (recall, single, multi, overall) in TABLE_2.items():
        cell = Cell(pruning, "bigru", "type-vector")
        rows.append(
            [
                PRUNINGS[pruning],
                beside(recall, cells, cell, "recall"),
                beside(single, cells, cell, "single_subject") + counts(cells, cell, "single_subject"),
                beside(multi, cells, cell, "multi_subject") + counts(cells, cell, "multi_subject"),
                beside(overall, cells, cell),
            ]
        )
    head = ["Pruning method", "Pruning recall", "Single-subject", "Multi-subject", "Overall accuracy"]
    return Section("The paper's Table 2: BiGRU and type vectors", LEAD, head, rows)


def counts(cells: FiguresByCell, cell: Cell, figure: str) -> str:
    """Format a share of the recalled questions with its counts."""
    share = cells[cell].figures[figure] if cell in cells else None
    return f" ({share.part:,.0f} of {share.whole:,.0f})" if share and share.whole is not None else ""


def table_3(cells: FiguresByCell) -> Section:
    rows = [
        [NETWORKS[scorer]]
        + [
            beside(value, cells, Cell("focused", scorer, subject))
            for subject, value in zip((AVERAGED, "type-vector"), values, strict=True)
        ]
        for scorer, values in TABLE_3.items()
    ]
    head = ["Relation network", "Embed-AVG", "BiGRU"]
    return Section("The paper's Table 3: the subject network, under focused pruning and type vectors", LEAD, head, rows)


def order_section(report: Report) -> Section:
    """Return the cells of Table 1 whose order differs from the paper's, and where answers were lost."""
    rows = list(reversals(report))
    lead = (
        "Cells of Table 1 that differ in one part and stand in another order than in the paper, with the cause that "
        "costs the lower one most."
        if rows
        else "Every two cells of Table 1 that differ in one part stand in the paper's order."
    )
    head = ["higher here", "higher in the paper", "points here", "95 %", "points in the paper", "cause"]
    return Section("Order against the paper", lead, head, rows, words=2)


def reversals(report: Report) -> Iterator[list[str]]:
    """Yield the pairs of cells whose order differs from the paper's, the higher one here first."""
    paper, run = table_1_cells(), report.run
    present = [cell for cell in paper if cell in run.cells]
    pairs = [
        (higher, lower)
        for higher in present
        for lower in present
        if paper[higher] < paper[lower]
        and differ_in_one(higher, lower)
        and run.strict(higher).mean() > run.strict(lower).mean()
    ]
    if not pairs:
        return
    lost = {cell.cell: cell.causes for cell in report.cells}
    for pair in compare_cells({cell: run.strict(cell) for cell in present}, Resamples(len(run)), pairs):
        costs = {cause: lost[pair.other][cause][1] - lost[pair.one][cause][1] for cause in lost[pair.one]}
        # The cause by which the lower cell loses most beyond the higher one.
        worst: Cause = max(costs, key=lambda cause: costs[cause])
        yield [
            pair.one.label,
            pair.other.label,
            f"{100 * pair.difference:+.2f}",
            f"{100 * pair.low:+.2f} to {100 * pair.high:+.2f}",
            f"{paper[pair.one] - paper[pair.other]:+.1f}",
            f"{worst.label}, {costs[worst]:+,.1f} answers",
        ]


def differ_in_one(first: Sequence[str], second: Sequence[str]) -> bool:
    return sum(a != b for a, b in zip(first, second, strict=True)) == 1
