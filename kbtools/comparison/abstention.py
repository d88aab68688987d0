"""Calibrated abstention: a confidence that a run of kbtools compare has shown to be the share that is right."""

from dataclasses import replace

from kbtools.answering.answerer import Answerer
from kbtools.comparison.calibration import run_calibration
from kbtools.comparison.fingerprints import Fingerprints, identify, kb_digest
from kbtools.comparison.grid import Cell
from kbtools.comparison.run_folder import Run
from kbtools.comparison.weighting import TUNED, cell_weights
from kbtools.errors import RunMismatch, RunUnusable
from kbtools.ranking.system import System


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
