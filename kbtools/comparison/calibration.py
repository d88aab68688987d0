"""Calibration of confidence: its distance from the share that is right, raw and after a fitted map;
a system that abstains by what a run of kbtools compare has shown."""

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
"""One for each tenth of confidence, so that the picture can be read off."""


@dataclass(frozen=True, slots=True)
class _Bin:
    """Answers of like confidence: their number, mean confidence and share that is right."""

    count: int
    confidence: float
    correct: float


def reliability(confidence: NDArray[np.float64], correct: NDArray[np.float64], *, bins: int = BINS) -> list[_Bin]:
    """Group answered questions by confidence, in bins of equal width; empty ones are left out."""
    answered = confidence > 0
    claimed, right = confidence[answered], correct[answered]
    # A confidence of 1 belongs to the last bin, not to one beyond it.
    place = np.minimum((claimed * bins).astype(np.int64), bins - 1)
    members = [np.flatnonzero(place == at) for at in range(bins)]
    return [_Bin(len(at), float(claimed[at].mean()), float(right[at].mean())) for at in members if len(at)]


def calibration_error(confidence: NDArray[np.float64], correct: NDArray[np.float64]) -> float:
    """Return the expected calibration error of the answered questions: the mean gap between claimed and kept."""
    bins = reliability(confidence, correct)
    total = sum(bar.count for bar in bins)
    return sum(bar.count * abs(bar.confidence - bar.correct) for bar in bins) / total if total else 0.0


def risk_coverage(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coverage and risk as the threshold falls: which share is answered, and which share of that is wrong."""
    # Ascending in -confidence is descending in confidence: each level adds its questions to those before it.
    levels, inverse = np.unique(-confidence, return_inverse=True)
    answered = np.cumsum(np.bincount(inverse, minlength=len(levels)))
    right = np.cumsum(np.bincount(inverse, weights=correct, minlength=len(levels)))
    answered_levels = levels < 0
    return (answered / len(confidence))[answered_levels], (1 - right / answered)[answered_levels]


@dataclass(frozen=True, slots=True)
class _CalibrationFigures:
    """Calibration of a cell; `calibrated_error` is that after the map, where validation questions were compared.

    `outside` is the mean confidence once the gold subject is out of the pool, when any answer would be wrong.
    """

    cell: Cell
    error: float
    calibrated_error: float | None
    when_right: float
    when_wrong: float
    outside: float
    auroc: float


def calibration_figures(run: Run) -> list[_CalibrationFigures]:
    """Compute them for every cell of a run."""
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
        auroc=auroc(
            np.concatenate([confidence, outside]),
            right=np.concatenate([strict, np.zeros(len(outside))]),
        ),
    )


def run_calibration(run: Run, cell: Cell) -> Calibration | None:
    """Fit the calibration of a cell on the validation questions of its run, if it has any.

    Questions that the knowledge base cannot answer teach nothing about a ranking; they are measured apart.
    """
    if run.valid is None or cell not in run.valid.cells:
        return None
    # Validation cells that an earlier call left with other models or weights have another confidence.
    if run.valid.cells[cell].facts != run.cells[cell].facts:
        return None
    outcomes, answerable = run.valid.cells[cell], run.valid.gold["fault"] == Fault.NONE
    return fit_calibration(outcomes["confidence"][answerable], outcomes["strict"][answerable])


def _weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    total = float(weights.sum())
    return float((values * weights).sum() / total) if total else 0.0


def auroc(confidence: NDArray[np.float64], *, right: NDArray[np.float64]) -> float:
    """Return the probability that a right answer has the higher confidence than a wrong one; equal counts half."""
    # Stands for the mean over all pairs of a right and a wrong answer of right > wrong, equal as a half.
    levels, inverse = np.unique(confidence, return_inverse=True)
    good = np.bincount(inverse, weights=right, minlength=len(levels))
    bad = np.bincount(inverse, weights=1 - right, minlength=len(levels))
    below = np.cumsum(bad) - bad
    pairs = float(good.sum() * bad.sum())
    return float((good * (below + bad / 2)).sum() / pairs) if pairs else 0.5


def calibrate_system(run: Run, answerer: Answerer, system: System) -> System:
    """Return a system as it was compared, its confidence calibrated on the validation questions of a run.

    Where the run was tuned it has the weights of that: only with them does a score mean what it did there.

    Raises RunMismatch for a run over another knowledge base or other models, RunUnusable where it lacks the cell.
    """
    cell = Cell.of(system)
    if run.origin.kb.digest != kb_digest(answerer.kb):
        raise RunMismatch(
            f"{run.folder}: compared on the knowledge base {run.origin.kb.path}, not on this one; "
            "run kbtools compare --valid on this one",
            path=str(run.folder),
        )
    calibration = run_calibration(run, cell)
    if calibration is None or run.valid is None:
        raise RunUnusable(
            f"{run.folder}: {cell.label} is not calibrated there; run kbtools compare --valid with these names",
            path=str(run.folder),
        )
    prints = Fingerprints(run.valid.origin.kb.digest, run.valid.origin.questions.digest)
    facts = run.valid.cells[cell].facts
    if facts["weighting"] == TUNED and not cell.learned:
        system = system.weighted(cell_weights(facts))
    current = prints.cell(*identify(answerer, {cell: system})[cell], weights=system.weights)
    if current != run.valid.cells[cell].fingerprint:
        raise RunMismatch(
            f"{run.folder}: {cell.label} was compared with other models or weights than these; run kbtools compare "
            "again, with --tune if training chose weights for this cell alone",
            path=str(run.folder),
        )
    return replace(system, calibration=calibration)
