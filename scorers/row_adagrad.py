"""AdaGrad with one number a row instead of one a component: what tables of millions of vectors can afford."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.optim import Optimizer

EPSILON = 1e-6


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
