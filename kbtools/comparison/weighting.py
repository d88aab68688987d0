"""Weights of the cells of a comparison: all of them default, all chosen by training, or all tuned on its questions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.comparison.grid import NO_SUBJECT, Cell
from kbtools.ranking.cascade import Cascade
from kbtools.ranking.rankers import LearnedScoring, WeightedSum
from kbtools.ranking.weights import OF_SUBJECTS, Weights, default_weights, ranking_key
from kbtools.tuning.weight_search import GoldScores, choose_weights

DEFAULTS, CHOSEN, TUNED = "default", "chosen", "tuned"
"""The weights of a run are all of one kind, or its table would set tuned systems beside some that are not."""


@dataclass(frozen=True, slots=True)
class Weighting:
    """Weights of every cell, and where all of them come from: DEFAULTS, CHOSEN, TUNED or the name of a preset."""

    kind: str
    weights: Mapping[Cell, Weights]


def find_weighting(answerer: Answerer, cells: Sequence[Cell]) -> Weighting:
    """Take the weights that training chose if it did so for every cell, else one kind for all: preset or default."""
    if all(weights_key(answerer, cell) in answerer.weights_by_key for cell in cells):
        return Weighting(CHOSEN, {cell: query_weights(answerer, cell) for cell in cells})
    preset = answerer.trained_system.weights
    return Weighting(preset or DEFAULTS, {cell: usual_weights(cell, preset) for cell in cells})


def query_weights(answerer: Answerer, cell: Cell) -> Weights:
    """Give the weights that `kbtools query` counts with; without any subject, popularity counts nothing."""
    if cell.learned:
        return cell_ranker(answerer, cell).weights
    weights = answerer.weights(pruning=cell.pruning, scorer=cell.scorer, subject=cell.subject_scorer)
    return without_subject(cell, weights)


def cell_ranker(answerer: Answerer, cell: Cell) -> LearnedScoring | Cascade:
    """Give the learned ranker of a cell; raise as `Answerer.scoring` does."""
    names = {"pruning": cell.pruning, "scorer": cell.scorer, "ranker": cell.ranker}
    scoring = answerer.scoring(**names, subject=cell.subject_scorer)
    assert isinstance(scoring, LearnedScoring | Cascade)  # all but the weighted sum are
    return scoring


def fitted_cells(answerer: Answerer, cells: Sequence[Cell]) -> list[Cell]:
    """List cells with the learned rankers that training fitted for some cells, in place of the weighted sum."""
    return [
        cell._replace(ranker=name)
        for cell in cells
        if cell.subject != NO_SUBJECT
        for name in answerer.fitted_rankers(weights_key(answerer, cell))
    ]


def rank_by(answerer: Answerer, weighting: Weighting, cells: Sequence[Cell]) -> Weighting:
    """Add the weights of cells with a learned ranker: those of the sum among its features."""
    learned = {cell: query_weights(answerer, cell) for cell in cells if cell.learned}
    return Weighting(weighting.kind, {**weighting.weights, **learned})


def weights_key(answerer: Answerer, cell: Cell) -> str:
    """Name what the weights of a cell are kept under."""
    return ranking_key(pruning=answerer.pruning_key(cell.pruning), scorer=cell.scorer, subject=cell.subject_scorer)


def usual_weights(cell: Cell, preset: str | None = None) -> Weights:
    """Give the weights of a cell for which none were chosen."""
    return without_subject(cell, default_weights(cell.subject_scorer, preset))


def without_subject(cell: Cell, weights: Weights) -> Weights:
    """Take popularity out of the weights of a cell whose subjects nothing may tell apart."""
    return replace(weights, popularity=0.0) if cell.subject == NO_SUBJECT else weights


def tune_cell(cell: Cell, scores: GoldScores) -> Weights:
    """Choose the weights of a cell that are right most often on scored validation questions."""

    def accuracy(weights: Weights) -> float:
        return float(np.mean(scores.expected(WeightedSum(without_subject(cell, weights)))))

    return without_subject(cell, choose_weights(accuracy, subject=cell.subject_scorer is not None))


def weights_text(kind: str, weights: Weights, cell: Cell) -> str:
    """Write the weights of a cell: their kind, and those that differ from the defaults.

    A subject scorer of weight 0 is in the cell's name alone, and this says so.
    """
    if cell.learned:
        return f"learned by {cell.ranker}"
    if kind == DEFAULTS:
        return kind
    usual: dict[str, float] = asdict(usual_weights(cell))
    unused = () if cell.subject_scorer else OF_SUBJECTS
    changed = [
        f"{field.name} {getattr(weights, field.name):g}"
        for field in fields(Weights)
        if field.name not in unused and getattr(weights, field.name) != usual[field.name]
    ]
    ignored = " (subject scores do not count)" if cell.subject_scorer and weights.subject == 0 else ""
    return f"{kind}: {', '.join(changed) or 'as the defaults'}{ignored}"


def cell_weights(facts: Mapping[str, Any]) -> Weights:
    """Read the weights among the facts of a cell on disk."""
    return Weights(**facts["weights"])
