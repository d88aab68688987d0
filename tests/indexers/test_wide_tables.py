"""Tables of an entity a row: every kind of file gives the same rows, lists are taken apart, gaps are counted."""

import json
import lzma
import re
import sqlite3
from contextlib import chdir
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import kbtools
from kbtools.errors import TooManyBadLines, WrongFormat
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.readers.reading import ReadOptions, Source, Wide
from kbtools.indexers.readers.table_files import TableReading

CELLS = {
    "id": ["P1", "P2"],
    "label": ["Titin", "Actin"],
    "synonyms": ["connectin|TTN", ""],
    "kind": ["protein", "protein"],
    "gene": ["G1|G2", "G3"],
    "length": ["34350", ""],
}
OPTIONS = ReadOptions(
    list_separator="|", wide=Wide(name=("label",), alias=("synonyms",), type=("kind",), query="SELECT * FROM proteins")
)
ROWS = {
    "names": {("P1", 0, "Titin", ""), ("P2", 0, "Actin", ""), ("P1", ALIAS, "connectin", ""), ("P1", ALIAS, "TTN", "")},
    "types": {("P1", "protein"), ("P2", "protein")},
    "facts": {("P1", "gene", "G1"), ("P1", "gene", "G2"), ("P2", "gene", "G3"), ("P1", "length", "34350")},
}


def write(path: Path, cells: dict[str, list[Any]]) -> Path:
    table = pa.table(cells)
    rows = list(zip(*cells.values(), strict=True))
    match path.suffix:
        case ".parquet":
            pyarrow.parquet.write_table(table, path)
        case ".feather":
            pyarrow.feather.write_feather(table, path)
        case ".csv":
            path.write_text("".join(",".join(map(str, row)) + "\n" for row in [tuple(cells), *rows]))
        case ".tsv":
            path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [tuple(cells), *rows]))
        case ".jsonl":
            path.write_text("".join(json.dumps(dict(zip(cells, row, strict=True))) + "\n" for row in rows))
        case ".sqlite":
            with sqlite3.connect(path) as connection:
                connection.execute(f"CREATE TABLE proteins ({', '.join(cells)})")
                connection.executemany(f"INSERT INTO proteins VALUES ({', '.join('?' * len(cells))})", rows)
            connection.close()
        case ".duckdb":
            with duckdb.connect(str(path)) as database:
                database.register("incoming", table)
                database.execute("CREATE TABLE proteins AS SELECT * FROM incoming")
    return path


def read(path: Path, options: ReadOptions) -> tuple[dict[str, set[tuple[Any, ...]]], TableReading]:
    reading = TableReading(Source(path, "any", format="wide"), options)
    rows: dict[str, set[tuple[Any, ...]]] = {}
    for batch in reading.batches():
        rows.setdefault(batch.kind, set()).update(tuple(map(plain, row.values())) for row in batch.table.to_pylist())
    return rows, reading


def plain(value: Any) -> Any:
    """Write a cell without the mark that a build settles."""
    return re.sub(r'^"(.*)"\^\^<cell:[a-z]+>$', r"\1", value) if isinstance(value, str) else value


def notes(reading: TableReading) -> list[str]:
    """List the notes but for that of the columns."""
    return [note for note in reading.skips.notes if ": columns: " not in note]


def options_for(path: Path, **changed: Any) -> ReadOptions:
    query = OPTIONS.wide.query if path.suffix in (".sqlite", ".duckdb") else ""
    wide = Wide(name=("label",), alias=("synonyms",), type=("kind",), query=query)
    return ReadOptions(**{"list_separator": "|", "wide": wide, **changed})


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".tsv", ".jsonl", ".sqlite", ".duckdb"])
def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"proteins{suffix}", CELLS)
    rows, reading = read(path, options_for(path))
    assert rows == ROWS
    assert (reading.skips.lines, reading.skips.kinds) == (2 + (suffix in (".csv", ".tsv")), {})


def test_nested_lists_and_numbers_need_no_separator(tmp_path: Path) -> None:
    nested: dict[str, list[Any]] = {
        "id": ["P1", "P2"], "label": ["Titin", "Actin"], "synonyms": [["connectin", "TTN"], []],
        "kind": ["protein", "protein"], "gene": [["G1", "G2"], ["G3"]], "length": [34350, None],
    }  # fmt: skip
    for suffix in (".parquet", ".jsonl"):
        path = write(tmp_path / f"p{suffix}", nested)
        assert read(path, options_for(path, list_separator=None))[0] == ROWS


def test_a_csv_cell_may_go_on_for_several_lines(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text('id,label\nP1,"two\nlines, ""quoted"""\n')
    rows, _ = read(tmp_path / "p.csv", ReadOptions())
    assert rows == {"names": {("P1", 0, 'two\nlines, "quoted"', "")}}


def test_a_row_without_a_subject_is_counted_and_too_many_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", {"id": ["P1", None, " "], "label": ["a", "b", "c"]})
    rows, reading = read(path, ReadOptions(max_bad=1.0))
    assert rows == {"names": {("P1", 0, "a", "")}}
    assert (
        reading.skips.kinds["no value under id"].count,
        f"{path}:2: " in reading.skips.kinds["no value under id"].example,
    ) == (2, True)
    with pytest.raises(TooManyBadLines):
        read(path, ReadOptions())


@pytest.mark.parametrize(
    ("name", "cells", "query", "message"),
    [
        ("p.parquet", CELLS, "SELECT 1", "--query is for .sqlite and .duckdb"),
        ("p.sqlite", CELLS, "", "give --query .*, such as .*; its tables are "),
        ("p.sqlite", CELLS, "VACUUM INTO 'x.sqlite'", "authori[sz]"),
        ("p.duckdb", CELLS, "COPY proteins TO 'x.csv'", '--query takes one SELECT, found "COPY proteins'),
        ("p.duckdb", CELLS, "SELECT 1; SELECT 2", "--query takes one SELECT"),
        ("p.sqlite", CELLS, "SELECT * FROM nowhere", "no such table: nowhere"),
        ("p.duckdb", CELLS, "SELECT * FROM nowhere", "nowhere"),
        ("p.xlsx", CELLS, "", "found text, which is not a spreadsheet; name it .csv"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(
    tmp_path: Path, name: str, cells: dict[str, list[Any]], query: str, message: str
) -> None:
    path = write(tmp_path / name, cells)
    path.touch()
    path.write_bytes(path.read_bytes() or b"x")
    with chdir(tmp_path), pytest.raises(WrongFormat, match=message):
        read(path, ReadOptions(wide=Wide(query=query)))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_text("no parquet")
    with pytest.raises(WrongFormat, match=r"which is not \.parquet data"):
        read(tmp_path / "p.parquet", ReadOptions())


def test_a_table_becomes_a_knowledge_base(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", CELLS)
    source = Source(path, "any", format="wide")
    build([source], tmp_path / "p.kb", options=options_for(path), watch=BuildProgress())
    kb = EmbeddedKB(tmp_path / "p.kb")
    assert list(kb.relations) == ["gene", "length"]
    assert kb.lookup(["titin"])


def test_a_column_that_an_option_names_and_no_table_has_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "proteins.csv", {"id": ["P1"], "label": ["Titin"]})
    _, reading = read(path, ReadOptions(wide=Wide(name=("label", "title"))))
    assert notes(reading) == [f"{path}:1: no column 'title', which --name names"]


def test_spaces_divide_no_name_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path / "places.csv", {"id": ["P1"], "label": ["New York"], "near": ["P2 P3"]})
    rows, _ = read(path, ReadOptions(list_separator=" "))
    assert rows["names"] == {("P1", 0, "New York", "")}
    assert rows["facts"] == {("P1", "near", "P2"), ("P1", "near", "P3")}


SPOKEN = {
    "id": ["Q365", "Q64"],
    "label@en": ["Cologne", "Berlin"],
    "label@de": ["Köln", "Berlin"],
    "label@fr": ["Cologne", ""],
    "auch": ["Kölle|Cöln", ""],
    "description@de": ["Stadt am Rhein", ""],
    "country": ["Q183", "Q183"],
}
LONG = {
    "id": ["Q365", "Q365", "Q64"],
    "label": ["Cologne", "Köln", "Berlin"],
    "alias": ["", "Kölle", ""],
    "lang": ["en", "de", ""],
    "country": ["Q183", "Q183", "Q183"],
}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_say_their_language_behind_an_at(tmp_path: Path, suffix: str) -> None:
    wide = Wide(name=("label",), alias=("auch@de",))
    options = ReadOptions(language="en,de", list_separator="|", wide=wide)

    rows, reading = read(write(tmp_path / f"cities{suffix}", SPOKEN), options)

    assert rows == {
        "names": {
            ("Q365", 0, "Cologne", "en"), ("Q64", 0, "Berlin", "en"), ("Q365", 1, "Köln", "de"),
            ("Q64", 1, "Berlin", "de"), ("Q365", ALIAS, "Kölle", "de"), ("Q365", ALIAS, "Cöln", "de"),
        },
        "descriptions": {("Q365", 1, "Stadt am Rhein", "de")},
        "facts": {("Q365", "country", "Q183"), ("Q64", "country", "Q183")},
    }  # fmt: skip
    assert [(skip.kind, skip.count) for skip in reading.skips.kinds.values()] == [
        ("name in a language other than 'en,de'", 1)
    ]
    assert not notes(reading)


def test_an_option_names_one_column_with_its_language(tmp_path: Path) -> None:
    options = ReadOptions(language="de,", wide=Wide(name=("label@de", "label_en@en", "absent@fr"), description=()))
    cells = {"id": ["Q365"], "label@de": ["Köln"], "label_en": ["Cologne"], "label@fr": ["Colonne"]}

    rows, reading = read(write(tmp_path / "cities.parquet", cells), options)

    assert rows["names"] == {("Q365", 0, "Köln", "de"), ("Q365", 1, "Cologne", "en")}
    assert rows["facts"] == {("Q365", "label@fr", "Colonne")}
    assert [note.partition(": ")[2] for note in notes(reading)] == ["no column 'absent@fr', which --name names"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_column_says_the_language_of_each_row(tmp_path: Path, suffix: str) -> None:
    options = ReadOptions(language="en,de", columns={"language": "lang"})

    rows, _ = read(write(tmp_path / f"cities{suffix}", LONG), options)

    assert rows == {
        "names": {
            ("Q365", 0, "Cologne", "en"), ("Q365", 1, "Köln", "de"), ("Q64", 0, "Berlin", ""),
            ("Q365", ALIAS, "Kölle", "de"),
        },
        "facts": {("Q365", "country", "Q183"), ("Q64", "country", "Q183")},
    }  # fmt: skip


def test_a_column_of_one_language_keeps_it_beside_the_language_of_the_row(tmp_path: Path) -> None:
    options = ReadOptions(language="en,de", columns={"language": "lang"})
    cells = {"id": ["Q365"], "label": ["Cologne"], "label@de": ["Köln"], "lang": ["en"]}

    rows, _ = read(write(tmp_path / "cities.csv", cells), options)

    assert rows["names"] == {("Q365", 0, "Cologne", "en"), ("Q365", 1, "Köln", "de")}


def test_names_of_a_table_keep_the_languages_of_its_columns(tmp_path: Path) -> None:
    source = Source(write(tmp_path / "cities.csv", SPOKEN), "any", format="wide")
    options = ReadOptions(language="en,de", wide=Wide(alias=("auch",)), list_separator="|")
    build([source], tmp_path / "cities.kb", options=options, watch=BuildProgress())

    with kbtools.open(tmp_path / "cities.kb") as kb:
        assert kb.entity("Q365", lang="de").name == "Köln"
        assert kb.entity("Q365").languages == {"Cologne": ("en",), "Köln": ("de",), "Kölle": (), "Cöln": ()}
        assert kb.entity("Q64").languages == {"Berlin": ("de", "en")}


def test_values_of_json_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(
        '{"id": "P1", "label": "Titin", "found": "1954-01-01", "gene": "G1", "known": true}\n'
        '{"id": "P2", "label": ["Actin", ["beta"]], "found": 1942, "gene": ["G2", ["G3"]], "length": null}\n'
        '{"id": "2020-01-01", "label": "A date", "mass": 1.50}\n'
    )
    rows, reading = read(tmp_path / "p.jsonl", ReadOptions())
    assert rows["names"] == {
        ("P1", 0, "Titin", ""), ("P2", 0, "Actin", ""), ("P2", 0, "beta", ""), ("2020-01-01", 0, "A date", "")
    }  # fmt: skip
    assert rows["facts"] == {
        ("P1", "found", "1954-01-01"), ("P2", "found", "1942"), ("P1", "gene", "G1"), ("P2", "gene", "G2"),
        ("P2", "gene", "G3"), ("P1", "known", "true"), ("2020-01-01", "mass", "1.50"),
    }  # fmt: skip
    assert (reading.skips.lines, reading.skips.kinds) == (3, {})


@pytest.mark.parametrize(
    ("name", "lines", "kinds"),
    [
        (
            "p.jsonl",
            ['{"id": "P1", "label": "Titin"}', "{broken", "[1]", '{"label": "x"}', '{"id": "P2", "m": NaN}', "\0", ""],
            {"invalid JSON": 2, "not a JSON object": 1, "no value under id": 1, "NUL byte": 1, "blank line": 1},
        ),
        (
            "p.csv",
            ["id,label", "P1,Titin", "P3,a,b", ",x", 'P4,"open', ""],
            {"3 columns where 2 were expected": 1, "no value under id": 1} | {"invalid CSV row": 1, "blank line": 1},
        ),
        (
            "p.tsv",
            ["id\tlabel", "P1\tTitin", "P2", "P3\ta\tb", "\0\tx"],
            {"3 columns where 2 were expected": 1, "NUL byte": 1},
        ),
    ],
)
def test_a_line_that_cannot_be_read_costs_no_other(
    tmp_path: Path, name: str, lines: list[str], kinds: dict[str, int]
) -> None:
    (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    rows, reading = read(tmp_path / name, ReadOptions(max_bad=1.0))
    assert rows["names"] == {("P1", 0, "Titin", "")}
    assert {kind: skip.count for kind, skip in reading.skips.kinds.items()} == kinds
    assert reading.skips.lines == len(lines)
    with pytest.raises(TooManyBadLines):
        read(tmp_path / name, ReadOptions())


def test_objects_in_cells_are_left_out_and_named(tmp_path: Path) -> None:
    cells: dict[str, list[Any]] = {
        "id": ["P1"], "label": ["Titin"], "parts": [{"a": 1}], "many": [[{"a": 1}]], "deep": [[["x"], ["y"]]]
    }  # fmt: skip
    facts = {("P1", "deep", "x"), ("P1", "deep", "y")}
    expected = {"names": {("P1", 0, "Titin", "")}, "facts": facts}
    columnar, reading = read(write(tmp_path / "p.parquet", cells), ReadOptions())
    assert (columnar, notes(reading)) == (
        expected,
        [f"{tmp_path / 'p.parquet'}:1: columns of objects, left out: 'many', 'parts'"],
    )
    lines, reading = read(write(tmp_path / "p.jsonl", cells), ReadOptions())
    assert lines == {**expected, "facts": facts | {("P1", "parts a", "1")}}
    assert set(reading.skips.kinds) == {"neither text nor number under many, left out"}


def test_what_is_no_number_is_no_value(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.parquet", {"id": ["P1", "P2"], "mass": [float("nan"), 1.5], "more": [[float("inf")], []]}
    )
    assert read(path, ReadOptions())[0] == {"facts": {("P2", "mass", "1.5")}}


def test_wide_tables_are_unpacked_and_divided_as_others_are(tmp_path: Path) -> None:
    (tmp_path / "p.csv.xz").write_bytes(lzma.compress("\ufeffid;label\r\nP1;Titin, large\r\n".encode()))
    rows, reading = read(tmp_path / "p.csv.xz", ReadOptions())
    assert rows == {"names": {("P1", 0, "Titin, large", "")}}
    assert notes(reading) == [f"{tmp_path / 'p.csv.xz'}:1: columns separated by semicolons"]


def test_a_column_of_ids_that_holds_lists_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", {"id": [["P1"]], "label": ["Titin"]})
    with pytest.raises(WrongFormat, match="the column 'id' holds lists, expected an id") as raised:
        read(path, ReadOptions())
    assert raised.value.facts["path"] == str(path)
