"""Every figure of the documents comes from a script, whose results are kept with the version of the code."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import figures
import pytest

ROOT = Path(figures.__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

MARKED = re.compile(r"<!-- \[\[\[cog.*?\[\[\[end\]\]\] -->", re.DOTALL)
CODE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(
    r"\d ?%|\d (?:ms|µs|CPU ms|CPU µs|milliseconds|microseconds|CPU s|CPU seconds|points|times as|[GMk]B)\b"
    r"|\| [-+]?\d[\d,]*\.\d+ ?(?:[|±/]|$)"  # a cell of a table
    r"|\d (?:documents|questions|tokens|names|MB|facts|triples)(?:/s| a second)\b"
)

NOT_MEASURED = (
    "95 %",  # intervals
    "or 4 MB is continued",  # the largest document of a cluster
    "some 20 GB",  # what a shard should hold
    "above 30 GB",
    "1 GB is enough",
    "`--memory` allows (1 GB)",
    "downloads 5 GB of CUDA",  # what others weigh
    "ONNX Runtime and tokenizers, 100 MB",
    "file of 8 MB",
    "(83 MB)",
    "19 MB instead of 9.5 GB",  # from the dimensions
    "it is learned, 5 % (tagger 20 %)",  # settings of training
)
"""Settings, limits and facts of others: what no script measures."""


def measured_lines(page: str) -> Iterator[str]:
    """Yield the lines of a page that hold a figure outside the marks of figures, and outside code."""
    for line in CODE.sub("", MARKED.sub("", page)).splitlines():
        for phrase in NOT_MEASURED:
            line = line.replace(phrase, "")
        if FIGURE.search(line):
            yield line


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_holds_no_figure_without_a_source(path: Path) -> None:
    assert [*measured_lines(path.read_text(encoding="utf-8"))] == []


def test_a_figure_outside_marks_is_seen() -> None:
    page = "It takes 3 ms.\n<!-- [[[cog table('a', 'b') ]]] -->\n| 5 % |\n<!-- [[[end]]] -->\n```text\n7 MB\n```\n"

    assert [*measured_lines(page)] == ["It takes 3 ms."]


def test_the_documents_hold_the_figures_that_are_recorded() -> None:
    prologue = "from figures import origins, table, text"
    pages = [str(path) for path in DOCUMENTS if path.name != "cli.md"]
    check = [sys.executable, "-m", "cogapp", "-I", str(figures.FOLDER.parent), "-p", prologue, "--check", "--diff"]

    done = subprocess.run([*check, *pages], capture_output=True, text=True, cwd=ROOT)

    assert done.returncode == 0, done.stdout + done.stderr


def test_figures_are_of_the_code_of_today_or_say_why_not() -> None:
    """`make figures NAME=...` measures them again; `kept` in the record says why older ones stand."""
    today = figures.code_versions()

    older = {name: record["code"] for name, record in figures.read_records().items() if "kept" not in record}

    assert {name: code for name, code in older.items() if code != today} == {}


def test_the_command_of_every_record_is_a_script_of_the_benchmarks() -> None:
    commands = {name: record["command"].split() for name, record in figures.read_records().items()}

    scripts = {name: ROOT / words[1] for name, words in commands.items() if words != ["make", "bench"]}
    assert {name: path for name, path in scripts.items() if not path.is_file()} == {}


def test_a_table_may_have_two_columns_of_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"speed": {"columns": ["chain", "alone", "alone"], "rows": [["a", "1", "2"], ["b", "3", "4"]]}}
    monkeypatch.setattr(figures, "read_records", lambda: {"chain": {"tables": tables}})
    written: list[str] = []
    monkeypatch.setattr(figures, "write_out", written.append)

    figures.table("chain", "speed")
    figures.table("chain", "speed", "chain", rows=["b"])
    figures.text("It takes {chain[speed][b][alone]} s.")

    assert written == [
        "\n| chain | alone | alone |\n| --- | ---: | ---: |\n| a | 1 | 2 |\n| b | 3 | 4 |\n",
        "\n| chain |\n| --- |\n| b |\n",
        "\nIt takes 3 s.\n",
    ]


def test_a_record_is_measured_again_by_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def measure() -> None:
        seen.append(sys.argv)
        figures.show_table("share", ["run", "right"], [[len(seen), "97%"]])

    monkeypatch.setitem(sys.modules, "count_runs", SimpleNamespace(main=measure))
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "benchmarks" / "figures")
    monkeypatch.setattr(figures, "recorded", {})
    (tmp_path / "benchmarks").mkdir()

    for command in (["count_runs.py", "--limit", "3"], []):
        monkeypatch.setattr(sys, "argv", ["figures.py", "runs", *command])
        figures.main()

    record = figures.read_records()["runs"]
    assert seen == [["count_runs.py", "--limit", "3"]] * 2
    assert record["command"] == "python benchmarks/count_runs.py --limit 3"
    assert record["code"] == figures.code_versions()
    assert record["tables"] == {"share": {"columns": ["run", "right"], "rows": [["2", "97 %"]]}}


def test_tables_that_a_script_does_not_make_stay_and_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "benchmarks" / "figures")
    (tmp_path / "benchmarks").mkdir()
    for key in ("first", "second"):
        monkeypatch.setattr(figures, "recorded", {})
        figures.show_table(key, ["right"], [["1"]])
        figures.write_record("runs", ["count_runs.py"])

    record = figures.read_records()["runs"]
    assert (sorted(record["tables"]), record["kept"]) == (["first", "second"], "of an older run: first")


def test_a_script_without_a_table_leaves_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "recorded", {})

    with pytest.raises(SystemExit, match="made no table"):
        figures.write_record("runs", ["count_runs.py"])
