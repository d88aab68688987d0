"""kbtools itself: help, version, and errors in one place."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as Invocation

from kbtools.cli.main import COMMANDS, main
from kbtools.errors import KBMissing
from kbtools.version import __version__


@pytest.fixture
def run() -> Callable[..., Invocation]:
    return lambda *args: CliRunner().invoke(main, args)


def test_help_lists_every_command(run: Callable[..., Invocation]) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"  {name}" in result.stdout and told in result.stdout for name, told in COMMANDS.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run: Callable[..., Invocation], command: str) -> None:
    result = run(command, "-h")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: main {command} [OPTIONS]")


def test_the_version_is_told(run: Callable[..., Invocation]) -> None:
    assert run("--version").stdout == f"kbtools, version {__version__}\n"


@pytest.mark.parametrize("args", [(), ("nope",), ("--nope",), ("query", "--nope"), ("info",), ("info", "a", "b")])
def test_wrong_usage_exits_two_without_a_traceback(run: Callable[..., Invocation], args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert "Traceback" not in result.stderr


def test_an_error_is_one_line_on_standard_error(run: Callable[..., Invocation], tmp_path: Path) -> None:
    result = run("info", str(tmp_path / "no.kb"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {tmp_path / 'no.kb'}: no such knowledge base")
    assert result.stderr.count("\n") == 1


def test_debug_shows_the_traceback(run: Callable[..., Invocation], tmp_path: Path) -> None:
    result = run("--debug", "info", str(tmp_path / "no.kb"))
    assert isinstance(result.exception, KBMissing)


def test_verbose_logs_the_phases(sample_path: Path, tmp_path: Path, examples: Path) -> None:
    sources: list[str | Path] = ["--facts", examples / "sample.facts.txt", "--names", examples / "sample.names.txt"]
    command: list[str | Path] = [
        sys.executable,
        "-c",
        "from kbtools.cli.main import main; main()",
        "-v",
        "index",
        *sources,
    ]
    result = subprocess.run([*command, "--quiet", "--out", tmp_path / "v.kb"], capture_output=True, check=True)
    assert b"INFO kbtools.indexers.building.build: read sample.facts.txt: 487 lines" in result.stderr


INTERRUPTED = """
import os, signal, sys
from kbtools.cli import start

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
start.main()
"""
"""Ctrl-C in the middle of the imports of the command."""


def test_ctrl_c_while_modules_are_imported_is_silent() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("error", ["MemoryError()", "ImportError('libarrow.so: failed to map segment')"])
def test_a_library_that_gets_no_memory_is_not_called_broken(
    run: Callable[..., Invocation], sample_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    (tmp_path / "hungry.py").write_text(f"raise {error}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    done = run("query", "--kb", str(sample_path), "--pruning", "hungry:Pruner", "who wrote it")

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "Error: out of memory; raise the limit (ulimit -v) or close other programs\n"
