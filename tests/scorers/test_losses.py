"""Losses, negatives and optimisers are those of the paper, by cases made by hand."""

import math

import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.fitting.training_loop import clip_gradients, make_optimisers
from kbtools.scorers.relations.relation_training import cross_entropy, hinge, sample_negatives
from kbtools.scorers.subjects.subject_training import type_wise_cross_entropy


def test_hinge_sums_over_the_negatives() -> None:
    scores = torch.tensor([[1.0, 0.95, 0.2, 1.3]])

    loss = hinge(scores, gold=torch.tensor([0]), negatives=torch.tensor([[1, 2, 3, 3]]), margin=0.1)

    assert loss.tolist() == pytest.approx([0.05 + 0.0 + 0.4 + 0.4], abs=1e-6)


def test_cross_entropy_is_minus_the_log_of_the_softmax() -> None:
    loss = cross_entropy(torch.tensor([[2.0, 0.0, 1.0]]), gold=torch.tensor([2]))

    assert loss.tolist() == pytest.approx([-math.log(math.e / (math.e**2 + 1 + math.e))], abs=1e-6)


def test_type_wise_cross_entropy_sums_over_the_types() -> None:
    scores = torch.tensor([[0.0, math.log(3)]])

    loss = type_wise_cross_entropy(scores, types=torch.tensor([[1.0, 0.0]]))

    assert loss.tolist() == pytest.approx([-math.log(0.5) - math.log(0.25)], abs=1e-6)


def test_negatives_are_relations_that_the_subject_lacks() -> None:
    torch.manual_seed(0)
    forbidden = torch.tensor([[True, False, True, False], [False, True, True, True]])

    drawn = sample_negatives(forbidden, count=200)

    assert set(drawn[0].tolist()) == {1, 3}
    assert set(drawn[1].tolist()) == {0}


def test_a_subject_with_every_relation_draws_from_all() -> None:
    torch.manual_seed(0)

    drawn = sample_negatives(torch.ones(1, 3, dtype=torch.bool), count=100)

    assert set(drawn[0].tolist()) == {0, 1, 2}


@pytest.mark.parametrize(("name", "share"), [("adagrad", 1.0), ("adagrad-averaged", 0.5)])
def test_adagrad_gathers_squares_and_adds_steps_up_or_averages_them(name: str, share: float) -> None:
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(network.weight)
    (optimiser,) = make_optimisers(network, name=name, lr=0.1, momentum=0.5)

    for gradient in (3.0, 4.0):
        network.weight.grad = torch.tensor([[gradient]])
        optimiser.step()

    first = share * 0.1 * 3 / 3
    second = 0.5 * first + share * 0.1 * 4 / 5
    assert network.weight.item() == pytest.approx(-first - second, abs=1e-6)


def test_adagrad_moves_words_as_it_moves_all_else() -> None:
    dense = torch.nn.Linear(2, 4, bias=False)
    sparse = torch.nn.Embedding(4, 2)
    sparse.weight.data = dense.weight.data.clone()
    made = [make_optimisers(network, name="adagrad", lr=0.1, momentum=0.9)[0] for network in (dense, sparse)]

    for rows in ([1, 1, 3], [0, 1], [3]):
        dense.weight.grad = torch.zeros(4, 2).index_add_(0, torch.tensor(rows), torch.full((len(rows), 2), 0.7))
        sparse.weight.grad = None
        (0.7 * sparse(torch.tensor(rows))).sum().backward()
        for optimiser in made:
            optimiser.step()

    assert sparse.weight.grad is not None
    assert sparse.weight.grad.is_sparse
    assert torch.allclose(sparse.weight, dense.weight, atol=1e-7)


def test_adam_leaves_words_alone_that_are_not_in_the_batch() -> None:
    words = torch.nn.Embedding(3, 2)
    network = torch.nn.Sequential(words, torch.nn.Linear(2, 1))
    before = words.weight.detach().clone()
    optimisers = make_optimisers(network, name="adam", lr=0.1, momentum=0.9)

    network(torch.tensor([1])).sum().backward()
    for optimiser in optimisers:
        optimiser.step()

    changed = (words.weight != before).any(dim=1)
    assert changed.tolist() == [False, True, False]


def test_adam_averages_gradients_by_the_momentum() -> None:
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(network.weight)
    (optimiser,) = make_optimisers(network, name="adam", lr=0.1, momentum=0.5)

    for gradient in (1.0, 0.0):
        network.weight.grad = torch.tensor([[gradient]])
        optimiser.step()

    mean, squares = 0.25 / (1 - 0.5**2), 0.000999 / (1 - 0.999**2)
    assert network.weight.item() == pytest.approx(-0.1 - 0.1 * mean / squares**0.5, rel=1e-4)


@pytest.mark.parametrize(("most", "scale"), [(1.0, 0.2), (5.0, 1.0), (9.0, 1.0)])
def test_gradients_are_clipped_by_their_common_norm_and_never_stretched(most: float, scale: float) -> None:
    network = torch.nn.Linear(2, 1)
    network.weight.grad, network.bias.grad = torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])

    clip_gradients(network, most)

    assert network.weight.grad.tolist() == [pytest.approx([3 * scale, 0.0], abs=1e-5)]
    assert network.bias.grad.tolist() == pytest.approx([4 * scale], abs=1e-5)
