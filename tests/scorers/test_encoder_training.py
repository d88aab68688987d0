"""The training of `encoder`: upper layers over frozen states, distinct texts, and relations that nobody asks for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")
pytest.importorskip("tokenizers", reason="pretrained encoders need tokenizers: pip install 'kbtools[minilm]'")

import torch

from kbtools.errors import BadSetting, CheckpointMismatch
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import RELATION, make_relation_scorer
from kbtools.scorers.encoders.encoder import EncoderScorer
from kbtools.scorers.encoders.encoder_training import EncoderTask
from kbtools.scorers.encoders.pretrained import read_files
from kbtools.scorers.encoders.sentence_forward import UNSEEN
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import TrainedModel, train
from kbtools.scorers.fitting.training_loop import make_optimisers
from kbtools.scorers.networks.training_settings import PretrainedConfig, PretrainedSettings, change_settings

QUICK = change_settings(PretrainedSettings(), {"epochs": 4, "batch": 16, "learning_rate": 0.005})


@pytest.fixture(autouse=True)
def small(small_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))


def make_task(kb: KnowledgeBase, splits: Splits, settings: PretrainedSettings = QUICK) -> EncoderTask:
    task = EncoderScorer.task(kb, splits, settings, models=Path())
    assert isinstance(task, EncoderTask)
    return task


def learn(kb: KnowledgeBase, splits: Splits, models: Path, **changes: Any) -> TrainedModel:
    settings = change_settings(QUICK, changes)
    return train(kb, splits, part=RELATION, name="encoder", settings=settings, models=models)


def test_training_ranks_gold_relations_higher(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    texts = [EncoderScorer.text(question) for question in splits.train.questions]

    def first(scorer: EncoderScorer) -> float:
        scores = scorer.network.score_vectors(scorer.network.encoder.encode(texts))
        return float(np.mean(scores.argmax(axis=1) == splits.train.relations))

    untrained = EncoderScorer.new(read_files(), sample_kb.relations, texts=sample_kb.relations, weight=0.0)

    learn(sample_kb, splits, tmp_path, epochs=20)

    trained = EncoderScorer.load(tmp_path / "relation" / "encoder", sample_kb)
    assert first(trained) > first(untrained) + 0.1


def test_a_network_that_was_asked_between_two_steps_answers_by_its_weights() -> None:
    network = EncoderScorer.new(read_files(), ["a.b", "c.d"], texts=["a.b", "c.d"], weight=0.0).trainable
    tokens = torch.tensor([[2, 4, 5, 3], [2, 7, 6, 3]])
    network.encoder.transformer.layers.requires_grad_(True)
    optimisers = make_optimisers(network, name="adam", lr=0.05, momentum=0.9)

    def step() -> None:
        network.train()
        network.compare(network.encoder(tokens)).sum().backward()
        for optimiser in optimisers:
            optimiser.step()
        network.eval()

    step()
    with torch.inference_mode():
        network.compare(network.encoder(tokens))
    step()

    with torch.inference_mode():
        asked = network.compare(network.encoder(tokens))
    assert torch.allclose(asked, network.compare(network.encoder(tokens)), atol=1e-4)


def test_relations_that_have_learned_nothing_gain_beside_those_that_have() -> None:
    network = EncoderScorer.new(read_files(), ["a.b", "c.d"], texts=["a.b", "c.d"], weight=0.0).trainable
    with torch.no_grad():
        plain = network.compare(network.names[:1])
        network.learned[0, 0] = 1e-9

        gained = network.compare(network.names[:1]) - plain

    # Half of the relations have learned something: 1.7 was chosen on FBSQ's validation split.
    assert UNSEEN == 1.7
    assert (float(gained[0, 0]), float(gained[0, 1])) == pytest.approx((0.0, UNSEEN / 2), abs=1e-5)


def test_same_seed_same_scores(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    for name in ("one", "two"):
        learn(sample_kb, splits, tmp_path / name, epochs=1)

    one, two = (make_relation_scorer("encoder", sample_kb, models=tmp_path / name) for name in ("one", "two"))

    assert np.array_equal(one.score(splits.valid.questions), two.score(splits.valid.questions))


def test_texts_that_differ_in_the_mention_alone_are_one(sample_kb: KnowledgeBase, splits: Splits) -> None:
    task = make_task(sample_kb, splits)

    texts = {EncoderScorer.text(question) for question in splits.train.questions}
    assert len(task.lengths) == len(texts) < len(splits.train)
    assert float(task.weights.sum()) == pytest.approx(len(texts), rel=1e-4)
    assert [float(shares.sum()) for _, shares in task.golds] == pytest.approx([1.0] * len(texts))


def test_frozen_layers_stay_and_their_states_are_those_of_the_whole(sample_kb: KnowledgeBase, splits: Splits) -> None:
    task = make_task(sample_kb, splits, replace(QUICK, encoder=PretrainedConfig(dropout=0.0, learned_dropout=0.0)))
    rows = np.flatnonzero(task.lengths == task.lengths[0])[:4]
    tokens = torch.tensor([task.tokens[row] for row in rows])
    task.network.train()

    loss = task.loss(rows)
    loss.sum().backward()

    expected = task.network.compare(task.network.encoder(tokens), task.seen).log_softmax(dim=1)
    for place, row in enumerate(rows.tolist()):
        relations, shares = task.golds[row]
        own = -(shares * expected[place, relations]).sum() * task.weights[row]
        assert float(loss[place].detach()) == pytest.approx(float(own.detach()), rel=1e-2)
    moved = {name for name, parameter in task.network.named_parameters() if parameter.grad is not None}
    assert {name.split(".")[3] for name in moved if ".layers." in name} == {"1", "2"}
    assert "learned" in moved
    assert not any("words" in name or "positions" in name for name in moved)


def test_relations_that_training_has_not_seen_learn_nothing(sample_kb: KnowledgeBase, splits: Splits) -> None:
    few = replace(splits.train, questions=splits.train.questions[:9], relations=splits.train.relations[:9])
    task = make_task(sample_kb, Splits(few, splits.valid))
    task.network.train()

    task.loss(np.flatnonzero(task.lengths == task.lengths[0])).sum().backward()

    gradient = task.network.learned.grad
    assert gradient is not None
    unseen = np.setdiff1d(np.arange(len(sample_kb.relations)), task.seen.numpy())
    assert float(gradient[unseen].abs().max()) == 0
    assert float(gradient.abs().max()) > 0


def test_without_trained_layers_the_learned_part_alone_moves(sample_kb: KnowledgeBase, splits: Splits) -> None:
    task = make_task(sample_kb, splits, change_settings(QUICK, {"trained_layers": 0}))
    task.network.train()

    task.loss(np.array([0])).sum().backward()

    assert [name for name, value in task.network.named_parameters() if value.grad is not None] == ["learned"]


def test_a_question_alone_has_the_scores_that_it_has_in_a_batch(
    sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path
) -> None:
    learn(sample_kb, splits, tmp_path, epochs=1)
    scorer = make_relation_scorer("encoder", sample_kb, models=tmp_path)
    questions = splits.valid.questions

    alone = np.concatenate([scorer.score([question]) for question in questions])

    np.testing.assert_allclose(scorer.score(questions), alone, rtol=0, atol=1e-5)


def test_it_is_rebuilt_without_the_encoder_that_it_started_from(
    sample_kb: KnowledgeBase,
    reordered_kb: KnowledgeBase,
    splits: Splits,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learn(sample_kb, splits, tmp_path, epochs=1)
    monkeypatch.setenv("KBTOOLS_ENCODER", str(tmp_path / "nothing"))

    scores = make_relation_scorer("encoder", sample_kb, models=tmp_path).score(splits.valid.questions)

    reordered = make_relation_scorer("encoder", reordered_kb, models=tmp_path).score(splits.valid.questions)
    np.testing.assert_allclose(reordered, scores[:, ::-1], rtol=0, atol=1e-5)
    with pytest.raises(CheckpointMismatch, match="train the model again"):
        make_relation_scorer("encoder", MemoryKB([("a", "r", "b")]), models=tmp_path)


@pytest.mark.parametrize("name", ["adam", "adagrad", "adagrad-averaged", "row-adagrad"])
def test_optimisers_keep_nothing_for_frozen_layers(sample_kb: KnowledgeBase, splits: Splits, name: str) -> None:
    network = make_task(sample_kb, splits).network

    optimisers = make_optimisers(network, name=name, lr=0.1, momentum=0.9)

    moved = {id(weight) for optimiser in optimisers for group in optimiser.param_groups for weight in group["params"]}
    assert moved == {id(weight) for weight in network.parameters() if weight.requires_grad}


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadSetting, match="trained-layers must be at least 0"):
        PretrainedConfig(trained_layers=-1)
    with pytest.raises(BadSetting, match="learned-dropout"):
        PretrainedConfig(learned_dropout=1.5)
