"""Names in files import nothing, unless a person wrote them or trusts the file."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from kbtools.answering.answerer import open_kb
from kbtools.cli.main import main
from kbtools.entry_points import TRUST_VARIABLE
from kbtools.errors import ModelUnusable, UntrustedPlugin
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.kb.vector_index import EntityVectors, VectorOrigin
from kbtools.ranking import trained
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.model_store import write_listed
from kbtools.ranking.system import Cascade, FittedRanker, System
from kbtools.ranking.weights import Weights
from tests.conftest import TINY, make_embedded

COMMAND = "subprocess:Popen"
QUESTION = "what is the time zone of paris"


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return make_embedded(TINY, tmp_path).path


SYSTEM = System("n-gram-idf", ("lexical",), "popularity", None, Weights())
RANKER = FittedRanker(COMMAND, "", (), 1, Calibration((0.0, 1.0), (0.0, 1.0)))


def write_system(models: Path, *systems: System, **names: object) -> Path:
    models.mkdir()
    record = {"default": msgspec.to_builtins(SYSTEM) | names, "systems": msgspec.to_builtins(systems)}
    write_listed(models / trained.FILE, record, name=trained.FORMAT_NAME, version=trained.FORMAT_VERSION)
    return models


@pytest.mark.parametrize(
    "names",
    [
        {"pruner": COMMAND},
        {"scorers": [COMMAND]},
        {"subject": COMMAND},
        {"guide": COMMAND},
        {"ranker": msgspec.to_builtins(RANKER)},
    ],
    ids=lambda names: next(iter(names)),
)
def test_a_folder_of_models_cannot_name_what_is_called(names: dict[str, object], kb: Path, tmp_path: Path) -> None:
    models = write_system(tmp_path / "models", **names)
    ran = CliRunner().invoke(main, ["query", "--kb", str(kb), "--models", str(models), QUESTION])

    assert ran.exit_code == 1
    assert str(models / trained.FILE) in ran.stderr
    assert COMMAND in ran.stderr
    assert "--trust-plugins" in ran.stderr


def test_one_of_several_scorers_in_a_file_is_no_way_in(kb: Path, tmp_path: Path) -> None:
    models = write_system(tmp_path / "models", scorers=["lexical", COMMAND])
    with pytest.raises(UntrustedPlugin):
        open_kb(kb, models=models)


def test_a_name_in_a_file_that_is_no_text_is_damage(kb: Path, tmp_path: Path) -> None:
    models = write_system(tmp_path / "models", scorers=5)
    with pytest.raises(ModelUnusable):
        open_kb(kb, models=models)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -(2**63), 2**64 - 1, "1", None])
def test_a_weight_in_a_file_that_ranks_nothing_is_damage(kb: Path, tmp_path: Path, weight: object) -> None:
    models = write_system(tmp_path / "models", weights={"similarity": weight})
    with pytest.raises(ModelUnusable):
        open_kb(kb, models=models)


def test_a_person_may_trust_a_file(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = "kbtools.scorers.relations.lexical:LexicalScorer"
    models = write_system(tmp_path / "models", scorers=[scorer])
    line = ["query", "--kb", str(kb), "--models", str(models), QUESTION, "--json"]

    with open_kb(kb, models=models, trust_plugins=True) as answerer:
        assert answerer.query(QUESTION).scorer == scorer
    assert CliRunner().invoke(main, [*line, "--trust-plugins"]).exit_code == 0
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert CliRunner().invoke(main, line).exit_code == 0
    with open_kb(kb, models=models) as answerer:
        assert answerer.query(QUESTION).scorer == scorer


@pytest.mark.parametrize("first", [False, True])
def test_a_record_of_rankers_cannot_name_what_is_called(kb: Path, tmp_path: Path, first: bool) -> None:
    named = replace(SYSTEM, ranker=RANKER)
    installed = replace(RANKER, name="lightgbm")
    system = replace(SYSTEM, ranker=installed, cascade=Cascade(named, 0.5)) if first else named
    models = write_system(tmp_path / "models", system)

    with open_kb(kb, models=models) as answerer, pytest.raises(UntrustedPlugin, match=trained.FILE):
        answerer.query(QUESTION)


def test_vectors_cannot_name_the_scorer_that_embeds_questions(kb: Path) -> None:
    table = np.eye(3, dtype=np.float32)
    origin = VectorOrigin(COMMAND, "")
    write_vectors(kb, EmbeddedKB(kb), EntityVectors(np.arange(3, dtype=np.uint32), 3, lambda rows: table[rows], origin))

    with open_kb(kb) as answerer, pytest.raises(UntrustedPlugin, match="vectors"):
        answerer.query(QUESTION, pruning="dense", scorer="lexical")
