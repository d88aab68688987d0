"""Faults that were drawn by chance are read from an output and found again in the code of today."""

import gc
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import mutations
import pytest
import sampled_mutations
import tree_faults

CODE = """def larger(one, other):
    if one > other:
        return one
    return other
"""

OUTPUT = """   1 tests/test_room.py::test_larger[a (b)] (3 tests)  room.py:2 [comparison] one > other  ->  one >= other
   2 survived (2 tests)  room.py:3 [neighbour] return one  ->  return other
   3 not put in: TypeError('a class') (2 tests)  room.py:1 [text] 'a'  ->  ''
   4 not put in: ValueError('zip()') (0 tests)  room.py:9 [off by one] 1  ->  2
   5 lost (2 tests)  room.py:2 [off by one] 2  ->  3
room: killed 1 of 2 that could be put in, of 5 drawn
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file for which all faults are drawn."""
    monkeypatch.setattr(tree_faults, "ROOT", tmp_path)
    path = tmp_path / "room.py"
    path.write_text(CODE)
    return path


def test_a_fault_on_a_line_that_no_test_runs_survives(tmp_path: Path) -> None:
    output = tmp_path / "output.txt"
    output.write_text(OUTPUT)

    faults = sampled_mutations.read_output(output)

    assert {number: is_seen for number, (_, is_seen) in faults.items()} == {1: True, 2: False, 4: False}


def test_a_fault_is_found_again_where_its_line_has_moved(room: Path) -> None:
    labels = [fault.label for fault in tree_faults.find_faults("room.py")]
    room.write_text("\n\nLEAST = 0\n" + CODE)

    again = list(tree_faults.find_again(labels))

    assert labels
    assert [fault and fault.change for fault in again] == [label.partition(" ")[2] for label in labels]
    assert [fault and fault.line for fault in again] == [int(label.split(":")[1].split()[0]) + 3 for label in labels]


def test_a_fault_reaches_functions_that_garbage_collection_spares(room: Path) -> None:
    spec = spec_from_file_location("room", room)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (fault,) = (fault for fault in tree_faults.find_faults("room.py") if fault.kind == "comparison")
    gc.freeze()

    sampled_mutations.replace_in_functions(fault, module)

    assert isinstance(module.larger(1, 1.0), int)


def test_a_fault_whose_code_is_gone_is_not_found(room: Path) -> None:
    labels = [fault.label for fault in tree_faults.find_faults("room.py")]
    room.write_text("LEAST = 0\n")

    assert {*tree_faults.find_again(labels)} == {None}


def test_code_that_runs_at_import_is_told_from_code_that_tests_run(room: Path) -> None:
    room.write_text("@cached(1)\n" + CODE)
    coverage = {"/here/room.py": {1: {""}, 2: {""}, 3: {"test"}, 4: {"test"}, 5: {"test"}}}

    at_import = {f.line: sampled_mutations.runs_at_import(f, coverage) for f in tree_faults.find_faults("room.py")}

    assert at_import == {1: True, 3: False, 4: False, 5: False}


def test_every_judgement_names_a_file_and_a_reason() -> None:
    lines = sampled_mutations.JUDGEMENTS.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]

    assert [row for row in rows if len(row) != 3 or not row[2]] == []
    assert [row for row in rows if not (mutations.ROOT / row[0]).exists()] == []
