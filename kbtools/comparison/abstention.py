"""Calibrated abstention: a confidence that a run of kbtools compare has shown to be the share that is right."""

from dataclasses import replace
from pathlib import Path

from kbtools.answering.answerer import Answerer
from kbtools.comparison.calibration import run_calibration
from kbtools.comparison.fingerprints import Fingerprints, identify, kb_digest
from kbtools.comparison.grid import Cell
from kbtools.comparison.run_folder import open_run
from kbtools.comparison.weighting import TUNED, cell_weights
from kbtools.errors import RunMismatch, RunUnusable
from kbtools.ranking.system import System


def calibrate_system(run: Path, answerer: Answerer, system: System) -> System:
    """Return a system as it was compared, its confidence calibrated on the validation questions of a run.

    Where the run was tuned it has the weights of that: only with them does a score mean what it did there.

    Raises RunMismatch for a run over another knowledge base or other models, RunUnusable where it lacks the cell.
    """
    compared, cell = open_run(run), Cell.of(system)
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
    if facts["weighting"] == TUNED and not cell.learned:
        system = system.weighted(cell_weights(facts))
    current = prints.cell(*identify(answerer, {cell: system})[cell], weights=system.weights)
    if current != compared.valid.cells[cell].fingerprint:
        raise RunMismatch(
            f"{run}: {cell.label} was compared with other models or weights than these; run kbtools compare again, "
            "with --tune if training chose weights for this cell alone",
            path=str(run),
        )
    return replace(system, calibration=calibration)
