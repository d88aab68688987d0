"""Tables of results: a row for each candidate, and none lost for which nothing was found."""

from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.frames import load
from kbtools.errors import BadArgument, MissingDependency


def test_results_become_an_arrow_table_with_a_row_a_candidate(sample_memory: Answerer) -> None:
    results = list(sample_memory.query_many(["who wrote it", "zebra crossing"], top=2))
    table = kbtools.to_arrow(iter(results))
    assert table.column("question").to_pylist() == ["who wrote it", "who wrote it", "zebra crossing"]
    assert table.column("place").to_pylist() == [1, 2, None]
    assert table.column("answers").to_pylist() == [["m.0jt90f5"], [], []]
    assert table.column("answer_names").to_pylist() == [["Stephen King"], [], []]
    assert table.column("inverse").to_pylist() == [False, False, None]


def test_look_ups_links_facts_and_entities_become_tables(sample_memory: Answerer) -> None:
    lookup = kbtools.to_arrow(sample_memory.lookup_many(["Paris", "zqxjkv"]))
    assert lookup.column("text").to_pylist() == ["Paris"] * 3 + ["zqxjkv"]
    assert lookup.column("score").to_pylist()[-1] is None
    link = kbtools.to_arrow(sample_memory.link("J. K. Rowling lives in Edinburgh"))
    assert link.column("id").to_pylist() == ["m.042xh", "m.02m77"]
    facts = kbtools.to_arrow(sample_memory.facts("m.078ffw"))
    assert facts.column("object_name").to_pylist() == ["J. K. Rowling", "Human"]
    entity = kbtools.to_arrow([sample_memory.entity("m.078ffw")])
    assert entity.column("aliases").to_pylist() == [["The Boy Who Lived"]]


def test_a_data_frame_has_whole_numbers_where_a_value_lacks(sample_memory: Answerer) -> None:
    pytest.importorskip("pandas", reason="pip install pandas")
    frame = kbtools.to_frame(sample_memory.lookup_many(["Paris", "zqxjkv"], limit=1))
    assert list(frame["id"]) == ["m.05qtj", None]
    assert str(frame["place"].dtype) == "Int64"
    assert frame["score"].dtype == "float64"


def test_columns_have_the_kinds_of_their_values(sample_memory: Answerer) -> None:
    kinds = {"inverse": "bool", **dict.fromkeys(("place", "start", "end", "facts_out", "facts_in"), "int64")}
    kinds |= dict.fromkeys(("score", "similarity", "prior"), "double")
    kinds |= dict.fromkeys(("answers", "answer_names", "types", "type_names", "aliases"), "list<item: string>")
    records: list[Any] = [
        sample_memory.query("who wrote it"),
        sample_memory.lookup("Paris"),
        sample_memory.link("Paris"),
        sample_memory.facts("m.078ffw"),
        sample_memory.entity("m.078ffw"),
    ]

    for record in records:
        schema = {field.name: str(field.type).replace("element", "item") for field in kbtools.to_arrow(record).schema}
        assert schema == {name: kinds.get(name, "string") for name in schema}


def test_no_results_are_an_empty_table() -> None:
    assert kbtools.to_arrow([]).num_rows == 0


@pytest.mark.parametrize("results", [["text"], [7], "text", None, 7])
def test_what_has_no_table_is_refused(results: Any) -> None:
    with pytest.raises(BadArgument, match="a table takes results of one kind"):
        kbtools.to_arrow(results)


def test_results_of_several_kinds_are_refused(sample_memory: Answerer) -> None:
    with pytest.raises(BadArgument, match="found Entity, LookupResult"):
        kbtools.to_arrow([sample_memory.lookup("Paris"), sample_memory.entity("m.078ffw")])


def test_a_library_that_is_not_there_is_named_with_its_cure() -> None:
    with pytest.raises(MissingDependency, match="tables need nolibrary; install it with pip install nolibrary"):
        load("nolibrary")


def test_values_stand_in_tables_as_their_text(tmp_path: Path) -> None:
    kb = kbtools.index(table=[{"id": "a", "name": "Ann", "staff": "1087353"}], out=tmp_path / "kb")

    facts = kbtools.to_arrow(kb.facts("a")).to_pylist()

    assert [(fact["object"], fact["object_name"]) for fact in facts] == [("1087353", "1087353")]
    assert kbtools.to_arrow(kb.query("staff of ann")).to_pylist()[0]["answers"] == ["1087353"]
