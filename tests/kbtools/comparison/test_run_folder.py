"""A run is read as it was requested: its cells in order, what is missing, and what each question cost."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import read_gold
from kbtools.comparison.column_store import read_columns
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid, cell_weights, find_weighting, fitted_cells
from kbtools.comparison.run_folder import FORMAT_VERSION, RECORD, Run, open_run
from kbtools.errors import OutputUnusable, RunUnusable
from kbtools.ranking.weights import Weights
from kbtools.record_files import read_record, write_record

Ask = Callable[..., Request]


@pytest.fixture(scope="module")
def validated(sample_memory: Answerer, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("validated") / "run"
    files = examples / "sample.test.txt", examples / "sample.valid.txt"
    return compare(sample_memory, Request(files[0], out, Grid(("n-gram",)), Path("sample.kb"), limit=9, valid=files[1]))


def test_cells_that_are_missing_on_the_validation_questions_are_named(validated: Run, tmp_path: Path) -> None:
    folder, (first, *others) = tmp_path / "run", validated.cells
    shutil.copytree(validated.folder, folder)

    (folder / "valid" / "cells" / f"{first.file}.columns").unlink()
    assert open_run(folder).missing == (f"valid {first.label}",)
    for cell in others:
        (folder / "valid" / "cells" / f"{cell.file}.columns").unlink()
    run = open_run(folder)
    assert (run.missing, run.valid) == (("valid",), None)
    shutil.rmtree(folder / "valid")
    assert open_run(folder).missing == ()


def test_cells_stand_in_the_order_of_the_last_request(sample_memory: Answerer, request_for: Ask) -> None:
    names = ("type-count", "fact-count", "popularity")
    systems = [sample_memory.system(pruning="n-gram", subject=name) for name in names]
    compare(sample_memory, request_for(grid=systems[:1], limit=3))

    run = compare(sample_memory, request_for(grid=[systems[2], systems[1]], limit=3))

    assert [cell.subject for cell in run.cells] == ["popularity", "fact-count", "type-count"]
    record = run.folder / RECORD
    stored = read_record(record, name="kbtools-run", version=FORMAT_VERSION, cure="")
    write_record(record, stored | {"cells": stored["cells"][:1]}, name="kbtools-run", version=FORMAT_VERSION)
    assert [cell.subject for cell in open_run(run.folder).cells] == ["popularity", "fact-count", "type-count"]
    write_record(record, stored | {"cells": [["three", "names", "only"]]}, name="kbtools-run", version=FORMAT_VERSION)
    with pytest.raises(RunUnusable, match="damaged"):
        open_run(run.folder)


def test_a_file_of_something_else_beside_the_folders_of_a_run_is_refused(
    sample_memory: Answerer, request_for: Ask
) -> None:
    out = request_for().out
    (out / "cells").mkdir(parents=True)
    (out / "letter").write_text("mine", encoding="utf-8")

    with pytest.raises(OutputUnusable, match="contains files"):
        compare(sample_memory, request_for())


def test_a_system_of_a_run_has_the_weights_of_its_cell(validated: Run, sample_memory: Answerer) -> None:
    cell = Cell("n-gram", "lexical", "fact-count")
    system = sample_memory.system(**cell._asdict())
    columns = validated.cells[cell]
    facts = {**columns.facts, "weights": {**columns.facts["weights"], "rung": 0.7}}
    run = replace(validated, cells={cell: replace(columns, facts=facts)})

    assert run.system(cell, system) == replace(system, weights=replace(system.weights, rung=0.7))


@pytest.mark.parametrize("weights", [None, {"rung": "high"}, {"height": 1.0}, {"rung": float("nan")}])
def test_damaged_weights_are_named(weights: object) -> None:
    with pytest.raises(RunUnusable, match="damaged weights"):
        cell_weights({} if weights is None else {"weights": weights})


def test_relations_are_counted_among_the_questions(validated: Run, sample_memory: Answerer, examples: Path) -> None:
    relations = [one.relation for one in read_gold(examples / "sample.test.txt", sample_memory.kb)[:9]]
    counts = Counter(relations)

    assert validated.gold["relation_frequency"].tolist() == [counts[relation] for relation in relations]


def test_a_question_takes_the_time_of_its_pruning_and_its_share_of_the_scoring(validated: Run) -> None:
    cell = Cell("n-gram", "lexical", "fact-count")
    pruning = 1000 * read_columns(validated.folder / "pools" / "n-gram.columns")["seconds"].astype(float)
    scored = [
        read_columns(validated.folder / part / f"n-gram~{name}.columns").facts["seconds"]
        for part, name in (("relation", "lexical"), ("subject", "fact-count"))
    ]

    scoring = validated.cells[cell]["milliseconds"] - pruning

    assert scoring == pytest.approx(np.full(9, scoring[0]))
    assert 9 * scoring[0] >= 1000 * sum(scored)
    assert 1 + 9 * scoring[0] < 1000 * sum(scored) + 10_000


def test_learned_rankers_join_the_grid_where_subjects_are_told_apart() -> None:
    cells = Grid(("n-gram",), ("mine",), ("theirs", "none"), ("one", "two")).cells()

    assert [cell for cell in cells if cell.learned] == [
        Cell("n-gram", "mine", "theirs", "one"), Cell("n-gram", "mine", "theirs", "two"),
    ]  # fmt: skip
    assert Grid(("n-gram-idf", "n-gram-idf")).cells() == [
        Cell("n-gram-idf", "lexical", name) for name in ("popularity", "none", "type-count", "fact-count")
    ]
    assert cells.index(Cell("n-gram", "mine", "theirs", "one")) < cells.index(Cell("n-gram-idf", "mine", "theirs"))


def test_chosen_weights_count_if_every_weighted_cell_has_some(sample_memory: Answerer) -> None:
    answerer, cells = Answerer(sample_memory.kb), [Cell("n-gram", "lexical", name) for name in ("none", "fact-count")]
    answerer.parts.keep(answerer.system(**cells[0]._asdict()).weighted(Weights(rung=0.7)))
    some = find_weighting(answerer, cells)
    answerer.parts.keep(answerer.system(**cells[1]._asdict()).weighted(Weights(rung=0.8)))

    every = find_weighting(answerer, cells)

    assert (some.kind, {system.weights.rung for system in some.systems.values()}) == ("default", {Weights().rung})
    assert (every.kind, [system.weights.rung for system in every.systems.values()]) == ("chosen", [0.7, 0.8])
    assert fitted_cells(answerer, cells) == []
