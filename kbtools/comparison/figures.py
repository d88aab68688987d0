"""Figures of a cell, each with the counts it is made of and a bootstrap interval, over all questions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.grid import Cell
from kbtools.comparison.lost_questions import Cause
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import Resamples, interval

Outcomes = Mapping[str, NDArray[Any]]
Share = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value, its 95 % interval, and what it is a share or mean of: `part` over `whole` where it is a quotient."""

    value: float
    low: float
    high: float
    part: float | None = None
    whole: float | None = None


@dataclass(frozen=True, slots=True)
class CellFigures:
    """Figures of a cell and what it lost by cause; `questions` divides every share that names no other whole."""

    cell: Cell
    questions: int
    unanswered: int
    figures: dict[str, Figure]
    causes: dict[Cause, tuple[int, float]]


def over_all(name: str) -> Callable[[Outcomes], Share]:
    """Average a column over all questions."""
    return lambda outcomes: (outcomes[name], np.ones(len(outcomes[name])))


def within(single: bool) -> Callable[[Outcomes], Share]:
    """Average correctness over the recalled questions with one subject in the pool, or with several (Table 2)."""

    def share(outcomes: Outcomes) -> Share:
        chosen = outcomes["recalled"].astype(bool) & ((outcomes["subjects"] == 1) == single)
        return outcomes["strict"] * chosen, chosen

    return share


def among_kept(outcomes: Outcomes) -> Share:
    """Average over the questions whose gold subject is in the pool."""
    return outcomes["given_subject"], outcomes["subject_kept"]


SHARES: dict[str, Callable[[Outcomes], Share]] = {
    "accuracy": over_all("strict"),
    "object_accuracy": over_all("object"),
    "recall": over_all("recalled"),
    "single_subject": within(single=True),
    "multi_subject": within(single=False),
    "relation_given_subject": among_kept,
    "ambiguity_bound": over_all("bound"),
    "oracle": over_all("oracle"),
    "ties_first_by_id": over_all("first"),
    "ties_last_by_id": over_all("last"),
    "pool_mean": over_all("pool"),
    "milliseconds": over_all("milliseconds"),
}
"""Quotients of two columns."""

QUANTILES = {"pool_median": 0.5, "pool_p95": 0.95}

MEANINGS = {
    "accuracy": "subject and relation are both right; a k-way tie that holds the gold counts 1/k",
    "object_accuracy": "the gold object is among the objects of the winning pair",
    "recall": "the gold pair is in the pool",
    "single_subject": "accuracy among recalled questions whose pool has one subject",
    "multi_subject": "accuracy among recalled questions whose pool has several subjects",
    "relation_given_subject": "the gold relation leads among those of the gold subject, where that is in the pool",
    "ambiguity_bound": "1/k for k namesakes with the winner's mention and relation: what is left to chance, "
    "seen without gold labels",
    "oracle": "mention and relation known from the gold, namesakes drawn at random: more is a leak, or a "
    "subject scorer at work",
    "ties_first_by_id": "accuracy if the lowest id won every tie",
    "ties_last_by_id": "accuracy if the highest id won every tie",
    "pool_mean": "candidate pairs per question, mean",
    "pool_median": "candidate pairs per question, median",
    "pool_p95": "candidate pairs per question, 95th percentile",
    "milliseconds": "per question: pruning, scoring and joining, on the machine that computed them",
}


def run_figures(run: Run, resamples: Resamples) -> list[CellFigures]:
    """Compute the figures of every cell of a run."""
    return [cell_figures(run, cell, resamples) for cell in run.cells]


def cell_figures(run: Run, cell: Cell, resamples: Resamples) -> CellFigures:
    """Compute the figures of one cell."""
    outcomes = run.cells[cell].arrays
    shares = [SHARES[name](outcomes) for name in SHARES]
    # All columns in one product: part and whole of figure k are the columns 2 k and 2 k + 1.
    sums = resamples.sums(np.stack([column.astype(np.float64) for share in shares for column in share], axis=1))
    figures = {
        name: quotient(*shares[at], resampled=(sums[:, 2 * at], sums[:, 2 * at + 1])) for at, name in enumerate(SHARES)
    }
    pool = outcomes["pool"].astype(np.float64)
    for name, share in QUANTILES.items():
        figures[name] = Figure(float(np.quantile(pool, share)), *interval(resamples.quantiles(pool, share)))
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
    """Divide one sum by another, and again in every resample; no number where there is nothing to divide by."""
    top, bottom = float(part.sum()), float(whole.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = interval(resampled[0] / resampled[1])
    return Figure(top / bottom if bottom else float("nan"), low, high, top, bottom)
