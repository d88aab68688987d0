"""Tables as offices export them: any encoding and separator, titles above the header, no ids, values of any kind."""

import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import kbtools
from kbtools.errors import WrongFormat
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.detection import detect
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source, Wide
from kbtools.indexers.readers.table_files import TableReading, open_reading

OPEN_DOCUMENT = ("office", "table", "text")

XSD = "http://www.w3.org/2001/XMLSchema#"


def read(path: Path, **options: Any) -> tuple[dict[str, set[tuple[Any, ...]]], list[str]]:
    reading = TableReading(Source(path, "any", format=WIDE), ReadOptions(**options))
    rows: dict[str, set[tuple[Any, ...]]] = {}
    for batch in reading.batches():
        rows.setdefault(batch.kind, set()).update(tuple(row.values()) for row in batch.table.to_pylist())
    return rows, [note.partition(": ")[2] for note in reading.skips.notes]


def names(rows: dict[str, set[tuple[Any, ...]]]) -> set[tuple[str, str]]:
    return {(entity, text) for entity, _, text, _ in rows.get("names", set())}


def facts(path: Path, kb: Path, **wide: Any) -> set[tuple[str, str, str]]:
    """Build a knowledge base of a table; return its facts by their ids."""
    options = ReadOptions(wide=Wide(**wide))
    build([Source(path, "any", format=WIDE)], kb, options=options, watch=BuildProgress(), force=True)
    with kbtools.open(kb) as answerer:
        ids = list(EmbeddedKB(kb).entity_ids)
        return {
            (fact.subject.id, fact.relation.id, fact.object.id)
            for entity_id in ids
            for fact in answerer.facts(entity_id, limit=100).facts
            if fact.subject.id == entity_id
        }


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-8", None), ("utf-8-sig", None), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
    ],
)  # fmt: skip
def test_an_encoding_is_found_and_told(tmp_path: Path, encoding: str, told: str | None) -> None:
    lines = "id;name;city\r\n" + "".join(f"{n};Müller & Söhne {n};Köln\r\n" for n in range(9))
    (tmp_path / "c.csv").write_bytes(lines.encode(encoding))

    rows, notes = read(tmp_path / "c.csv")

    assert ("3", "Müller & Söhne 3") in names(rows)
    assert [note for note in notes if note.startswith("read as")] == (
        [f"read as {told}; use --encoding to change it"] if told else []
    )


def test_an_encoding_that_is_named_is_taken(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes("id,name\n1,Łódź\n".encode("cp1250"))
    rows, _ = read(tmp_path / "c.csv", encoding="cp1250")
    assert names(rows) == {("1", "Łódź")}
    with pytest.raises(WrongFormat, match=r"is not utf-8 .*; name its encoding with --encoding"):
        read(tmp_path / "c.csv", encoding="utf-8")


def test_a_damaged_letter_in_utf_8_is_a_bad_line_and_no_other_encoding(tmp_path: Path) -> None:
    lines = "id,name\n" + "".join(f"{n},Köln\n" for n in range(9))
    (tmp_path / "c.csv").write_bytes(lines.encode() + b"10,Stra\xdfe\n")
    rows, notes = read(tmp_path / "c.csv", max_bad=0.5)
    assert ("8", "Köln") in names(rows)
    assert not [note for note in notes if note.startswith("read as")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sep=;\r\nid;name\r\n1;Alpha\r\n", {("1", "Alpha")}),
        ("Export of 2026\n\nid,name,city\n1,Alpha,Bonn\n", {("1", "Alpha")}),
        ("Report,,\nof today,,\nKey No;x,Company Name,City\nA-1,Alpha,Bonn\nA-2,Beta,Bonn\n", {("c/4", "Alpha")}),
        ("ID,Label,City\n1,Alpha,Bonn\n", {("1", "Alpha")}),
        ("id,title,city\n1,Alpha,Bonn\n", {("1", "Alpha")}),
        ("Company ID;Company Name (full);City\nC-1;Alpha, Ltd;Bonn\nC-2;Beta;Bonn\n", {("C-1", "Alpha, Ltd")}),
        ("name,city\nAlpha,Bonn\nBeta,Bonn\n", {("c/2", "Alpha")}),
        ("city,country\nBonn,DE\nKiel,DE\n", {("c/2", "Bonn")}),
        ("id,Name,Name,city\n1,Alpha,Alfa,Bonn\n", {("1", "Alpha")}),
        ("id|name\n1|Alpha\n", {("1", "Alpha")}),
    ],
)  # fmt: skip
def test_columns_are_found_by_their_heads_and_their_content(
    tmp_path: Path, text: str, expected: set[tuple[str, str]]
) -> None:
    (tmp_path / "c.csv").write_text(text)
    rows, notes = read(tmp_path / "c.csv")
    assert names(rows) >= expected
    assert any(note.startswith("columns: ") for note in notes)


def test_what_each_column_was_taken_for_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("Company ID,Name,Short name / alias,Type?,City\nC1,Alpha,A,firm,Bonn\n")
    rows, notes = read(tmp_path / "c.csv")
    assert notes == ["columns: id 'Company ID'; name 'Name'; alias 'Short name / alias'; type 'Type?'; values 'City'"]
    assert rows["types"] == {("C1", "firm")}
    assert names(rows) == {("C1", "Alpha"), ("C1", "A")}


def test_one_column_may_be_both_id_and_name(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("name,city\nAlpha,Bonn\n")
    rows, _ = read(tmp_path / "c.csv", wide=Wide(subject="name", name=("name",)))
    assert names(rows) == {("Alpha", "Alpha")}


def test_rows_with_fewer_cells_are_padded_and_told_by_their_lines(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(
        'id,name,city\n1,Alpha,Bonn\n2,Beta\n3,Gamma,Kiel,,\n4,Delta,Bonn,x\n\n5,"E\n",Kiel\n'
    )
    rows, notes = read(tmp_path / "c.csv", max_bad=0.5)
    assert names(rows) == {("1", "Alpha"), ("2", "Beta"), ("3", "Gamma"), ("5", "E")}
    assert notes[-1] == "rows with fewer cells than the header, missing cells taken as empty: lines 3"


def test_a_column_that_no_table_has_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,name,city\n1,Alpha,Bonn\n")
    for wide, head in (
        (Wide(subject="key"), "key"),
        (Wide(name=("titel",)), "titel"),
        (Wide(link=("stadt",)), "stadt"),
    ):
        with pytest.raises(WrongFormat, match=rf"found the columns \['id', 'name', 'city'\], none of them '{head}'"):
            build(
                [Source(tmp_path / "c.csv", "any", format=WIDE)], tmp_path / "x.kb", options=ReadOptions(wide=wide),
                watch=BuildProgress(),
            )  # fmt: skip


def test_cells_are_values_of_their_kind_or_entities(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(
        "id,name,boss_id,founded,size,web,remark,country,zip\n"
        '1,Alpha,2,2001-02-03,1087353,https://a.example/x,"n/a ""q""",Q183,01067\n'
        "2,Beta,,1998,2.0,,1,Q142,7\n"
    )
    assert facts(tmp_path / "c.csv", tmp_path / "x.kb") == {
        ("1", "boss_id", "2"),
        ("1", "founded", f'"2001-02-03"^^<{XSD}date>'),
        ("1", "size", f'"1087353"^^<{XSD}decimal>'),
        ("1", "web", f'"https://a.example/x"^^<{XSD}anyURI>'),
        ("1", "remark", '"n/a \\"q\\""'),
        ("1", "country", "Q183"),
        ("1", "zip", '"01067"'),
        ("2", "founded", f'"1998"^^<{XSD}decimal>'),
        ("2", "size", f'"2.0"^^<{XSD}decimal>'),
        ("2", "remark", f'"1"^^<{XSD}decimal>'),
        ("2", "country", "Q142"),
        ("2", "zip", f'"7"^^<{XSD}decimal>'),
    }


def test_names_in_cells_are_linked_where_asked_alone(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,name,city\nc1,Alpha,Bonn\nc2,Beta,Nowhere\nb1,bonn,c1\n")
    assert facts(tmp_path / "c.csv", tmp_path / "x.kb") == {
        ("c1", "city", '"Bonn"'), ("c2", "city", '"Nowhere"'), ("b1", "city", "c1"),
    }  # fmt: skip
    assert facts(tmp_path / "c.csv", tmp_path / "y.kb", link=("city",)) == {
        ("c1", "city", "b1"), ("c2", "city", '"Nowhere"'), ("b1", "city", "c1"),
    }  # fmt: skip


def test_a_list_of_ids_and_names_is_a_knowledge_base(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,name\n1,Alpha\n2,Beta\n")
    build([detect(tmp_path / "c.csv").source], tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())
    assert EmbeddedKB(tmp_path / "x.kb").lookup(["beta"])


def test_too_many_columns_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,name" + ",x" * 1_000_000 + "\n1,a" + ",y" * 1_000_000 + "\n")
    for source in (Source(tmp_path / "c.csv", "any", format=WIDE), Source(tmp_path / "c.csv", "names")):
        with pytest.raises(WrongFormat, match=r"c\.csv:1: a header of over 10,000 columns"):
            list(open_reading(source, ReadOptions()).batches())


SHEET = """<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
{rows}</sheetData>{merged}</worksheet>"""
MAIN = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_xlsx(path: Path, sheets: dict[str, list[list[str | float]]], merged: Sequence[str] = ()) -> Path:
    """Write a small workbook of text and numbers; `merged` are ranges of cells such as `A2:A3`."""
    ranges = "".join(f'<mergeCell ref="{cells}"/>' for cells in merged)
    ranges = f"<mergeCells>{ranges}</mergeCells>" if ranges else ""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship '
            f'Id="r1" Type="{MAIN}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
        archive.writestr(
            "xl/workbook.xml",
            '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            f'xmlns:r="{MAIN}"><sheets>{listed}</sheets></workbook>',
        )
        related = "".join(
            f'<Relationship Id="r{n}" Type="{MAIN}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{related}'
            "</Relationships>",
        )
        for n, rows in enumerate(sheets.values(), 1):
            cells = "".join(
                f'<row r="{r}">'
                + "".join(
                    f'<c r="{chr(65 + c)}{r}" t="inlineStr"><is><t>{cell}</t></is></c>'
                    if isinstance(cell, str)
                    else f'<c r="{chr(65 + c)}{r}"><v>{cell}</v></c>'
                    for c, cell in enumerate(row)
                )
                + "</row>"
                for r, row in enumerate(rows, 1)
            )
            archive.writestr(f"xl/worksheets/sheet{n}.xml", SHEET.format(rows=cells, merged=ranges))
    return path


def test_a_spreadsheet_is_read_under_its_header(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    sheets: dict[str, list[list[str | float]]] = {
        "Firms": [["Report"], [], ["ID", "Company name", "Size", ""], [1, "Alpha", 12.0, ""], [2, "Beta", 1.5, ""]],
        "Other": [["id", "name"], ["x", "Gamma"]],
    }
    path = write_xlsx(tmp_path / "firms.xlsx", sheets)

    rows, notes = read(path)
    other, _ = read(path, wide=Wide(sheet="Other"))

    assert names(rows) == {("1", "Alpha"), ("2", "Beta")}
    assert rows["facts"] == {("1", "Size", '"12"^^<cell:number>'), ("2", "Size", '"1.5"^^<cell:number>')}
    assert "the sheet 'Firms' is read; use --sheet for another: 'Other'" in notes
    assert names(other) == {("x", "Gamma")}
    assert detect(path).source.format == WIDE
    with pytest.raises(WrongFormat, match="no sheet 'Third'; the sheets are 'Firms', 'Other'"):
        read(path, wide=Wide(sheet="Third"))


def test_an_empty_sheet_is_neither_read_nor_offered(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    path = write_xlsx(tmp_path / "b.xlsx", {"Sheet1": [], "Boats": [["Boat", "Berth"], ["Gull", "A2"], ["Tern", "A3"]]})
    rows, notes = read(path)
    assert {text for _, text in names(rows)} == {"Gull", "Tern"}
    assert not [note for note in notes if "--sheet" in note]


def test_a_page_of_remarks_is_not_the_sheet_that_is_read(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    boats: list[list[str | float]] = [["Boat", "Berth"], ["Gull", "A2"]]
    path = write_xlsx(tmp_path / "b.xlsx", {"Read me": [["Our boats"], ["Ask Ann", "or Bob"]], "Boats": boats})
    rows, notes = read(path)
    assert {text for _, text in names(rows)} == {"Gull"}
    assert "the sheet 'Boats' is read; use --sheet for another: 'Read me'" in notes


def test_rows_of_a_spreadsheet_that_describe_no_entity_are_left_out(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="pip install python-calamine")
    objects: list[list[str | float]] = [[f"A-{n}", f"Bowl {n}", n] for n in range(1, 6)]
    sheet: list[list[str | float]] = [
        ["Inv. No.", "Title", "Value"],
        *objects[:2],
        [],
        *objects[2:],
        ["", "Total", 15],
        [],
        ["Printed in May"],
    ]
    path = write_xlsx(tmp_path / "museum.xlsx", {"Objects": sheet})

    kb = kbtools.index(table=path, out=tmp_path / "kb")

    (source,) = kb.kb.manifest.sources
    assert {fact.subject.id for match in kb.lookup("Bowl 5").matches for fact in kb.facts(match.id).facts} == {"A-5"}
    assert {kind: count for kind, count, _ in source.skipped} == {"blank line": 2, "row of totals": 1, "note": 1}
    assert source.notes[-1].endswith("columns: id 'Inv. No.'; name 'Title'; values 'Value'")


def test_a_data_frame_of_entities_is_a_knowledge_base(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    frame = pandas.DataFrame(
        {
            "id": [1, 2],
            "name": ["Alpha", "Beta"],
            "founded": [pandas.Timestamp("2001-02-03"), pandas.NaT],
            "boss_id": pandas.array([2, None], dtype="Int64"),
            "size": [1.0, 2.5],
            "mixed": ["x", 7],
        }
    )
    with kbtools.index(table=frame, out=tmp_path / "x.kb") as answerer:
        shown = {fact.relation.id: fact.object.id for fact in answerer.facts("1").facts}
    assert shown == {
        "founded": f'"2001-02-03"^^<{XSD}date>', "boss_id": "2", "size": f'"1"^^<{XSD}decimal>', "mixed": '"x"',
    }  # fmt: skip


def test_rows_of_entities_and_parquet_are_tables_too(tmp_path: Path) -> None:
    rows = [{"company": "a", "title": "Alpha", "since": datetime(2001, 2, 3), "tags": ["x", "y"]}]
    columns = {"id": "company", "name": "title"}
    with kbtools.index(table=rows, columns=columns, out=tmp_path / "x.kb") as answerer:
        assert answerer.entity("a").name == "Alpha"
        assert {fact.object.name for fact in answerer.facts("a").facts} == {"2001-02-03", "x", "y"}
    pandas_table = pa.table({"company": ["a"], "title": ["Alpha"], "size": [7], "__index_level_0__": [5]})
    pyarrow.parquet.write_table(pandas_table, tmp_path / "t.parquet")
    with kbtools.index(table=tmp_path / "t.parquet", columns=columns, out=tmp_path / "y.kb") as answerer:
        assert answerer.entity("a").name == "Alpha"
        assert [fact.relation.id for fact in answerer.facts("a").facts] == ["size"]


def test_a_column_without_a_head_has_a_number_and_an_empty_one_is_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,name,,\n1,Ann,x,\n2,Bob,y,\n")

    kb = kbtools.index(table=path, out=tmp_path / "kb")

    assert [(fact.relation.id, fact.object.name) for fact in kb.facts("1").facts] == [("column 3", "x")]
    (source,) = kb.kb.manifest.sources
    assert source.notes[-1].endswith("columns: id 'id'; name 'name'; values 'column 3'")


def notes_of(tmp_path: Path, text: str, name: str = "t.csv") -> tuple[kbtools.Answerer, str]:
    """Index a table by the command's own guesses; return the knowledge base and all that was noticed."""
    (tmp_path / name).write_text(text)
    detected = detect(tmp_path / name).source
    built = build([detected], tmp_path / "kb", options=ReadOptions(), watch=BuildProgress())
    (source,) = built.manifest.sources
    return kbtools.open(tmp_path / "kb"), "\n".join([*source.notes, *(kind for kind, _, _ in source.skipped)])


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("City,Company,Company code\nBonn,Acme,A-1\nRome,Bolt,B-2\n", "id 'Company code'; name 'Company'"),
        ("Artikelnummer;Bezeichnung\n00012;Schraube\n00013;Mutter\n", "id 'Artikelnummer'; name 'Bezeichnung'"),
        (
            "item,itemLabel\nhttp://www.wikidata.org/entity/Q64,Berlin\nhttp://www.wikidata.org/entity/Q90,Paris\n",
            "id 'item'; name 'itemLabel'",
        ),
        ("name,phone number\nAnn,1\nBob,2\n", "no id, rows are numbered; name 'name'"),
    ],
)
def test_ids_and_names_are_guessed_as_people_call_them(tmp_path: Path, text: str, guess: str) -> None:
    assert f"columns: {guess}" in notes_of(tmp_path, text)[1]


def test_a_row_of_totals_is_left_out_and_is_no_bad_line(tmp_path: Path) -> None:
    kb, notes = notes_of(tmp_path, "id,name,amount\n1,Ann,10\n,Total,10\n")

    assert "row of totals" in notes
    assert [match.id for match in kb.lookup("total").matches] == []


def test_three_columns_of_an_entity_in_a_text_file_are_no_facts(tmp_path: Path) -> None:
    kb, _ = notes_of(tmp_path, "ID\tNAME\tCITY\n1\tAnn\tBonn\n", "t.txt")

    assert [(fact.relation.id, fact.object.name) for fact in kb.facts("1").facts] == [("CITY", "Bonn")]


def test_a_cell_far_from_the_table_is_named_before_it_takes_all_memory(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "t.xlsx", {"Firms": [["id", "name"], ["1", "Ann"]]})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/worksheets/sheet2.xml", '<row><c r="A2"><v>1</v></c><c r="AAB1048576"><v>1</v></c></row>')
    with pytest.raises(kbtools.KBToolsError, match="a sheet reaches to the cell AAB1048576; delete what is far"):
        kbtools.index(table=path, out=tmp_path / "t.kb")


def test_a_cell_far_from_the_table_of_an_open_document_is_not_called_damage(tmp_path: Path) -> None:
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in OPEN_DOCUMENT)
    cells = '<table:table-cell office:value-type="string"><text:p>id</text:p></table:table-cell>'
    far = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell/></table:table-row>'
    far += f'<table:table-row><table:table-cell table:number-columns-repeated="16383"/>{cells}</table:table-row>'
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name='S'>"
            f"<table:table-row>{cells}</table:table-row>{far}</table:table></office:spreadsheet></office:body>"
            "</office:document-content>",
        )
    with pytest.raises(WrongFormat, match=r"over 100,000,000 cells; delete what is far from the table"):
        read(tmp_path / "t.ods")


def test_a_cell_far_from_the_table_that_has_only_a_format_is_no_part_of_it(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "t.xlsx", {"Firms": [["id", "name"], ["1", "Ann"]]})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/worksheets/sheet2.xml", '<row><c r="AAB1048576" s="1"/><c r="B1" s="1" /></row>')
    rows, _ = read(path)
    assert names(rows) == {("1", "Ann")}


@pytest.mark.parametrize(
    ("name", "text", "cure"),
    [
        ("t.xls", "<html><table></table></html>", "found HTML or XML, .* save it as .xlsx"),
        ("t.xlsx", "id,name\n1,Ann\n", "found text, which is not a spreadsheet; name it .csv"),
        ("t.csv", "id,name\r1,Ann\r", "lines end with carriage returns only; save the file with line feeds"),
        ("t.csv", "id,x,y\n1,2,3\n2,4,5\n", "no column contains names; choose one with --name"),
        ("t.txt", "Ann Smith\nBob Jones\n", "use the suffix .csv and the header name"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_cure(tmp_path: Path, name: str, text: str, cure: str) -> None:
    with pytest.raises(kbtools.KBToolsError, match=cure):
        notes_of(tmp_path, text, name)
