"""AdaGrad by rows moves a row by its own past, and only those that have a gradient."""

import pytest

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.fitting.training_loop import RowAdaGrad


def test_a_row_keeps_one_number_for_its_past() -> None:
    table = torch.nn.Parameter(torch.zeros(3, 2))
    optimiser = RowAdaGrad([table], lr=1.0)
    gradient = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), [[1.0, 3.0], [2.0, 1.0]], (3, 2), check_invariants=True)

    for _ in range(2):
        table.grad = gradient
        optimiser.step()

    first = 5 / ((9 + 16) / 2) ** 0.5
    assert optimiser.state[table]["squares"].tolist() == [0.0, 25.0, 0.0]
    assert table[[0, 2]].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert table[1].tolist() == pytest.approx([-(first + 1) * 3 / 5, -(first + 1) * 4 / 5], rel=1e-5)


def test_a_dense_gradient_moves_as_a_sparse_one_does() -> None:
    gradient = torch.tensor([[1.0, -2.0], [0.5, 0.0]])
    tables = [torch.nn.Parameter(torch.ones(2, 2)) for _ in range(2)]
    for table, own in zip(tables, (gradient, gradient.to_sparse(1)), strict=True):
        table.grad = own
        RowAdaGrad([table], lr=0.1).step()

    assert torch.equal(*tables)
