"""How parameters move: AdaGrad with momentum as in the paper, and Adam that touches only the words of a batch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, SparseAdam


class AdaGradMomentum(Optimizer):
    """AdaGrad (Duchi et al. 2011) whose steps gather momentum (Pham et al. 2015).

    G += g², step = lr·g / sqrt(G + 1e-6), velocity = momentum·velocity + step, parameter -= velocity.
    """

    def __init__(self, parameters: Iterable[Tensor], *, lr: float, momentum: float) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["squares"] = torch.zeros_like(parameter)
                    state["velocity"] = torch.zeros_like(parameter)
                state["squares"].addcmul_(parameter.grad, parameter.grad)
                step = parameter.grad / (state["squares"] + 1e-6).sqrt_()
                state["velocity"].mul_(group["momentum"]).add_(step, alpha=group["lr"])
                parameter.sub_(state["velocity"])


def make_optimisers(network: nn.Module, *, name: str, lr: float, momentum: float) -> list[Optimizer]:
    """Make what moves a network: `adam` (word embeddings sparsely) or `adagrad`."""
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    for table in tables:
        table.sparse = name == "adam"
    if name == "adagrad":
        return [AdaGradMomentum(network.parameters(), lr=lr, momentum=momentum)]
    sparse = {table.weight for table in tables}
    dense = [parameter for parameter in network.parameters() if parameter not in sparse]
    made: list[Optimizer] = [Adam(dense, lr=lr, betas=(momentum, 0.999), fused=True)] if dense else []
    return [*made, SparseAdam(list(sparse), lr=lr, betas=(momentum, 0.999))] if sparse else made


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
