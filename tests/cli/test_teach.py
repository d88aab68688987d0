"""kbtools teach, and what other commands say of it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main
from kbtools.ranking import models

LESSONS = """\
question\tsubject\trelation
what do people pay with in France\tFrance\tcurrency used
what do people pay with in Japan\tJapan\tcurrency used
what do they speak in Poland\tPoland\tofficial language
who lives in Narnia\tNarnia\tcapital
"""


@pytest.fixture
def kb(sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(models.VARIABLE, models.STATIC)
    return str(shutil.copytree(sample_path, tmp_path / "sample.kb"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_file_is_taught_and_measured_and_what_cannot_be_is_told(kb: str, tmp_path: Path) -> None:
    file = tmp_path / "lessons.tsv"
    file.write_text(LESSONS)

    result = run("teach", kb, str(file))

    assert result.exit_code == 1
    assert "sample.kb.taught.tsv: 3 questions" in result.stdout
    assert "correct, each after learning from the others" in result.stdout
    assert "location.country.currency_used: 2 questions" in result.stdout
    (untaught,) = [line for line in result.stdout.splitlines() if line.startswith("untaught: ")]
    assert untaught.endswith(", ...")
    assert "not taught: 'who lives in Narnia': no entity" in result.stderr


def test_the_first_eight_questions_that_cannot_be_taught_are_listed(kb: str, tmp_path: Path) -> None:
    file = tmp_path / "lessons.tsv"
    file.write_text("question\tanswer\n" + "".join(f"who lives in Narnia {number}\tNobody\n" for number in range(9)))

    result = run("teach", kb, str(file))

    assert result.stderr.count("not taught: ") == 8
    assert "9 of 9 questions were not taught" in result.stderr


def test_one_question_is_taught_listed_exported_and_removed(kb: str, tmp_path: Path) -> None:
    words = ("what do people pay with in France", "France", "currency used")

    assert "1 question" in run("teach", "--kb", kb, *words).stdout
    assert run("teach", kb, "--list").stdout == f"{words[0]} -> m.0f8l9c location.country.currency_used\n"
    assert run("teach", kb, "--export", str(tmp_path / "out.tsv")).exit_code == 0
    assert run("teach", kb, "--remove", words[0]).exit_code == 0
    assert run("teach", kb, "--list").stdout == ""
    assert run("teach", kb, str(tmp_path / "out.tsv")).exit_code == 0
    assert words[0] in run("teach", kb, "--list").stdout


def test_queries_and_info_say_by_how_many_questions(kb: str) -> None:
    run("teach", kb, "what do people pay with in France", "Euro")

    assert "taught by 1 question" in run("query", kb, "--explain", "what do people pay with in Japan").stdout
    assert json.loads(run("query", kb, "--json", "what do people pay with in Japan").stdout)["taught"] == 1
    assert "taught by 1 question" in run("info", kb).stdout
    assert json.loads(run("info", kb, "--json").stdout)["taught"] == 1


def test_a_report_is_written_for_programs(kb: str) -> None:
    run("teach", kb, "what do people pay with in France", "Euro")

    record = json.loads(run("teach", kb, "--json").stdout)

    assert record["questions"] == 1
    assert record["relations"][0]["relation"] == "location.country.currency_used"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", "b", "c", "d"), "each in quotes"),
        (("--list", "--remove", "who"), "use only one of"),
        (("--remove", "who"), "not taught: 'who'"),
    ],
)
def test_unclear_commands_are_refused(kb: str, arguments: tuple[str, ...], problem: str) -> None:
    result = run("teach", kb, *arguments)

    assert result.exit_code == 2
    assert problem in result.stderr
