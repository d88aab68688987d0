"""The command writes a report from what is on disk, and needs nothing else."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbtools.cli.main import main


@pytest.fixture
def run(sample_path: Path, examples: Path, tmp_path: Path) -> Path:
    """Compare on a copy of the questions, and take the copy away."""
    questions = tmp_path / "questions.txt"
    questions.write_bytes((examples / "sample.test.txt").read_bytes())
    out = tmp_path / "run"
    options = ["--kb", str(sample_path), "--questions", str(questions), "--pruning", "n-gram+", "--out", str(out)]
    assert CliRunner().invoke(main, ["compare", *options]).exit_code == 0
    questions.unlink()
    return out


def test_a_report_is_made_from_the_run_alone(run: Path) -> None:
    (run / "report.md").unlink()

    done = CliRunner().invoke(main, ["report", str(run)])

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("pruning ")
    assert {path.name for path in run.iterdir()} >= {"report.md", "report.html", "figures.csv", "figures.json"}


def test_without_matplotlib_the_page_is_without_pictures(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    done = CliRunner().invoke(main, ["report", str(run)])

    assert done.exit_code == 0
    assert re.search(r"pip install .*\[report\]'; the page has no pictures", done.stderr)
    assert "<img" not in (run / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_a_run_is_one_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(tmp_path)])

    assert done.exit_code == 1
    assert "no run here" in done.stderr
