"""Building from Python: paths, rows and data frames give what files with the same content give."""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.errors import BadArgument, TooManyBadLines, WrongFormat
from kbtools.indexers.building import given_rows

FACTS = [("Q1", "capital", "Q2"), ("Q1", "language", "Q3")]
NAMES = [("Q1", "Freedonia"), ("Q2", "Freetown"), ("Q3", "Free\tSpeech 自由")]
TYPES = [("Q1", "country")]

Index = Callable[..., Answerer]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return lambda **given: kbtools.index(out=tmp_path / "x.kb", **given)


def test_rows_become_a_knowledge_base_that_answers(index: Index) -> None:
    kb = index(facts=FACTS, names=NAMES, types=TYPES, aliases=[("Q1", "Land of the Free")])

    assert kb.query("what is the capital of freedonia").answers[0].name == "Freetown"
    assert kb.entity("Q1").aliases == ("Land of the Free",)
    assert kb.lookup("Freedonia", type="country").matches[0].id == "Q1"
    assert kb.entity("Q3").name == "Free\tSpeech 自由"


def test_rows_of_a_generator_are_taken_once_as_they_come(index: Index) -> None:
    def facts() -> Iterator[tuple[str, str, str]]:
        yield from FACTS

    assert index(facts=facts(), names=iter(NAMES)).kb.manifest.counts["facts"].unique == 2


def test_paths_are_read_as_the_command_reads_them(index: Index, examples: Path, sample_path: Path) -> None:
    given = {kind: examples / f"sample.{kind}.txt" for kind in ("facts", "names", "types")}
    kb = index(facts=str(given["facts"]), names=[given["names"]], types=given["types"])

    assert kb.kb.manifest.digest == kbtools.open(sample_path).kb.manifest.digest


def test_an_arrow_table_and_dictionaries_are_read_by_their_heads(index: Index) -> None:
    facts = pa.table({"o": ["Q2"], "head": ["Q1"], "predicate": ["capital"]})
    kb = index(facts=facts, names=[{"id": "Q1", "label": "Freedonia", "alias": ["Sylvania", "F"]}])

    assert kb.facts("Q1").facts[0].object.id == "Q2"
    assert kb.entity("Q1").aliases == ("F", "Sylvania")


def test_a_data_frame_is_read_by_its_heads_and_may_lack_values(index: Index) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    facts = pandas.DataFrame({"subject": ["Q1", "Q2"], "relation": ["capital", "size"], "object": ["Q2", "7"]})
    names = pandas.DataFrame({"id": ["Q1", "Q2"], "name": ["Freedonia", "Freetown"], "alias": ["Sylvania", None]})

    kb = index(facts=facts, names=names)

    assert kb.facts("Q2").facts[0].object.id == "7"
    assert (kb.entity("Q1").aliases, kb.entity("Q2").aliases) == (("Sylvania",), ())


@pytest.mark.parametrize("kind", ["arrow", "reader", "duckdb", "polars"])
def test_whatever_streams_arrow_is_a_frame(index: Index, kind: str) -> None:
    table = pa.table({"subject": ["Q1", "Q2"], "relation": ["capital", "size"], "object": ["Q2", "7"]})
    match kind:
        case "reader":
            frame: Any = table.to_reader()
        case "duckdb":
            frame = duckdb.connect().from_arrow(table)
        case "polars":
            frame = pytest.importorskip("polars", reason="pip install polars").from_arrow(table)
        case _:
            frame = table

    kb = index(facts=frame, names=NAMES)

    assert kb.facts("Q2").facts[0].object.id == "7"


def test_categories_that_are_views_of_texts_are_read(index: Index) -> None:
    relation = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.uint32()), pa.array(["capital"], pa.string_view()))
    frame = pa.table({"subject": ["Q1", "Q1"], "relation": relation, "object": ["Q2", "Q3"]})

    assert index(facts=frame, names=NAMES).facts("Q1").total == 2


def test_a_decimal_keeps_its_digits(index: Index) -> None:
    kb = index(facts=[("Q1", "size", Decimal("12.50")), ("Q1", "debt", Decimal("1E+3"))], names=NAMES)

    assert {fact.object.name or fact.object.id for fact in kb.facts("Q1").facts} == {"12.50", "1000"}


def test_a_value_that_is_no_number_is_no_value(index: Index) -> None:
    missing: list[Any] = [float("nan"), np.float64("nan"), Decimal("NaN"), None]
    names = [{"id": f"Q{at}", "name": "Freedonia", "alias": value} for at, value in enumerate(missing)]
    kb = index(facts=[("Q0", "size", 1.5), *FACTS], names=names)

    assert [kb.entity(f"Q{at}").aliases for at in range(len(missing))] == [()] * len(missing)


def test_a_day_has_no_hour_whatever_type_tells_it(index: Index) -> None:
    days = [date(2001, 2, 3), datetime(2001, 2, 4), np.datetime64("2001-02-05"), datetime(2001, 2, 6, 7, 8)]
    kb = index(facts=[("Q1", "open", day) for day in days], names=NAMES)

    assert {fact.object.name or fact.object.id for fact in kb.facts("Q1").facts} == {
        "2001-02-03", "2001-02-04", "2001-02-05", "2001-02-06T07:08:00",
    }  # fmt: skip


def test_a_count_without_a_name_is_of_all_names_of_its_entity(index: Index) -> None:
    names = [("Q1", "Freedonia"), ("Q2", "Freedonia"), ("Q2", "Land")]
    kb = index(facts=FACTS, names=names, counts=[("Q2", 9), ("Freedonia", "Q1", 1)])
    rows = np.array(kb.kb.rows(["Q1", "Q2"]), dtype=np.uint32)

    assert [kb.kb.name_counts(form, rows).tolist() for form in ("freedonia", "")] == [[1, 0], [0, 9]]


def test_columns_name_those_of_a_frame(index: Index) -> None:
    facts = pa.table({"a": ["Q1"], "b": ["capital"], "c": ["Q2"]})
    kb = index(facts=facts, names=NAMES, columns={"subject": "a", "relation": "b", "object": "c"})

    assert kb.facts("Q1").total == 1


def test_a_query_chooses_the_rows_of_a_database(index: Index, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "kites.duckdb")) as database:
        database.execute("CREATE TABLE kite AS SELECT 'k1' AS id, 'Delta' AS name, 1999 AS year")
        database.execute("CREATE TABLE maker AS SELECT 'm1' AS id, 'Venn' AS name")

    kb = index(table=tmp_path / "kites.duckdb", query="SELECT id, name FROM kite")

    assert (kb.entity("k1").name, kb.kb.manifest.counts["facts"].unique) == ("Delta", 0)


def pandas_frame(table: pa.Table, kind: str) -> Any:
    if kind == "frame":
        pytest.importorskip("pandas", reason="pip install pandas")
    return table.to_pandas() if kind == "frame" else None


@pytest.mark.parametrize("kind", ["rows", "frame", "arrow"])
def test_rows_beyond_one_batch_are_taken_once(index: Index, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_rows, "ROWS", 2)
    facts = [(f"Q{number}", "next", f"Q{number + 1}") for number in range(5)]
    table = pa.table(dict(zip(("subject", "relation", "object"), zip(*facts, strict=True), strict=True)))
    kb = index(facts={"rows": facts, "frame": pandas_frame(table, kind), "arrow": table}[kind], names=NAMES).kb

    assert (kb.manifest.counts["facts"].raw, kb.manifest.counts["facts"].unique) == (5, 5)
    assert [kb.fact_counts(kb.entity_rows()).tolist().count(count) for count in (1, 0)] == [5, 1]


def test_a_bad_row_of_a_later_batch_is_named_by_its_number(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_rows, "ROWS", 2)
    with pytest.raises(BadArgument, match=r"facts: row 4 is \('Q1', 'r'\)"):
        index(facts=[*FACTS, FACTS[0], ("Q1", "r")], names=NAMES)
    with pytest.raises(BadArgument, match=r"facts: row 4 is .* under object"):
        index(facts=[*FACTS, FACTS[0], ("Q1", "r", {"a": 1})], names=NAMES)


def test_counts_redirects_and_names_of_relations_are_taken(index: Index) -> None:
    kb = index(
        facts=FACTS,
        names=[*NAMES, ("Q2", "Freedonia")],
        counts=[("Freedonia", "Q2", 9), ("Q1", 2), ("Freedonia", "Q1", 1)],
        redirects=[("Q9", "Q1")],
        relations=[("capital", "seat of government")],
    )

    assert kb.lookup("Freedonia").matches[0].id == "Q2"
    assert kb.entity("Q9").id == "Q1"
    assert kb.facts("Q1").facts[0].relation.name == "seat of government"


def test_a_second_build_of_the_same_rows_does_nothing(index: Index, tmp_path: Path) -> None:
    index(facts=FACTS, names=NAMES)
    before = (tmp_path / "x.kb").stat().st_ino
    index(facts=FACTS, names=NAMES)
    assert (tmp_path / "x.kb").stat().st_ino == before

    index(facts=FACTS, names=NAMES, force=True)
    assert (tmp_path / "x.kb").stat().st_ino != before


def test_sources_are_called_what_they_are(index: Index) -> None:
    kb = index(facts=FACTS, names=NAMES)

    assert [source.path for source in kb.kb.manifest.sources] == ["facts given in Python", "names given in Python"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"facts": [("Q1", "r")]}, "facts: row 1 is"),
        ({"facts": [*FACTS, "Q1 r Q2"]}, "facts: row 3 is 'Q1 r Q2', expected subject, relation, object"),
        ({"facts": [(object(), "r", "Q2")]}, "facts: row 1 is"),
        ({"facts": 7}, "facts: expected paths, a data frame or rows, found 7"),
        ({"facts": None}, "facts: expected paths"),
        ({"rdf": [("a", "b", "c")]}, "rdf: expected paths"),
        ({"types": TYPES}, "give at least one of facts, names, table and rdf"),
        ({}, "give at least one of facts, names, table and rdf"),
    ],
)
def test_what_is_no_source_is_refused_in_one_sentence(index: Index, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadArgument) as caught:
        index(**given)
    assert problem in str(caught.value)


def test_a_bad_row_is_named_by_its_number(index: Index) -> None:
    with pytest.raises(TooManyBadLines, match="facts given in Python:2"):
        index(facts=[FACTS[0], ("Q1", "", "Q2")], names=NAMES)


def test_errors_speak_of_arguments_and_not_of_options(index: Index, tmp_path: Path) -> None:
    with pytest.raises(TooManyBadLines, match=r"more than max_bad 0\.001 allows; .*; fix the file, or "):
        index(facts=[("Q1", "", "Q2")], names=NAMES)
    table = tmp_path / "facts.csv"
    table.write_text("from,how,to\nQ1,r,Q2\n")
    with pytest.raises(WrongFormat, match=r"name it with columns={'subject': 'HEADER'}$") as caught:
        index(facts=table, names=NAMES)
    assert caught.value.facts["missing"] == ["subject", "relation", "object"]
