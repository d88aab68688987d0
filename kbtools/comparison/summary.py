"""A run summed up: figures of every cell, the best against every other, and the table for a terminal."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kbtools.comparison.figures import MEASURES, CellFigures, Figure, run_figures
from kbtools.comparison.grid import CONTROL_PRUNER, CONTROL_SCORER, CONTROL_SUBJECTS, Cell
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import Difference, Resamples, compare_cells
from kbtools.ranking.system import POPULARITY

SAME = 1e-9
"""Accuracies nearer than this are equal: far less than the share of one answer, far more than sums of floats err."""

MISSING_SHOWN = 5
"""Cells that a sentence names."""


@dataclass(frozen=True, slots=True)
class Report:
    """A run with everything that is said about it; `against_best` compares the best cell with every other."""

    run: Run
    cells: Sequence[CellFigures]
    against_best: Sequence[Difference]

    @property
    def best(self) -> CellFigures:
        """Return the most accurate cell, the first of those that tie."""
        return self.tied_best[0]

    @property
    def tied_best(self) -> list[CellFigures]:
        return find_best(self.cells)


def make_report(run: Run) -> Report:
    """Compute the figures of a run, and compare its most accurate cell with every other."""
    resamples = Resamples(len(run))
    cells = run_figures(run, resamples)
    best = find_best(cells)[0].cell
    pairs = [(best, cell) for cell in run.cells if cell != best]
    return Report(run, cells, compare_cells({cell: run.strict(cell) for cell in run.cells}, resamples, pairs))


def find_best(cells: Sequence[CellFigures]) -> list[CellFigures]:
    """Find the cells of the highest accuracy, in the order of the run: several where they tie exactly."""
    highest = max(cell.figures["accuracy"].value for cell in cells)
    return [cell for cell in cells if cell.figures["accuracy"].value > highest - SAME]


def is_control(cell: Cell) -> bool:
    """Return whether a cell's subjects are not scored or only counted, or nothing of it is trained."""
    return cell.subject in CONTROL_SUBJECTS or cell == Cell(CONTROL_PRUNER, CONTROL_SCORER, POPULARITY)


def show(name: str, figure: Figure) -> str:
    """Write one value: shares in per cent, a dash where there is nothing to divide by."""
    if math.isnan(figure.value):
        return "-"
    measure = MEASURES[name]
    return f"{(100 if measure.per_cent else 1) * figure.value:.{measure.decimals}f}"


def show_interval(name: str, figure: Figure) -> str:
    if math.isnan(figure.low):
        return "-"
    scale = 100 if MEASURES[name].per_cent else 1
    return f"{scale * figure.low:.1f}-{scale * figure.high:.1f}"


def origin_text(run: Run) -> str:
    """Return a line with the knowledge base and the questions of a run."""
    kb, questions = run.origin.kb, run.origin.questions
    return (
        f"Knowledge base {kb.path} (content {kb.digest[:12]}), "
        f"questions {questions.path} (content {questions.digest[:12]}), kbtools {run.origin.version}."
    )


def excluded_text(run: Run) -> str:
    """Return a sentence on the questions that no system can answer, and on the cells that are not there."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in run.excluded().items())
    text = f"n = {len(run):,}, of which no system can answer: {counts}; they count as wrong"
    if not run.missing:
        return text
    more = f" and {len(run.missing) - MISSING_SHOWN:,} more" if len(run.missing) > MISSING_SHOWN else ""
    shown = ", ".join(run.missing[:MISSING_SHOWN])
    return f"{text}; not on the disk: {shown}{more}, which kbtools compare computes again"


def best_text(report: Report) -> str:
    """Return a text on the best cell, those that tie with it exactly, and those it is not certainly better than."""
    tied = [cell.cell.label for cell in report.tied_best]
    accuracy = show("accuracy", report.best.figures["accuracy"])
    text = f"{tied[0]}, {accuracy}" if len(tied) == 1 else f"{len(tied)} cells tie at {accuracy}: {', '.join(tied)}"
    if len(tied) == len(report.cells):
        return text
    level = [pair.other.label for pair in report.against_best if pair.low <= 0 and pair.other.label not in tied]
    return text + (f"; not certainly better than {', '.join(level)}" if level else "; better than every other cell")


def terminal_table(report: Report) -> str:
    """Lay out a run for a terminal: the most telling figures, controls marked with a star."""
    names = [name for name in MEASURES if name not in ("oracle", "pool_median")]
    parts = part_names(report)
    rows = [[*parts, "accuracy", "95 %", *(MEASURES[name].head for name in names[1:]), "weights"]]
    for cell in report.cells:
        accuracy = cell.figures["accuracy"]
        rows.append(
            [*cell_names(report, cell.cell), show("accuracy", accuracy), show_interval("accuracy", accuracy)]
            + [show(name, cell.figures[name]) for name in names[1:]]
            + [report.run.weights_text(cell.cell)]
        )
    lines = [*aligned(rows, len(parts)), excluded_text(report.run), "* control; best: " + best_text(report)]
    return "\n".join(lines)


def part_names(report: Report) -> list[str]:
    """List the columns of the parts of cells; that of rankers stands only where one is learned."""
    return [*Cell._fields] if any(cell.cell.learned for cell in report.cells) else [*Cell._fields[:3]]


def cell_names(report: Report, cell: Cell) -> list[str]:
    """List the parts of a cell in those columns, its subject scorer with a star where the cell is a control."""
    names = [*cell[:2], cell.subject + ("*" if is_control(cell) else ""), cell.ranker]
    return names[: len(part_names(report))]


def aligned(rows: Sequence[Sequence[str]], words: int) -> Iterable[str]:
    """Lay out rows, the first columns and the last one to the left and the rest to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.ljust(width) if at < words or at == len(row) - 1 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
