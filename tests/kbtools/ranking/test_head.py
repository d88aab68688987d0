"""The taught head learns a convex function of vectors, and leaves the other relations their scores."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.ranking import head, taught
from kbtools.ranking.head import STRENGTH, UNTAUGHT, fit_head, minimise

VECTORS = np.eye(4, dtype=np.float32)


def no_score(at: slice) -> NDArray[np.float64]:
    return np.zeros((len(VECTORS[at]), 5))


def test_a_taught_question_has_its_relation_first() -> None:
    head = fit_head(VECTORS, np.array([3, 1, 3, 0]), no_score)

    scores = head.add(np.zeros((4, 5)), VECTORS)

    assert scores.argmax(axis=1).tolist() == [3, 1, 3, 0]


def test_relations_that_nobody_taught_keep_their_scores() -> None:
    head = fit_head(VECTORS, np.array([3, 1, 3, 1]), no_score)

    scores = head.add(np.full((4, 5), 7.0), VECTORS)

    assert (scores[:, [0, 2, 4]] == 7.0).all()


def test_relations_that_nobody_taught_gain_where_most_are_taught_once() -> None:
    once, often = (fit_head(VECTORS, np.array(relations), no_score) for relations in ([3, 1, 2, 0], [3, 3, 2, 2]))

    assert once.biases.mean() == pytest.approx(often.biases.mean() - UNTAUGHT, abs=0.2)


def test_a_single_question_is_learned() -> None:
    head = fit_head(VECTORS[:1], np.array([2]), lambda at: np.zeros((1, 5)))

    scores = head.add(np.zeros((2, 5)), VECTORS[:2])

    assert scores[0, 2] > scores[1, 2]


def test_scores_of_all_other_relations_count_in_what_is_learned() -> None:
    def against(at: slice) -> NDArray[np.float64]:
        return no_score(at) + np.array([0.0, 0.0, 9.0, 0.0, 0.0])

    weak, strong = (fit_head(VECTORS, np.array([3, 1, 3, 1]), score) for score in (no_score, against))

    assert strong.vectors[0].max() > weak.vectors[0].max()


def test_the_fit_ends_where_the_slopes_are_zero() -> None:
    goal = np.array([1.0, -2.0, 0.5])

    def bowl(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        steep = np.array([1.0, 10.0, 100.0])
        return float((steep * (at - goal) ** 2).sum()), 2 * steep * (at - goal)

    assert minimise(bowl, np.zeros(3)) == pytest.approx(goal, abs=1e-2)


def test_more_questions_than_are_scored_at_once_give_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    relations = np.array([3, 1, 3, 0])
    whole = fit_head(VECTORS, relations, no_score)
    scored: list[int] = []

    def score(at: slice) -> NDArray[np.float64]:
        scored.extend(range(4)[at])
        return no_score(at)

    monkeypatch.setattr("kbtools.ranking.head.BLOCK", 3)

    assert fit_head(VECTORS, relations, score).vectors == pytest.approx(whole.vectors)
    assert scored == [0, 1, 2, 3]
    assert STRENGTH < 1


def test_what_is_learned_is_counted_as_it_was_measured() -> None:
    assert (head.STRENGTH, head.SHARPNESS, head.VECTOR_PENALTY, head.BIAS_PENALTY) == (0.5, 15.0, 2.25, 1.0)
    assert (taught.SUBJECT_GAIN, taught.SAME_GAIN) == (0.3, 20.0)


def test_the_mean_is_taken_with_two_questions_at_the_origin() -> None:
    fitted = fit_head(VECTORS, np.array([3, 1, 3, 1]), no_score)

    assert fitted.mean.tolist() == pytest.approx([1 / 6] * 4)
