"""Calibrated abstention: a confidence that a run of kbtools compare has shown to be the share that is right."""

from pathlib import Path

from kbtools.answering.answerer import Answerer
from kbtools.comparison.calibration import run_calibration
from kbtools.comparison.fingerprints import Fingerprints, identify, kb_digest
from kbtools.comparison.grid import POPULARITY, Cell
from kbtools.comparison.run_folder import open_run
from kbtools.comparison.weighting import TUNED, cell_weights, query_weights, weights_key
from kbtools.errors import RunMismatch, RunUnusable
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.system import System


def read_calibration(run: Path, answerer: Answerer, system: System) -> Calibration:
    """Fit the confidence of a system on the validation questions of a run.

    Where the run was tuned the answerer takes its weights over: only with them does a score mean what it did there.

    Raises RunMismatch for a run over another knowledge base or other models, RunUnusable where it lacks the cell.
    """
    names = {"pruning": system.pruning, "scorer": system.scorer, "ranker": system.ranker}
    ranker = answerer.scoring(**names, subject=system.subject).name  # type: ignore[arg-type]
    compared, cell = open_run(run), Cell(system.pruning, system.scorer, system.subject or POPULARITY, ranker)
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
        answerer.weights_by_key[weights_key(answerer, cell)] = cell_weights(facts)
    current = prints.cell(*identify(answerer, [cell])[cell], weights=query_weights(answerer, cell))
    if current != compared.valid.cells[cell].fingerprint:
        raise RunMismatch(
            f"{run}: {cell.label} was compared with other models or weights than these; run kbtools compare again, "
            "with --tune if training chose weights for this cell alone",
            path=str(run),
        )
    return calibration
