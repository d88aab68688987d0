"""The folder of a comparison: a record of its inputs, and the outcomes of its cells."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kbtools.answering.gold import Fault
from kbtools.comparison.column_store import Columns, read_columns
from kbtools.comparison.grid import Cell, cell_weights, weights_text
from kbtools.comparison.lost_questions import find_causes
from kbtools.errors import KBUnusable, OutputUnusable, RunMismatch, RunMissing, RunUnusable
from kbtools.ranking.system import System
from kbtools.record_files import fits, read_record, write_record
from kbtools.storage import find_stranger, make_folder

_FORMAT_NAME, FORMAT_VERSION = "kbtools-run", 1
RECORD, GOLD = "run.msgpack", "gold.columns"
CELLS, VALID = "cells", "valid"
POOLS, _RELATION_SCORES, _SUBJECT_SCORES, TAGGERS, WEIGHTS = "pools", "relation", "subject", "taggers", "weights"
_FOLDERS = (CELLS, POOLS, _RELATION_SCORES, _SUBJECT_SCORES, TAGGERS, WEIGHTS)


@dataclass(frozen=True, slots=True)
class Provenance:
    """An input of a run: its path, for people, and its digest."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """The knowledge base and the questions of a run, and the version of kbtools."""

    kb: Provenance
    questions: Provenance
    version: str


@dataclass(frozen=True, slots=True)
class _RunRecord(RunOrigin):
    """The record of a run."""

    cells: list[tuple[str, str, str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A comparison read from disk; `valid` is the one on validation questions, None without any.

    `taggers` maps each tagger to the questions with a known mention, and to those whose mention it found.
    """

    folder: Path
    origin: RunOrigin
    gold: Columns
    cells: Mapping[Cell, Columns]
    valid: "Run | None" = None
    taggers: Mapping[str, Columns] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """Requested cells that are not on disk, because they are not computed yet or were lost."""

    def __len__(self) -> int:
        return len(self.gold["fault"])

    def strict(self, cell: Cell) -> NDArray[np.float64]:
        """Return the expected correctness of each question."""
        return self.cells[cell]["strict"]

    def weights_text(self, cell: Cell) -> str:
        """Return the weights of a cell and their kind as text."""
        facts = self.cells[cell].facts
        return weights_text(facts["weighting"], cell_weights(facts), cell)

    def system(self, cell: Cell, system: System) -> System:
        """Return a system with the weights that its cell was compared with."""
        return replace(system, weights=cell_weights(self.cells[cell].facts))

    def causes(self, cell: Cell) -> NDArray[np.int8]:
        """Return the cause of each question that is not fully answered."""
        gold = self.gold
        return find_causes(self.cells[cell].arrays, fault=gold["fault"], linkable=gold["linkable"])

    def excluded(self) -> dict[str, int]:
        """Return the number of questions that no system can answer, by fault; they count as wrong in every figure."""
        fault = self.gold["fault"]
        return {kind.label: int(np.count_nonzero(fault == kind)) for kind in Fault if kind is not Fault.NONE}


def open_run(folder: Path) -> Run:
    """Return a run; raise RunMissing if there is none, RunUnusable if it is damaged or has no cell yet."""
    origin, order = _read_origin(folder)
    if not (folder / GOLD).is_file():
        raise RunUnusable.at(folder, "no cell is finished yet; run kbtools compare again to continue")
    outcomes = {
        Cell(*columns.facts["cell"]): columns
        for columns in map(read_columns, sorted((folder / CELLS).glob("*.columns")))
    }
    if not outcomes:
        raise RunUnusable.at(folder, "no cell is finished yet; run kbtools compare again to continue")
    # In the order of the requests, then cells that no record names.
    cells = {cell: outcomes[cell] for cell in [*order, *sorted(outcomes)] if cell in outcomes}
    valid = open_run(folder / VALID) if any((folder / VALID / CELLS).glob("*.columns")) else None
    missing = [cell.label for cell in order if cell not in outcomes]
    if (folder / VALID).is_dir():
        missing += [f"{VALID} {label}" for label in valid.missing] if valid else [VALID]
    tags = [read_columns(path) for path in sorted((folder / TAGGERS).glob("*.columns"))]
    taggers = {str(columns.facts["tagger"]): columns for columns in tags}
    return Run(folder, origin, read_columns(folder / GOLD), cells, valid, taggers, tuple(missing))


def _read_origin(folder: Path) -> tuple[RunOrigin, list[Cell]]:
    """Return the inputs of a run, and its cells in the order they were requested."""
    if not (folder / RECORD).is_file():
        raise RunMissing.at(
            folder, f"no run here (there is no {RECORD}); name the folder that kbtools compare --out made"
        )
    try:
        record = read_record(folder / RECORD, name=_FORMAT_NAME, version=FORMAT_VERSION, cure="give another --out")
        if not fits(record, _RunRecord):
            raise KeyError("a field is missing or has another type")
        return msgspec.convert(record, RunOrigin), [Cell(*cell) for cell in record["cells"]]
    except (KBUnusable, KeyError, TypeError) as error:
        raise RunUnusable(
            f"{folder / RECORD}: damaged or written by another version of kbtools; use another --out", path=str(folder)
        ) from error


def prepare_run(folder: Path, origin: RunOrigin, cells: list[Cell]) -> None:
    """Create the folder of a run, or continue it.

    Raises OutputUnusable if it cannot be written or holds other files, RunMismatch if its results are from another
    knowledge base or other questions.
    """
    order: list[Cell] = []
    if folder.is_dir() and find_stranger(folder, lambda path: str(path) in _FOLDERS):
        if not (folder / RECORD).is_file():
            raise OutputUnusable.at(folder, "contains files, but no run of kbtools compare; choose another --out")
        before, order = _read_origin(folder)
        _refuse_other("knowledge base", before.kb, origin.kb, folder)
        _refuse_other("question file", before.questions, origin.questions, folder)
    record = {**asdict(origin), "cells": [list(cell) for cell in dict.fromkeys([*cells, *order])]}
    try:
        for name in _FOLDERS:
            make_folder(folder / name)
        write_record(folder / RECORD, record, name=_FORMAT_NAME, version=FORMAT_VERSION)
    except OSError as error:
        raise OutputUnusable.at(folder, f"cannot be written ({error.strerror}); choose another --out") from error


def _refuse_other(what: str, before: Provenance, now: Provenance, folder: Path) -> None:
    """Raise RunMismatch if results of something else are in the folder."""
    if before.digest != now.digest:
        raise RunMismatch.at(
            folder,
            f"has results of the {what} {before.path} ({before.digest[:12]}), "
            f"asked for {now.path} ({now.digest[:12]}); results are not merged, use another --out",
        )
