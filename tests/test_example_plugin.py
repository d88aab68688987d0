"""Whether the package that docs/plugins.md walks through installs, keeps the contract, trains and answers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "docs" / "example-plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the example beside everything else; give the environment in which Python sees it."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder), str(PLUGIN)], check=True, capture_output=True)
    return os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


def kbtools(environment: dict[str, str], *arguments: object) -> str:
    run = [sys.executable, "-c", "from kbtools.cli.main import main; main()", *map(str, arguments)]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed_with_its_distribution_and_needs(installed: dict[str, str]) -> None:
    listed = kbtools(installed, "plugins")

    assert re.search(r"embed-max +relation scorer +kbtools-example 1\.0 +needs kbtools-example\[trained\]", listed)


def test_a_scorer_without_training_keeps_the_contract_and_answers(installed: dict[str, str], sample_path: Path) -> None:
    checked = kbtools(installed, "plugins", "check", "trigram-overlap")
    answered = kbtools(installed, "query", "--kb", sample_path, "--scorer", "trigram-overlap", "who directed jaws")

    assert checked.count("ok: ") == 7
    assert "film.film.directed_by" in answered.splitlines()[1]


def test_a_scorer_with_a_network_is_trained_and_answers(
    installed: dict[str, str], sample_path: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")
    questions = ("--train", ROOT / "examples/sample.train.txt", "--valid", ROOT / "examples/sample.valid.txt")
    small = ("--words", "random", "--dim", 16, "--epochs", 3, "--batch", 16)

    checked = kbtools(installed, "plugins", "check", "embed-max")
    kbtools(
        installed,
        "train",
        "relation",
        "--scorer",
        "embed-max",
        "--kb",
        sample_path,
        *questions,
        *small,
        "--out",
        tmp_path,
    )
    asked = ("--models", tmp_path, "--scorer", "embed-max", "who directed jaws")
    answered = kbtools(installed, "query", "--kb", sample_path, *asked)

    assert checked.count("ok: ") == 8
    assert "Jaws" in answered
