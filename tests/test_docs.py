"""The pages about commands and the API agree with the code."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import kbtools
import kbtools.errors
from kbtools.cli.main import main
from kbtools.ranking import models

ROOT = Path(__file__).resolve().parents[1]
CLI_PAGE = ROOT / "docs" / "cli.md"


def test_every_command_has_its_section() -> None:
    page = CLI_PAGE.read_text(encoding="utf-8")

    commands = main.list_commands(click.Context(main))

    assert commands
    assert [name for name in commands if f"\n## kbtools {name}\n" not in page] == []


def test_the_page_is_what_help_prints() -> None:
    check = [sys.executable, "-m", "cogapp", "--check", "--diff", "--check-fail-msg=run make docs", str(CLI_PAGE)]

    done = subprocess.run(check, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_that_is_no_error_is_on_the_python_page() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")

    names = [name for name in kbtools.__all__ if not hasattr(kbtools.errors, name)]

    assert "Answerer" in names
    assert [name for name in names if f"`{name}`" not in page and f"kbtools.{name}" not in page] == []


def test_every_example_of_the_python_page_gives_what_it_says(
    sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "sample.kb").symlink_to(sample_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)

    outcome = doctest.testfile(str(ROOT / "docs" / "api.md"), module_relative=False, encoding="utf-8")

    assert (outcome.failed, outcome.attempted > 15) == (0, True)


def test_the_record_of_the_json_page_is_what_a_query_prints(sample_path: Path) -> None:
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    asked = ["query", "--kb", str(sample_path), "--json", "--no-timing", "--top", "1", "who wrote it"]

    assert CliRunner().invoke(main, asked).stdout in page


def test_the_guide_to_teaching_gives_the_answers_that_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    tables = re.findall(r'```csv title="(.*?)"\n(.*?)```', page, flags=re.DOTALL)
    blocks = re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL)
    for name, table in tables:
        (tmp_path / name).write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(models.VARIABLE, models.STATIC)
    commands = [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]

    results = [CliRunner().invoke(main, words) for words in commands if words[0] != "serve"]

    assert [result.stderr for result in results if result.exit_code] == []
    answers = [result.stdout.rpartition("answers: ")[2].strip() for result in results if "answers: " in result.stdout]
    assert answers == ["earthenware", "Delft", "Anna Berg", "East Room"]


def test_python_offers_what_its_page_says() -> None:
    errors = {name for name, value in vars(kbtools.errors).items() if isinstance(value, type) and name != "Any"}

    assert sorted(kbtools.__all__) == dir(kbtools)
    assert {name for name in errors if issubclass(getattr(kbtools.errors, name), Exception)} <= set(dir(kbtools))
    assert all(getattr(kbtools, name) is not None for name in dir(kbtools))
