"""The learned ranker: what its trees minimise, and which candidates they learn from."""

from typing import Any

import numpy as np
import pytest

from kbtools.errors import CheckpointMismatch, NothingToLearn
from kbtools.ranking.features import Features
from kbtools.scorers.rankers import boosted_ranker
from kbtools.scorers.rankers.boosted_ranker import PARAMETERS, BoostedRanker, places, softmax_objective


def loss(scores: np.ndarray, gold: np.ndarray, sizes: list[int]) -> float:
    pools = zip(np.split(scores, np.cumsum(sizes)[:-1]), np.split(gold, np.cumsum(sizes)[:-1]), strict=True)
    return float(sum(-(np.log(np.exp(pool) / np.exp(pool).sum()) * right).sum() for pool, right in pools))


def test_gradients_are_those_of_the_cross_entropy_over_each_pool() -> None:
    scores, gold, sizes = np.array([0.5, -1.0, 2.0, 0.0, 0.3]), np.array([0.0, 1, 0, 1, 0]), [3, 2]

    gradients, curvatures = softmax_objective(gold, np.array(sizes))(scores, None)

    step = 1e-5 * np.eye(len(scores))
    rises = np.array([loss(scores + one, gold, sizes) - loss(scores - one, gold, sizes) for one in step])
    bends = np.array(
        [loss(scores + 100 * one, gold, sizes) + loss(scores - 100 * one, gold, sizes) for one in step]
    ) - 2 * loss(scores, gold, sizes)
    np.testing.assert_allclose(gradients, rises / 2e-5, atol=1e-6)
    np.testing.assert_allclose(curvatures, 2 * bends / 1e-6, atol=1e-4)


def test_nearly_certain_scores_keep_a_curvature() -> None:
    gradients, curvatures = softmax_objective(np.array([1.0, 0.0]), np.array([2]))(np.array([1e4, -1e4]), None)

    assert (gradients.tolist(), curvatures.tolist()) == ([0.0, 0.0], [1e-6, 1e-6])


def features_of(firsts: list[list[float]]) -> Features:
    values = np.array([[first, -first] for pool in firsts for first in pool])
    return Features(("sum", "other"), values, np.array(list(map(len, firsts))))


def test_candidates_are_ranked_within_their_question_by_the_first_feature() -> None:
    features = features_of([[1.0, 3.0, 2.0], [], [5.0, 5.0, 9.0]])

    assert places(features, np.array([0, 0, 0, 2, 2, 2])).tolist() == [2, 0, 1, 1, 2, 0]


class Fake:
    """LightGBM's functions, keeping what they are given."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}

    def load(self, name: str) -> Any:
        return self.dataset if name.endswith("Dataset") else self.train

    def dataset(self, values: np.ndarray, **given: Any) -> None:
        self.data = {"values": values, **given}

    def train(self, parameters: dict[str, Any], data: None, num_boost_round: int) -> Any:
        self.data |= {"parameters": parameters, "rounds": num_boost_round}
        raise KeyboardInterrupt


def test_the_gold_and_the_hardest_candidates_of_questions_with_gold_are_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Fake()
    monkeypatch.setattr(boosted_ranker, "import_object", fake.load)
    # The gold candidate is the last of thirty, which the first feature ranks last; one question has no gold.
    features = features_of([[30.0 - place for place in range(30)] for _ in range(101)])
    gold = np.tile(np.arange(30) == 29, 101)
    gold[:30] = False

    with pytest.raises(KeyboardInterrupt):
        BoostedRanker.fit(features, gold, seed=7)

    assert fake.data["group"].tolist() == [21] * 100
    assert fake.data["values"][:21, 0].tolist() == [*range(30, 10, -1), 1]
    assert fake.data["label"].tolist() == ([0] * 20 + [1]) * 100
    assert fake.data["parameters"].items() >= {**PARAMETERS, "seed": 7}.items()
    gradients, _ = fake.data["parameters"]["objective"](np.zeros(2100), None)
    np.testing.assert_allclose(gradients[:21], [1 / 21] * 20 + [1 / 21 - 1])
    with pytest.raises(NothingToLearn, match="99 questions have their gold answer"):
        BoostedRanker.fit(features, np.where(np.arange(len(gold)) < 60, False, gold), seed=7)


def test_other_features_than_those_of_the_training_are_refused() -> None:
    ranker = object.__new__(BoostedRanker)
    ranker.names = ("sum", "link")
    for use in (ranker.score, ranker.explain):
        with pytest.raises(CheckpointMismatch, match="learned from the features sum, link, found sum, other"):
            use(features_of([[1.0]]))
