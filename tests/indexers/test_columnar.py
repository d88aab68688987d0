"""Columnar files of a row a fact, a name or a type: they give what the same table gives as JSON Lines."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

import kbtools
from kbtools.errors import TooManyBadLines, WrongFormat
from kbtools.indexers.readers import table_files
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source
from kbtools.indexers.readers.table_files import TableReading, open_reading

Write = Callable[[pa.Table, Path], None]


def write_file(table: pa.Table, path: Path) -> None:
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_stream(table: pa.Table, path: Path) -> None:
    with pyarrow.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, tuple[str, Write]] = {
    "parquet": ("f.parquet", lambda table, path: pyarrow.parquet.write_table(table, path, row_group_size=2)),
    "arrow": ("f.arrow", write_file),
    "stream": ("f.arrow", write_stream),
    "feather": ("f.feather", lambda table, path: pyarrow.feather.write_feather(table, path)),
}


def rows(path: Path, kind: SourceKind = "facts", **options: Any) -> tuple[list[tuple[Any, ...]], dict[str, int]]:
    reading = open_reading(Source(path, kind), ReadOptions(**{"max_bad": 1.0, **options}))
    read = [(batch.kind, *row.values()) for batch in reading.batches() for row in batch.table.to_pylist()]
    return sorted(read), {skip.kind: skip.count for skip in reading.skips.kinds.values()}


FACTS: list[dict[str, Any]] = [
    {"head": "a", "relation": "r", "object": "b"},
    {"head": "b", "relation": "r", "object": None},
    {"head": "/m/0abc", "relation": "/film/film/genre", "object": " x "},
    {"head": "", "relation": "r", "object": "c"},
    {"head": "c", "relation": "r", "object": "d\0"},
]


@pytest.mark.parametrize("writer", WRITERS)
def test_every_kind_of_file_gives_what_json_lines_give(tmp_path: Path, writer: str) -> None:
    name, write = WRITERS[writer]
    write(pa.Table.from_pylist(FACTS), tmp_path / name)
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in FACTS))
    own = rows(tmp_path / name, columns={"subject": "head"})
    assert own == rows(tmp_path / "f.jsonl", columns={"subject": "head"})
    assert own[1] == {"no value under object": 1, "no value under subject": 1, "NUL byte": 1}


def test_numbers_dates_and_categories_are_text(tmp_path: Path) -> None:
    table = pa.table(
        {
            "subject": pa.array([1, 2], pa.int64()),
            "relation": pa.array(["born", "born"]).dictionary_encode(),
            "object": pa.array([date(1952, 3, 11), None], pa.date32()),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "f.parquet")
    assert rows(tmp_path / "f.parquet") == ([("facts", "1", "born", "1952-03-11")], {"no value under object": 1})


def test_fractions_are_text_and_what_is_no_number_is_bad(tmp_path: Path) -> None:
    table = pa.table({"subject": ["a", "b", "c"], "relation": ["r"] * 3, "object": [1.5, float("nan"), None]})
    pyarrow.parquet.write_table(table, tmp_path / "f.parquet")
    read, skipped = rows(tmp_path / "f.parquet")
    assert read == [("facts", "a", "r", "1.5")]
    assert skipped == {"neither text nor number under object": 1, "no value under object": 1}


def test_a_list_gives_a_row_each(tmp_path: Path) -> None:
    table = pa.table(
        {"id": ["a", "b"], "name": ["A", "B"], "alias": [["x", None, "y"], []], "description": ["an a", None]}
    )
    pyarrow.parquet.write_table(table, tmp_path / "n.parquet")
    read, skipped = rows(tmp_path / "n.parquet", "names")
    assert skipped == {}
    assert read == [
        ("descriptions", "a", 0, "an a", ""), ("names", "a", 0, "A", ""), ("names", "a", 255, "x", ""),
        ("names", "a", 255, "y", ""), ("names", "b", 0, "B", ""),
    ]  # fmt: skip


def test_a_large_row_group_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "ROWS", 10)
    table = pa.table({"subject": [f"s{number}" for number in range(95)], "relation": ["r"] * 95, "object": ["o"] * 95})
    pyarrow.parquet.write_table(table, tmp_path / "f.parquet")
    sizes = [
        batch.table.num_rows for batch in open_reading(Source(tmp_path / "f.parquet", "facts"), ReadOptions()).batches()
    ]
    assert sizes == [10] * 9 + [5]


def test_a_bad_row_is_named_by_its_number_and_refused_beyond_max_bad(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.Table.from_pylist(FACTS[:2]), tmp_path / "f.parquet")
    with pytest.raises(TooManyBadLines, match=r"no value under object, first at .*f\.parquet:2: .*'head': 'b'"):
        rows(tmp_path / "f.parquet", columns={"subject": "head"}, max_bad=0.1)


def test_a_column_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": ["a"], "relation": ["r"], "object": ["b"]}), tmp_path / "f.parquet")
    with pytest.raises(WrongFormat, match="no column for subject; name it with --column subject=HEADER"):
        rows(tmp_path / "f.parquet")


def test_what_the_suffix_belies_is_refused_with_the_name_that_fits(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(FACTS[:1])
    for written, named, advice in (
        ("f.parquet", "f.csv", r"found Parquet, expected text; name it \.parquet"),
        ("f.parquet", "f.arrow", r"which is not \.arrow data; name it \.parquet"),
        ("f.arrow", "f.csv", r"found Arrow, expected text; name it \.arrow or \.feather"),
        ("f.arrow", "f.parquet", r"which is not \.parquet data; name it \.arrow"),
        ("f.old.jsonl", "f.feather", r"found Feather's version 1; write it again with version 2"),
        ("f.jsonl", "f.parquet", r"which is not \.parquet data; name it by its content, \.csv or \.jsonl"),
    ):
        (tmp_path / written).write_text("FEA1" if ".old" in written else json.dumps(FACTS[0]))
        if not written.endswith("jsonl"):
            (pyarrow.parquet.write_table if written.endswith("parquet") else write_file)(table, tmp_path / written)
        (tmp_path / written).rename(tmp_path / named)
        with pytest.raises(WrongFormat, match=advice):
            rows(tmp_path / named)


@pytest.mark.parametrize("name", ["f.parquet", "f.arrow"])
def test_a_file_that_is_cut_is_refused(tmp_path: Path, name: str) -> None:
    (pyarrow.parquet.write_table if name == "f.parquet" else write_file)(pa.Table.from_pylist(FACTS), tmp_path / name)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-20])
    for reading in (open_reading(Source(tmp_path / name, "facts"), ReadOptions()),
                    TableReading(Source(tmp_path / name, "any", format=WIDE), ReadOptions())):  # fmt: skip
        with pytest.raises(WrongFormat, match="cannot be read"):
            list(reading.batches())


def test_they_are_indexed_and_updated_by(tmp_path: Path) -> None:
    for name, columns in (
        ("facts", {"subject": ["Q1"], "relation": ["P19"], "object": ["Q2"]}),
        ("names", {"id": ["Q1", "Q2"], "name": ["Ann", "Paris"]}),
        ("types", {"id": ["Q1"], "type": ["Q5"]}),
        ("redirects", {"old": ["Q9"], "new": ["Q1"]}),
        ("more", {"subject": ["Q2"], "relation": ["P17"], "object": ["Q3"]}),
    ):
        pyarrow.feather.write_feather(pa.table(columns), tmp_path / f"{name}.feather")
    given: dict[str, Any] = {name: tmp_path / f"{name}.feather" for name in ("facts", "names", "types", "redirects")}
    with kbtools.index(out=tmp_path / "x.kb", **given) as answerer:
        assert [answer.id for answer in answerer.query("P19 of Ann").answers] == ["Q2"]
        assert answerer.entity("Q9").id == "Q1"
    assert kbtools.update(tmp_path / "x.kb", facts=tmp_path / "more.feather").changes["facts added"] == 1


def test_a_loop_of_redirects_is_counted(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"old": ["a", "b"], "new": ["b", "a"]}), tmp_path / "r.parquet")
    assert rows(tmp_path / "r.parquet", "redirects") == ([("redirects", "a", "b")], {"redirect loop": 1})
