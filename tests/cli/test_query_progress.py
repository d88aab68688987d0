"""The bar of kbtools query --questions: on a terminal's standard error, and nowhere else."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

KBTOOLS = (sys.executable, "-c", "from kbtools.cli.main import main; main()")
LINES = 200


def ask(sample_path: Path, questions: Path, *, stdout: int, stderr: int) -> subprocess.CompletedProcess[bytes]:
    questions.write_text("who wrote it\n" * LINES)
    command = [*KBTOOLS, "query", "--kb", str(sample_path), "--questions", str(questions), "--json", "--top", "1"]
    return subprocess.run(command, stdout=stdout, stderr=stderr, check=True, timeout=60)


def read_terminal(terminal: int) -> bytes:
    """Read what was written to a terminal whose other end is closed."""
    written = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            return written
        if not piece:
            return written
        written += piece


def test_a_terminal_shows_how_far_it_is_and_the_answers_stay_json(sample_path: Path, tmp_path: Path) -> None:
    terminal, other = pty.openpty()
    answers = tmp_path / "answers.jsonl"
    with answers.open("wb") as file:
        ask(sample_path, tmp_path / "questions.txt", stdout=file.fileno(), stderr=other)
    os.close(other)
    shown = read_terminal(terminal).decode()
    os.close(terminal)
    assert f"/{LINES}" in shown
    assert "questions.txt" in shown
    assert [json.loads(line)["question"] for line in answers.read_text().splitlines()] == ["who wrote it"] * LINES


def test_no_bar_stands_among_answers_on_the_same_terminal(sample_path: Path, tmp_path: Path) -> None:
    terminal, other = pty.openpty()
    questions = tmp_path / "questions.txt"
    questions.write_text("who wrote it\n")
    command = [*KBTOOLS, "query", "--kb", str(sample_path), "--questions", str(questions), "--json"]
    subprocess.run(command, stdout=other, stderr=other, check=True, timeout=60)
    os.close(other)
    shown = read_terminal(terminal).decode()
    os.close(terminal)
    assert json.loads(shown)["question"] == "who wrote it"


def test_a_pipe_hears_of_nothing(sample_path: Path, tmp_path: Path) -> None:
    done = ask(sample_path, tmp_path / "questions.txt", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == LINES
