"""kbtools update takes what kbtools index takes: tables of an entity a row, Wikidata, and standard input."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

import kbtools
from kbtools.cli.main import main

CAPITAL = {"type": "item", "id": "Q64", "labels": {"en": {"language": "en", "value": "Berlin"}}, "claims": {}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "kb"
    kbtools.index(table=[{"id": "1", "name": "Acme", "boss_id": "2"}, {"id": "2", "name": "Ann"}], out=folder)
    return folder


@pytest.fixture
def firms(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "kb")


def update(firms: Path, *arguments: str | Path, typed: str | None = None) -> Invocation:
    return CliRunner().invoke(main, ["update", str(firms), *map(str, arguments)], input=typed)


def facts_of(firms: Path, entity_id: str) -> dict[str, tuple[str, str | None]]:
    facts = kbtools.open(firms).facts(entity_id).facts
    return {fact.relation.id: (fact.object.id, fact.object.name) for fact in facts}


def test_changes_come_from_standard_input(firms: Path) -> None:
    done = update(firms, "--add", "-", typed='{"id": "3", "names": ["Cy"]}\n')

    assert done.exit_code == 0, done.stderr
    assert kbtools.open(firms).entity("3").name == "Cy"


def test_a_broken_line_of_standard_input_is_named(firms: Path) -> None:
    assert "standard input:1: 'oh'" in update(firms, "--add", "-", typed="oh\n").stderr


def test_cells_of_a_table_are_entities_or_values_as_in_a_build(firms: Path, tmp_path: Path) -> None:
    table = tmp_path / "more.csv"
    table.write_text("Firm,name,boss_id,staff,since,site\n7,Zed,8,12,1999-05-01,https://z.org\n8,Yot,1,,,\n")

    done = update(firms, "--table", table, "--column", "id=firm")
    datatype = "http://www.w3.org/2001/XMLSchema#"

    assert done.exit_code == 0, done.stderr
    assert facts_of(firms, "8") == {"boss_id": ("1", "Acme")}
    assert facts_of(firms, "7") == {
        "boss_id": ("8", "Yot"),
        "staff": (f'"12"^^<{datatype}decimal>', "12"),
        "since": (f'"1999-05-01"^^<{datatype}date>', "1999-05-01"),
        "site": (f'"https://z.org"^^<{datatype}anyURI>', "https://z.org"),
    }


def test_python_links_the_names_of_a_table_where_it_is_asked_to(firms: Path) -> None:
    rows = [{"id": "7", "name": "Zed", "city": "Rome"}, {"id": "8", "name": "Rome", "city": "Zed"}]

    kbtools.update(firms, table=rows, columns={"link": "city"})

    assert facts_of(firms, "7")["city"] == ("8", "Rome")


CELLS: list[dict[str, Any]] = [
    {"id": "7", "name": "Zed", "boss_id": "8", "staff": "2", "day": "1999-05-01", "at": "1999-05-01T10:30:00",
     "site": "https://z.org", "note": "two\nlines", "city": "rome", "tags": ["old", "1"]},
    {"id": "8", "name": "Yot", "boss_id": "99", "staff": "1.5", "day": "2001-12-31", "at": "2001-12-31T00:00:00",
     "site": "http://y.org/", "note": "1", "city": "Springfield", "tags": ["2"]},
    {"id": "9", "name": "Rome", "boss_id": "1", "staff": "8", "day": "1980-01-01", "at": "1980-01-01T23:59:59",
     "site": "https://r.it", "note": "Zed", "city": "Yot", "tags": []},
    {"id": "10", "name": "Springfield", "city": "YOT"},
    {"id": "11", "name": "Springfield", "city": "Nowhere"},
]  # fmt: skip


@pytest.mark.parametrize("columns", [{}, {"link": "city"}])
def test_a_table_is_added_as_a_build_reads_it(tmp_path: Path, columns: dict[str, str]) -> None:
    first = [{"id": "1", "name": "Acme"}, {"id": "2", "name": "Ann"}]
    kbtools.index(table=first, out=tmp_path / "updated")
    kbtools.index(table=first + CELLS, columns=columns, out=tmp_path / "built")

    kbtools.update(tmp_path / "updated", table=CELLS, columns=columns)

    updated, built = ({row["id"]: all_of(tmp_path / name, row["id"]) for row in CELLS} for name in ("updated", "built"))
    assert updated == built


@pytest.mark.parametrize("changes", ["", '{"id": "b", "rename": {"Bonn": "Tal"}}\n', '{"remove": "b2"}\n'])
def test_names_that_were_there_before_are_linked_too(tmp_path: Path, changes: str) -> None:
    kb, table, changed = (tmp_path / name for name in ("kb", "more.csv", "changes.jsonl"))
    first = tmp_path / "first.csv"
    first.write_text("id,name,city\nb,Bonn,\nb2,Bonn am Rhein,\nr,Rome,\nr2,rome,\nc,Acme,Bonn\n")
    table.write_text("id,name,city,seat\nd,Bolt,BONN,Bonn am Rhein\ne,Ergo,Rome,Kiel\n")
    changed.write_text(changes or "\n")
    CliRunner().invoke(main, f"index table {first} --link-column city --out {kb} --quiet".split())

    done = update(kb, "--add", changed, "--table", table, "--column", "link=city", "--column", "link=seat")

    assert done.exit_code == 0, done.stderr
    assert facts_of(kb, "d") == {
        "city": ('"BONN"', "BONN") if "Tal" in changes else ("b", "Bonn"),
        "seat": ('"Bonn am Rhein"', "Bonn am Rhein") if "b2" in changes else ("b2", "Bonn am Rhein"),
    }
    assert facts_of(kb, "e") == {"city": ('"Rome"', "Rome"), "seat": ('"Kiel"', "Kiel")}


def test_a_column_that_column_names_is_taken_by_index_table_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("firm,key,name\nf1,x,Acme\nf2,y,Bolt\n")

    CliRunner().invoke(main, f"index table {tmp_path}/t.csv --column id=firm --out {tmp_path}/kb --quiet".split())

    assert kbtools.open(tmp_path / "kb").entity("f1").name == "Acme"


def all_of(path: Path, entity_id: str) -> list[tuple[str, str]]:
    return sorted((fact.relation.id, fact.object.id) for fact in kbtools.open(path).facts(entity_id, limit=0).facts)


def test_wikidata_is_added(firms: Path, tmp_path: Path) -> None:
    dump = tmp_path / "berlin.json"
    dump.write_text(json.dumps([CAPITAL]))

    done = update(firms, "--wikidata", dump)

    assert done.exit_code == 0, done.stderr
    assert kbtools.open(firms).entity("Q64").name == "Berlin"


@pytest.mark.parametrize("name", ["new.csv", "new.xlsx"])
def test_a_table_among_changes_is_refused_with_the_option_that_takes_it(firms: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("id,name\n3,Cy\n")

    done = update(firms, "--add", tmp_path / name)

    assert done.exit_code == 1
    assert "expected changes as JSON Lines; pass tables with one entity per row to --table" in done.stderr
