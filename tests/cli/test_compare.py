"""The command compares, keeps standard output for results, and turns mistakes into one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import kbtools
from kbtools.cli.main import main
from kbtools.indexers.folder.kb_folder import MANIFEST
from kbtools.kb import manifest
from kbtools.record_files import read_record, write_record


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


def test_a_knowledge_base_of_another_normaliser_is_one_sentence(
    run_compare: Callable[..., Result], sample_path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.kb"
    shutil.copytree(sample_path, other)
    record = read_record(other / MANIFEST, name=manifest.FORMAT_NAME, version=manifest.FORMAT_VERSION, cure="again")
    record["normaliser"] = 99
    write_record(other / MANIFEST, record, name=manifest.FORMAT_NAME, version=manifest.FORMAT_VERSION)

    done = run_compare("--kb", str(other))

    assert done.exit_code == 1
    assert "built with normaliser version 99, this kbtools has version" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_trained_scorer_without_its_model_is_one_sentence(run_compare: Callable[..., Result]) -> None:
    pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

    done = run_compare("--scorer", "bigru")

    assert done.exit_code == 1
    assert "Error: 'bigru' must be trained: name the folder of its model with --models" in done.stderr


def test_a_model_of_another_version_is_one_sentence(run_compare: Callable[..., Result], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
    folder = tmp_path / "models" / "relation" / "bigru"
    folder.mkdir(parents=True)
    write_record(folder / "model.msgpack", {}, name="kbtools-model", version=99)

    done = run_compare("--scorer", "bigru", "--models", str(tmp_path / "models"))

    assert done.exit_code == 1
    assert "use the version of kbtools that trained it, or train it again" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_comparison_is_made_in_a_language(tmp_path: Path) -> None:
    facts = [("Q1", "opposite", "Q2"), ("Q2", "opposite", "Q1")]
    names = [("Q1", "Gift", "en"), ("Q2", "Gift", "de")]
    kbtools.index(names=names, facts=facts, out=tmp_path / "kb", language="en,de").close()
    (tmp_path / "questions").write_text("Q2\topposite\tQ1\tgift opposite\n")

    def run(lang: str, out: str) -> Result:
        fixed = ["--kb", str(tmp_path / "kb"), "--questions", str(tmp_path / "questions"), "--quiet", "--json"]
        return CliRunner().invoke(main, ["compare", *fixed, "--out", str(tmp_path / out), "--lang", lang])

    german, english, mixed = run("de", "german"), run("en", "english"), run("en", "german")

    accuracy = [
        {cell["figures"]["accuracy"]["value"] for cell in json.loads(result.stdout)["cells"]}
        for result in (german, english)
    ]
    assert accuracy == [{1.0}, {0.0}]
    assert json.loads(german.stdout)["kb"]["path"].endswith("kb in de")
    assert mixed.exit_code == 1
    assert "Error:" in mixed.stderr
    assert run("xx", "none").exit_code == 1
