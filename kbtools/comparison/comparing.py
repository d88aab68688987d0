"""Comparison from Python: systems on questions with known answers, as tables and pictures."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.answering.frames import load
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison.calibration import calibrate_system
from kbtools.comparison.experiment import Questions, Request, make_systems
from kbtools.comparison.experiment import compare as fill_run
from kbtools.comparison.grid import Cell
from kbtools.comparison.pictures import PICTURES, draw_one
from kbtools.comparison.summary import Report, make_report, terminal_table
from kbtools.errors import BadArgument
from kbtools.ranking.system import System

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Rows = str | Path | Iterable[AnnotatedQuestion | Sequence[str]]
"""A file of annotated questions, or rows of subject, relation, object and question."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Compared systems with their figures, printed as the table of `kbtools compare`."""

    report: Report
    answerer: Answerer
    systems: Mapping[Cell, System]

    def __str__(self) -> str:
        return terminal_table(self.report)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.systems):,} systems on {len(self.report.run):,} questions>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(terminal_table(self.report))}</pre>"

    @property
    def best(self) -> System:
        """Return the most accurate system, the first one if several are tied."""
        return self.systems[self.report.best.cell]

    def calibrated(self, system: System | None = None) -> System:
        """Return a system, by default the best, with its confidence calibrated on the validation questions.

        Its weights are those of the comparison. Raises RunUnusable without validation questions.
        """
        return calibrate_system(self.report.run, self.answerer, system or self.best)

    def to_frame(self) -> Any:
        """Return a data frame with a row for each system: the names of its parts, and its figures.

        Shares are from 0 to 1; `accuracy_low` and `accuracy_high` are the 95 % interval. Raises MissingDependency
        without pandas.
        """
        rows = []
        for cell in self.report.cells:
            figures = {name: figure.value for name, figure in cell.figures.items()}
            accuracy = cell.figures["accuracy"]
            bounds = {"accuracy_low": accuracy.low, "accuracy_high": accuracy.high}
            rows.append(
                {**cell.cell._asdict(), "weights": self.report.run.weights_text(cell.cell), **figures, **bounds}
            )
        return load("pandas").DataFrame(rows)

    def plot(self, name: str = "accuracy") -> "Figure":
        """Return a picture: recall, accuracy, calibration, risk or frequency; raise MissingDependency, BadArgument."""
        if name not in PICTURES:
            raise BadArgument(f"name is one of {', '.join(PICTURES)}, found {name!r}", name="name")
        return draw_one(PICTURES[name], self.report)


def compare(
    kb: Answerer | str | Path,
    questions: _Rows,
    *,
    systems: Iterable[System] = (),
    valid: _Rows | None = None,
    out: str | Path | None = None,
    tune: bool = False,
    limit: int | None = None,
) -> Comparison:
    """Compare systems, by default the one that answers queries, on questions with known answers.

    `valid` questions calibrate confidence, and with `tune` also choose the weights of each system. Results are stored
    in the folder `out` and reused by later calls. Raises as `kbtools compare` does, and BadArgument for rows that are
    not questions.
    """
    answerer = kb if isinstance(kb, Answerer) else open_kb(kb)
    chosen = list(systems) or [answerer.system()]
    with TemporaryDirectory() if out is None else nullcontext(out) as folder:
        request = Request(
            _read_rows(questions),
            Path(folder),
            chosen,
            Path(getattr(answerer.kb, "path", "given in Python")),
            limit=limit,
            valid=None if valid is None else _read_rows(valid),
            tune=tune,
        )
        run = fill_run(answerer, request)
    tuned = {cell: run.system(cell, system) for cell, system in make_systems(answerer, chosen).systems.items()}
    return Comparison(make_report(run), answerer, tuned)


def _read_rows(questions: _Rows) -> Questions:
    """Return questions in the form that a comparison takes; raise BadArgument for rows of another shape."""
    if isinstance(questions, str | Path):
        return Path(questions)
    rows = [question if isinstance(question, AnnotatedQuestion) else tuple(question) for question in questions]
    for row in rows:
        if not isinstance(row, AnnotatedQuestion) and (len(row) != 4 or not all(isinstance(part, str) for part in row)):
            raise BadArgument(f"a question is subject, relation, object and text, found {row!r:.80}", name="questions")
    return [row if isinstance(row, AnnotatedQuestion) else AnnotatedQuestion(*row) for row in rows]
