"""Abstention: answers only where confidence is high enough, as calibrated by a run of kbtools compare."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kbtools.answering import Answerer
from kbtools.comparison.calibration import Calibration, run_calibration
from kbtools.comparison.fingerprints import Fingerprints, identify, kb_digest
from kbtools.comparison.grid import POPULARITY, Cell
from kbtools.comparison.run_folder import open_run
from kbtools.comparison.weighting import TUNED, cell_weights, query_weights, weights_key
from kbtools.errors import RunMismatch, RunUnusable
from kbtools.results import Result


@dataclass(frozen=True, slots=True)
class Abstainer:
    """A threshold of confidence; results below it lose their answers."""

    least: float
    calibration: Calibration | None = None

    def confidence(self, result: Result) -> float:
        """Give the winner's share of the pool, calibrated if it can be; the result must hold its whole pool."""
        if not result.candidates:
            return 0.0
        best = result.candidates[0].score
        share = 1 / math.fsum(math.exp(candidate.score - best) for candidate in result.candidates)
        return share if self.calibration is None else float(self.calibration.apply(np.array([share]))[0])

    def judge(self, result: Result, *, top: int | None) -> "Verdict":
        """Cut a result to its best candidates, and take its answers out where it is not sure enough."""
        confidence = self.confidence(result)
        answered = bool(result.candidates) and confidence >= self.least
        answers = result.answers if answered else ()
        shown = replace(result, candidates=result.candidates[:top], answers=answers)
        return Verdict(shown, confidence, answered)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A result, how sure it is, and whether that is enough."""

    result: Result
    confidence: float
    answered: bool

    @property
    def sentence(self) -> str:
        return f"confidence {self.confidence:.2f}" if self.answered else f"no answer: confidence {self.confidence:.2f}"


def read_calibration(
    run: Path, answerer: Answerer, *, pruning: str, scorer: str, subject: str | None = None
) -> Calibration:
    """Fit the confidence of a pruner and its scorers on the validation questions of a run.

    Where the run was tuned the answerer takes its weights over: only with them does a score mean what it did there.

    Raises RunMismatch for a run over another knowledge base or other models, RunUnusable where it lacks the cell.
    """
    compared, cell = open_run(run), Cell(pruning, scorer, subject or POPULARITY)
    if compared.origin.kb.digest != kb_digest(answerer.kb):
        raise RunMismatch(
            f"{run}: compared on the knowledge base {compared.origin.kb.path}, not on this one; "
            "run kbtools compare --valid on this one",
            path=str(run),
        )
    calibration = run_calibration(compared, cell)
    if calibration is None or compared.valid is None:
        raise RunUnusable(
            f"{run}: {cell.label} is not calibrated there; run kbtools compare --valid with these names", path=str(run)
        )
    prints = Fingerprints(compared.valid.origin.kb.digest, compared.valid.origin.questions.digest)
    facts = compared.valid.cells[cell].facts
    if facts["weighting"] == TUNED:
        answerer.weights_by_key[weights_key(answerer, cell)] = cell_weights(facts)
    current = prints.cell(*identify(answerer, [cell])[cell], query_weights(answerer, cell))
    if current != compared.valid.cells[cell].fingerprint:
        raise RunMismatch(
            f"{run}: {cell.label} was compared with other models or weights than these; run kbtools compare again, "
            "with --tune if training chose weights for this cell alone",
            path=str(run),
        )
    return calibration
