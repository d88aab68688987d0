"""Cells of tables as text and as values, and the row of a table that is its header."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.indexers.readers.batches import ALIAS, Skips
from kbtools.indexers.readers.entity_layout import EntityLayout
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import ReadOptions, Source, Wide
from kbtools.indexers.readers.table_rows import (
    TableRows,
    as_text,
    canonical_column,
    first_filled,
    language_ranks,
    named_batch,
    read_cells,
)
from kbtools.indexers.readers.table_shapes import header_place


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([1.0, -2.0, 0.5, 123456789012.0, 1e16, float("nan"), float("inf"), None]),
         ["1", "-2", "0.5", "123456789012", "1e+16", None, None, None]),
        (pa.array([datetime(2001, 2, 3), datetime(2001, 2, 3, 4, 5, 6)], pa.timestamp("us")),
         ["2001-02-03", "2001-02-03T04:05:06"]),
        (pa.array([datetime(2001, 2, 3, 4, 5)], pa.timestamp("ms", tz="UTC")), ["2001-02-03T04:05:00Z"]),
        (pa.array(["b", None, "a", "b"]).dictionary_encode(), ["b", None, "a", "b"]),
        (pa.array([True, False]), ["true", "false"]),
    ],
)  # fmt: skip
def test_cells_of_any_type_are_text(column: pa.Array, texts: list[str | None]) -> None:
    assert as_text(column).to_pylist() == texts


@pytest.mark.parametrize(
    ("cell", "separator", "words", "values"),
    [
        ("a|b", None, False, ["a|b"]),
        (" a | |b ", "|", False, ["a", "b"]),
        ("['a', 2, 2.5]", "|", False, ["a", "2", "2.5"]),
        ("[a|b]", "|", False, ["[a", "b]"]),
        ("[]", "|", False, ["[]"]),
        ("[[1], 2]", "|", False, ["[[1], 2]"]),
        ("Ann Lee", " ", True, ["Ann Lee"]),
        ("['Ann Lee', 'Bo']", " ", True, ["Ann Lee", "Bo"]),
        ("Ann Lee", " ", False, ["Ann", "Lee"]),
        ("", "|", False, []),
        (None, "|", False, []),
    ],
)
def test_a_cell_is_divided_at_its_separator(cell: Any, separator: Any, words: bool, values: list[str]) -> None:
    # A list beside it makes the whole column be read cell by cell.
    for cells, place in (([cell], 0), (["x", cell], 1), (["['x']", cell], 1)):
        read = read_cells(pa.array(cells, pa.string()), separator, words=words)
        assert read.texts.filter(pa.array(read.rows == place)).to_pylist() == values


@given(st.lists(st.lists(st.sampled_from(["a", "b", "", " "]), max_size=3), min_size=1))
def test_values_of_lists_are_those_of_a_loop(lists: list[list[str]]) -> None:
    count, cells = len(lists), read_cells(pa.array(lists, pa.list_(pa.string())))
    plain = [[text for text in values if text.strip()] for values in lists]

    assert list(zip(cells.rows.tolist(), cells.texts.to_pylist(), strict=True)) == [
        (row, text) for row, values in enumerate(plain) for text in values
    ]
    assert cells.sizes(count).tolist() == list(map(len, plain))
    assert cells.lacking(count).tolist() == [row for row, values in enumerate(plain) if not values]
    assert cells.first_of_each(count).to_pylist() == [values[0] if values else "" for values in plain]
    assert cells.completed(count).rows.tolist() == [row for row, values in enumerate(plain) for _ in values or [""]]
    assert cells.beside(pa.array(range(count))).to_pylist() == cells.rows.tolist()


@given(st.lists(st.lists(st.one_of(st.none(), st.sampled_from("ab")), min_size=3, max_size=3), min_size=1))
def test_the_first_column_with_a_cell_counts(rows: list[list[str | None]]) -> None:
    firsts = [next((cell for cell in row if cell is not None), None) for row in rows]
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    lists = [pa.array([cell and [cell] for cell in columns[1].to_pylist()], pa.list_(pa.string()))]

    assert first_filled(columns).to_pylist() == firsts
    assert first_filled([columns[0], *lists, columns[2]]).to_pylist() == [cell and [cell] for cell in firsts]


def test_properties_of_freebase_are_known_by_the_ids_beside_them() -> None:
    column, beside = pa.array(["/film/film/genre", "/a/b", "/m/0abc", "x"]), pa.array(["m.01", "Q1", "Q2", "m.02"])

    assert canonical_column(column).to_pylist() == ["/film/film/genre", "/a/b", "m.0abc", "x"]
    assert canonical_column(column, beside).to_pylist() == ["film.film.genre", "/a/b", "m.0abc", "x"]


def test_ranks_are_those_of_the_languages_and_of_aliases() -> None:
    tags = pa.array(["de", "EN", "fr", "en-gb", ""])
    ranks = language_ranks(Languages.read("en,de"), tags)
    assert ranks.to_pylist() == [1, 0, None, 0, 0]

    parts = (pa.array(["a"]), pa.array([1], pa.uint8()), pa.array(["A"]), pa.array(["DE"]))
    batches = {kind: named_batch(kind, *parts, line=3) for kind in ("name", "alias", "description", "relation")}
    assert [batch.kind for batch in batches.values()] == ["names", "names", "descriptions", "relations"]
    assert [list(batch.table.to_pylist()[0].values())[1:] for batch in batches.values()] == [
        [1, "A", "de"], [ALIAS, "A", "de"], [1, "A", "de"], [1, "A", "de"],
    ]  # fmt: skip


def test_faults_are_counted_at_their_first_row_and_some_are_not_bad() -> None:
    columns = pa.record_batch({"a": pa.array(["", "Total 3", "x", "y"])})
    text = b"h\n\nTotal 3\nx\ny\n"
    skips = Skips("f", 1.0)

    TableRows(columns, [2, 3, 4, 5], text=text, first_line=1).count(
        {3: "odd", 2: "odd", 0: "no value under a", 1: "no value under a"}, skips
    )

    assert {kind: (skip.count, skip.bad, skip.line) for kind, skip in skips.kinds.items()} == {
        "blank line": (1, False, 2),
        "row of totals": (1, False, 3),
        "odd": (2, True, 4),
    }
    assert skips.kinds["odd"].example == "f:4: 'x'"


def place_of(rows: list[list[str]], wide: Wide | None = None) -> int:
    layout = EntityLayout(Source(Path("t.csv"), "any"), ReadOptions(wide=wide or Wide()), Skips("f", 1.0))
    return header_place(rows, layout)


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([["Report"], ["id", "city"], ["1", "Bonn"]], 1),
        ([["Report", "", ""], ["city", "", "size"], ["Bonn", "x", "1"]], 1),
        ([["Report"], ["a", "b"], ["c", "d"], ["e", "f"]], 1),
        ([["Name"], ["id", "city"], ["1", "Bonn"]], 1),
        ([["x", "y"], ["name", "city"], ["A", "Bonn"]], 1),
        ([["Report"], ["Museum"], ["a", "b"], ["c", "d"]], 2),
        ([["", ""], ["", ""], ["", ""], ["a", "b", "c"]], 3),
        ([["x", ""]] * 29 + [["id", "name"]], 29),
        ([["x", ""]] * 30 + [["id", "name"]], 0),
        ([], 0),
        ([["", ""]], 0),
    ],
)
def test_the_header_is_the_first_row_that_looks_like_one(rows: list[list[str]], place: int) -> None:
    assert place_of(rows) == place


def test_the_header_has_a_column_that_an_option_names() -> None:
    rows = [["id", "name"], ["Number", "Firm"], ["1", "A"]]

    assert place_of(rows, Wide(subject="number")) == 1
    assert place_of(rows, Wide(subject="other", name=("Firm",))) == 1
