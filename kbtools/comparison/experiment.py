"""A comparison from its request to its run: the cells that are not on disk yet are filled."""

import os
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from kbtools.answering import Answerer
from kbtools.comparison.fingerprints import Fingerprints, kb_digest, questions_digest
from kbtools.comparison.grid import Grid
from kbtools.comparison.run_folder import RECORD, VALID, Provenance, Run, RunOrigin, open_run, prepare_run
from kbtools.comparison.stages import StageProgress, Stages
from kbtools.errors import SourceEmpty
from kbtools.pruning.pruners import guide_of
from kbtools.questions import AnnotatedQuestion, read_annotated
from kbtools.storage import locked
from kbtools.version import __version__


@dataclass(frozen=True, slots=True)
class Request:
    """A grid to compare, the questions to compare it on, and the folder to keep it in.

    `errors` examples of each cause are written out; confidence is calibrated on the questions of `valid`.
    """

    questions: Path
    out: Path
    grid: Grid
    kb_path: Path
    limit: int | None = None
    errors: int = 0
    valid: Path | None = None


def compare(answerer: Answerer, request: Request, *, watch: StageProgress = lambda stage, done, total: None) -> Run:
    """Fill every cell of a grid that is not on disk already; give the run.

    Raises InputError for questions that cannot be read, OutputUnusable, RunMismatch, UnknownPlugin, BrokenPlugin,
    ModelError.
    """
    questions = read_gold(request.questions, request.limit)
    validation = read_gold(request.valid, request.limit) if request.valid else None
    make_parts(answerer, request.grid)
    prints = start_run(answerer, request, questions)
    if request.valid and validation:
        valid = replace(request, questions=request.valid, out=request.out / VALID, errors=0)
        valid_prints = start_run(answerer, valid, validation)
    fill_run(answerer, request, questions, prints, watch)
    if request.valid and validation:
        fill_run(answerer, valid, validation, valid_prints, lambda stage, *far: watch(f"validation, {stage}", *far))
    return open_run(request.out)


def read_gold(path: Path, limit: int | None) -> list[AnnotatedQuestion]:
    """Read the questions, the first ones if limited; raise SourceEmpty where there is none."""
    questions = list(read_annotated(path))[:limit]
    if not questions:
        raise SourceEmpty(f"{path}: holds no question, expected subject, relation, object and question a line")
    return questions


def make_parts(answerer: Answerer, grid: Grid) -> None:
    """Make every pruner and scorer, so that what is wrong with one is said before anything is computed."""
    for cell in grid.cells():
        answerer.pruner(cell.pruning)
        answerer.scorer(cell.scorer)
        if cell.subject_scorer:
            answerer.subject_scorer(cell.subject_scorer)


def start_run(answerer: Answerer, request: Request, questions: list[AnnotatedQuestion]) -> Fingerprints:
    """Make the folder of a run, or refuse one that holds something else."""
    prints = Fingerprints(kb_digest(answerer.kb), questions_digest(questions))
    kb = Provenance(readable(request.kb_path), prints.kb)
    gold = Provenance(readable(request.questions), prints.questions)
    prepare_run(request.out, RunOrigin(kb, gold, __version__), request.grid.cells())
    return prints


def readable(path: Path) -> str:
    """Write a path so that it can be kept and shown: bytes that are no UTF-8 become escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def fill_run(
    answerer: Answerer, request: Request, questions: list[AnnotatedQuestion], prints: Fingerprints, watch: StageProgress
) -> None:
    """Fill the cells over one file of questions."""
    cells = request.grid.cells()
    with locked(request.out / RECORD):
        stages = Stages(answerer, request.out, questions, prints, cells, watch)
        stages.drop_outdated()
        for _, group in groupby(sorted(cells), key=lambda cell: cell.pruning):
            stages.fill(list(group), errors=request.errors)
        if any(guide_of(answerer.pruner(name)) == "tagger" for name in request.grid.pruning):
            stages.judge_tagger()
