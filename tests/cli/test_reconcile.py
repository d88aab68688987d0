"""kbtools reconcile: a table comes back with the entity of each row, and no tie is ever a match."""

import csv
import gc
import io
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

import kbtools
from kbtools.cli.main import main
from kbtools.indexers.readers.plain_tables import read_plain_table
from kbtools.indexers.readers.reading import ReadOptions, Wide
from kbtools.serve import table_reconciliation
from kbtools.serve.table_reconciliation import TableQuery, reconcile_table

FACTS = (
    "subject,relation,object\nb.1,author,p.1\nb.2,author,p.2\nb.3,author,p.1\nb.3,year,1990\nb.3,author,p.2\n"
    "b.1,book.print.publisher,p.3\nb.2,book.print.publisher,p.3\nb.3,book.size,10\nb.3,film.size,20\n"
)
NAMES = "id,name\nb.1,Low Tides\nb.2,Low Tides\nb.3,High Sands\np.1,Ana Poll\np.2,Bo Dorn\np.3,Red & Sons\n"
TYPES = "id,type\nb.1,novel\nb.2,play\nb.3,novel\n"


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("books")
    sources = []
    for kind, text in (("facts", FACTS), ("names", NAMES), ("types", TYPES)):
        (folder / f"{kind}.csv").write_text(text)
        sources += [f"--{kind}", str(folder / f"{kind}.csv")]
    run("index", *sources, "--out", str(folder / "kb"))
    return str(folder / "kb")


def run(*arguments: str) -> Invocation:
    done = CliRunner().invoke(main, [*arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def reconciled(books: str, folder: Path, table: str, *arguments: str) -> list[dict[str, str]]:
    """Reconcile a table by its column `title`; return the rows of the output."""
    (folder / "in.csv").write_text(table)
    done = run(
        "reconcile", books, str(folder / "in.csv"), "--column", "title", "--out", str(folder / "out.csv"), *arguments
    )
    assert done.exit_code == 0, done.stderr
    return [*csv.DictReader(io.StringIO((folder / "out.csv").read_text()))]


def test_rows_keep_their_cells_and_gain_id_name_score_and_match(books: str, tmp_path: Path) -> None:
    (row,) = reconciled(books, tmp_path, "shelf,title\n007,high sands\n")

    assert row == {"shelf": "007", "title": "high sands", "id": "b.3", "name": "High Sands"} | {
        "score": row["score"],
        "match": "true",
    }


def test_a_tie_is_no_match_whatever_the_threshold(books: str, tmp_path: Path) -> None:
    (row,) = reconciled(books, tmp_path, "title\nLow Tides\n", "--threshold", "0")

    assert row["match"] == "false"


def test_another_column_tells_namesakes_apart(books: str, tmp_path: Path) -> None:
    rows = reconciled(
        books, tmp_path, "title,by\nLow Tides,Bo Dorn\nLow Tides,Ana Poll\nLow Tides,\n", "--property", "by=author"
    )

    assert [(row["id"], row["match"]) for row in rows[:2]] == [("b.2", "true"), ("b.1", "true")]
    assert rows[2]["match"] == "false"


def test_the_head_of_a_column_may_have_an_equals_sign(books: str, tmp_path: Path) -> None:
    rows = reconciled(
        books, tmp_path, "title,by=who\nLow Tides,Bo Dorn\nLow Tides,Ana Poll\n", "--property", "by=who=author"
    )

    assert [(row["id"], row["match"]) for row in rows] == [("b.2", "true"), ("b.1", "true")]


def test_a_table_is_not_lost_to_a_link_of_another_name(books: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("title\nHigh Sands\n")
    (tmp_path / "out.csv").hardlink_to(tmp_path / "in.csv")

    done = run("reconcile", books, str(tmp_path / "in.csv"), "--column", "title", "--out", str(tmp_path / "out.csv"))

    assert (done.exit_code, "is the table itself" in done.stderr) == (2, True)
    assert (tmp_path / "in.csv").read_text() == "title\nHigh Sands\n"


def test_a_threshold_matches_what_is_not_certain(books: str, tmp_path: Path) -> None:
    (careful,) = reconciled(books, tmp_path, "title\nHigh Sandz\n")
    (bold,) = reconciled(books, tmp_path, "title\nHigh Sandz\n", "--threshold", "40")

    assert (careful["id"], careful["match"], bold["match"]) == ("b.3", "false", "true")


def test_matches_are_extended_by_the_values_of_relations(books: str, tmp_path: Path) -> None:
    rows = reconciled(books, tmp_path, "title\nHigh Sands\nNo Such Book\n", "--extend", "author", "--extend", "year")

    assert [(row["author"], row["year"]) for row in rows] == [("Ana Poll;Bo Dorn", "1990"), ("", "")]


def test_a_column_of_the_table_is_never_written_over(books: str, tmp_path: Path) -> None:
    (row,) = reconciled(books, tmp_path, "id,title\n17,High Sands\n")

    assert (row["id"], row["kb_id"]) == ("17", "b.3")


def test_rows_stay_in_order_though_some_are_short(books: str, tmp_path: Path) -> None:
    rows = reconciled(books, tmp_path, "title,year\nHigh Sands\nLow Tides,1990\nHigh Sands\n")

    assert [row["title"] for row in rows] == ["High Sands", "Low Tides", "High Sands"]


def test_the_summary_counts_what_came_of_the_rows(books: str, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("title\nHigh Sands\nLow Tides\nHigh Sandz\nQuite Different\n")
    files = [str(tmp_path / "in.tsv"), "--kb", books, "--out", str(tmp_path / "out.jsonl")]

    done = run("reconcile", "--column", "title", *files)

    assert (
        "4 rows: 1 matched (25%), 1 tied, 1 with a candidate that is not certain, 1 without a candidate" in done.stderr
    )
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) | {"score": 0} == {
        "title": "High Sands", "id": "b.3", "name": "High Sands", "score": 0, "match": True,
    }  # fmt: skip


def test_json_lines_and_spreadsheets_are_read_too(books: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"title": "Low Tides", "by": ["Ana Poll"]}\n{"title": "High Sands"}\n')
    out = tmp_path / "out.csv"

    run(
        "reconcile",
        books,
        str(tmp_path / "in.jsonl"),
        "--column",
        "title",
        "--property",
        "by=author",
        "--out",
        str(out),
    )

    assert [row["id"] for row in csv.DictReader(io.StringIO(out.read_text()))] == ["b.1", "b.3"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--column", "titel"], "no column 'titel'; the columns are 'title', 'by'"),
        (["--column", "title", "--extend", "writer"], "no relation 'writer'; there are 'author'"),
        (["--column", "title", "--property", "by"], "found 'by', expected COLUMN=RELATION"),
        (["--column", "title", "--out", "./in.csv"], "in.csv is the table itself"),
        (["--column", "title", "--out", "out.xlsx"], "the output is written as .csv, .tsv, .jsonl"),
    ],
)
def test_what_is_not_there_is_named_and_nothing_is_written(
    books: str, tmp_path: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("title,by\nHigh Sands,x\n")

    done = run("reconcile", books, "in.csv", "--out", "out.csv", *arguments)

    assert done.exit_code in (1, 2)
    assert sentence in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_row_that_cannot_be_read_is_refused_rather_than_lost(books: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('title,year\nHigh Sands,1990\n"Low" Tides,1990\n')
    files = [str(tmp_path / "in.csv"), "--column", "title", "--out", str(tmp_path / "out.csv")]

    refused = run("reconcile", books, *files)
    allowed = run("reconcile", books, *files, "--max-bad", "1")

    assert (refused.exit_code, allowed.exit_code) == (1, 0)
    assert "left out 1 line" in allowed.stderr


# The table


@pytest.mark.parametrize(("kind", "entity"), [("novel", "b.1"), ("play", "b.2")])
def test_a_type_tells_namesakes_apart(books: str, tmp_path: Path, kind: str, entity: str) -> None:
    (row,) = reconciled(books, tmp_path, "title\nLow Tides\n", "--type", kind)

    assert row["id"] == entity


def test_each_column_is_compared_with_its_own_relation(books: str, tmp_path: Path) -> None:
    table = "house,title,by\nRed & Sons,Low Tides,Bo Dorn\nBo Dorn,Low Tides,Red & Sons\n"

    right, crossed = reconciled(
        books, tmp_path, table, "--property", "by=author", "--property", "house=book.print.publisher"
    )

    assert (right["id"], right["match"], crossed["match"]) == ("b.2", "true", "false")
    assert float(right["score"]) > float(crossed["score"])


@pytest.mark.parametrize("cell", ["Ana Poll; Bo Dorn", "Bo Dorn |Ana Poll", "Ana Poll;;Bo Dorn;"])
def test_values_of_a_cell_are_compared_one_by_one(books: str, tmp_path: Path, cell: str) -> None:
    several, whole = reconciled(
        books, tmp_path, f"title,by\nHigh Sandz,{cell}\nHigh Sandz,Ana Poll Bo Dorn\n", "--property", "by=author"
    )

    assert several["id"] == whole["id"] == "b.3"
    assert float(several["score"]) > float(whole["score"])


@pytest.mark.parametrize("name", ["publisher", "Publisher", "book.print.publisher"])
def test_a_relation_is_named_by_its_id_or_its_last_part(books: str, tmp_path: Path, name: str) -> None:
    (row,) = reconciled(books, tmp_path, "title,by\nLow Tides,Ana Poll\n", "--property", "by=author", "--extend", name)

    assert row[name] == "Red & Sons"


def test_only_matches_are_extended_though_others_have_the_same_candidate(books: str, tmp_path: Path) -> None:
    match, doubtful = reconciled(books, tmp_path, "title\nHigh Sands\nHigh Sandz\n", "--extend", "year")

    assert (match["id"], match["year"], doubtful["id"], doubtful["year"]) == ("b.3", "1990", "b.3", "")


def test_what_a_spreadsheet_would_run_is_text_in_the_added_cells_alone(tmp_path: Path) -> None:
    (tmp_path / "kb.csv").write_text("id,name,note\n=7,@Ann,=1+1\nb,Bob,-5\n")
    run("index", str(tmp_path / "kb.csv"), "--out", str(tmp_path / "kb"))

    rows = reconciled(str(tmp_path / "kb"), tmp_path, "title\n@Ann\nBob\n", "--extend", "note")
    shown = run("lookup", str(tmp_path / "kb"), "@Ann", "--format", "csv").stdout

    assert [tuple(row[head] for head in ("title", "id", "name", "note")) for row in rows] == [
        ("@Ann", "'=7", "'@Ann", "'=1+1"), ("Bob", "b", "Bob", "-5"),
    ]  # fmt: skip
    assert "'@Ann" in shown


def test_a_threshold_is_reached_by_its_own_score(books: str, tmp_path: Path) -> None:
    (row,) = reconciled(books, tmp_path, "title\nHigh Sandz\n")
    score = float(row["score"])

    (at,) = reconciled(books, tmp_path, "title\nHigh Sandz\n", "--threshold", row["score"])
    (above,) = reconciled(books, tmp_path, "title\nHigh Sandz\n", "--threshold", str(score + 0.01))

    assert 0 < score < 100
    assert (at["match"], above["match"]) == ("true", "false")


def test_rows_without_a_match_keep_their_cells(books: str, tmp_path: Path) -> None:
    empty, unknown, doubtful = reconciled(
        books, tmp_path, "title,n\n,1\nQuite Different,2\nHigh Sandz,3\n", "--extend", "year"
    )

    assert empty == {"title": "", "n": "1", "id": "", "name": "", "score": "", "match": "false", "year": ""}
    assert unknown == empty | {"title": "Quite Different", "n": "2"}
    assert (doubtful["id"], doubtful["year"], doubtful["n"]) == ("b.3", "", "3")


def test_every_row_of_many_is_reconciled_and_counted(
    books: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_reconciliation, "AT_ONCE", 2)
    titles = ["High Sands", "", "b.1", "High Sands", "b.2"]
    (tmp_path / "in.csv").write_text("n,title\n" + "".join(f"{n},{title}\n" for n, title in enumerate(titles)))
    table = read_plain_table(tmp_path / "in.csv", ReadOptions(wide=Wide(name=("title",))))
    counted: list[None] = []

    summary = reconcile_table(
        kbtools.open(books),
        table,
        TableQuery("title", extend=("author",)),
        tmp_path / "new" / "out.tsv",
        count=lambda: counted.append(None),
    )

    lines = (tmp_path / "new" / "out.tsv").read_text().splitlines()
    assert [line.split("\t")[0::5] for line in lines] == [
        ["n", "match"], ["0", "true"], ["1", "false"], ["2", "true"], ["3", "true"], ["4", "true"],
    ]  # fmt: skip
    assert [line.split("\t")[6] for line in lines[1:]] == [
        "Ana Poll;Bo Dorn", "", "Ana Poll", "Ana Poll;Bo Dorn", "Bo Dorn",
    ]  # fmt: skip
    assert (len(table), len(counted), str(summary)) == (5, 5, "5 rows: 4 matched (80%), 1 empty")


def test_heads_that_the_table_has_are_given_to_no_other_column(books: str, tmp_path: Path) -> None:
    (row,) = reconciled(books, tmp_path, "title,id,kb_id,match,author\nHigh Sands,1,2,3,4\n", "--extend", "author")

    assert [*row] == ["title", "id", "kb_id", "match", "author", "kb_kb_id", "name", "score", "kb_match", "kb_author"]
    assert [*row.values()][1:6] == ["1", "2", "3", "4", "b.3"]


@pytest.mark.parametrize("out", ["out.TSV", "out.csv", "out.jsonl"])
def test_cells_of_any_text_come_back_as_they_were(books: str, tmp_path: Path, out: str) -> None:
    cells = ["High Sands", "a,b", 'say "oh"', "two\nlines", "tab\there", "\u0141\u00f3d\u017a", "007"]
    (tmp_path / "in.jsonl").write_text(
        json.dumps(dict(zip(["title", *"bcdefg"], cells, strict=True))) + "\n" + '{"title": "Low Tides"}\n'
    )

    done = run("reconcile", books, str(tmp_path / "in.jsonl"), "--column", "title", "--out", str(tmp_path / out))

    text = (tmp_path / out).read_text(encoding="utf-8")
    read = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if out.endswith("TSV") else ",")
    rows = [[*json.loads(line).values()] for line in text.splitlines()] if out == "out.jsonl" else [*read][1:]
    assert done.exit_code == 0, done.stderr
    assert [row[:7] for row in rows] == [cells, ["Low Tides"] + [""] * 6]
    assert "\u0141\u00f3d\u017a" in text


def test_blanks_around_a_cell_are_left_out(books: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"title": "  b.3 ", "n": " 7\\u00a0"}\n')
    out = tmp_path / "out.jsonl"

    run("reconcile", books, str(tmp_path / "in.jsonl"), "--column", "title", "--out", str(out))

    row = json.loads(out.read_text())
    assert (row["title"], row["n"], row["id"]) == ("b.3", "7", "b.3")


def test_a_sheet_a_database_and_an_encoding_are_read_as_a_build_reads_them(books: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "in.sqlite")) as database, database:
        database.execute("CREATE TABLE shelf (title TEXT, place INTEGER)")
        database.executemany("INSERT INTO shelf VALUES (?, ?)", [("High Sands", 1), ("Low Tides", None)])
    (tmp_path / "in.csv").write_bytes("title,note\nHigh Sands,caf\u00e9\n".encode("latin-1"))
    out = tmp_path / "out.csv"

    query = ["--query", "SELECT place, title FROM shelf ORDER BY place DESC"]
    done = run("reconcile", books, str(tmp_path / "in.sqlite"), "--column", "title", "--out", str(out), *query)
    from_database = [*csv.DictReader(io.StringIO(out.read_text()))]
    run("reconcile", books, str(tmp_path / "in.csv"), "--column", "title", "--out", str(out), "--encoding", "latin-1")

    assert done.exit_code == 0, done.stderr
    assert sorted((row["title"], row["place"], row["id"]) for row in from_database) == [
        ("High Sands", "1", "b.3"), ("Low Tides", "", from_database[-1]["id"]),
    ]  # fmt: skip
    assert "caf\u00e9" in out.read_text(encoding="utf-8")


def test_a_table_without_rows_is_refused(books: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("title,year\n")

    done = run("reconcile", books, str(tmp_path / "in.csv"), "--column", "title", "--out", str(tmp_path / "out.csv"))

    assert done.exit_code == 1
    assert "no row under the header" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--property", "=author"], "found '=author', expected COLUMN=RELATION"),
        (["--property", "by="], "found 'by=', expected COLUMN=RELATION"),
        (["--extend", "size"], "several relations are called 'size'; there are 'book.size', 'film.size'"),
        (["--property", "whose=author"], "no column 'whose'; the columns are 'title', 'by'"),
        (["--threshold", "101"], "101"),
        (["--type", "poem"], "no entity has the type 'poem'"),
    ],
)
def test_what_cannot_be_compared_is_refused(books: str, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "in.csv").write_text("title,by\nHigh Sands,x\n")

    done = run(
        "reconcile",
        books,
        str(tmp_path / "in.csv"),
        "--column",
        "title",
        "--out",
        str(tmp_path / "out.csv"),
        *arguments,
    )

    assert done.exit_code in (1, 2)
    assert sentence in done.stderr


def test_judgements_of_a_long_table_are_not_all_kept(
    books: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_reconciliation, "JUDGED", 10)
    (tmp_path / "in.csv").write_text("title\n" + "".join(f"high sands {number}\n" for number in range(1_000)))
    table = read_plain_table(tmp_path / "in.csv", ReadOptions(wide=Wide(name=("title",))))
    kept: list[int] = []

    def count() -> None:
        kept.append(0 if len(kept) % 300 else sum(type(value).__name__ == "_Judgement" for value in gc.get_objects()))

    with kbtools.open(books) as answerer:
        reconcile_table(answerer, table, TableQuery(column="title"), tmp_path / "out.csv", count=count)

    assert len(kept) == 1_000
    assert max(kept) <= 10 + 2 * table_reconciliation.AT_ONCE


def test_no_server_is_needed() -> None:
    program = "import sys; sys.modules['starlette'] = None; import kbtools.serve.table_reconciliation"

    subprocess.run([sys.executable, "-c", program], check=True)
