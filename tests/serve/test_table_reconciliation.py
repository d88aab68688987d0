"""Tables are reconciled row by row as the server reconciles a query; ties are never matches."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.errors import BadArgument, UnknownType
from kbtools.indexers.readers.plain_tables import read_plain_table
from kbtools.indexers.readers.reading import ReadOptions, Wide
from kbtools.serve.live_kb import Edition
from kbtools.serve.matching import reconcile
from kbtools.serve.reconciliation_queries import PropertyValue, ReconciliationQuery
from kbtools.serve.table_reconciliation import TableQuery, reconcile_table

OPTIONS = ReadOptions(wide=Wide(name=("title",)))


@pytest.fixture(scope="module")
def answerer(kites: Callable[..., Path]) -> Iterator[Answerer]:
    folder = kites(
        facts=(
            ("m.3", "book.author", "m.8"),
            ("m.3", "book.year", '"1990"'),
            ("m.1", "book.year", '"1980"'),
            ("m.5", "book.author", "m.8"),
            ("m.6", "book.author", "m.8"),
        ),
        names=(("m.3", "High Sands"), ("m.4", "Lantern"), ("m.5", "Twin"), ("m.6", "Twin")),
        types=(("m.3", "book.book"), ("m.4", "toy"), ("m.2", "book.book")),
        language="en",
    )
    with open_kb(folder) as kb:
        yield kb


def rows_of(answerer: Answerer, folder: Path, table: str, out: str = "out.csv", **query: Any) -> list[dict[str, str]]:
    (folder / "in.csv").write_text(table)
    reconcile_table(answerer, read_plain_table(folder / "in.csv", OPTIONS), TableQuery("title", **query), folder / out)
    return [*csv.DictReader((folder / out).read_text().splitlines())]


@pytest.mark.parametrize(
    ("table", "query", "judged"),
    [
        ("title\nHigh Sands\n", {}, [("m.3", "true")]),
        ("title\nHigh Sandz\n", {}, [("m.3", "false")]),
        ("title\nKite\n", {}, [("m.1", "false")]),
        ("title\nKite\n", {"threshold": 0.0}, [("m.1", "true")]),
        ("title\nTwin\n", {"threshold": 0.0}, [("m.5", "false")]),
        ("title\nNobody Known\n", {"threshold": 0.0}, [("", "false")]),
        ("title,x\n,1\n", {"threshold": 0.0}, [("", "false")]),
        ("title\nLantern\n", {"types": ("book.book",)}, [("m.4", "false")]),
        ("title\nKite\n", {"types": ("book.series",)}, [("m.2", "true")]),
        ("title,by\nKite,Ada Venn\nKite,Orla Quinn\n", {"properties": {"by": "book.author"}},
         [("m.1", "true"), ("m.1", "false")]),
        ("title,by,y\nKite,Orla Quinn | Ada Venn,1980\n", {"properties": {"by": "book.author", "y": "book.year"}},
         [("m.1", "true")]),
        ("title,by,y\nKite,Ada Venn,1990\n", {"properties": {"by": "book.author", "y": "book.year"}},
         [("m.1", "false")]),
        ("title,by\nKite, ; Ada Venn;\n", {"properties": {"by": "book.author"}}, [("m.1", "true")]),
    ],
)  # fmt: skip
def test_a_row_is_judged_by_its_cells(
    answerer: Answerer, tmp_path: Path, table: str, query: dict[str, Any], judged: list[tuple[str, str]]
) -> None:
    rows = rows_of(answerer, tmp_path, table, **query)

    assert [(row["id"], row["match"]) for row in rows] == judged


def test_the_threshold_itself_is_enough(answerer: Answerer, tmp_path: Path) -> None:
    (row,) = rows_of(answerer, tmp_path, "title\nHigh Sandz\n")
    score = float(row["score"])

    matches = [
        rows_of(answerer, tmp_path, "title\nHigh Sandz\n", threshold=threshold)[0]["match"]
        for threshold in (score, score + 0.001)
    ]

    assert matches == ["true", "false"]


def test_a_row_has_the_first_candidate_of_the_server(answerer: Answerer, tmp_path: Path) -> None:
    properties = [PropertyValue(relation="book.author", raw=["Orla Quinn", "Nobody"])]
    query = ReconciliationQuery(text="Kite", types=["book.series"], properties=properties)

    (row,) = rows_of(
        answerer, tmp_path, "title,by\nKite,Orla Quinn;Nobody\n", types=("book.series",), properties={"by": "author"}
    )

    first = reconcile(Edition(answerer), query)[0]
    assert (row["id"], row["name"], float(row["score"])) == (first["id"], first["name"], first["score"])


def test_matches_are_extended_and_a_repeated_name_is_judged_once(
    answerer: Answerer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def noted(edition: Edition, query: ReconciliationQuery) -> list[dict[str, Any]]:
        judged.append(query.text)
        return reconcile(edition, query)

    monkeypatch.setattr("kbtools.serve.table_reconciliation.reconcile", noted)
    counted: list[None] = []
    (tmp_path / "in.csv").write_text("id,title\n1,High Sands\n2,Kite\n3,High Sands\n")
    query = TableQuery("title", extend=("book.author", "book.year"))

    summary = reconcile_table(
        answerer, read_plain_table(tmp_path / "in.csv", OPTIONS), query, tmp_path / "out.jsonl",
        count=lambda: counted.append(None),
    )  # fmt: skip

    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["kb_id"], row["match"], row["book.author"], row["book.year"]) for row in rows] == [
        ("1", "m.3", True, "Ada Venn", "1990"),
        ("2", "m.1", False, "", ""),
        ("3", "m.3", True, "Ada Venn", "1990"),
    ]
    assert (judged, len(counted)) == (["High Sands", "Kite"], 3)
    assert str(summary) == "3 rows: 2 matched (67%), 1 with a candidate that is not certain"


@pytest.mark.parametrize(
    ("query", "out", "error"),
    [
        ({"types": ("no.such",)}, "out.csv", UnknownType),
        ({"extend": ("no.such",)}, "out.csv", BadArgument),
        ({"properties": {"title": "no.such"}}, "out.csv", BadArgument),
        ({"properties": {"no": "book.author"}}, "out.csv", BadArgument),
        ({}, "out.xlsx", BadArgument),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_written(
    answerer: Answerer, tmp_path: Path, query: dict[str, Any], out: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        rows_of(answerer, tmp_path, "title\nKite\n", out, **query)

    assert not (tmp_path / out).exists()
