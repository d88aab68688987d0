"""Calibration of confidence: its distance from the share that is right, before and after a fitted map."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import Fault
from kbtools.comparison.fingerprints import Fingerprints, identify, kb_digest
from kbtools.comparison.grid import TUNED, Cell, cell_weights
from kbtools.comparison.run_folder import Run
from kbtools.errors import RunMismatch, RunUnusable
from kbtools.ranking.confidence import Calibration, fit_calibration
from kbtools.ranking.system import System

BINS = 10
"""One for each tenth of confidence, so that the picture is easy to read."""


@dataclass(frozen=True, slots=True)
class _Bin:
    """Answers with similar confidence: their number, mean confidence and share that is right."""

    count: int
    confidence: float
    correct: float


def reliability(confidence: NDArray[np.float64], correct: NDArray[np.float64], *, bins: int = BINS) -> list[_Bin]:
    """Return answered questions grouped by confidence in bins of equal width, without empty bins."""
    answered = confidence > 0
    claimed, right = confidence[answered], correct[answered]
    # A confidence of 1 belongs to the last bin.
    place = np.minimum((claimed * bins).astype(np.int64), bins - 1)
    members = [np.flatnonzero(place == at) for at in range(bins)]
    return [_Bin(len(at), float(claimed[at].mean()), float(right[at].mean())) for at in members if len(at)]


def calibration_error(confidence: NDArray[np.float64], correct: NDArray[np.float64]) -> float:
    """Return the expected calibration error of answered questions: the mean gap between confidence and share right."""
    bins = reliability(confidence, correct)
    total = sum(bar.count for bar in bins)
    return sum(bar.count * abs(bar.confidence - bar.correct) for bar in bins) / total if total else 0.0


def risk_coverage(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, for falling thresholds, the share of questions answered and the share of these that is wrong."""
    # Ascending -confidence is descending confidence: each level adds its questions to those before it.
    levels, inverse = np.unique(-confidence, return_inverse=True)
    answered = np.cumsum(np.bincount(inverse, minlength=len(levels)))
    right = np.cumsum(np.bincount(inverse, weights=correct, minlength=len(levels)))
    answered_levels = levels < 0
    return (answered / len(confidence))[answered_levels], (1 - right / answered)[answered_levels]


@dataclass(frozen=True, slots=True)
class _CalibrationFigures:
    """The calibration of a cell; `calibrated_error` is the error after the map, None without validation questions.

    `outside` is the mean confidence when the gold subject is removed from the pool, so that every answer is wrong.
    """

    cell: Cell
    error: float
    calibrated_error: float | None
    when_right: float
    when_wrong: float
    outside: float
    auroc: float


def calibration_figures(run: Run) -> list[_CalibrationFigures]:
    """Return the calibration of every cell of a run."""
    return [_cell_calibration(run, cell) for cell in run.cells]


def _cell_calibration(run: Run, cell: Cell) -> _CalibrationFigures:
    outcomes = run.cells[cell]
    confidence, strict, outside = outcomes["confidence"], outcomes["strict"], outcomes["confidence_without"]
    fitted = run_calibration(run, cell)
    return _CalibrationFigures(
        cell=cell,
        error=calibration_error(confidence, strict),
        calibrated_error=None if fitted is None else calibration_error(fitted.apply(confidence), strict),
        when_right=_weighted_mean(confidence, strict),
        when_wrong=_weighted_mean(confidence, 1 - strict),
        outside=float(outside.mean()),
        auroc=auroc(np.concatenate([confidence, outside]), right=np.concatenate([strict, np.zeros(len(outside))])),
    )


def run_calibration(run: Run, cell: Cell) -> Calibration | None:
    """Return the calibration of a cell from the validation questions of its run, None if it has none.

    Questions that the knowledge base cannot answer are excluded, since they say nothing about a ranking.
    """
    if run.valid is None or cell not in run.valid.cells:
        return None
    # Validation cells of an earlier call with other models or weights do not apply.
    if run.valid.cells[cell].facts != run.cells[cell].facts:
        return None
    outcomes, answerable = run.valid.cells[cell], run.valid.gold["fault"] == Fault.NONE
    return fit_calibration(outcomes["confidence"][answerable], outcomes["strict"][answerable])


def _weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    total = float(weights.sum())
    return float((values * weights).sum() / total) if total else 0.0


def auroc(confidence: NDArray[np.float64], *, right: NDArray[np.float64]) -> float:
    """Return the probability that a right answer has a higher confidence than a wrong one; ties count as half."""
    # Equal to the mean, over all pairs of a right and a wrong answer, of right > wrong, with 0.5 for ties.
    levels, inverse = np.unique(confidence, return_inverse=True)
    good = np.bincount(inverse, weights=right, minlength=len(levels))
    bad = np.bincount(inverse, weights=1 - right, minlength=len(levels))
    below = np.cumsum(bad) - bad
    pairs = float(good.sum() * bad.sum())
    return float((good * (below + bad / 2)).sum() / pairs) if pairs else 0.5


def calibrate_system(run: Run, answerer: Answerer, system: System) -> System:
    """Return a system with its confidence calibrated on the validation questions of a run.

    If the run was tuned, the system gets its weights from there, to which the calibration applies. Raises RunMismatch
    for a run over another knowledge base or other models, and RunUnusable if it lacks the cell.
    """
    cell = Cell.of(system)
    if run.origin.kb.digest != kb_digest(answerer.kb):
        raise RunMismatch.at(
            run.folder,
            f"compared on the knowledge base {run.origin.kb.path}, not on this one; "
            "run kbtools compare --valid on this one",
        )
    calibration = run_calibration(run, cell)
    if calibration is None or run.valid is None:
        raise RunUnusable.at(
            run.folder, f"{cell.label} is not calibrated there; run kbtools compare --valid with these names"
        )
    prints = Fingerprints(run.valid.origin.kb.digest, run.valid.origin.questions.digest)
    facts = run.valid.cells[cell].facts
    if facts["weighting"] == TUNED and not cell.learned:
        system = system.weighted(cell_weights(facts))
    current = prints.cell(*identify(answerer, {cell: system})[cell], weights=system.weights)
    if current != run.valid.cells[cell].fingerprint:
        raise RunMismatch.at(
            run.folder,
            f"{cell.label} was compared with other models or weights than these; run kbtools compare "
            "again, with --tune if training chose weights for this cell alone",
        )
    return replace(system, calibration=calibration)
