"""The package in docs/plugins.md: it installs, meets the contracts, indexes, trains and answers."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbtools.cli.main import main
from kbtools.entry_points import every_point

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "docs" / "example-plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the example into a folder of its own."""
    folder = str(tmp_path_factory.mktemp("site"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder, str(PLUGIN)], check=True, capture_output=True)
    return folder


@pytest.fixture
def installed(site: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the example importable in this process, and import it again; this saves starting Python."""
    monkeypatch.syspath_prepend(site)
    every_point.cache_clear()
    yield
    every_point.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "kbtools_example"]:
        del sys.modules[name]


def kbtools(*arguments: object) -> str:
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_it_is_listed_with_its_distribution_and_needs(site: str) -> None:
    run = [sys.executable, "-c", "from kbtools.cli.main import main; main()", "plugins"]
    listed = subprocess.run(run, env=os.environ | {"PYTHONPATH": site}, check=True, capture_output=True, text=True)

    expected = r"embed-max +relation scorer +kbtools-example 1\.0 +needs kbtools-example\[trained\]"
    assert re.search(expected, listed.stdout)


@pytest.mark.usefixtures("installed")
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
def test_a_plugin_of_each_kind_keeps_its_contract(plugin: str, claims: int) -> None:
    checked = kbtools("plugins", "check", plugin, "--sample", PLUGIN / "films.pl")

    assert checked.count("ok: ") == claims


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "format", [pytest.param((), id="by its suffix"), pytest.param(("--format", "prolog"), id="by its name")]
)
def test_a_knowledge_base_is_read_and_asked_by_plugins_of_every_kind(tmp_path: Path, format: tuple[str, ...]) -> None:
    films, kb = PLUGIN / "films.pl", tmp_path / "films.kb"
    question = ("--kb", kb, "--scorer", "trigram-overlap", "--subject", "alias-count", "who directed jaws")

    indexed = kbtools("index", *format, "--facts", films, "--names", films, "--out", kb)
    by_pruner = kbtools("query", "--pruning", "longest", *question)
    by_tagger = kbtools("query", "--pruning", "focused-kb", "--tagger", "content-words", *question)

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


@pytest.mark.usefixtures("installed")
def test_a_scorer_with_a_network_is_trained_and_answers(sample_path: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
    questions = ("--train", ROOT / "examples/sample.train.txt", "--valid", ROOT / "examples/sample.valid.txt")
    small = ("--words", "random", "--dim", 16, "--epochs", 3, "--batch", 16)

    checked = kbtools("plugins", "check", "embed-max")
    model = ("--scorer", "embed-max", "--kb", sample_path, "--out", tmp_path)
    kbtools("train", "relation", *model, *questions, *small)
    question = ("--models", tmp_path, "--scorer", "embed-max", "who directed jaws")
    answered = kbtools("query", "--kb", sample_path, *question)

    assert checked.count("ok: ") == 8
    assert "Jaws" in answered
