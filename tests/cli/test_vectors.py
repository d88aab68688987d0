"""Kbtools index vectors makes what kbtools query --pruning dense and kbtools similar need."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import kbtools
from kbtools.cli.main import main
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.kb.vector_index import EntityVectors
from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings

pytest.importorskip("faiss", reason="vectors need FAISS: pip install 'kbtools[train]'")

QUESTION = "who created the character harry potter"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, sample_path: Path, examples: Path) -> Path:
    """Give a folder with the sample, and a small model of each kind that has vectors."""
    from click.testing import CliRunner

    folder = tmp_path_factory.mktemp("vectors")
    shutil.copytree(sample_path, folder / "sample.kb")
    small = "--words random --dim 8 --words-dim 8 --hidden 8 --epochs 2 --batch 16".split()
    files = ["--train", examples / "sample.train.txt", "--valid", examples / "sample.valid.txt"]
    where = ["--kb", folder / "sample.kb", "--out", folder / "models"]
    for words in (
        ["transe", *where, "--dim", "8", "--epochs", "2"],
        ["subject", "--subject", "random,type-vector", *where, *files, *small, "--negatives", "16"],
    ):
        found = CliRunner().invoke(main, ["train", *map(str, words)])
        assert found.exit_code == 0, found.output
    return folder


@pytest.fixture
def run(home: Path) -> Callable[..., str]:
    from click.testing import CliRunner

    def run(*words: object, fails: str = "") -> str:
        found = CliRunner().invoke(main, [*map(str, words)])
        if fails:
            assert (found.exit_code != 0, fails in found.output) == (True, True), found.output
        else:
            assert found.exit_code == 0, found.output
        return found.stdout

    return run


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
@pytest.mark.parametrize("subject", ["random", "type-vector"])
def test_a_question_is_answered_by_its_nearest_entities(
    run: Callable[..., str], home: Path, kind: str, subject: str
) -> None:
    kb, models = ["--kb", home / "sample.kb"], ["--models", home / "models"]
    said = run("index", "vectors", *kb, *models, "--subject", subject, "--kind", kind)
    found = json.loads(run("query", *kb, *models, "--pruning", "dense", "--subject", subject, "--json", QUESTION))

    assert "vectors of" in said
    assert found["pruning"] == "dense"
    assert {one["rung"] for one in found["candidates"]} == {"near"}
    assert found["candidates"][0]["mention"]["text"] == QUESTION


def test_dense_and_tagless_pruners_are_compared_in_one_run(
    run: Callable[..., str], home: Path, examples: Path, tmp_path: Path
) -> None:
    kb, models = ["--kb", home / "sample.kb"], ["--models", home / "models"]
    run("index", "vectors", *kb, *models, "--subject", "random")
    questions, pruning = ["--questions", examples / "sample.valid.txt"], ["--pruning", "n-gram-idf,dense,dense-last"]
    run("compare", *kb, *models, *questions, *pruning, "--out", tmp_path / "run")


def test_similar_reads_the_vectors_beside_the_kb(run: Callable[..., str], home: Path) -> None:
    kb, models = ["--kb", home / "sample.kb"], ["--models", home / "models"]
    run("index", "vectors", *kb, *models)
    indexed = run("similar", *kb, "--top", 3, "harry potter")

    assert indexed == run("similar", *kb, *models, "--top", 3, "harry potter")
    assert len(indexed.splitlines()) == 3


def test_vectors_made_elsewhere_are_indexed(
    run: Callable[..., str], home: Path, examples: Path, tmp_path: Path
) -> None:
    kb = ["--kb", home / "sample.kb"]
    ids = [line.split("\t")[0] for line in (examples / "sample.names.txt").read_text().splitlines()[:3]]
    np.save(tmp_path / "vectors.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    said = run("index", "vectors", *kb, "--vectors", tmp_path / "vectors.npy", "--ids", tmp_path / "ids.txt")

    assert "3 vectors of 3 dimensions" in said
    assert "vectors: 3 of 3 dimensions, flat" in run("info", home / "sample.kb")
    assert json.loads(run("info", home / "sample.kb", "--json"))["vectors"]["count"] == 3
    run("query", *kb, "--pruning", "dense", QUESTION, fails="do not come from a subject scorer")
    run("similar", *kb, "harry potter the one without", fails="no entity has the id or the name")


def test_options_that_do_not_go_together_are_refused(run: Callable[..., str], home: Path, tmp_path: Path) -> None:
    kb = ["--kb", home / "sample.kb"]
    run("index", "vectors", *kb, fails="name the folder of trained vectors with --models")
    run("index", "vectors", *kb, "--vectors", tmp_path / "x.npy", fails="use --vectors and --ids together")
    made = ["--vectors", tmp_path / "x.npy", "--ids", tmp_path / "x.txt"]
    run("index", "vectors", *kb, *made, "--subject", "random", fails="not both")
    run("index", "vectors", *kb, "--models", tmp_path, "--subject", "random", fails="no trained model here")


def test_a_build_of_other_content_has_no_vectors(run: Callable[..., str], home: Path, examples: Path) -> None:
    files = [f"--{kind}={examples}/sample.{kind}.txt" for kind in ("facts", "names", "types")]
    out, models = home / "again.kb", ["--models", home / "models"]
    run("index", *files, "--out", out)
    run("index", "vectors", "--kb", out, *models)
    run("index", *files, "--out", out, "--force")
    kept = run("similar", "--kb", out, "harry potter")
    run("index", *files[:2], "--out", out, "--force")

    assert kept
    run("query", "--kb", out, "--pruning", "dense", QUESTION, fails="has no entity vectors")


def test_the_nearest_are_named_in_a_language(run: Callable[..., str], tmp_path: Path) -> None:
    names = [("Q1", "Gift", "en"), ("Q2", "Gift", "de"), ("Q3", "Cologne", "en"), ("Q3", "Köln", "de")]
    facts = [("Q1", "r", "Q3"), ("Q2", "r", "Q3")]
    with kbtools.index(names=names, facts=facts, out=tmp_path / "kb", language="en,de") as made:
        rows = np.arange(3, dtype=np.uint32)
        vectors = EntityVectors(rows, 2, lambda some: np.array([[1, 0], [0, 1], [1, 2]], dtype=np.float32)[some])
        write_vectors(tmp_path / "kb", made.kb, vectors)

    german = run("similar", "--kb", tmp_path / "kb", "--top", 1, "--lang", "de", "gift")
    english = run("similar", "--kb", tmp_path / "kb", "--top", 1, "--lang", "en", "gift")
    with TestClient(create_app(ServeSettings(kbs=(str(tmp_path / "kb"),)))) as client:
        served = client.get("/api/similar?id=gift&lang=de&limit=1").json()

    assert [line.split()[1:] for line in (german, english)] == [["Q3", "Köln"], ["Q3", "Cologne"]]
    assert served == {"id": "Q2", "neighbours": [{"id": "Q3", "name": "Köln", "cosine": pytest.approx(0.894427)}]}
