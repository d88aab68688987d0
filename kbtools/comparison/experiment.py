"""A comparison from a request to a run: cells that are not on disk are computed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.comparison.fingerprints import Fingerprints, kb_digest, questions_digest
from kbtools.comparison.grid import GIVEN, Cell, Grid, Weighting, find_weighting, fitted_cells
from kbtools.comparison.run_folder import RECORD, VALID, Provenance, Run, RunOrigin, open_run, prepare_run
from kbtools.comparison.stages import StageProgress, Stages
from kbtools.errors import BadArgument, SourceEmpty, SourceMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.views import BothWays, InLanguages
from kbtools.ranking.system import System
from kbtools.storage import locked
from kbtools.version import __version__

Questions = Path | Sequence[AnnotatedQuestion]
"""A file of annotated questions, or the questions themselves."""


@dataclass(frozen=True, slots=True)
class Request:
    """A grid or systems to compare, the questions, and the folder of the results.

    `errors` is the number of examples written for each cause. The questions of `valid` calibrate confidence, and with
    `tune` also choose the weights of every cell.
    """

    questions: Questions
    out: Path
    grid: Grid | Sequence[System]
    kb_path: Path
    limit: int | None = None
    errors: int = 0
    valid: Questions | None = None
    tune: bool = False


def compare(answerer: Answerer, request: Request, *, watch: StageProgress = lambda stage, done, total: None) -> Run:
    """Compute every cell of a grid that is not on disk, and return the run.

    Raises InputError for unreadable questions, OutputUnusable, RunMismatch, UnknownPlugin, BrokenPlugin, ModelError.
    """
    if request.tune and request.valid is None:
        raise SourceMissing("weights are tuned on validation questions; name their file with --valid")
    questions = _gold_of(answerer, request.questions, request.limit)
    validation = _gold_of(answerer, request.valid, request.limit) if request.valid else None
    # Before the folder of the run is made, so that a misspelt name leaves nothing behind.
    weighting, out = make_systems(answerer, request.grid), request.out
    cells = list(weighting.systems)
    prints = _start_run(answerer, request, request.questions, questions, out, cells)
    if request.valid and validation:
        valid_prints = _start_run(answerer, request, request.valid, validation, out / VALID, cells)
    with locked(out / RECORD):
        test, valid = Stages(answerer, out, questions, prints, weighting, watch), None
        if validation:

            def watch_valid(stage: str, done: int, total: int) -> None:
                watch(f"validation, {stage}", done, total)

            valid = Stages(answerer, out / VALID, validation, valid_prints, weighting, watch_valid)
        if valid and request.tune:
            for group in _by_pruner([cell for cell in cells if not cell.learned]):
                valid.tune(group)
            test.weighting = valid.weighting
        _fill(test, errors=request.errors)
        if valid:
            _fill(valid, errors=0)
    return open_run(out)


def _gold_of(answerer: Answerer, questions: Questions, limit: int | None) -> list[AnnotatedQuestion]:
    """Return the questions, only the first ones if limited; raise SourceEmpty if there are none."""
    gold = read_gold(questions, answerer.kb)[:limit]
    if not gold:
        raise SourceEmpty(
            f"{_name_of(questions)}: no questions, expected lines of subject, relation, object and question"
        )
    return gold


def make_systems(answerer: Answerer, grid: Grid | Sequence[System]) -> Weighting:
    """Return the systems of a grid, with all fitted rankers if it names none.

    Every pruner, scorer and ranker is loaded, so that errors appear before anything is computed.
    """
    if isinstance(grid, Grid):
        cells = grid.cells()
        cells += fitted_cells(answerer, cells) if grid.ranker is None else []
        weighting = find_weighting(answerer, cells)
    else:
        weighting = Weighting(GIVEN, {Cell.of(system): system for system in grid})
        if len(weighting.systems) < len(grid) or not grid:
            raise BadArgument("systems are one or more whose parts have different names", name="systems")
    for system in weighting.systems.values():
        answerer.opened(system)
        for name in system.every_scorer:
            answerer.scorer(name)
    return weighting


def _start_run(
    answerer: Answerer,
    request: Request,
    given: Questions,
    questions: list[AnnotatedQuestion],
    out: Path,
    cells: list[Cell],
) -> Fingerprints:
    """Create or continue the folder of a run; raise an error if it contains something else."""
    prints = Fingerprints(kb_digest(answerer.kb), questions_digest(questions))
    kb = Provenance(_readable(request.kb_path) + _view_of(answerer.kb), prints.kb)
    prepare_run(out, RunOrigin(kb, Provenance(_name_of(given), prints.questions), __version__), cells)
    return prints


def _view_of(kb: KnowledgeBase) -> str:
    """Return a suffix that names the view of a knowledge base, empty without one."""
    forward, inverse = (kb.kb, " with inverse relations") if isinstance(kb, BothWays) else (kb, "")
    languages = f" in {', '.join(forward.languages)}" if isinstance(forward, InLanguages) else ""
    return languages + inverse


def _name_of(questions: Questions) -> str:
    """Return a printable name for questions."""
    return _readable(questions) if isinstance(questions, Path) else f"{len(questions):,} given in Python"


def _readable(path: Path) -> str:
    """Return a printable path, with escapes for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _fill(stages: Stages, *, errors: int) -> None:
    """Compute the cells of one list of questions, and measure the taggers that guide their pruners."""
    stages.drop_outdated()
    for group in _by_pruner(list(stages.weighting.systems)):
        stages.fill(group, errors=errors)
    stages.judge_taggers()


def _by_pruner(cells: list[Cell]) -> Iterator[list[Cell]]:
    """Yield cells grouped by pruner, so that each pool is read once."""
    for _, group in groupby(sorted(cells), key=lambda cell: cell.pruning):
        yield list(group)
