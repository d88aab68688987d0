"""Tables as people keep them: rows of totals, notes, repeated headers, merged titles, and figures of every form."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kbtools.errors import TooManyBadLines
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source, Wide
from kbtools.indexers.readers.table_files import TableReading

HEAD = "Object No.,Title,Material,Year,Value"
ROWS = [
    'A-1,Bronze horse,bronze,1890,"1,200"',
    "A-2,Clay jug,clay,1754,300",
    "A-3,Silver spoon,silver,1801,90",
    'A-4,Oak chest,oak,1699,"2,500"',
    "A-5,Glass bowl,glass,1922,40",
]
ADDRESS = "http://www.wikidata.org/entity/Q"
IDS = {"A-1", "A-2", "A-3", "A-4", "A-5"}


class Table:
    """What was read of a table: its rows by kind, the left-out lines by kind, and the line that names its columns."""

    def __init__(self, path: Path, lines: list[str], **options: Any) -> None:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        reading = TableReading(Source(path, "any", format=WIDE), ReadOptions(**options))
        self.rows: dict[str, list[dict[str, str]]] = {}
        for batch in reading.batches():
            self.rows.setdefault(batch.kind, []).extend(batch.table.to_pylist())
        self.left_out = {kind: skip.count for kind, skip in reading.skips.kinds.items()}
        self.notes = reading.skips.notes
        self.columns = next(note for note in self.notes if "columns: " in note).partition("columns: ")[2]

    def names(self) -> dict[str, str]:
        return {row["entity"]: row["text"] for row in self.rows["names"]}

    def values(self, relation: str) -> dict[str, str]:
        facts = self.rows["facts"]
        return {row["subject"]: row["object"].partition("^^")[0] for row in facts if row["relation"] == relation}


@pytest.mark.parametrize(
    ("lines", "left_out"),
    [
        pytest.param([HEAD, *ROWS[:2], ",,,,", *ROWS[2:]], {"blank line": 1}, id="an empty row"),
        pytest.param([HEAD, *ROWS[:2], " , ,,,", "", *ROWS[2:]], {"blank line": 2}, id="white space"),
        pytest.param([HEAD, *ROWS, ',Total,,,"4,130"'], {"row of totals": 1}, id="a total without an id"),
        pytest.param([HEAD, *ROWS, "Total,,,,4130"], {"row of totals": 1}, id="a total in the column of ids"),
        pytest.param([HEAD, *ROWS, ",Gesamt 2024:,,,4.130 EUR"], {"row of totals": 1}, id="a German total"),
        pytest.param([HEAD, *ROWS, "TOTALE,,,-,€ 4.130"], {"row of totals": 1}, id="an Italian total"),
        pytest.param(
            [HEAD, *ROWS[:2], "Subtotal,,,,1500", *ROWS[2:], "Grand total,,,,4130"],
            {"row of totals": 2}, id="subtotals",
        ),
        pytest.param([HEAD, *ROWS, ",,,,", "Total,,,,4130"], {"blank line": 1, "row of totals": 1}, id="both"),
        pytest.param(
            [HEAD, ROWS[0], f"{ROWS[1]},", "Total,,,,1500", "", *ROWS[2:4], 'A-5,"Glass\nbowl",glass,1922,40'],
            {"row of totals": 1, "blank line": 1}, id="a total above an empty line, with a cell of two lines",
        ),
        pytest.param([HEAD, *ROWS, "Source: register of 2024"], {"note": 1}, id="a source"),
        pytest.param([HEAD, *ROWS, "Source: register, seen in 2024"], {"note": 1}, id="a source with a comma"),
        pytest.param([HEAD, *ROWS, "* on loan,,,,", "(1) estimated,,,,"], {"note": 2}, id="footnotes"),
        pytest.param(
            [HEAD, *ROWS, ",,,,", "Prepared by the registrar,,,,", "For internal use,,,,"],
            {"blank line": 1, "note": 2}, id="notes below an empty row",
        ),
        pytest.param(
            [HEAD, *ROWS, "Total,,,,4130", "Quelle: Inventar,,,,"], {"row of totals": 1, "note": 1}, id="note and total"
        ),
        pytest.param(
            [HEAD, *ROWS, "Summe,,,,4130", "Stand: Mai 2026,,,,"], {"row of totals": 1, "note": 1}, id="total and date"
        ),
        pytest.param(
            [HEAD, *ROWS, "Sum,,,,4130", "Counted by the registrar,,,,"], {"row of totals": 1, "note": 1},
            id="a total and a sentence",
        ),
        pytest.param([HEAD, *ROWS[:3], HEAD, *ROWS[3:]], {"repeated header": 1}, id="a page break"),
        pytest.param(
            [HEAD, *ROWS[:3], "Museum of Tal,,,,", HEAD, *ROWS[3:]],
            {"note": 1, "repeated header": 1}, id="a page break with the title",
        ),
        pytest.param(
            ["Museum of Tal,,,,", ",,What it is,,Worth", HEAD, *ROWS], {"line above the header": 2}, id="merged titles"
        ),
    ],
)  # fmt: skip
def test_rows_that_describe_no_entity_are_left_out_and_counted(
    tmp_path: Path, lines: list[str], left_out: dict[str, int]
) -> None:
    table = Table(tmp_path / "t.csv", lines)

    assert table.names().keys() == IDS
    assert {row["subject"] for row in table.rows["facts"]} == IDS
    assert table.left_out == left_out
    assert table.columns == "id 'Object No.'; name 'Title'; values 'Material', 'Year', 'Value'"


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_the_end_of_lines_and_the_separator_change_nothing(tmp_path: Path, suffix: str) -> None:
    lines = [HEAD, *ROWS, ",,,,", "Total,,,,4130"]
    if suffix == "tsv":
        lines = [line.replace('"1,200"', "1200").replace('"2,500"', "2500").replace(",", "\t") for line in lines]

    table = Table(tmp_path / f"t.{suffix}", [f"{line}\r" for line in lines])

    assert table.names().keys() == IDS
    assert table.left_out == {"blank line": 1, "row of totals": 1}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["Name,Country,Sales", "Shell,NL,3", "Total,FR,2", "Eni,IT,1"], id="a firm among others"),
        pytest.param(["Name,Country,Sales", "Shell,NL,3", "Eni,IT,1", "Total,FR,2"], id="a firm with a country"),
        pytest.param(["Name,Staff,Sales", "Shell,7,3", "Total,5,2", "Eni,6,1"], id="a firm with figures alone"),
        pytest.param(["Id,Name,Sales", "S,Shell,3", "E,Eni,1", "T,Total,2"], id="a firm with an id"),
        pytest.param(["Name,Sign,Base", "Shell,J,m", "Total,m,s", "Eni,N,kg"], id="a row of signs"),
    ],
)
def test_an_entity_called_total_stays(tmp_path: Path, lines: list[str]) -> None:
    assert set(Table(tmp_path / "t.csv", lines).names().values()) == {"Shell", "Total", "Eni"}


@pytest.mark.parametrize(
    "lines",
    [
        ["Name,City,Phone", "Ann,Bonn,1", "*NSYNC,,2", "Bob,,"],
        ["Name,City", "Ann,Bonn", "*NSYNC,Rome", "Bob,"],
        ["Name,City", "Ann,Bonn", "*NSYNC,Rome", "", "Bob,"],
        ["Name,City,Phone", "Ann,,", "Bob,m,kg", "*NSYNC,,2"],
        ["Name,City,Phone", "Ann,Bonn,1", "*NSYNC,Rome,3", "Bob,Kiel,2", "Unit,m,kg"],
        ["Name", "Ann", "", "*NSYNC", "Bob"],
    ],
)
def test_an_entity_with_few_cells_stays(tmp_path: Path, lines: list[str]) -> None:
    assert set(Table(tmp_path / "t.csv", lines, max_bad=1).names().values()) >= {"Ann", "Bob", "*NSYNC"}


def test_a_row_without_an_id_that_is_no_total_is_still_a_bad_line(tmp_path: Path) -> None:
    with pytest.raises(TooManyBadLines, match="no value under Object No\\."):
        Table(
            tmp_path / "t.csv", [HEAD, *ROWS, *(f"B-{n},Box {n},oak,1700,1" for n in range(9)), ",Old sword,iron,1,2"]
        )


FORMS = [
    "Sales,Share,Founded,Opened,Closed,Active,Tags,Firm",
    '"1,087,353",45 %,2001-02-03,03.02.2001,2/3/2001,Yes,red; blue,Alpha',
    '"2,000",3.5 %,1998-12-01,01.12.1998,12/1/1998,No,,Beta',
    "€ 300,12 %,1987-01-01,01.01.1987,1/1/1987,Yes,green,Gamma",
    "USD 40,1 %,1950-06-07,07.06.1950,6/7/1950,Yes,red,Delta",
]


def test_figures_and_dates_of_every_form_are_no_names_and_stay_as_they_are_written(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", FORMS)

    assert "name 'Firm'" in table.columns
    assert table.values("Sales")["t/2"] == '"1,087,353"'
    assert table.values("Share")["t/2"] == '"45 %"'
    assert [table.values(head)["t/2"] for head in ("Founded", "Opened", "Closed")] == [
        '"2001-02-03"', '"03.02.2001"', '"2/3/2001"',
    ]  # fmt: skip
    assert set(table.values("Active").values()) == {'"Yes"', '"No"'}


def test_several_values_in_a_cell_are_divided_where_asked(tmp_path: Path) -> None:
    together = Table(tmp_path / "t.csv", FORMS).rows["facts"]
    divided = Table(tmp_path / "t.csv", FORMS, list_separator=";").rows["facts"]

    assert next(row["object"] for row in together if row["relation"] == "Tags") == '"red; blue"^^<cell:text>'
    assert [row["object"] for row in divided if row["relation"] == "Tags"][:2] == [
        '"red"^^<cell:text>', '"blue"^^<cell:text>',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["Name,Sales", "Ann,3", "Bob,1", "Total,4"], {"Ann", "Bob"}),
        (["Name,Sales", "Ann,3", "Name,Sales", "Bob,1"], {"Ann", "Bob"}),
        (["Code,Size,Weight", "ha,m,kg", "ba,1,2"], {"ha", "ba"}),
        (["Name,Size,Place", "Source: the well,3,Bonn", "Ann,1,Kiel"], {"Source: the well", "Ann"}),
    ],
)
def test_short_tables_have_marginal_rows_too(tmp_path: Path, lines: list[str], names: set[str]) -> None:
    wide = Wide(name=(lines[0].partition(",")[0],))
    assert set(Table(tmp_path / "t.csv", lines, wide=wide).names().values()) == names


@pytest.mark.parametrize("units", [",,,,(EUR)", "Unit,,,years,€", ",,g/cm³,,%"])
def test_a_row_of_units_is_no_entity(tmp_path: Path, units: str) -> None:
    table = Table(tmp_path / "t.csv", [HEAD, units, *ROWS])
    assert (table.names().keys(), table.left_out) == (IDS, {"row of units": 1})


def test_the_line_below_a_header_in_markdown_is_no_entity(tmp_path: Path) -> None:
    lines = ["| Dish | Cuisine | Serves |", "|:-----|---------|-------:|", "| Borscht | Ukrainian | 8 |"]
    table = Table(tmp_path / "t.md", lines)
    assert (set(table.names().values()), table.left_out) == ({"Borscht"}, {"line of dashes": 1})


@pytest.mark.parametrize("sign", ["-", "–", "..", "n/a", "#N/A", "\\N", "NULL", "nan", "<NA>", "#DIV/0!"])
def test_a_sign_that_stands_for_an_empty_cell_is_no_value(tmp_path: Path, sign: str) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,City,Tax", f"1,-,Bonn,{sign}", f"2,Bob,{sign},-5"])
    assert (table.values("City"), table.values("Tax")) == ({"1": '"Bonn"'}, {"2": '"-5"'})
    assert table.names() == {"1": "-", "2": "Bob"}
    assert any(repr(sign) in note and "'City', 'Tax'" in note for note in table.notes)


@pytest.mark.parametrize(
    ("lines", "continued"),
    [
        (["id,name,Tongue,City", "A1,Eva,Dutch,Ulm", ",,French,", ",,Greek,", "A2,Jan,Danish,"], {"A1": 3, "A2": 1}),
        (["Person,Tongue,City", "Eva,Dutch,Ulm", "Jan,Danish,Ribe", ",,Kiel"], {"t/2": 1, "t/3": 1}),
        (["id,Note,name,Tongue", "A1,x,Eva,Dutch", ",y,,", ",,,Greek"], {"A1": 2}),
    ],
)
def test_a_row_without_id_and_name_continues_the_row_above(
    tmp_path: Path, lines: list[str], continued: dict[str, int]
) -> None:
    table = Table(tmp_path / "t.csv", lines)

    assert Counter(row["subject"] for row in table.rows["facts"] if row["relation"] == "Tongue") == continued
    assert any("without id and name continue the row above" in note for note in table.notes)


@pytest.mark.parametrize(
    ("lines", "relation", "values"),
    [
        (["Peak[1],Height (m)[a]", "K2,8611[3]", "Lhotse[2],8516[3][note 4]"], "Height (m)", {"8611", "8516"}),
        (["Peak,Range", "K2[7],Tal[1]", "Lhotse[8],Mer[citation needed] "], "Range", {"Tal", "Mer"}),
        (["Pin,Signal", "A1,GPIO[0]", "A2,CLK[1]"], "Signal", {"GPIO[0]", "CLK[1]"}),
        (["Pin,Path", "A1,p[1]", "A2,p[2]"], "Path", {"p[1]", "p[2]"}),
        (["Pin,x[1],x[2]", "A1,p,q"], "x[1]", {"p"}),
        (["Title,Note", "Untitled [1],a [2]"], "Note", {"a [2]"}),
        (["Peak,Refs", "K2,[4][5]", "Lhotse,[6][7][8]"], "Refs", {"[4][5]", "[6][7][8]"}),
        (["Peak,Depth[m],Mass[g]", "K2,3,4"], "Depth[m]", {"3"}),
    ],
)
def test_reference_marks_are_left_out_and_elements_of_arrays_stay(
    tmp_path: Path, lines: list[str], relation: str, values: set[str]
) -> None:
    table = Table(tmp_path / "t.csv", lines)

    assert {text.strip('"') for text in table.values(relation).values()} == values
    assert {"K2", "Lhotse", "A1", "A2", "Untitled [1]"} >= set(table.names().values())


def test_common_and_official_names_are_aliases_and_values(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,official name", "1,Tal,Republic of Tal"])
    assert [row["text"] for row in table.rows["names"]] == ["Tal", "Republic of Tal"]
    assert table.values("official name") == {"1": '"Republic of Tal"'}


def test_the_only_names_are_no_values(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,common name,Height", "1,Oak,30"])
    assert (table.names(), table.values("common name")) == ({"1": "Oak"}, {})


def test_an_object_of_json_continues_no_other(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.jsonl", ['{"id": "A1", "name": "Eva", "a": "b"}', '{"a": "c"}'], max_bad=1.0)
    assert table.values("a") == {"A1": '"b"'}


def test_a_dash_beside_a_plus_is_a_value(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,Test", "1,Ann,+", "2,Bob,-"])
    assert table.values("Test") == {"1": '"+"', "2": '"-"'}


def test_a_last_row_with_the_sums_of_its_columns_is_a_total(tmp_path: Path) -> None:
    lines = ["id,name,City,Price,Sold", 'A1,Eva,Ulm,"1,000",0.1', "A2,Jan,,20,0.2", ',,,"1,020",0.3']
    table = Table(tmp_path / "t.csv", lines)
    assert (table.values("Sold"), table.left_out) == ({"A1": '"0.1"', "A2": '"0.2"'}, {"row of totals": 1})


@pytest.mark.parametrize("label", ["Total 5 objects", "Total: 5", "Sum of 5"])
def test_a_total_may_count_the_rows(tmp_path: Path, label: str) -> None:
    table = Table(tmp_path / "t.csv", [HEAD, *ROWS, f"{label},,,,"])
    assert table.names().keys() == IDS


@pytest.mark.parametrize(
    "heads", ["First name,Surname", "Vorname,Name", "Prénom,Nom", "Nombre,Apellidos", "Nome,Cognome"]
)
@pytest.mark.parametrize("order", [1, -1])
def test_given_and_family_names_make_a_name(tmp_path: Path, heads: str, order: int) -> None:
    lines = [("Nr", heads, "Club"), ("1", "Eva,Moll", "Tal"), ("2", "Jan,Moll", "Mer")]
    texts = [",".join([row[0], *row[1].split(",")[::order], row[2]]) for row in lines]

    table = Table(tmp_path / "t.csv", texts)

    assert table.names() == {"1": "Eva Moll", "2": "Jan Moll"}
    assert set(table.values("Club").values()) == {'"Tal"', '"Mer"'}


def test_a_name_that_holds_the_family_name_is_whole(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,surname", "1,Eva Moll,Moll", "2,Jan Kern,Kern"])
    assert table.names() == {"1": "Eva Moll", "2": "Jan Kern"}


@pytest.mark.parametrize(
    "header",
    [
        "Código,Origem,Nome comum,Ano",
        "SKU,Note,Désignation,Année",
        "Ref,Nota,Título,Año",
        "Objektnr,Anmerkung,Bezeichnung,Jahr",
    ],
)
def test_heads_of_other_languages_name_ids_and_names(tmp_path: Path, header: str) -> None:
    table = Table(tmp_path / "t.csv", [header, "001,ab,Vime,1900", "002,cd,Tala,1901", "003,ef,Olm,1902"])
    assert table.names() == {"001": "Vime", "002": "Tala", "003": "Olm"}


@pytest.mark.parametrize(
    ("heads", "language", "names"),
    [
        ("Name (en),name_de", "en,de", ["Vienna", "Wien"]),
        ("Name (en),name_de", "fr,en", ["Vienna"]),
        ("title_en,titleDe", "de", ["Wien"]),
        ("title_en,name", "en", ["Wien"]),
        ("name_fr,name_de", "en", ["Vienna"]),
    ],
)
def test_heads_that_end_in_a_language_are_names_in_it(
    tmp_path: Path, heads: str, language: str, names: list[str]
) -> None:
    table = Table(tmp_path / "t.csv", [f"id,{heads}", "1,Vienna,Wien"], language=language)
    assert [row["text"] for row in table.rows["names"]] == names


def test_names_may_repeat_where_no_column_is_called_so(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["No,Child,Year", "1,Ann Thorne,1701", "2,John Pell,1702", "3,Ann Thorne,1704"])
    assert table.names() == {"1": "Ann Thorne", "2": "John Pell", "3": "Ann Thorne"}


@pytest.mark.parametrize(
    ("cells", "objects"),
    [
        (["", "A1", "A1; A2", "A2,A1 | A3"], ["A1", "A1", "A2", "A2", "A1", "A3"]),
        (["", "A1", "A1; A2", "A1; other"], ["A1", "A1; A2", "A1; other"]),  # one cell has another text
        (["", "", "A1", "A2"], ["A1", "A2"]),
    ],
)
def test_lists_of_ids_of_rows_are_divided(tmp_path: Path, cells: list[str], objects: list[str]) -> None:
    lines = [f'A{at},Course {at},"{cell}"' for at, cell in enumerate(cells, 1)]
    table = Table(tmp_path / "t.csv", ["id,name,needs", *lines])
    assert [row["object"].partition("^^")[0].strip('"') for row in table.rows["facts"]] == objects
    assert any("ids of rows in 'needs' divided" in note for note in table.notes) == (len(objects) == 6)


def test_aliases_are_not_called_lists_of_ids(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,alias", 'C1,Ann,"C2, C3"', "C2,Bob,", "C3,Cy,"])
    assert "C2, C3" in {row["text"] for row in table.rows["names"]}
    assert not any("divided" in note for note in table.notes)


def test_numbers_with_a_comma_are_no_lists_of_ids(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,price", '1,Nut,"1,2"', '2,Bolt,"2,1"'])
    assert table.values("price") == {"1": '"1,2"', "2": '"2,1"'}


def test_aliases_are_divided_and_other_lists_noted(tmp_path: Path) -> None:
    lines = [
        "id,name,synonyms,habitat",
        "1,Red cap,scarlet cap; fire cap | blood cap,oak; beech",
        "2,Ink horn,,oak; fir",
    ]
    (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
    reading = TableReading(Source(tmp_path / "f.csv", "any", format=WIDE), ReadOptions())
    tables = [batch.table.to_pylist() for batch in reading.batches() if batch.kind == "names"]
    assert {row["text"] for rows in tables for row in rows} == {
        "Red cap", "Ink horn", "scarlet cap", "fire cap", "blood cap",
    }  # fmt: skip
    notes = " ".join(reading.skips.notes)
    assert "aliases in 'synonyms' divided" in notes
    assert "cells of 'habitat' seem to be lists" in notes


def test_a_separator_that_is_named_divides_aliases_alone(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ["id,name,alias", "1,Ink horn,a; b/c"], list_separator="/")
    assert {row["text"] for row in table.rows["names"]} == {"Ink horn", "a; b", "c"}


@pytest.mark.parametrize(
    ("lines", "wide", "columns"),
    [
        (["Order key,Firm key,Name", "1,a,Ann", "2,b,Bob"], {}, "id 'Order key'; name 'Name'; values 'Firm key'"),
        (["Order key,Firm key,Name", "1,a,Ann", "1,b,Bob"], {}, "id 'Firm key'; name 'Name'; values 'Order key'"),
        (["Code,Name", "a,Ann", "b,Bob"], {"alias": ("Code",)}, "no id, rows are numbered; name 'Name'; alias 'Code'"),
        (["Name,No,City", "Ann,1,Ulm", "Bob,2,Ulm"], {}, "no id, rows are numbered; name 'Name'; values 'No', 'City'"),
        (["No,Name", "1,Ann", ",Bob"], {}, "no id, rows are numbered; name 'Name'; values 'No'"),
        (
            ["item,id,name", f"{ADDRESS}1,a,Ann", f"{ADDRESS}2,b,Bob"], {},
            "id 'id'; name 'name'; values 'item'",
        ),
        (["item,name", f"{ADDRESS}1,Ann", f"{ADDRESS}2,Bob"], {}, "id 'item'; name 'name'"),
        (["id,name,title", "1,Ann,x", "2,Bob,y"], {"name": ("title",)}, "id 'id'; name 'title'; values 'name'"),
        (["id,name,kind,type", "1,Ann,x,z"], {"type": ("kind",)}, "id 'id'; name 'name'; type 'kind'; values 'type'"),
        (["id,label,x", "1,Ann,Q", "2,Bob,R"], {"type": ("label",)}, "id 'id'; name 'x'; type 'label'"),
        (["id,Town,Head", "1,Bonn,Ann", "2,Kiel,Bob"], {"link": ("Town",)}, "id 'id'; name 'Head'; values 'Town'"),
        (
            ["id,Town,Head", "1,Bonn,Ann", "2,Bonn,Bob", "3,Kiel,Eva", "4,Ulm,Jan"], {},
            "id 'id'; name 'Head'; values 'Town'",
        ),
        (["id,Town", "1,Bonn", "2,Bonn", "3,Kiel", "4,Ulm"], {}, "id 'id'; name 'Town'"),
        (["id,Size,Town", "1,1 m,Bonn", "2,2 m,Kiel", "3,tall,Ulm"], {}, "id 'id'; name 'Town'; values 'Size'"),
        (["Firm code,City,Firm", "1,Bonn,Ann"], {}, "id 'Firm code'; name 'Firm'; values 'City'"),
        (
            ["id,first name,name", "1,Eva,Eva Moll", "2,Jan,Kern"], {},
            "id 'id'; name 'name'; values 'first name'",
        ),
        (
            ["id,first name,surname,call", "1,Eva,Moll,E"], {"name": ("call",)},
            "id 'id'; name 'call'; values 'first name', 'surname'",
        ),
        (["No,Description,Fits", "1,Bolt,T20", "2,Seal,T20"], {}, "id 'No'; name 'Description'; values 'Fits'"),
        (["id,Club,Description", "1,Foxes,red", "2,Owls,grey"], {}, "id 'id'; name 'Club'; description 'Description'"),
        (["id,Description,City", f"1,{'Far ' * 20},Ulm"], {}, "id 'id'; name 'City'; description 'Description'"),
        (
            ["id,Description,City", "1,Far,Ulm"], {"description": ("Description",)},
            "id 'id'; name 'City'; description 'Description'",
        ),
        (["Short name,City", "Owls,Ulm"], {}, "no id, rows are numbered; name 'Short name'; values 'City'"),
        (["Plant,Other names", "Elm,Ulme"], {}, "no id, rows are numbered; name 'Plant'; alias 'Other names'"),
        (
            ["Student,Subject,Mark", "Ann,Law,1", "Bob,Law,2", "Ann,Art,1"], {},
            "no id, rows are numbered; name 'Student'; values 'Subject', 'Mark'",
        ),
        (["IATA,ICAO,Airport", "MUC,EDDM,Munich"], {}, "id 'IATA'; name 'Airport'; values 'ICAO'"),
        (["Symbol,Element,Group", "Au,Gold,11", "He,Helium,18"], {}, "id 'Symbol'; name 'Element'; values 'Group'"),
        (
            ["gene_id,Symbol,description", "7157,TP53,tumor protein p53", "672,BRCA1,repair"], {},
            "id 'gene_id'; name 'Symbol'; description 'description'",
        ),
        (
            ["HGNC ID,Approved symbol,City", "HGNC:5,A1BG,Ulm", "HGNC:7,A2M,Bonn"], {},
            "id 'HGNC ID'; name 'Approved symbol'; values 'City'",
        ),
        (["Land,Symbol", "Ulm,lion", "Tal,bear"], {}, "no id, rows are numbered; name 'Land'; values 'Symbol'"),
        (
            ["Name,a,b,c,d,e,f,g,h,i", "Ann,1,2,3,4,5,6,7,8,9"], {},
            "no id, rows are numbered; name 'Name'; values 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', ...",
        ),
        (
            ["Latin name,Common name,Sown", "Beta vulgaris,Beet,May"], {},
            "no id, rows are numbered; name 'Latin name'; alias 'Common name'; values 'Common name', 'Sown'",
        ),
        (["id,Name,tag,tag,tag", "1,Ann,p,q,r"], {}, "id 'id'; name 'Name'; values 'tag', 'tag 2', 'tag 3'"),
    ],
)  # fmt: skip
def test_the_role_of_each_column_is_chosen(
    tmp_path: Path, lines: list[str], wide: dict[str, Any], columns: str
) -> None:
    assert Table(tmp_path / "t.csv", lines, wide=Wide(**wide)).columns == columns


@pytest.mark.parametrize(
    ("cells", "noted"),
    [
        (["Berg, Lee, Ash", "Lee, Vik", "Ash"], True),
        (["Bonn, Fredonia", "Ulm, Fredonia", "Fredonia"], False),
        (["Lee, Jo", "Jo, Al", "1,200"], False),
        (["Monaco, Monaco", "Gibraltar, Gibraltar"], False),
        (["Lee, Jo", "Jo, Al", "Al, Vik", *(f"Berg{letter}, Ann" for letter in "abcdefghijklmnopqr")], False),
    ],
)
def test_lists_with_commas_are_noted_if_their_words_change_places(
    tmp_path: Path, cells: list[str], noted: bool
) -> None:
    lines = ["id,name,cast", *(f'{number},Film {number},"{cell}"' for number, cell in enumerate(cells))]
    assert any("'cast' seem to be lists" in note for note in Table(tmp_path / "t.csv", lines).notes) == noted


@pytest.mark.parametrize(("lists", "noted"), [(2, True), (1, False)])
def test_lists_are_noted_from_a_fifth_of_the_cells(tmp_path: Path, lists: int, noted: bool) -> None:
    cells = ["oak; fir"] * lists + ["oak"] * (10 - lists)
    lines = ["id,name,tree", *(f"{number},Ann {number},{cell}" for number, cell in enumerate(cells)), "x,Bob,"]
    assert any("seem to be lists" in note for note in Table(tmp_path / "t.csv", lines).notes) == noted
    assert not any("seem to be" in note for note in Table(tmp_path / "t.csv", lines, list_separator="/").notes)


@pytest.mark.parametrize(
    ("lines", "noted"),
    [
        (["C-1,Acme,Bonn", "C-2,Bolt,Tal", "C-3,Cray,Ulm"], True),
        (["Acme,1998", "Bolt,2003", "Cray,1987"], True),
        (["Country,1990,2000", "Ulm,1204,1310", "Tal,5403,5733"], False),
        (["Stop,1401", "Ulm,06:15", "Tal,06:30"], False),
        (["C-1,Acme", "C-2,Bolt"], False),
    ],
)
def test_a_header_that_looks_like_a_row_is_noted(tmp_path: Path, lines: list[str], noted: bool) -> None:
    assert any("header missing" in note for note in Table(tmp_path / "t.csv", lines).notes) is noted


@pytest.mark.parametrize(
    ("boss", "link", "noted"), [("Ann", (), True), ("Eve", (), False), ("", (), False), ("Ann", ("Boss",), False)]
)
def test_names_of_rows_in_cells_are_noted(tmp_path: Path, boss: str, link: tuple[str, ...], noted: bool) -> None:
    lines = ["id,name,Boss,Age", f"1,Ann,{boss},9", "2,Bob,Zoe,8", f"3,Kim, {boss} ,7"]
    table = Table(tmp_path / "t.csv", lines, wide=Wide(link=link))
    assert [("'Boss'" in note) for note in table.notes if "--link-column" in note] == [True] * noted


def test_options_that_name_no_column_are_noted_and_those_in_other_letters_are_not(tmp_path: Path) -> None:
    wide = Wide(name=("LABEL",), type=("Kind", "sort"), description=("about",))
    table = Table(
        tmp_path / "t.csv",
        ["id,label,kind,lang", "1,Ann,x,DE"],
        wide=wide,
        columns={"language": "lang"},
        language="de,en",
    )

    assert [note.partition(": ")[2] for note in table.notes if "no column" in note] == [
        "no column 'about', which --description names", "no column 'sort', which --type names",
    ]  # fmt: skip
    assert table.rows["names"] == [{"entity": "1", "rank": 0, "text": "Ann", "language": "de"}]


def test_descriptions_are_never_divided_and_rows_without_ids_are_named_after_the_file(tmp_path: Path) -> None:
    lines = ["name,description,tags", "Ann,a; b,c;d"]
    table = Table(tmp_path / "t.v2.csv", lines, list_separator=";")

    assert [row["text"] for row in table.rows["descriptions"]] == ["a; b"]
    assert table.values("tags") == {"t/2": '"d"'}


def test_keys_and_figures_of_linked_columns_stay_as_they_are_written(tmp_path: Path) -> None:
    lines = ["id,name,boss_id,size,city", '1,Ann,2.0,1e5,"7"', "2,Bob,,007,8.50", "3,Eva,m/0abc,ftp://a/b,/m/0abc"]
    rows = Table(tmp_path / "t.csv", lines, wide=Wide(link=("city",))).rows["facts"]

    assert [row["object"] for row in rows] == [
        '"2"^^<cell:key>', "m.0abc", '"1e5"^^<cell:number>', '"007"^^<cell:text>', '"ftp://a/b"^^<cell:url>',
        '"7"^^<cell:name>', '"8.50"^^<cell:name>', "m.0abc",
    ]  # fmt: skip
