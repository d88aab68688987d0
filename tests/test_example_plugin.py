"""The package in docs/plugins.md: it installs, meets the contracts, indexes, trains and answers."""

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
    """Install the example next to everything else; return the environment in which Python finds it."""
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


@pytest.mark.parametrize(
    ("plugin", "claims"),
    [
        ("trigram-overlap", 7),
        ("alias-count", 8),
        ("content-words", 10),
        ("least-squares", 7),
        ("longest", 9),
        ("prolog", 8),
    ],
)
def test_a_plugin_of_each_kind_keeps_its_contract(installed: dict[str, str], plugin: str, claims: int) -> None:
    checked = kbtools(installed, "plugins", "check", plugin, "--sample", PLUGIN / "films.pl")

    assert checked.count("ok: ") == claims


@pytest.mark.parametrize(
    "format", [pytest.param((), id="by its suffix"), pytest.param(("--format", "prolog"), id="by its name")]
)
def test_a_knowledge_base_is_read_and_asked_by_plugins_of_every_kind(
    installed: dict[str, str], tmp_path: Path, format: tuple[str, ...]
) -> None:
    films, kb = PLUGIN / "films.pl", tmp_path / "films.kb"
    question = ("--kb", kb, "--scorer", "trigram-overlap", "--subject", "alias-count", "who directed jaws")

    indexed = kbtools(installed, "index", *format, "--facts", films, "--names", films, "--out", kb)
    by_pruner = kbtools(installed, "query", "--pruning", "longest", *question)
    by_tagger = kbtools(installed, "query", "--pruning", "focused-kb", "--tagger", "content-words", *question)

    assert re.search(r"facts: +3\b", indexed)
    assert "answers: Steven Spielberg (spielberg)" in by_pruner
    assert "answers: Steven Spielberg (spielberg)" in by_tagger


def test_every_class_of_the_page_is_that_of_the_package_and_short() -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in PLUGIN.rglob("*.py"))
    blocks = re.findall(r"```python\n(class .*?)\n```", page, re.DOTALL)
    classes = [block for block in blocks if "def forward" not in block and "class MyScorer" not in block]

    assert len(classes) == 6
    assert [block for block in classes if block not in sources] == []
    assert max(len(block.splitlines()) for block in classes) <= 20


def test_a_scorer_with_a_network_is_trained_and_answers(
    installed: dict[str, str], sample_path: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
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
    question = ("--models", tmp_path, "--scorer", "embed-max", "who directed jaws")
    answered = kbtools(installed, "query", "--kb", sample_path, *question)

    assert checked.count("ok: ") == 8
    assert "Jaws" in answered
