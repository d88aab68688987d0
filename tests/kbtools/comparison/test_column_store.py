"""Columns come back as they were written, and a damaged or crafted file is refused."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.comparison import column_store
from kbtools.comparison.column_store import (
    FORMAT_NAME,
    FORMAT_VERSION,
    Columns,
    digest,
    find_columns,
    read_columns,
    write_columns,
    write_text,
)
from kbtools.errors import RunUnusable
from kbtools.record_files import write_record

Change = Callable[[dict[str, Any]], None]


@settings(max_examples=20)
@given(
    st.lists(st.integers(-100, 100), max_size=9),
    st.sampled_from(["<i8", "|i1", "<f4", "<f8", "|b1"]),
    st.integers(1, 3),
)
def test_columns_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], kind: str, step: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "some.columns"
    array = np.array(values, dtype=kind)[::step]

    write_columns(path, Columns("print", {"some": array, "none": np.empty(0)}, {"seconds": 1.5}))

    columns = read_columns(path)
    assert (columns.fingerprint, columns.facts) == ("print", {"seconds": 1.5})
    assert columns["some"].dtype == array.dtype
    assert {name: found.tolist() for name, found in columns.arrays.items()} == {"some": array.tolist(), "none": []}


def packed(count: int) -> list[Any]:
    return ["|i1", zlib.compress(bytes(count))]


def pack(tmp_path: Path, change: Change) -> Path:
    """Write columns that a change makes wrong."""
    record = {"fingerprint": "print", "facts": {"cell": ["a", "b", "c", "d"]}, "columns": {"one": packed(6)}}
    change(record)
    write_record(tmp_path / "some.columns", record, name=FORMAT_NAME, version=FORMAT_VERSION)
    return tmp_path / "some.columns"


CHANGES: dict[str, Change] = {
    "a column that ends early": lambda record: record["columns"].update(one=["|i1", packed(6)[1][:-5]]),
    "a column that is too large": lambda record: record["columns"].update(one=packed(9)),
    "columns that are too large together": lambda record: record["columns"].update(two=packed(3)),
    "a column that is not compressed": lambda record: record["columns"].update(one=["|i1", b"123"]),
    "a column of part of a number": lambda record: record["columns"].update(one=["<i4", packed(6)[1]]),
    "no columns": lambda record: record.pop("columns"),
    "no fingerprint": lambda record: record.pop("fingerprint"),
    "facts without names": lambda record: record.update(facts=[]),
    "a cell of three names": lambda record: record["facts"].update(cell=["a", "b", "c"]),
    "a cell with a number": lambda record: record["facts"].update(cell=["a", "b", "c", 4]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_crafted_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    monkeypatch.setattr(column_store, "LARGEST", 8)
    assert len(read_columns(pack(tmp_path, lambda record: None))["one"]) == 6

    path = pack(tmp_path, change)

    with pytest.raises(RunUnusable, match="damaged"):
        read_columns(path)
    assert find_columns(path, "print") is None


def test_columns_are_limited_together_and_not_by_one_byte_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pack(tmp_path, lambda record: record["columns"].update(two=packed(2)))
    monkeypatch.setattr(column_store, "LARGEST", 8)

    assert len(read_columns(path)["two"]) == 2


def test_columns_are_found_by_their_fingerprint(tmp_path: Path) -> None:
    path = pack(tmp_path, lambda record: None)

    assert find_columns(path, "print")
    assert find_columns(path, "other") is None
    assert find_columns(tmp_path / "missing", "print") is None


def test_equal_facts_have_equal_digests_and_others_do_not() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len({digest("a", "b"), digest("ab"), digest(["a", "b"]), digest("b", "a"), digest("\udcff")}) == 5


def test_a_text_that_is_no_utf_8_is_written_with_escapes(tmp_path: Path) -> None:
    assert write_text(tmp_path / "page", "é \udcff").read_text(encoding="utf-8") == "é \\udcff"
