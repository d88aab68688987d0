"""Terminals: whatever a name, a path or an error holds, it cannot command one, break a line or turn text around."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kbtools.cli.display import echo, echo_json
from kbtools.cli.main import main
from kbtools.text.printable import visible

KBTOOLS = (sys.executable, "-c", "from kbtools.cli.main import main; main()")
HOSTILE = "a\x1b[31m\x9b\u202eb\u2066\u200f\n\u2028c"
SHOWN = r"a\x1b[31m\x9b\u202eb\u2066\u200f\n\u2028c"


@pytest.fixture(scope="session")
def hostile_kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a knowledge base whose file, ids, relation and names command terminals."""
    folder = tmp_path_factory.mktemp("hostile")
    facts, names = folder / f"{HOSTILE}.jsonl", folder / "names.jsonl"
    facts.write_text(json.dumps({"subject": "s" + HOSTILE, "relation": "r" + HOSTILE, "object": "o" + HOSTILE}) + "\n")
    names.write_text("".join(json.dumps({"id": one + HOSTILE, "name": f"{one}x {HOSTILE}"}) + "\n" for one in "so"))
    run("index", "--facts", facts, "--names", names, "--out", folder / "h.kb")
    return folder / "h.kb"


def run(*arguments: object) -> str:
    return CliRunner().invoke(main, [str(argument) for argument in arguments]).output


def hostile_characters(text: str) -> set[str]:
    return {character for character in text if character != visible(character)} - {"\n"}


def test_control_characters_bidi_controls_and_surrogates_are_escapes() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("\udcff\ud800") == r"\udcff\ud800"


@pytest.mark.parametrize("text", ["Łódź", "東京", "क्‍ष", "می‌خواهم", "שלום", "👨‍👩‍👧", "a\\nb"])
def test_all_other_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_line_stays_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    echo("one\ntwo", "three")

    assert capsys.readouterr().out == "one\\ntwo\nthree\n"


def test_json_of_a_path_that_is_no_utf_8_is_json(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    echo_json({"path": "a\udcff", "name": "é"})

    written = capsysbinary.readouterr().out
    assert json.loads(written) == {"path": "a\udcff", "name": "é"}
    assert "é".encode() in written


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "--kb", "KB", "sx a"],
        ["query", "--kb", "KB", "--explain", "sx a"],
        ["query", "--kb", "KB", "--sparql", "sx a"],
        ["info", "KB"],
        ["similar", "--kb", "KB", "s" + HOSTILE],
        ["similar", "--kb", HOSTILE, "s"],
        ["query", "--kb", HOSTILE, "who"],
        ["query", "--kb", "KB", "--scorer", HOSTILE, "who"],
        ["query", "--kb", "KB", "--pruning", HOSTILE, "who"],
        ["index", "--facts", HOSTILE, "--out", HOSTILE],
        ["index", "--column", HOSTILE, "--out", HOSTILE],
        ["plugins", "check", HOSTILE],
        ["compare", "--kb", "KB", "--questions", HOSTILE, "--out", HOSTILE],
        ["report", HOSTILE],
        ["info", "--" + HOSTILE],
        ["--" + HOSTILE],
        [HOSTILE],
    ],
)
def test_no_command_shows_what_a_terminal_obeys(
    hostile_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    output = run(*[str(hostile_kb) if argument == "KB" else argument for argument in arguments])

    assert output
    assert hostile_characters(output) == set()


@pytest.mark.parametrize("options", [["--json"], []])
def test_similar_speaks_to_a_terminal_of_another_encoding(tmp_path: Path, options: list[str]) -> None:
    pytest.importorskip("faiss", reason="vectors need FAISS: pip install 'kbtools[train]'")
    kb, vectors, ids = tmp_path / "k.kb", tmp_path / "v.npy", tmp_path / "ids"
    (tmp_path / "f.tsv").write_text("subject\trelation\tobject\na\tr\tb\n")
    (tmp_path / "n.tsv").write_text("id\tname\na\tAlpha\nb\tVujačić\n")
    np.save(vectors, np.eye(2, dtype=np.float32))
    ids.write_text("a\nb\n")
    run("index", "--facts", tmp_path / "f.tsv", "--names", tmp_path / "n.tsv", "--out", kb)
    run("index", "vectors", "--kb", kb, "--vectors", vectors, "--ids", ids)
    environment: dict[str, Any] = os.environ | {"PYTHONIOENCODING": "latin-1"}

    command = [*KBTOOLS, "similar", "--kb", str(kb), *options, "a"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)

    assert b"Vuja\xc4\x8di\xc4\x87" in done.stdout if options else rb"Vuja\u010di\u0107" in done.stdout


def test_json_shows_no_control_character_raw_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"name": "a\x9b31m\x7f\u202eb\u2028c\x1bd\nBjörk \U0001f600 \udcff", "more": [1, "x"]}

    echo_json(record)

    line = capsys.readouterr().out
    assert line == visible(line.removesuffix("\n")) + "\n"
    assert "Björk \U0001f600" in line
    assert json.loads(line) == record
