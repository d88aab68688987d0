"""The CRF is that of the paper, against every tagging written out."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.taggers.tagger import best_sequence, span_log_probabilities
from kbtools.scorers.taggers.tagger_training import log_partition, sequence_score

LENGTH = 5


@pytest.fixture
def emissions() -> torch.Tensor:
    return torch.randn(2, LENGTH, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def transitions() -> torch.Tensor:
    return torch.randn(2, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def score(emissions: torch.Tensor, transitions: torch.Tensor, tags: tuple[int, ...]) -> float:
    """Write s(y, q) out as the paper does."""
    emitted = sum(float(emissions[place, tag]) for place, tag in enumerate(tags))
    return emitted + sum(float(transitions[one, other]) for one, other in itertools.pairwise(tags))


def taggings() -> list[tuple[int, ...]]:
    return list(itertools.product([0, 1], repeat=LENGTH))


def test_a_score_sums_emissions_and_transitions(emissions: torch.Tensor, transitions: torch.Tensor) -> None:
    tags = torch.tensor([[0, 1, 1, 0, 0], [1, 1, 0, 0, 1]])

    scores = sequence_score(emissions, transitions, tags)

    expected = [score(one, transitions, tuple(row.tolist())) for one, row in zip(emissions, tags, strict=True)]
    assert scores.tolist() == pytest.approx(expected)


def test_the_partition_sums_over_every_tagging(emissions: torch.Tensor, transitions: torch.Tensor) -> None:
    partition = log_partition(emissions, transitions)

    expected = [math.log(sum(math.exp(score(one, transitions, tags)) for tags in taggings())) for one in emissions]
    assert partition.tolist() == pytest.approx(expected)


def test_the_best_sequence_is_the_greatest_of_all(emissions: torch.Tensor, transitions: torch.Tensor) -> None:
    best = best_sequence(emissions.numpy(), transitions.numpy())

    expected = [max(taggings(), key=partial(score, one, transitions)) for one in emissions]
    assert [tuple(row) for row in best.tolist()] == expected


def test_the_probability_of_every_ngram_is_exact(emissions: torch.Tensor, transitions: torch.Tensor) -> None:
    spans = span_log_probabilities(emissions.numpy(), transitions.numpy())

    total = math.exp(float(log_partition(emissions, transitions)[0]))
    for first, last in itertools.combinations_with_replacement(range(LENGTH), 2):
        tags = tuple(int(first <= place <= last) for place in range(LENGTH))
        expected = math.exp(score(emissions[0], transitions, tags)) / total
        assert math.exp(float(spans[0, first, last])) == pytest.approx(expected)
    assert float(spans[0, 3, 1]) == -math.inf


def test_a_single_word_has_two_taggings() -> None:
    emissions = np.array([[[0.0, math.log(3)]]])

    spans = span_log_probabilities(emissions, np.zeros((2, 2)))

    assert np.exp(spans).tolist() == [[[pytest.approx(0.75)]]]


def test_the_best_sequence_goes_along_the_transitions_and_not_against_them() -> None:
    into_subject = np.array([[0.0, 5.0], [-5.0, 1.0]])

    best = best_sequence(np.zeros((1, 4, 2)), into_subject)

    assert best.tolist() == [[0, 1, 1, 1]]
