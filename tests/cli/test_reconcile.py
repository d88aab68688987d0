"""kbtools reconcile: a table comes back with the entity of each row, and no tie is ever a match."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

from kbtools.cli.main import main

FACTS = "subject,relation,object\nb.1,author,p.1\nb.2,author,p.2\nb.3,author,p.1\nb.3,year,1990\nb.3,author,p.2\n"
NAMES = "id,name\nb.1,Low Tides\nb.2,Low Tides\nb.3,High Sands\np.1,Ana Poll\np.2,Bo Dorn\n"


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("books")
    facts, names = folder / "facts.csv", folder / "names.csv"
    facts.write_text(FACTS)
    names.write_text(NAMES)
    run("index", "--facts", str(facts), "--names", str(names), "--out", str(folder / "kb"))
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
    assert "left out 1 lines" in allowed.stderr
