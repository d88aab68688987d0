"""Tables as programs export them: row numbers of R and pandas, several rows of heads, and results of SPARQL."""

from pathlib import Path

import pytest

from kbtools.errors import TooManyBadLines
from kbtools.indexers.readers.detection import detect
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source, Wide
from kbtools.indexers.readers.table_files import TableReading
from tests.indexers.test_messy_tables import Table
from tests.indexers.test_office_tables import write_xlsx


def numbered(head: str, numbers: list[int]) -> list[str]:
    """Return a table of people with a column of numbers in front, as R and pandas write it."""
    rows = [["Ann", "Bonn"], ["Bob", "Kiel"], ["Eva", "Ulm"]]
    return [f"{head}name,city", *(f"{number},{','.join(row)}" for number, row in zip(numbers, rows, strict=True))]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(numbered(",", [0, 1, 2]), id="pandas"),
        pytest.param(numbered(",", [1, 4, 7]), id="pandas after a selection"),
        pytest.param(numbered("Unnamed: 0,", [0, 1, 2]), id="pandas, written twice"),
        pytest.param(numbered("index,", [0, 1, 2]), id="pandas after reset_index"),
        pytest.param(numbered('"",', [1, 2, 3]), id="R, write.csv"),
        pytest.param([line.replace(",", "\t") for line in numbered("", [1, 2, 3])], id="R, write.table"),
        pytest.param(numbered("...1,", [1, 2, 3]), id="readr"),
        pytest.param(numbered("rownames,", [1, 2, 3]), id="R data sets"),
    ],
)
def test_row_numbers_of_r_and_pandas_are_no_relation(tmp_path: Path, lines: list[str]) -> None:
    table = Table(tmp_path / "t.csv", lines)

    assert table.columns == "no id, rows are numbered; name 'name'; values 'city'"
    assert any("row numbers, left out" in note for note in table.notes)


@pytest.mark.parametrize(
    ("lines", "wide", "columns"),
    [
        (numbered(",", [3, 1, 2]), Wide(), "no id, rows are numbered; name 'name'; values 'column 1', 'city'"),
        (numbered(",", [1, 1, 2]), Wide(), "no id, rows are numbered; name 'name'; values 'column 1', 'city'"),
        (numbered(",", [1990, 1991, 1992]), Wide(), "no id, rows are numbered; name 'name'; values 'column 1', 'city'"),
        (numbered("No,", [1, 2, 3]), Wide(), "id 'No'; name 'name'; values 'city'"),
        (numbered("index,", [1, 2, 3]), Wide(subject="index"), "id 'index'; name 'name'; values 'city'"),
        (
            numbered("index,", [1, 2, 3]), Wide(alias=("index",)),
            "no id, rows are numbered; name 'name'; alias 'index'; values 'city'",
        ),
        ([",mpg", "Mazda,21", "Fiat,32"], Wide(), "no id, rows are numbered; name 'column 1'; values 'mpg'"),
        (["name,mpg", "Mazda,21,", "Fiat,32,"], Wide(), "no id, rows are numbered; name 'name'; values 'mpg'"),
    ],
)  # fmt: skip
def test_other_first_columns_stay(tmp_path: Path, lines: list[str], wide: Wide, columns: str) -> None:
    assert Table(tmp_path / "t.csv", lines, wide=wide).columns == columns


TEAMS = ["Foxes,Bonn,3,1,2,2", "Owls,Kiel,1,3,0,4", "Bears,Ulm,2,2,1,3"]
SCORES = "'Home Won', 'Home Lost', 'Away Won', 'Away Lost'"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        pytest.param(
            ["Team,City,Home,,Away,", ",,Won,Lost,Won,Lost"], f"name 'Team'; values 'City', {SCORES}", id="gaps"
        ),
        pytest.param(
            ["Team,City,Home,Home,Away,Away", ",,Won,Lost,Won,Lost"], f"name 'Team'; values 'City', {SCORES}",
            id="repeated groups",
        ),
        pytest.param(
            ["Team,,Home,,Away,", "Short,Town,Won,Lost,Won,Lost"],
            f"name 'Team Short'; values 'Team Town', {SCORES}", id="heads in every cell",
        ),
        pytest.param(
            ["Team,,Home,,Away,", "Name,Town,Won,Lost,Won,Lost"], f"name 'Name'; values 'Town', {SCORES}",
            id="usual heads in the lower row",
        ),
        pytest.param(
            [",Town,Home,Home,Away,Away", ",,Won,Lost,Won,Lost", "Team,,,,,"], f"name 'Team'; values 'Town', {SCORES}",
            id="pandas",
        ),
        pytest.param(
            ["Report,,,,,", "Team,Town,2023,,2024,", ",,Won,Lost,Won,Lost"],
            "name 'Team'; values 'Town', '2023 Won', '2023 Lost', '2024 Won', '2024 Lost'", id="years below a title",
        ),
        pytest.param(
            [",,Goals,Goals,Points,Points", "Name,Town,2023,2024,2023,2024"],
            "name 'Name'; values 'Town', 'Goals 2023', 'Goals 2024', 'Points 2023', 'Points 2024'",
            id="groups of years",
        ),
    ],
)  # fmt: skip
def test_two_rows_of_heads_are_joined(tmp_path: Path, header: list[str], columns: str) -> None:
    table = Table(tmp_path / "t.csv", [*header, *TEAMS])

    assert table.columns == f"no id, rows are numbered; {columns}"
    assert set(table.names().values()) == {"Foxes", "Owls", "Bears"}
    assert set(table.left_out) <= {"line above the header"}


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["Name,City,,", ",,3,4", "Ann,Bonn,1,2", "Bob,Ulm,1,2"], {"Ann", "Bob"}),
        (["Name,City,,", "Ann,Bonn,x,y", "Bob,Ulm,z,y"], {"Ann", "Bob"}),
        (["Club,tag,tag", "Foxes,a,b", "Owls,c,d"], {"Foxes", "Owls"}),
        (["Club,tag,tag", "Foxes,a,b", "Owls,1,2"], {"Foxes", "Owls"}),
    ],
)
def test_a_row_of_values_is_no_second_row_of_heads(tmp_path: Path, lines: list[str], names: set[str]) -> None:
    assert set(Table(tmp_path / "t.csv", lines).names().values()) == names


def test_a_usual_head_in_the_lower_row_does_not_hide_the_upper_one(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["Player,Team,", ",Code,City", "Ann,FX,Bonn", "Bob,OW,Kiel", "Eva,FX,Bonn"])
    assert table.columns == "no id, rows are numbered; name 'Player'; values 'Team Code', 'Team City'"


def test_two_rows_of_heads_of_a_spreadsheet_are_joined(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    header = ["Season 2024", "Team,City,Home,,Away,", ",,Won,Lost,Won,Lost"]
    sheet: list[list[str | float]] = [[*line.split(",")] for line in [*header, *TEAMS]]
    path = write_xlsx(tmp_path / "t.xlsx", {"Teams": sheet})

    reading = TableReading(Source(path, "any", format=WIDE), ReadOptions())
    facts = [row for batch in reading.batches() if batch.kind == "facts" for row in batch.table.to_pylist()]

    assert {row["relation"] for row in facts} == {"City", "Home Won", "Home Lost", "Away Won", "Away Lost"}


def test_na_is_an_empty_cell_beside_figures_alone(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,Code,Size", "1,Ann,NA,NA", "2,Bob,DE,7", "3,Eva,FR,8.5"])
    assert (table.values("Code")["1"], table.values("Size")) == ('"NA"', {"2": '"7"', "3": '"8.5"'})


Q = "http://www.wikidata.org/entity/Q"
ANSWERS = [
    "item,itemLabel,itemAltLabel,country,countryLabel,mayorLabel",
    f'{Q}64,Berlin,"Spree-Athen, Athens on the Spree",{Q}183,Germany,Ann',
    f'{Q}64,Berlin,"Spree-Athen, Athens on the Spree",{Q}183,Germany,Bob',
    f"{Q}90,Paris,,,,Eva",
]


def test_labels_of_wikidata_s_query_service_name_the_entities_beside_them(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ANSWERS)

    assert {(row["entity"], row["text"]) for row in table.rows["names"]} == {
        (f"{Q}64", "Berlin"), (f"{Q}64", "Spree-Athen"), (f"{Q}64", "Athens on the Spree"), (f"{Q}90", "Paris"),
        (f"{Q}183", "Germany"),
    }  # fmt: skip
    assert {(row["subject"], row["relation"], row["object"]) for row in table.rows["facts"]} == {
        (f"{Q}64", "country", f'"{Q}183"^^<cell:url>'), (f"{Q}64", "mayorLabel", '"Ann"^^<cell:text>'),
        (f"{Q}64", "mayorLabel", '"Bob"^^<cell:text>'), (f"{Q}90", "mayorLabel", '"Eva"^^<cell:text>'),
    }  # fmt: skip


def test_labels_of_other_columns_stay_values(tmp_path: Path) -> None:
    lines = [line.replace(Q, "K") for line in ANSWERS]
    values = Table(tmp_path / "t.csv", lines).columns.partition("values ")[2]
    assert values == "'item', 'itemLabel', 'itemAltLabel', 'country', 'countryLabel'"


def test_results_of_sparql_are_read_without_the_marks_of_rdf(tmp_path: Path) -> None:
    lines = [
        "?item\t?name\t?size",
        f'<{Q}64>\t"Ber\\"lin"@en\t"3"^^<http://www.w3.org/2001/XMLSchema#int>',
        f"<{Q}90>\tParis\t2",
    ]

    table = Table(tmp_path / "t.tsv", lines)

    assert (table.names(), table.values("size")) == (
        {f"{Q}64": 'Ber"lin', f"{Q}90": "Paris"}, {f"{Q}64": '"3"', f"{Q}90": '"2"'},
    )  # fmt: skip


def test_triples_of_sparql_are_facts(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("?s\t?p\t?o\n<http://a/1>\t<http://a/p>\t<http://a/2>\n")
    assert detect(tmp_path / "t.tsv").source.kind == "facts"


@pytest.mark.parametrize(
    "header",
    [
        "Код,Город,Название,Год",
        "编号,城市,名称,年",
        "番号,出身地,名前,年",
        "번호,도시,이름,연도",
        "Lp.,Uwagi,Nazwa,Rok",
    ],
)
def test_heads_of_more_languages_name_ids_and_names(tmp_path: Path, header: str) -> None:
    table = Table(tmp_path / "t.csv", [header, "001,ab,Vime,1900", "002,cd,Tala,1901", "003,ef,Olm,1902"])
    assert table.names() == {"001": "Vime", "002": "Tala", "003": "Olm"}


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        (["movieId,title", "1,Heat", "2,Jaws"], "id 'movieId'; name 'title'"),
        (["tconst,mainTitle,kind", "tt0001,Heat,a", "tt0002,Jaws,a"], "id 'tconst'; name 'mainTitle'; values 'kind'"),
        (["tconst,year", "tt0001,1995", "tt0002,1975"], "no id, rows are numbered; name 'tconst'; values 'year'"),
        (["Ship,Captain", "U96,Ann", "U97,Bob"], "no id, rows are numbered; name 'Ship'; values 'Captain'"),
        (["GeneID,refs,Symbol", "1,MIM:138,A1BG", "2,MIM:103,A2M"], "id 'GeneID'; name 'Symbol'; values 'refs'"),
        (["id,by,dc.title[en]", "1,Ann,Bolts", "2,Bob,Nuts"], "id 'id'; name 'dc.title[en]'; values 'by'"),
        (
            ["Player,Team name", "Ann,Foxes", "Bob,Foxes", "Eva,Foxes"],
            "no id, rows are numbered; name 'Player'; values 'Team name'",
        ),
        (["No,Firm name", "1,Foxes", "2,Foxes", "3,Foxes"], "id 'No'; name 'Firm name'"),
    ],
)  # fmt: skip
def test_codes_are_ids_and_no_names(tmp_path: Path, lines: list[str], columns: str) -> None:
    assert Table(tmp_path / "t.csv", lines).columns == columns


def test_a_second_name_of_the_same_row_is_no_link(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,original", "1,Heat,Heat", "2,Jaws,Jaws", "3,Alien,Alien"])
    assert not any("--link-column" in note for note in table.notes)


def test_quotes_behind_backslashes_are_read_as_mysql_writes_them(tmp_path: Path) -> None:
    lines = ["id,name,path", r'1,"Ann \"Red\" Lee, jr","C:\\tmp"', r'2,"Bob","C:\"']
    table = Table(tmp_path / "t.csv", lines)
    assert (table.names(), table.values("path")["1"]) == ({"1": 'Ann "Red" Lee, jr', "2": "Bob"}, '"C:\\\\tmp"')


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,Ann\r2,Bob", "a carriage return inside a row; save the file with line feeds"),
        ('1,"Ann" Lee', "text behind a closing quote; double the quotes inside a cell"),
        ('1,"Ann', "a quote that is not closed"),
        (f"1,{'A' * 200_000}", "a cell of over 131,072 characters"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_in_plain_words(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(TooManyBadLines, match=reason):
        Table(tmp_path / "t.csv", ["id,name", row, "3,Eva"])
