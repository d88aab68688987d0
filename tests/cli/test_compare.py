"""Whether the command compares, keeps standard output for results, and turns mistakes into one sentence."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kbtools.cli.main import main


@pytest.fixture
def run_compare(sample_path: Path, examples: Path, tmp_path: Path) -> Callable[..., Result]:
    """Run kbtools compare on the sample; later options win."""

    def run(*options: str) -> Result:
        usual = ["--kb", str(sample_path), "--questions", str(examples / "sample.test.txt")]
        return CliRunner().invoke(main, ["compare", *usual, "--out", str(tmp_path / "run"), *options])

    return run


def test_a_comparison_prints_a_table_and_keeps_files(run_compare: Callable[..., Result], tmp_path: Path) -> None:
    done = run_compare("--errors", "2")

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("pruning ")
    assert "pools of n-gram: 36 questions\n" in done.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"report.md", "figures.csv", "errors"}


def test_json_is_one_document(run_compare: Callable[..., Result]) -> None:
    done = run_compare("--json", "--quiet", "--pruning", "n-gram+")

    record = json.loads(done.stdout)
    assert record["questions_counted"] == 36
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--pruning", ","), 2, "expected at least one name"),
        (("--pruning", "n-gramme"), 1, "Error: no pruner 'n-gramme'"),
        (("--scorer", "bigru"), 1, "Error: 'bigru' is trained: name the folder that holds its model with --models"),
        (("--questions", "/nowhere"), 1, "Error: /nowhere: no such file of questions"),
        (("--out", "/proc/nowhere/run"), 1, "choose another --out"),
        (("--kb", "/nowhere"), 1, "Error: /nowhere: no such knowledge base"),
    ],
)
def test_mistakes_are_one_sentence(
    run_compare: Callable[..., Result], options: tuple[str, ...], status: int, message: str
) -> None:
    done = run_compare(*options)

    assert done.exit_code == status
    assert message in done.stderr
    assert "Traceback" not in done.output
