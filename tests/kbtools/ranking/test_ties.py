"""Ties for the first place against a plain loop."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.ranking.confidence import expected_first, find_ties

GROUPS = st.lists(
    st.lists(st.tuples(st.integers(-2, 2), st.booleans()), min_size=1, max_size=5), min_size=1, max_size=5
)


def draw(group: Sequence[tuple[int, bool]]) -> float:
    """Draw from those that share the first place: the chance that a right one comes."""
    best = max(score for score, _ in group)
    first = [right for score, right in group if score == best]
    return sum(first) / len(first)


@given(GROUPS)
def test_the_expected_value_is_that_of_a_fair_draw_among_the_tied(groups: list[list[tuple[int, bool]]]) -> None:
    scores = np.array([score for group in groups for score, _ in group])
    right = np.array([mark for group in groups for _, mark in group])
    starts = np.cumsum([0, *map(len, groups[:-1])])

    ties = find_ties(scores, starts)

    assert ties.expected(right).tolist() == pytest.approx([draw(group) for group in groups])
    assert ties.count.tolist() == [sum(s == max(group)[0] for s, _ in group) for group in groups]


def test_scores_within_the_tolerance_tie() -> None:
    scores, right = np.array([[1.0, 1.0 - 1e-10, 0.5]]), np.array([[True, False, False]])

    assert expected_first(scores, right).tolist() == [1.0]
    assert expected_first(scores, right, tolerance=1e-9).tolist() == [0.5]


def test_a_tie_is_counted_in_full_in_every_row() -> None:
    scores = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 2.0]])
    right = np.array([[False, False, True], [False, True, False]])

    assert expected_first(scores, right).tolist() == pytest.approx([1 / 3, 0.0])
