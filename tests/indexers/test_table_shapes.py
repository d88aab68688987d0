"""Files of pairs that describe one entity, files of several tables, and headers that are missing."""

from pathlib import Path

import pytest

import kbtools
from kbtools.errors import WrongFormat
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.detection import detect
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source, Wide
from kbtools.indexers.readers.table_files import TableReading
from tests.indexers.test_messy_tables import Table
from tests.indexers.test_office_tables import write_xlsx


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["name,Ocean Pearl", "built,1998", "flag,Malta"], id="keys in lower case"),
        pytest.param(["Name,Ocean Pearl", "Built,1998", "Description,a ship", "Flag,Malta"], id="usual keys"),
        pytest.param(["Flag:,Malta", "Built:,1998", "Name:,Ocean Pearl"], id="colons"),
        pytest.param(["Property,Value", "Name,Ocean Pearl", "Built,1998", "Flag,Malta"], id="heads"),
        pytest.param(["Merkmal,Wert", "Name,Ocean Pearl", "Built,1998", "Flag,Malta"], id="German heads"),
    ],
)
def test_pairs_of_keys_and_values_describe_one_entity(tmp_path: Path, lines: list[str]) -> None:
    table = Table(tmp_path / "t.csv", lines)

    assert set(table.names().values()) == {"Ocean Pearl"}
    assert {(row["relation"].casefold(), row["object"].partition("^^")[0]) for row in table.rows["facts"]} == {
        ("built", '"1998"'), ("flag", '"Malta"'),
    }  # fmt: skip
    assert any("read as one entity" in note for note in table.notes)


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["Name,Age", "Ann,31", "Bob,unknown", "Eva,7"], {"Ann", "Bob", "Eva"}),
        (["name,age", "ann,31", "bob,unknown"], {"ann", "bob"}),
        (["name,City", "ann,Ulm", "bob,Bonn"], {"ann", "bob"}),
        (["Name,Type", "Ann,a1", "Bob,b"], {"Ann", "Bob"}),
        (["name,Ocean Pearl", "built,1998"], {"built"}),
        (["Key,Value", "a,Ann", "b,Bob"], {"Ann", "Bob"}),
    ],
)
def test_a_table_of_two_columns_is_no_list_of_pairs(tmp_path: Path, lines: list[str], names: set[str]) -> None:
    assert set(Table(tmp_path / "t.csv", lines).names().values()) == names


BOATS, HARBOURS = ["Name,Length", "Gull,12", "Tern,9"], ["Name,Town,Berths", "East,Kiel,40", "West,Bremen,60"]


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (["Boats", *BOATS, "", "Harbours", *HARBOURS], 4),
        ([*BOATS, ",,", *HARBOURS], 3),
        ([*BOATS, "", "", "Title,Author", "Bolts,Ann", "Nuts,Bob"], 3),
    ],
)
def test_another_table_below_the_first_is_left_out_and_counted(tmp_path: Path, lines: list[str], count: int) -> None:
    table = Table(tmp_path / "t.csv", lines)

    assert set(table.names().values()) == {"Gull", "Tern"}
    assert table.left_out["row of another table"] == count
    assert any("another table begins here" in note for note in table.notes)


@pytest.mark.parametrize(
    "lines",
    [
        [*BOATS, "", *BOATS],
        [*BOATS, "", "Skua,7"],
        [*BOATS, "", "Name Jetty,7", "Skua,7"],
        [*BOATS, "", "name,length"],
        ["Name,Note", 'Gull,"red', "", 'Name, colour"', "Tern,x", "Skua,y"],
    ],
)
def test_rows_below_a_blank_line_belong_to_the_table(tmp_path: Path, lines: list[str]) -> None:
    assert "row of another table" not in Table(tmp_path / "t.csv", lines).left_out


def test_a_sheet_may_hold_several_tables_or_one_entity(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    tables: list[list[str | float]] = [[*line.split(",")] for line in [*BOATS, "", *HARBOURS]]
    pairs: list[list[str | float]] = [["Name:", "Gull"], ["Length:", "", 12], ["Port:", "Kiel"]]

    found = []
    for sheet in (tables, pairs):
        path = write_xlsx(tmp_path / "t.xlsx", {"S": sheet})
        reading = TableReading(Source(path, "any", format=WIDE), ReadOptions())
        rows = [row for batch in reading.batches() if batch.kind == "names" for row in batch.table.to_pylist()]
        found.append({row["text"] for row in rows})

    assert found == [{"Gull", "Tern"}, {"Gull"}]


def test_merged_cells_below_the_header_have_one_value_each(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    sheet: list[list[str | float]] = [
        ["Cities of the north", "", ""],
        ["Region", "City", "Size"],
        ["Coast", "Kiel", 240],
        ["", "Bremen", 560],
        ["", "Emden", ""],
    ]
    path = write_xlsx(tmp_path / "t.xlsx", {"S": sheet}, merged=["A1:C1", "A3:A5", "C4:C5"])

    reading = TableReading(Source(path, "any", format=WIDE), ReadOptions(wide=Wide(name=("City",))))
    rows = [row for batch in reading.batches() if batch.kind == "facts" for row in batch.table.to_pylist()]

    assert [row["object"].partition("^^")[0] for row in rows] == ['"Coast"'] * 3 + ['"240"', '"560"', '"560"']


def test_a_table_to_the_right_of_another_is_left_out(tmp_path: Path) -> None:
    lines = ["Name,City,,Name,Town", "Ann,Bonn,,East,Kiel", "Bob,Ulm,,West,Rome", ",,,North,Oslo"]

    table = Table(tmp_path / "t.csv", lines)

    assert table.columns == "no id, rows are numbered; name 'Name'; values 'City'"
    assert {row["relation"] for row in table.rows["facts"]} == {"City"}
    assert any("another table begins at the column 'Name 2'" in note for note in table.notes)


def test_an_empty_column_alone_begins_no_table(tmp_path: Path) -> None:
    columns = Table(tmp_path / "t.csv", ["Name,City,,Note,City", "Ann,Bonn,,x,Ulm", "Bob,Ulm,,y,Rome"]).columns
    assert columns == "no id, rows are numbered; name 'Name'; values 'City', 'Note', 'City 2'"


@pytest.mark.parametrize(
    ("lines", "noted"),
    [
        (["Ann,Bonn", "Bob,Kiel", "Eva,Bonn"], True),
        (["Name,City", "Bob,Kiel", "Eva,Bonn"], False),
        (["Berlin,Germany", "Paris,France", "Munich,Germany"], True),
    ],
)
def test_a_head_that_is_a_cell_below_is_noted(tmp_path: Path, lines: list[str], noted: bool) -> None:
    assert any("is the header missing" in note for note in Table(tmp_path / "t.csv", lines).notes) is noted


def test_the_header_that_facts_lack_is_told(tmp_path: Path) -> None:
    lines = ["Ann Lee,born in,Bonn", "Ann Lee,works in,Kiel", "Bob Ray,born in,Kiel"]
    assert any("subject,relation,object" in note for note in Table(tmp_path / "t.csv", lines).notes)


SAP = """28.11.2026       Dynamic List Display      1
---------------------------------
|Part   |Description |Plant|Stock |
---------------------------------
|000123 |Hex bolt    |0100 |1.234-|
|000124 |Washer      |0100 |500   |
---------------------------------
"""
POSTGRES = " id | name | city \n----+------+------\n  1 | Ann  | Bonn\n  2 | Bob  | Kiel\n(2 rows)\n"
MYSQL = """+----+------+------+
| id | name | city |
+----+------+------+
|  1 | Ann  | Bonn |
|  2 | Bob  | Kiel |
+----+------+------+
2 rows in set (0.00 sec)
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(SAP, {"Hex bolt", "Washer"}, id="SAP"),
        pytest.param(POSTGRES, {"Ann", "Bob"}, id="PostgreSQL"),
        pytest.param(MYSQL, {"Ann", "Bob"}, id="MySQL"),
        pytest.param("People\n\nid\tname\tcity\n1\tAnn\tBonn\n2\tBob\tKiel\n", {"Ann", "Bob"}, id="a title"),
        pytest.param("id~name~city\n1~Ann~Bonn\n2~Bob~Kiel\n", {"Ann", "Bob"}, id="tildes"),
        pytest.param("id^name^city\n1^Ann^Bonn\n2^Bob^Kiel\n", {"Ann", "Bob"}, id="carets"),
        pytest.param("id\x01name\x01city\n1\x01Ann\x01Bonn\n", {"Ann"}, id="Hive"),
    ],
)
def test_tables_as_programs_print_them_are_read(tmp_path: Path, text: str, names: set[str]) -> None:
    (tmp_path / "t.txt").write_text(text)

    reading = TableReading(detect(tmp_path / "t.txt").source, ReadOptions())
    batches = list(reading.batches())

    assert {row["text"] for batch in batches if batch.kind == "names" for row in batch.table.to_pylist()} == names
    assert {len(batch.table) for batch in batches if batch.kind == "facts"} == {len(names)}
    assert not any(skip.bad for skip in reading.skips.kinds.values())


def test_nodes_and_relationships_of_neo4j_are_a_knowledge_base(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id:ID,name,:LABEL\n1,Ann,Person\n2,Bob,Person\n")
    (tmp_path / "links.csv").write_text(":START_ID,:END_ID,:TYPE\n1,2,KNOWS\n")
    sources = [detect(tmp_path / name).source for name in ("nodes.csv", "links.csv")]
    build(sources, tmp_path / "kb", options=ReadOptions(), watch=BuildProgress())

    with kbtools.open(tmp_path / "kb") as kb:
        assert [answer.name for answer in kb.query("who does Ann know").answers] == ["Bob"]
        assert [kind.id for kind in kb.entity("1").types] == ["Person"]


def test_prose_with_commas_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("Rivers and towns\nThe Rhine, as you know, is long\nThe Ruhr, by the way, is not\n")
    with pytest.raises(WrongFormat, match="check which file the option names"):
        detect(tmp_path / "t.txt")
