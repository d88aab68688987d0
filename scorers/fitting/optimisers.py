"""Optimisers: AdaGrad with momentum as in the paper, AdaGrad by rows, and Adam that moves only the words of a batch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, SparseAdam

EPSILON = 1e-6
"""Keeps the root of a sum of squares from dividing by zero; below any gradient that matters."""


class AdaGradMomentum(Optimizer):
    """AdaGrad (Duchi et al. 2011) with momentum (Pham et al. 2015).

    G += g², step = lr·g / sqrt(G + 1e-6), velocity = momentum·velocity + share·step, parameter -= velocity. Steps add
    up with a share of 1, which is classic momentum, and are averaged with one of 1 - momentum.
    """

    def __init__(self, parameters: Iterable[Tensor], *, lr: float, momentum: float, share: float = 1.0) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})
        self.share = share

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter; of a table whose gradients are sparse, the rows that ever had one."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["squares"] = torch.zeros_like(parameter)
                    state["velocity"] = torch.zeros_like(parameter)
                gradient, squares = parameter.grad, state["squares"]
                alpha = group["lr"] * self.share
                velocity = state["velocity"]
                if gradient.is_sparse:
                    # A word that a batch holds twice has two gradients, which count as their sum.
                    gradient = gradient.coalesce()
                    rows, values = gradient.indices()[0], gradient.values()
                    touched = squares[rows].addcmul_(values, values)
                    squares[rows] = touched
                    # A row that once had a gradient goes on moving in steps that give it none; all others stand.
                    moving = state.setdefault("moving", torch.zeros_like(parameter[:, 0], dtype=torch.bool))
                    moving[rows] = True
                    (moved,) = moving.nonzero(as_tuple=True)
                    velocity[moved] *= group["momentum"]
                    velocity.index_add_(0, rows, values / touched.add_(EPSILON).sqrt_(), alpha=alpha)
                    parameter.index_add_(0, moved, velocity[moved], alpha=-1)
                else:
                    squares.addcmul_(gradient, gradient)
                    velocity.mul_(group["momentum"]).add_(gradient / (squares + EPSILON).sqrt_(), alpha=alpha)
                    parameter.sub_(velocity)


class RowAdaGrad(Optimizer):
    """G += mean of g² over a row, row -= lr·g / sqrt(G + 1e-6); of a sparse gradient only its rows move.

    Beyond the paper; Lerer et al. 2019 train entities so. Adam keeps two numbers a component, this one a row.
    """

    def __init__(self, parameters: Iterable[Tensor], *, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["squares"] = parameter.new_zeros(len(parameter))
                rows, values = torch.arange(len(parameter), device=parameter.device), parameter.grad
                if values.is_sparse:
                    gradient = values.coalesce()
                    rows, values = gradient.indices()[0], gradient.values()
                squares = state["squares"][rows] + values.reshape(len(values), -1).square().mean(dim=1)
                state["squares"][rows] = squares
                scale = (squares + EPSILON).rsqrt().reshape(-1, *[1] * (values.dim() - 1))
                parameter.index_add_(0, rows, values * scale, alpha=-group["lr"])


NUMBERS = {"adam": 2, "adagrad": 2, "adagrad-averaged": 2, "row-adagrad": 0}
"""Numbers that an optimiser keeps for each weight; those of row-adagrad, one a row, do not count."""


def make_optimisers(network: nn.Module, *, name: str, lr: float, momentum: float) -> list[Optimizer]:
    """Build the optimisers of a network: `adam` (word embeddings sparsely), or AdaGrad: with momentum, or by rows."""
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    for table in tables:  # of 400,000 words a batch moves a few hundred
        table.sparse = True
    if name == "row-adagrad":
        return [RowAdaGrad(learned, lr=lr)]
    if name in ("adagrad", "adagrad-averaged"):
        share = 1.0 if name == "adagrad" else 1 - momentum
        return [AdaGradMomentum(learned, lr=lr, momentum=momentum, share=share)]
    sparse = {table.weight for table in tables if table.weight.requires_grad}
    dense = [parameter for parameter in learned if parameter not in sparse]
    betas = (momentum, 0.999)  # the second as Kingma and Ba 2015 have it
    optimisers: list[Optimizer] = [Adam(dense, lr=lr, betas=betas, fused=True)] if dense else []
    return [*optimisers, SparseAdam(list(sparse), lr=lr, betas=betas)] if sparse else optimisers


def set_rate(optimisers: Sequence[Optimizer], lr: float) -> None:
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = lr


def clip_gradients(network: nn.Module, most: float) -> None:
    """Shrink the gradients so that their norm, over dense and sparse ones together, is at most `most`."""
    gradients: list[Any] = []
    for parameter in network.parameters():
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
    scale = torch.clamp(most / (norm + 1e-6), max=1.0)
    for gradient in gradients:
        gradient.mul_(scale)
