"""A comparison from its request to its run: the cells that are not on disk yet are filled."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.fingerprints import Fingerprints, kb_digest, questions_digest
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.run_folder import RECORD, VALID, Provenance, Run, RunOrigin, open_run, prepare_run
from kbtools.comparison.stages import StageProgress, Stages
from kbtools.comparison.weighting import (
    TUNED,
    Weighting,
    cell_ranker,
    find_weighting,
    fitted_cells,
    rank_by,
)
from kbtools.errors import SourceEmpty, SourceMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import BothWays, InLanguages
from kbtools.pruning.pruners import guide_of
from kbtools.storage import locked
from kbtools.version import __version__


@dataclass(frozen=True, slots=True)
class Request:
    """A grid to compare, the questions to compare it on, and the folder to keep it in.

    `errors` examples of each cause are written out; confidence is calibrated on the questions of `valid`, and on the
    same the weights of every cell are tuned if `tune` says so.
    """

    questions: Path
    out: Path
    grid: Grid
    kb_path: Path
    limit: int | None = None
    errors: int = 0
    valid: Path | None = None
    tune: bool = False


def compare(answerer: Answerer, request: Request, *, watch: StageProgress = lambda stage, done, total: None) -> Run:
    """Fill every cell of a grid that is not on disk already; give the run.

    Raises InputError for questions that cannot be read, OutputUnusable, RunMismatch, UnknownPlugin, BrokenPlugin,
    ModelError.
    """
    if request.tune and request.valid is None:
        raise SourceMissing("weights are tuned on validation questions; name their file with --valid")
    questions = gold_of(answerer, request.questions, request.limit)
    validation = gold_of(answerer, request.valid, request.limit) if request.valid else None
    # Before the folder of the run is made: a misspelt name leaves nothing behind.
    cells, out = make_cells(answerer, request.grid), request.out
    prints = start_run(answerer, request, request.questions, questions, out, cells)
    if request.valid and validation:
        valid_prints = start_run(answerer, request, request.valid, validation, out / VALID, cells)
    with locked(out / RECORD):
        test, valid = Stages(answerer, out, questions, prints, cells, watch), None
        if validation:
            valid = Stages(answerer, out / VALID, validation, valid_prints, cells, of_validation(watch))
        weighted = [cell for cell in cells if not cell.learned]
        weighting = tune(valid, weighted) if valid and request.tune else find_weighting(answerer, weighted)
        weighting = rank_by(answerer, weighting, cells)
        fill(test, cells, weighting, errors=request.errors)
        if valid:
            fill(valid, cells, weighting, errors=0)
    return open_run(out)


def of_validation(watch: StageProgress) -> StageProgress:
    """Say of each stage that it is one of the validation questions."""
    return lambda stage, done, total: watch(f"validation, {stage}", done, total)


def gold_of(answerer: Answerer, path: Path, limit: int | None) -> list[AnnotatedQuestion]:
    """Read the questions, the first ones if limited; raise SourceEmpty where there is none."""
    questions = read_gold(path, answerer.kb)[:limit]
    if not questions:
        raise SourceEmpty(f"{path}: holds no question, expected subject, relation, object and question a line")
    return questions


def make_cells(answerer: Answerer, grid: Grid) -> list[Cell]:
    """List the cells of a grid, those of its fitted rankers among them where it names none.

    Every pruner, scorer and ranker is made, so that what is wrong with one is said before anything is computed.
    """
    cells = grid.cells()
    for cell in cells:
        answerer.pruner(cell.pruning)
        answerer.scorer(cell.scorer)
        if cell.subject_scorer:
            answerer.subject_scorer(cell.subject_scorer)
    if grid.ranker is None:
        cells += fitted_cells(answerer, cells)
    for cell in cells:
        if cell.learned:
            cell_ranker(answerer, cell)
    return cells


def start_run(
    answerer: Answerer,
    request: Request,
    path: Path,
    questions: list[AnnotatedQuestion],
    out: Path,
    cells: list[Cell],
) -> Fingerprints:
    """Make the folder of a run over a file of questions, or refuse one that holds something else."""
    prints = Fingerprints(kb_digest(answerer.kb), questions_digest(questions))
    kb, gold = (
        Provenance(readable(request.kb_path) + view_of(answerer.kb), prints.kb),
        Provenance(readable(path), prints.questions),
    )
    prepare_run(out, RunOrigin(kb, gold, __version__), cells)
    return prints


def view_of(kb: KnowledgeBase) -> str:
    """Say behind the name of a knowledge base how it is looked at."""
    forward, inverse = (kb.kb, " with inverse relations") if isinstance(kb, BothWays) else (kb, "")
    languages = f" in {', '.join(forward.languages)}" if isinstance(forward, InLanguages) else ""
    return languages + inverse


def readable(path: Path) -> str:
    """Write a path so that it can be kept and shown: bytes that are no UTF-8 become escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def tune(stages: Stages, cells: list[Cell]) -> Weighting:
    """Choose the weights of every cell on validation questions."""
    groups = (stages.tune(group) for group in by_pruner(cells))
    return Weighting(TUNED, {cell: weights for group in groups for cell, weights in group.items()})


def fill(stages: Stages, cells: list[Cell], weighting: Weighting, *, errors: int) -> None:
    """Fill the cells over one file of questions, and measure the tagger where one guides a pruner."""
    stages.drop_outdated(weighting)
    for group in by_pruner(cells):
        stages.fill(group, weighting, errors=errors)
    if any(guide_of(stages.answerer.pruner(cell.pruning)) == "tagger" for cell in cells):
        stages.judge_tagger()


def by_pruner(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Group cells by their pruner, whose pools are then read once for all of them."""
    for _, group in groupby(sorted(cells), key=lambda cell: cell.pruning):
        yield list(group)
