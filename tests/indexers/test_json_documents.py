"""JSON as services export it: one document with a list of objects somewhere in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import Block
from kbtools.indexers.readers.detection import detect
from kbtools.indexers.readers.json_documents import as_json_lines, fields_of
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source
from kbtools.indexers.readers.table_files import TableReading

BRIDGES = [{"id": "b1", "name": "Olm Bridge"}, {"id": "b2", "name": "Tor Bridge"}]


def records(document: Any, indent: int | None = None) -> list[dict[str, Any]]:
    blocks = [Block(json.dumps(document, indent=indent).encode(), 1)]
    return [json.loads(line) for block in as_json_lines(blocks, Path("d.json")) for line in block.text.splitlines()]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(BRIDGES, id="an array of objects"),
        pytest.param([["id", "name"], ["b1", "Olm Bridge"], ["b2", "Tor Bridge"]], id="rows below a header"),
        pytest.param({"meta": {"count": 2}, "result": {"rows": BRIDGES}}, id="two objects deep"),
        pytest.param({"columns": ["id", "name"], "data": [list(row.values()) for row in BRIDGES]}, id="a split frame"),
        pytest.param(
            {"id": {"0": "b1", "1": "b2"}, "name": {"0": "Olm Bridge", "1": "Tor Bridge"}}, id="columns of pandas"
        ),
        pytest.param({"errors": [{"id": "e1"}], "rows": BRIDGES, "links": [{"id": "l1"}]}, id="between shorter lists"),
        pytest.param({"edges": [{"node": bridge} for bridge in BRIDGES]}, id="nodes of GraphQL"),
        pytest.param(
            {
                "head": {"vars": ["id", "name"]},
                "results": {
                    "bindings": [
                        {
                            "id": {"type": "uri", "value": bridge["id"]},
                            "name": {"type": "literal", "xml:lang": "en", "value": bridge["name"]},
                        }
                        for bridge in BRIDGES
                    ]
                },
            },
            id="results of SPARQL",
        ),
        pytest.param({"b1": {"name": "Olm Bridge"}, "b2": {"name": "Tor Bridge"}}, id="objects by their ids"),
    ],
)  # fmt: skip
def test_the_largest_list_of_a_document_is_its_rows(document: Any, indent: int | None) -> None:
    assert records(document, indent) == BRIDGES


@pytest.mark.parametrize("between", ["", "\n", "\n\n  "])
def test_objects_one_after_another_are_rows(between: str) -> None:
    text = between.join(json.dumps(bridge, indent=2) for bridge in BRIDGES) + between
    blocks = as_json_lines([Block(text.encode(), 1)], Path("d.json"))
    assert [json.loads(line) for block in blocks for line in block.text.splitlines()] == BRIDGES


def test_fields_of_objects_in_an_object_are_called_by_their_keys() -> None:
    record = {"id": "b1", "attributes": {"name": "Olm Bridge", "height": {"value": 12, "unit": "m"}}}
    assert records([record]) == [{"id": "b1", "name": "Olm Bridge", "height": 12, "height unit": "m"}]


def test_values_that_mongodb_wraps_are_plain() -> None:
    record = {"_id": {"$oid": "5f1"}, "built": {"$date": {"$numberLong": "1850"}}, "sold": {"$date": "1990-01-02"}}
    assert records([record]) == [{"_id": "5f1", "built": "1850", "sold": "1990-01-02"}]


def test_years_below_ids_are_no_columns() -> None:
    years = {"o1": {"1990": 5, "2000": 6}, "t1": {"1990": 7, "2000": 8}}
    assert records(years) == [{"id": "o1", "1990": 5, "2000": 6}, {"id": "t1", "1990": 7, "2000": 8}]


def test_keys_that_are_words_are_names_too() -> None:
    people = {"Ann": {"city": "Ulm"}, "Bob": {"city": "Tal"}}
    assert records(people) == [{"id": name, "name": name, **person} for name, person in people.items()]


def test_a_list_of_objects_in_a_field_gives_their_names() -> None:
    builders = [{"id": 7, "name": "Ida Holt"}, {"id": 8, "label": "Rex Amin"}, {"name": None, "id": 0}, {}]
    assert records([{"id": "b1", "builders": builders}]) == [{"id": "b1", "builders": ["Ida Holt", "Rex Amin", 0]}]


def test_objects_too_deep_or_without_a_name_stay_to_be_reported() -> None:
    deep: dict[str, Any] = {"value": 1}
    for _ in range(2_000):
        deep = {"value": deep}
    fields = dict(fields_of({"id": "b1", "spans": [{"length": 3}], "deep": deep}))
    assert fields["spans"] == [{"length": 3}]
    assert any(isinstance(value, dict) for value in fields.values())


def test_objects_in_json_lines_are_columns_too(tmp_path: Path) -> None:
    lines = [{"id": "b1", "name": "Olm Bridge", "height": {"value": 12, "unit": "m"}}, {"id": "b2", "name": "Tor {"}]
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    reading = TableReading(Source(tmp_path / "b.jsonl", "any", format=WIDE), ReadOptions())
    facts = [row for batch in reading.batches() if batch.kind == "facts" for row in batch.table.to_pylist()]
    assert [(row["relation"], row["object"].partition("^^")[0]) for row in facts] == [
        ("height", '"12"'), ("height unit", '"m"'),
    ]  # fmt: skip
    assert not reading.skips.kinds


def test_json_lines_stay_as_they_are() -> None:
    text = b'{"id": "b1", "parts": [{"id": 1}]}\nbroken\n{"id": "b2"}\n'
    assert [block.text for block in as_json_lines([Block(text, 1)], Path("d.jsonl"))] == [text]


def test_json_lines_are_not_held_in_memory() -> None:
    def blocks() -> Iterator[Block]:
        yield Block(b'{"id": "b1"}\n{"id": "b2"}\n', 1)
        raise AssertionError("read ahead")

    assert next(as_json_lines(blocks(), Path("d.jsonl"))).first_line == 1


def test_one_object_with_an_id_is_one_row_whatever_lists_it_holds() -> None:
    assert records({"id": "b1", "parts": [{"id": 1}, {"id": 2}]}, indent=1) == [{"id": "b1", "parts": [1, 2]}]


@pytest.mark.parametrize(
    ("text", "problem"), [("[{", "JSON that cannot be read"), ('{"a": 1,\n"b": [2]}', "without a list of objects")]
)
def test_a_document_without_rows_is_refused(text: str, problem: str) -> None:
    with pytest.raises(WrongFormat, match=problem):
        list(as_json_lines([Block(text.encode(), 1)], Path("d.json")))


def test_a_document_is_a_table_of_what_its_objects_hold(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(json.dumps({"data": BRIDGES}))
    (tmp_path / "f.json").write_text(json.dumps([{"subject": "a", "relation": "r", "object": "b"}], indent=2))
    detected = [detect(tmp_path / name).source for name in ("e.json", "f.json")]
    assert [(source.kind, source.format) for source in detected] == [("any", WIDE), ("facts", "jsonl")]
