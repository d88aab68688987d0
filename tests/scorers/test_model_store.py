"""A model is known by the name of its plugin."""

from pathlib import Path

import pytest

from kbtools.errors import ModelUnusable
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.model_store import read_model
from kbtools.ranking.models import RELATION, make_relation_scorer
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.networks.training_settings import change_settings
from kbtools.scorers.relations.relation import BiGRUScorer, EmbedAverageScorer

BY_PATH = "kbtools.scorers.relations.relation:EmbedAverageScorer"
SMALL = {"words": "random", "dim": 2, "epochs": 1}
AUTHOR = [MarkedQuestion(Question.read("who is the author of dune"), 21, 25)]


def train_small(kb: KnowledgeBase, splits: Splits, models: Path, name: str) -> Path:
    settings = change_settings(profile_settings("best", RELATION, name), SMALL)
    return train(kb, splits, part=RELATION, name=name, settings=settings, models=models).folder


@pytest.mark.parametrize("name", ["embed-avg", BY_PATH])
def test_a_model_is_known_by_the_name_it_was_trained_under(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path, name: str
) -> None:
    stamp = read_model(train_small(sample_kb, splits, tmp_path, name)).stamp

    assert stamp.plugin == name
    assert stamp.figures.keys() == {"of all relations", "given the subject", "seconds"}
    assert make_relation_scorer(name, sample_kb, models=tmp_path).score(AUTHOR).shape == (1, 45)


def test_a_model_is_not_taken_for_another_plugins(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    folder = train_small(sample_kb, splits, tmp_path, "embed-avg")
    folder.rename(folder.with_name("embed-avg+"))

    with pytest.raises(ModelUnusable, match=r"trained as 'embed-avg', requested as 'embed-avg\+'"):
        make_relation_scorer("embed-avg+", sample_kb, models=tmp_path)


def test_a_model_saved_without_training_is_known_by_its_class(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path
) -> None:
    trained = EmbedAverageScorer.load(train_small(sample_kb, splits, tmp_path / "trained", "embed-avg"), sample_kb)
    trained.save(tmp_path / "relation" / "embed-avg")

    again = make_relation_scorer("embed-avg", sample_kb, models=tmp_path)

    assert read_model(tmp_path / "relation" / "embed-avg").stamp.plugin == BY_PATH
    assert again.score(AUTHOR) == pytest.approx(trained.score(AUTHOR), abs=1e-7)


def test_weights_of_another_network_are_refused(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    folder = train_small(sample_kb, splits, tmp_path, "embed-avg")

    with pytest.raises(ModelUnusable, match="its weights are those of another network"):
        BiGRUScorer.load(folder, sample_kb)
