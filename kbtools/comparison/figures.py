"""Figures of a cell over all questions, each with its counts and a bootstrap interval."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.resampling import Resamples, interval
from kbtools.comparison.grid import Cell
from kbtools.comparison.lost_questions import Cause
from kbtools.comparison.run_folder import Run

_Outcomes = Mapping[str, NDArray[Any]]
_Share = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval; a quotient also has its `part` and `whole`."""

    value: float
    low: float
    high: float
    part: float | None = None
    whole: float | None = None


@dataclass(frozen=True, slots=True)
class CellFigures:
    """The figures of a cell and its losses by cause; `questions` is the whole of shares without another."""

    cell: Cell
    questions: int
    unanswered: int
    figures: dict[str, Figure]
    causes: dict[Cause, tuple[int, float]]


def _over_all(name: str) -> Callable[[_Outcomes], _Share]:
    """Return a measure that averages a column over all questions."""
    return lambda outcomes: (outcomes[name], np.ones(len(outcomes[name])))


def _within(single: bool) -> Callable[[_Outcomes], _Share]:
    """Return a measure of accuracy on recalled questions with one subject in the pool, or with several (Table 2)."""

    def share(outcomes: _Outcomes) -> _Share:
        chosen = outcomes["recalled"].astype(bool) & ((outcomes["subjects"] == 1) == single)
        return outcomes["strict"] * chosen, chosen

    return share


@dataclass(frozen=True, slots=True)
class _Measure:
    """The column head and meaning of a figure, which is a quotient of two columns or a quantile of pool sizes."""

    head: str
    of: Callable[[_Outcomes], _Share] | float
    meaning: str
    per_cent: bool = True
    decimals: int = 1


MEASURES = {
    "accuracy": _Measure(
        "accuracy",
        _over_all("strict"),
        "subject and relation are both right; a k-way tie that contains the gold pair counts 1/k",
    ),
    "object_accuracy": _Measure(
        "object", _over_all("object"), "the gold object is among the objects of the winning pair"
    ),
    "recall": _Measure("recall", _over_all("recalled"), "the gold pair is in the pool"),
    "single_subject": _Measure(
        "single", _within(single=True), "accuracy among recalled questions with one subject in the pool"
    ),
    "multi_subject": _Measure(
        "multi", _within(single=False), "accuracy among recalled questions with several subjects in the pool"
    ),
    "relation_given_subject": _Measure(
        "rel|subj",
        lambda outcomes: (outcomes["given_subject"], outcomes["subject_kept"]),
        "the gold relation comes first among the relations of the gold subject, if that is in the pool",
    ),
    "ambiguity_bound": _Measure(
        "bound",
        _over_all("bound"),
        "1/k for k namesakes with the winner's mention and relation: the share left to chance, without gold labels",
    ),
    "oracle": _Measure(
        "oracle",
        _over_all("oracle"),
        "accuracy with gold mention and relation, and namesakes drawn at random; a higher accuracy needs a "
        "subject scorer, or is a leak",
    ),
    "ties_first_by_id": _Measure("id first", _over_all("first"), "accuracy if the lowest id won every tie"),
    "ties_last_by_id": _Measure("id last", _over_all("last"), "accuracy if the highest id won every tie"),
    "pool_mean": _Measure("pool", _over_all("pool"), "candidate pairs per question, mean", per_cent=False),
    "pool_median": _Measure("median", 0.5, "candidate pairs per question, median", per_cent=False, decimals=0),
    "pool_p95": _Measure("p95", 0.95, "candidate pairs per question, 95th percentile", per_cent=False),
    "milliseconds": _Measure(
        "ms",
        _over_all("milliseconds"),
        "per question: pruning, scoring and joining, on the machine that computed them",
        per_cent=False,
    ),
}
"""The figures of a cell, in column order."""


def run_figures(run: Run, resamples: Resamples) -> list[CellFigures]:
    """Return the figures of every cell of a run."""
    return [cell_figures(run, cell, resamples) for cell in run.cells]


def cell_figures(run: Run, cell: Cell, resamples: Resamples) -> CellFigures:
    """Return the figures of one cell."""
    outcomes = run.cells[cell].arrays
    shares = {name: measure.of(outcomes) for name, measure in MEASURES.items() if callable(measure.of)}
    # All columns in one product; part and whole of figure k are columns 2 k and 2 k + 1.
    columns = [column.astype(np.float64) for share in shares.values() for column in share]
    sums = resamples.sums(np.stack(columns, axis=1))
    figures = {
        name: quotient(*share, resampled=(sums[:, 2 * at], sums[:, 2 * at + 1]))
        for at, (name, share) in enumerate(shares.items())
    }
    pool = outcomes["pool"].astype(np.float64)
    for name, measure in MEASURES.items():
        if not callable(measure.of):
            figures[name] = Figure(
                float(np.quantile(pool, measure.of)), *interval(resamples.quantiles(pool, measure.of))
            )
    causes, lost = run.causes(cell), 1 - outcomes["strict"]
    return CellFigures(
        cell=cell,
        questions=len(run),
        unanswered=int(np.count_nonzero(outcomes["pool"] == 0)),
        figures=figures,
        causes={
            cause: (int(np.count_nonzero(causes == cause)), float(lost[causes == cause].sum()))
            for cause in Cause
            if cause is not Cause.NONE
        },
    )


def quotient(
    part: NDArray[Any], whole: NDArray[Any], *, resampled: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> Figure:
    """Return the quotient of two sums, with an interval from resamples; nan if the divisor is 0."""
    top, bottom = float(part.sum()), float(whole.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = interval(resampled[0] / resampled[1])
    return Figure(top / bottom if bottom else float("nan"), low, high, top, bottom)
