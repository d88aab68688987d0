"""Rows of tables without ids, which have their numbers for ids: no row becomes another one of the same number."""

from pathlib import Path

import pytest

import kbtools
from kbtools.errors import WrongFormat
from kbtools.indexers.readers.reading import WIDE, Source, with_own_rows

HEAD = "name@en,name@de,City\n"
SOUP, TART = "Soup,Suppe,Ulm\n", "Tart,Torte,Bonn\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    table = write(tmp_path / "dishes.csv", HEAD + SOUP + TART)
    kbtools.index(out=tmp_path / "x.kb", table=table, language="en,de").close()
    return tmp_path / "x.kb"


@pytest.mark.parametrize("rows", [TART + SOUP, SOUP + "Pie,Kuchen,Rom\n"])
def test_a_row_with_the_number_of_another_is_refused(kb: Path, tmp_path: Path, rows: str) -> None:
    table = write(tmp_path / "new" / "dishes.csv", HEAD + rows)
    with pytest.raises(WrongFormat, match="has no id"):
        kbtools.update(kb, table=table, language="en,de")


def test_the_same_rows_and_rows_below_them_are_welcome(kb: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "new" / "dishes.csv", HEAD + "soup,Suppe,Ulm\n" + TART + "Pie,Kuchen,Rom\n")
    result = kbtools.update(kb, table=table, language="en,de")
    assert result.changes["entities added"] == 1
    assert result.changes["values added"] == 1  # the city
    assert not any("others have their names" in note for note in result.notes)


def test_new_rows_with_known_names_are_noted(kb: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "more.csv", HEAD + "soup,Suppe,Kiel\n")
    assert any("'soup'" in note for note in kbtools.update(kb, table=table, language="en,de").notes)


def test_tables_of_the_same_name_have_rows_of_their_own() -> None:
    names = ["a/t.csv", "a/t.tsv", "b/t.csv", "c/a/t.csv", "u.csv", "u.csv", "v.1.csv"]
    sources = [*(Source(Path(name), "any", format=WIDE) for name in names), Source(Path("v.txt"), "names")]
    assert [source.rows for source in with_own_rows(sources)] == [
        "a/t.csv/", "t.tsv/", "b/t.csv/", "c/a/t.csv/", "u/", "u/", "v/", "v/",
    ]  # fmt: skip
