"""A model is known by the name of its plugin, and one of the version before still loads."""

import shutil
from pathlib import Path

import pytest

from kbtools.errors import ModelUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import read_model
from kbtools.ranking.models import RELATION, make_relation_scorer
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")

from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.networks.training_settings import change_settings
from kbtools.scorers.relations.word_encoders import BiGRUScorer, EmbedAverageScorer

VERSION_1 = Path(__file__).with_name("version_1")
"""A small Embed-AVG of the sample, written by kbtools when a model was known by the path of its module."""

BY_PATH = "kbtools.scorers.relations.word_encoders:EmbedAverageScorer"
SMALL = {"words": "random", "dim": 2, "epochs": 1}
EXPECTED = [0.00328161, -0.00066019, -0.00082394]
"""The scores of the first three relations that the kbtools which wrote it gave."""

AUTHOR = [MarkedQuestion(Question.read("who is the author of dune"), 21, 25)]


def test_a_model_of_version_1_loads_by_the_name_of_its_plugin(sample_kb: KnowledgeBase) -> None:
    scores = make_relation_scorer("embed-avg", sample_kb, models=VERSION_1).score(AUTHOR)

    stamp = read_model(VERSION_1 / "relation" / "embed-avg").stamp
    assert stamp.plugin == "embed-avg"
    assert stamp.figures.keys() == {"of all relations", "given the subject", "seconds"}
    assert scores[0, :3] == pytest.approx(EXPECTED, abs=1e-7)


def test_a_model_of_version_1_is_not_taken_for_another_plugins(sample_kb: KnowledgeBase, tmp_path: Path) -> None:
    shutil.copytree(VERSION_1 / "relation" / "embed-avg", tmp_path / "relation" / "embed-avg+")

    with pytest.raises(ModelUnusable, match=r"trained as 'embed-avg', asked for as 'embed-avg\+'"):
        make_relation_scorer("embed-avg+", sample_kb, models=tmp_path)


@pytest.mark.parametrize("name", ["embed-avg", BY_PATH])
def test_a_model_is_known_by_the_name_it_was_trained_under(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path, name: str
) -> None:
    settings = change_settings(profile_settings("best", RELATION, name), SMALL)

    trained = train(sample_kb, splits, part=RELATION, name=name, settings=settings, models=tmp_path)

    assert read_model(trained.folder).stamp.plugin == name
    assert make_relation_scorer(name, sample_kb, models=tmp_path).score(AUTHOR).shape == (1, 45)


def test_a_model_saved_without_training_is_known_by_its_class(sample_kb: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "relation" / "embed-avg"
    EmbedAverageScorer.load(VERSION_1 / "relation" / "embed-avg", sample_kb).save(folder)

    scores = make_relation_scorer("embed-avg", sample_kb, models=tmp_path).score(AUTHOR)

    assert read_model(folder).stamp.plugin == BY_PATH
    assert scores[0, :3] == pytest.approx(EXPECTED, abs=1e-7)


def test_weights_of_another_network_are_refused(sample_kb: KnowledgeBase) -> None:
    with pytest.raises(ModelUnusable, match="its weights are those of another network"):
        BiGRUScorer.load(VERSION_1 / "relation" / "embed-avg", sample_kb)
