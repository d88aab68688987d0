"""The knowledge base that comes with kbtools: it answers by the name `sample`, unless a folder here has that name."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import kbtools
from kbtools.cli.main import main
from kbtools.errors import KBMissing

QUESTION = "who created the character harry potter"
LESSON = (QUESTION, "Harry Potter", "character created by")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_it_answers_from_the_command_line_and_from_python(tmp_path: Path) -> None:
    asked = CliRunner().invoke(main, ["query", "--kb", "sample", QUESTION])

    assert "answers: J. K. Rowling (m.042xh)" in asked.stdout
    assert kbtools.open("sample").query(QUESTION).answers[0].name == "J. K. Rowling"
    assert list((tmp_path / "here").iterdir()) == []


def test_a_folder_of_that_name_wins() -> None:
    kbtools.index(names=[("1", "Ann")], out="sample")

    assert kbtools.open("sample").entity("1").name == "Ann"
    assert "Ann (1)" in CliRunner().invoke(main, ["show", "sample", "1"]).stdout


def test_without_a_cache_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_CACHE", "/proc/no/cache")

    with pytest.raises(KBMissing, match="no folder to index it in; name one in KBTOOLS_CACHE"):
        kbtools.open("sample")


@pytest.mark.parametrize("command", [["update"], ["index", "vectors"], ["compact"], ["teach"]])
def test_no_command_changes_it(command: list[str], tmp_path: Path) -> None:
    Path("new.jsonl").write_text('{"id": "m.042xh", "names": ["Robert Galbraith"]}\n')
    options = ["--add", "new.jsonl"] if command == ["update"] else []

    by_place = CliRunner().invoke(main, [*command, "sample", *options])
    by_option = CliRunner().invoke(main, [*command, "--kb", "sample", *options])

    assert (by_place.exit_code, by_option.exit_code) == (2, 2)
    assert "sample comes with kbtools and cannot be changed" in by_place.stderr
    assert not (tmp_path / "cache" / "sample").exists()


def test_no_server_teaches_it() -> None:
    refused = CliRunner().invoke(main, ["serve", "sample", "--teach", "--host", "192.0.2.1"])

    assert refused.exit_code == 2
    assert "sample comes with kbtools and cannot be changed" in refused.stderr


def test_the_refusal_has_the_command_that_makes_a_copy(tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["teach", "sample", *LESSON])
    command = refused.stderr.strip().rpartition("kbtools index")[2]
    files = [command.replace("{facts,names,types}", kind).split()[0] for kind in ("facts", "names", "types")]

    built = CliRunner().invoke(main, ["index", *files, *command.split()[1:]])
    taught = CliRunner().invoke(main, ["teach", command.split()[-1], *LESSON])

    assert (built.exit_code, taught.exit_code) == (0, 0), built.stderr + taught.stderr


def test_a_folder_of_that_name_can_be_changed() -> None:
    kbtools.index(names=[("1", "Ann")], out="sample")
    Path("gone.txt").write_text("1\n")

    done = CliRunner().invoke(main, ["update", "sample", "--remove", "gone.txt"])

    assert done.exit_code == 0, done.stderr
