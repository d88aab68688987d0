"""A run is filled once, goes on after a stop, keeps apart what differs, and says what is wrong."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.comparison import column_store, gold_pools, run_folder
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Cell, Grid
from kbtools.comparison.lost_questions import Cause, read_examples
from kbtools.comparison.report_files import abstention_section, make_sections
from kbtools.comparison.run_folder import RECORD, Run, open_run
from kbtools.comparison.summary import make_report, markdown_page, terminal_table
from kbtools.errors import (
    BadLine,
    BrokenPlugin,
    BuildLocked,
    OutputUnusable,
    RunMismatch,
    RunMissing,
    RunUnusable,
    SourceEmpty,
    UnknownPlugin,
)  # fmt: skip
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link
from kbtools.ranking import opened_system, score
from kbtools.storage import locked
from kbtools.text.question import MarkedQuestion, Question

Ask = Callable[..., Request]


class Wrapped:
    """A pruner and a relation scorer that count their calls and may fail at one of them."""

    def __init__(self, inner: object, *, fails_at: int = 0) -> None:
        self.inner, self.fails_at, self.calls = inner, fails_at, 0

    def called(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise BrokenPlugin("stopped")

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        for _ in questions:
            self.called()
        return self.inner.links(questions)  # type: ignore[attr-defined]

    def score(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        self.called()
        return self.inner.score(questions)  # type: ignore[attr-defined]


N_GRAM = ("n-gram", None)


@pytest.fixture
def answerer(sample_memory: Answerer, tmp_path: Path) -> Answerer:
    """Answer over the sample with a pruner and a scorer that count their calls."""
    fresh = Answerer(sample_memory.kb, models=tmp_path / "models")
    fresh.pruners[N_GRAM] = Wrapped(fresh.pruner(fresh.system(pruning="n-gram")))
    fresh.parts.scorers["mine"] = Wrapped(fresh.scorer("lexical"))
    return fresh


def calls_of(answerer: Answerer) -> tuple[int, int]:
    pruner, scorer = answerer.pruners[N_GRAM], answerer.scorer("mine")
    assert isinstance(pruner, Wrapped) and isinstance(scorer, Wrapped)  # noqa: PT018
    return pruner.calls, scorer.calls


def write_model(folder: Path, weights: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_text(weights, encoding="utf-8")


def files(run: Run) -> dict[str, int]:
    return {str(path.relative_to(run.folder)): path.stat().st_mtime_ns for path in run.folder.rglob("*.columns")}


def test_controls_are_always_among_the_cells() -> None:
    cells = Grid(("n-gram+",), ("mine",), ("theirs",)).cells()

    parts = [("n-gram+", "mine"), ("n-gram-idf", "mine"), ("n-gram-idf", "lexical")]
    assert cells == [Cell(*part, name) for part in parts for name in ("theirs", "none", "type-count", "fact-count")]


def test_a_second_run_computes_nothing(answerer: Answerer, request_for: Ask) -> None:
    grid = Grid(("n-gram",), ("mine",))
    before = files(compare(answerer, request_for(grid=grid)))
    calls = calls_of(answerer)

    after = files(compare(answerer, request_for(grid=grid)))

    assert after == before
    assert calls_of(answerer) == calls


def test_each_stage_is_computed_once_for_all_cells(answerer: Answerer, request_for: Ask) -> None:
    compare(answerer, request_for(grid=Grid(("n-gram",), ("mine", "lexical"))))

    assert calls_of(answerer) == (36, 2)


def test_a_stopped_run_goes_on_to_the_same_end(answerer: Answerer, request_for: Ask, tmp_path: Path) -> None:
    grid = Grid(("n-gram",), ("mine",))
    answerer.parts.scorers["mine"] = Wrapped(answerer.scorer("lexical"), fails_at=1)
    with pytest.raises(BrokenPlugin, match="stopped"):
        compare(answerer, request_for(grid=grid))

    resumed = compare(answerer, request_for(grid=grid))
    whole = compare(answerer, request_for(grid=grid, out=tmp_path / "whole"))

    assert calls_of(answerer)[0] == 2 * 36
    assert [resumed.strict(cell).tolist() for cell in whole.cells] == [
        whole.strict(cell).tolist() for cell in whole.cells
    ]


def test_a_changed_checkpoint_computes_its_own_cells_again(
    answerer: Answerer, request_for: Ask, tmp_path: Path
) -> None:
    grid = Grid(("n-gram+",), ("lexical", "mine"))
    write_model(tmp_path / "models" / "relation" / "mine", "old")
    before = files(compare(answerer, request_for(grid=grid)))
    write_model(tmp_path / "models" / "relation" / "mine", "new")

    after = files(compare(answerer, request_for(grid=grid)))

    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for name in before if "mine" in name}


def test_cells_of_a_changed_checkpoint_are_not_shown_beside_new_ones(
    answerer: Answerer, request_for: Ask, tmp_path: Path
) -> None:
    write_model(tmp_path / "models" / "relation" / "mine", "old")
    old = compare(answerer, request_for(grid=Grid(("n-gram",), ("mine",))))
    write_model(tmp_path / "models" / "relation" / "mine", "new")
    for name in ("one", "other"):  # damaged cells of an earlier request
        (old.folder / "cells" / f"{name}.columns").write_bytes(b"no columns")

    run = compare(answerer, request_for(grid=Grid(("n-gram+",), ("mine",))))

    assert {cell.pruning for cell in run.cells if cell.scorer == "mine"} == {"n-gram+", "n-gram-idf"}


def test_other_names_are_added_to_a_run(answerer: Answerer, request_for: Ask) -> None:
    compare(answerer, request_for(grid=Grid(("n-gram",))))

    run = compare(answerer, request_for(grid=Grid(("n-gram+",))))

    assert list(dict.fromkeys(cell.pruning for cell in run.cells)) == ["n-gram+", "n-gram-idf", "n-gram"]


def test_another_knowledge_base_is_refused(answerer: Answerer, request_for: Ask, tiny_memory: KnowledgeBase) -> None:
    compare(answerer, request_for())

    with pytest.raises(RunMismatch, match=r"knowledge base sample\.kb \(\w{12}\), asked for tiny\.kb \(\w{12}\)"):
        compare(Answerer(tiny_memory), request_for(kb_path=Path("tiny.kb")))


def test_other_questions_are_refused(answerer: Answerer, request_for: Ask) -> None:
    compare(answerer, request_for())

    with pytest.raises(RunMismatch, match="results are not merged, use another --out"):
        compare(answerer, request_for(limit=5))


def test_questions_of_what_the_knowledge_base_lacks_stay_in_the_denominator(
    answerer: Answerer, request_for: Ask, tmp_path: Path
) -> None:
    lines = [
        "m.078ffw\tfictional_universe.fictional_character.character_created_by\tm.042xh\twho created harry potter",
        "m.nobody\tfictional_universe.fictional_character.character_created_by\tm.042xh\twho created harry potter",
        "m.078ffw\tno.such.relation\tm.042xh\twho created harry potter",
        "m.078ffw\tbook.written_work.author\tm.042xh\twho created harry potter",
        "m.0kba178\tlocation.location.containedby\tm.06npd\twhere is it",
    ]
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(lines), encoding="utf-8")

    run = compare(answerer, request_for(questions=path))

    assert len(run) == 5
    assert list(run.excluded().values()) == [1, 1, 1, 1]
    assert run.gold["fault"].tolist() == [0, 1, 2, 3, 4]
    outcomes = run.cells[Cell("n-gram-idf", "lexical", "popularity")]
    assert outcomes["strict"].tolist() == [1, 0, 0, 0, 0]
    assert outcomes["recalled"].tolist() == [1, 0, 0, 0, 0]
    assert outcomes["subject_kept"].tolist() == [1, 0, 1, 1, 0]
    assert outcomes["given_subject"].tolist() == [1, 0, 0, 0, 0]


def test_a_file_without_a_question_is_refused(answerer: Answerer, request_for: Ask, tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")

    with pytest.raises(SourceEmpty, match="no questions, expected"):
        compare(answerer, request_for(questions=tmp_path / "blank.txt"))


def test_questions_without_gold_are_refused(answerer: Answerer, request_for: Ask, examples: Path) -> None:
    with pytest.raises(BadLine, match="expected subject, relation, object and question"):
        compare(answerer, request_for(questions=examples / "questions.txt"))


@pytest.mark.parametrize(
    ("grid", "unknown"),
    [
        (Grid(("n-gramme",)), "no pruner 'n-gramme'"),
        (Grid(("n-gram",), ("nobody",)), "no relation scorer 'nobody'"),
        (
            Grid(("n-gram",), ("lexical",), ("height",)),
            "no subject scorer 'height'",
        ),
    ],
)
def test_an_unknown_name_is_refused_before_anything_is_written(
    answerer: Answerer, request_for: Ask, tmp_path: Path, grid: Grid, unknown: str
) -> None:
    with pytest.raises(UnknownPlugin, match=unknown):
        compare(answerer, request_for(grid=grid))

    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made_is_named(answerer: Answerer, request_for: Ask, sample_questions: Path) -> None:
    with pytest.raises(OutputUnusable, match="choose another --out"):
        compare(answerer, request_for(out=sample_questions / "run"))


def test_a_folder_of_something_else_is_left_alone(answerer: Answerer, request_for: Ask, examples: Path) -> None:
    with pytest.raises(OutputUnusable, match="contains files, but no run of kbtools compare"):
        compare(answerer, request_for(out=examples))


@pytest.mark.parametrize("folder", ["pools", "relation", "cells"])
def test_what_is_damaged_is_computed_again(answerer: Answerer, request_for: Ask, folder: str) -> None:
    whole = compare(answerer, request_for())
    strict = {cell: whole.strict(cell).tolist() for cell in whole.cells}
    damaged = min((whole.folder / folder).iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-9])
    min((whole.folder / "cells").iterdir()).unlink()

    mended = compare(answerer, request_for())

    assert {cell: mended.strict(cell).tolist() for cell in mended.cells} == strict


def test_a_damaged_cell_is_named_where_nothing_can_be_computed(answerer: Answerer, request_for: Ask) -> None:
    run = compare(answerer, request_for())
    cell = min((run.folder / "cells").iterdir())
    cell.write_bytes(b"no columns")

    with pytest.raises(RunUnusable, match="delete it and run kbtools compare again"):
        open_run(run.folder)


def test_a_cell_that_is_gone_is_named_in_the_report(answerer: Answerer, request_for: Ask) -> None:
    run = compare(answerer, request_for())
    assert run.missing == ()
    gone = list(run.cells)[-1]
    (run.folder / "cells" / f"{gone.file}.columns").unlink()

    report = make_report(open_run(run.folder))

    assert report.run.missing == (gone.label,)
    assert f"missing on disk: {gone.label}, which kbtools compare recomputes" in terminal_table(report)


def test_a_run_that_could_not_begin_can_begin_later(answerer: Answerer, request_for: Ask) -> None:
    request = request_for()
    for name in ("cells", "pools", "weights"):
        (request.out / name).mkdir(parents=True)
    (request.out / f".run.msgpack.{'0' * 16}.new").write_bytes(b"half")

    assert len(compare(answerer, request).cells)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunMissing, match="no run here"):
        open_run(tmp_path)


def test_an_unfinished_run_is_named(answerer: Answerer, request_for: Ask) -> None:
    answerer.pruners[N_GRAM] = Wrapped(answerer.pruners[N_GRAM], fails_at=1)
    with pytest.raises(BrokenPlugin):
        compare(answerer, request_for(grid=Grid(("n-gram",))))

    with pytest.raises(RunUnusable, match="no cell is finished yet"):
        open_run(request_for().out)


@pytest.mark.parametrize("count", [1, 3])
def test_questions_without_any_candidate_are_all_wrong(
    answerer: Answerer, request_for: Ask, tmp_path: Path, count: int
) -> None:
    path = tmp_path / "questions.txt"
    path.write_text("m.078ffw\tbook.written_work.author\tm.042xh\tqqq zzz\n" * count, encoding="utf-8")

    run = compare(answerer, request_for(questions=path, valid=path, errors=1))

    assert {cell: run.strict(cell).tolist() for cell in run.cells} == dict.fromkeys(run.cells, [0.0] * count)
    assert "- | -" in markdown_page(make_report(run), make_sections(make_report(run)))
    assert [row[1] for row in abstention_section(make_report(run)).rows] == ["0.0"] * 5


@pytest.mark.parametrize("name", ["cells", "pools", "relation", "subject", "gold.columns"])
def test_one_flipped_bit_is_computed_again_and_never_believed(answerer: Answerer, request_for: Ask, name: str) -> None:
    whole = compare(answerer, request_for())
    strict = {cell: whole.strict(cell).tolist() for cell in whole.cells}
    target = whole.folder / name
    path = min(target.iterdir()) if target.is_dir() else target
    content = path.read_bytes()
    # The cells rest on what is damaged: without them every stage is read again.
    kept = [cell for cell in (whole.folder / "cells").iterdir() if cell != path]

    # Four places: one checksum guards the whole file, and the next test flips eight without computing again.
    for at in range(40, len(content), len(content) // 4):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        for cell in kept:
            cell.unlink(missing_ok=True)
        mended = compare(answerer, request_for())
        assert {cell: mended.strict(cell).tolist() for cell in mended.cells} == strict


@pytest.mark.parametrize("name", ["cells", "gold.columns", "run.msgpack"])
def test_one_flipped_bit_is_named_where_nothing_can_be_computed(
    answerer: Answerer, request_for: Ask, name: str
) -> None:
    run = compare(answerer, request_for())
    target = run.folder / name
    path = min(target.iterdir()) if target.is_dir() else target
    content = path.read_bytes()

    for at in range(40, len(content), len(content) // 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(RunUnusable, match="damaged or written by another version"):
            open_run(run.folder)


def test_the_folder_where_one_stands_may_hold_the_run(
    answerer: Answerer, request_for: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    run = compare(answerer, request_for(out=Path(".")))

    assert len(run.cells) == 12
    assert {path.name for path in tmp_path.iterdir()} == {"here"}


def test_a_path_that_is_no_text_is_kept_as_escapes(
    answerer: Answerer, request_for: Ask, sample_questions: Path, tmp_path: Path
) -> None:
    path = tmp_path / os.fsdecode(b"q\xff.txt")
    path.write_bytes(sample_questions.read_bytes())

    assert compare(answerer, request_for(questions=path)).origin.questions.path.endswith("q\\xff.txt")


def test_two_comparisons_in_one_folder_are_not_mixed(answerer: Answerer, request_for: Ask) -> None:
    run = compare(answerer, request_for())

    with locked(run.folder / RECORD), pytest.raises(BuildLocked, match="another process is building it"):
        compare(answerer, request_for())


def test_batches_change_no_outcome(
    sample_memory: Answerer, sample_run: Run, request_for: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in [(score, "AT_ONCE"), (opened_system, "TOGETHER"), (gold_pools, "OBJECTS_AT_ONCE")]:
        monkeypatch.setattr(module, name, 3)

    run = compare(Answerer(sample_memory.kb), request_for())

    timed = {"milliseconds"}
    assert {cell: {name: columns[name].tolist() for name in columns.arrays if name not in timed}
            for cell, columns in run.cells.items()} == {
        cell: {name: columns[name].tolist() for name in columns.arrays if name not in timed}
        for cell, columns in sample_run.cells.items()
    }  # fmt: skip


def test_columns_of_another_version_are_computed_again(
    answerer: Answerer, request_for: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(compare(answerer, request_for()))
    monkeypatch.setattr(column_store, "FORMAT_VERSION", column_store.FORMAT_VERSION + 1)

    after = files(compare(answerer, request_for()))

    assert all(before[name] != after[name] for name in before)


def test_a_run_of_another_version_is_refused(
    answerer: Answerer, request_for: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(answerer, request_for())
    monkeypatch.setattr(run_folder, "FORMAT_VERSION", run_folder.FORMAT_VERSION - 1)

    with pytest.raises(RunUnusable, match="written by another version of kbtools; use another --out"):
        compare(answerer, request_for())


def test_examples_of_a_cell_that_is_another_now_are_removed(
    answerer: Answerer, request_for: Ask, tmp_path: Path
) -> None:
    grid = Grid(("n-gram",), ("mine",))
    write_model(tmp_path / "models" / "relation" / "mine", "old")
    run = compare(answerer, request_for(grid=grid, errors=1))
    before = {path.name for path in (run.folder / "errors").iterdir()}
    write_model(tmp_path / "models" / "relation" / "mine", "new")

    compare(answerer, request_for(grid=grid))

    after = {path.name for path in (run.folder / "errors").iterdir()}
    assert before - after == {name for name in before if "mine" in name}
    assert after


def test_as_many_examples_of_a_cause_are_written_as_asked_for(answerer: Answerer, request_for: Ask) -> None:
    run = compare(answerer, request_for(errors=1))
    cell = Cell("n-gram", "lexical", "fact-count")

    examples = read_examples(run.folder, cell)
    causes = [example["cause"] for example in examples]
    page = (run.folder / "errors" / f"{cell.file}.md").read_text(encoding="utf-8").splitlines()

    lost = np.unique(run.causes(cell))
    assert sorted(causes) == sorted(Cause(cause).label for cause in lost if cause != Cause.NONE)
    assert len(causes) < np.count_nonzero(run.causes(cell))
    assert [line.partition(":")[0] for line in page if line.startswith("## ")] == [
        f"## {cause.label}" for cause in Cause if cause != Cause.NONE
    ]
    first = next(example for example in examples if example["found"])
    result = answerer.query(first["question"], pruning="n-gram", scorer="lexical", subject="fact-count")
    assert first["found"]["mention"] == result.candidates[0].mention.text
