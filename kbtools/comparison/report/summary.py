"""A run with everything that is said about it: figures of every cell, and the best against every other."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtools.comparison.bootstrap import Resamples
from kbtools.comparison.figures import CellFigures, run_figures
from kbtools.comparison.grid import CONTROL_PRUNER, CONTROL_SCORER, CONTROL_SUBJECTS, POPULARITY, Cell
from kbtools.comparison.run import Run
from kbtools.comparison.significance import Difference, compare_cells


@dataclass(frozen=True, slots=True)
class Report:
    """A run with everything that is said about it."""

    run: Run
    cells: Sequence[CellFigures]
    against_best: Sequence[Difference]

    @property
    def best(self) -> CellFigures:
        return find_best(self.cells)


def make_report(run: Run) -> Report:
    """Compute the figures of a run, and compare its most accurate cell with every other."""
    resamples = Resamples(len(run))
    cells = run_figures(run, resamples)
    best = find_best(cells).cell
    pairs = [(best, cell) for cell in run.cells if cell != best]
    return Report(run, cells, compare_cells({cell: run.strict(cell) for cell in run.cells}, resamples, pairs))


def find_best(cells: Sequence[CellFigures]) -> CellFigures:
    """Find the most accurate cell, the first of several."""
    return max(cells, key=lambda found: found.figures["accuracy"].value)


def is_control(cell: Cell) -> bool:
    """Tell whether a cell's subjects are not scored or only counted, or nothing of it is trained."""
    return cell.subject in CONTROL_SUBJECTS or cell == (CONTROL_PRUNER, CONTROL_SCORER, POPULARITY)
