"""The training loop for every network and objective; it can be stopped and resumed.

Its optimisers are AdaGrad with momentum as in the paper, AdaGrad by rows, and Adam that updates only the words of a
batch.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, SparseAdam

from kbtools.errors import NonFiniteLoss, NothingToLearn
from kbtools.ranking.model_store import Stamp
from kbtools.scorers.fitting.measures import SILENT, Callbacks, Epoch, EpochCallback
from kbtools.scorers.networks.devices import memory_named
from kbtools.scorers.networks.distributed import check_agreement, rank, share, sum_gradients, summed
from kbtools.scorers.networks.training_settings import FitConfig
from kbtools.storage import new_file, remove_ours

logger = logging.getLogger(__name__)

STATE = "training.pt"

_EPSILON = 1e-6
"""Keeps the root of a sum of squares from being zero; below any relevant gradient."""

NUMBERS = {"adam": 2, "adagrad": 2, "adagrad-averaged": 2, "row-adagrad": 0}
"""Numbers that an optimiser stores per weight; row-adagrad's, one per row, are negligible."""


class Task(Protocol):
    """An untrained model with its objective: the examples, their loss, and measures of the network."""

    @property
    def network(self) -> nn.Module: ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of words of every example; a batch has examples of one length, so that none is padded."""
        ...

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the loss of each example of a batch, in float32 even in mixed precision: (batch,)."""
        ...

    def measure(self) -> dict[str, float]:
        """Measure the network on the validation split; the first measure decides, higher is better."""
        ...

    def save(self, folder: Path, stamp: Stamp) -> None:
        """Write the model to a folder, from which its plugin's `load` rebuilds it."""
        ...


@runtime_checkable
class SelfFitting(Protocol):
    """A task without a network, trained by its own algorithm in a single call; it cannot be resumed."""

    def fit(self, callback: EpochCallback) -> None: ...

    def measure(self) -> dict[str, float]: ...

    def save(self, folder: Path, stamp: Stamp) -> None: ...


def fit(
    task: Task, config: FitConfig, *, state: Path | None = None, made_of: str = "", callbacks: Callbacks = SILENT
) -> list[Epoch]:
    """Train a network in place and return its epochs.

    With a folder for its state, a killed training resumes after the last full epoch and ends with the same weights; a
    state of other settings or questions (`made_of`) is ignored. Of several processes (see `distributed`) only the first
    measures, reports and writes.
    """
    if not len(task.lengths):
        raise NothingToLearn("no training question has a subject with a type or a vector, which the model needs")
    # Denormal numbers are flushed to zero: computing with them is many times slower.
    torch.set_flush_denormal(True)
    optimisers = make_optimisers(task.network, name=config.optimiser, lr=config.learning_rate, momentum=config.momentum)
    epochs = _read_state(task.network, optimisers, state, made_of) if state else []
    check_agreement(len(epochs), len(task.lengths))
    for epoch in range(len(epochs), config.epochs):
        begun = time.process_time()
        # Arbitrary factors that keep the random numbers of epochs, processes and adjacent seeds apart.
        torch.manual_seed(1_000_003 * (config.seed + 10_007 * rank()) + epoch)
        batches = make_batches(task.lengths, batch=config.batch, seed=[config.seed, epoch])
        loss = _run_epoch(task, config, optimisers, batches, epoch, callbacks)
        seconds = time.process_time() - begun
        task.network.eval()
        epochs.append(Epoch(epoch + 1, loss, seconds, {} if rank() else task.measure()))
        if rank():
            continue
        logger.info("epoch %d: loss %.4f, %s, %.1f s", epoch + 1, loss, epochs[-1].figures, seconds)
        if state:
            _write_state(task.network, optimisers, epochs, state, made_of)
        callbacks.epoch(epochs[-1])
    return epochs


def make_batches(lengths: NDArray[np.int64], *, batch: int, seed: Sequence[int]) -> list[NDArray[np.int64]]:
    """Divide the examples into batches of one length each, in an order that depends only on the seed."""
    random = np.random.default_rng(seed)
    batches = []
    for length in np.unique(lengths):
        rows = random.permutation(np.flatnonzero(lengths == length))
        batches += [rows[first : first + batch] for first in range(0, len(rows), batch)]
    return [batches[at] for at in random.permutation(len(batches))]


def _run_epoch(
    task: Task,
    config: FitConfig,
    optimisers: Sequence[Optimizer],
    batches: Sequence[NDArray[np.int64]],
    epoch: int,
    callbacks: Callbacks,
) -> float:
    """Train on each batch once and return the mean loss of an example; raise NonFiniteLoss if it is not finite."""
    task.network.train()
    total, steps = 0.0, config.epochs * len(batches)
    device = next(task.network.parameters()).device
    for number, rows in enumerate(batches):
        # Down to zero in equal steps over all batches of all epochs.
        set_rate(optimisers, config.learning_rate * (1 - (epoch * len(batches) + number) / steps))
        with memory_named(config.batch):
            own_rows = share(rows)
            with torch.autocast(device.type, enabled=config.amp, dtype=torch.bfloat16):
                losses = task.loss(own_rows) if len(own_rows) else torch.zeros(0, device=device, requires_grad=True)
            # The loss is summed before it is checked, so that every process stops at the same batch.
            value = float(summed(losses.detach().sum()))
            if not np.isfinite(value):
                raise NonFiniteLoss(
                    f"the loss of batch {number + 1} of epoch {epoch + 1} is {value}; lower --learning-rate or --clip",
                    batch=number + 1,
                    epoch=epoch + 1,
                )
            for optimiser in optimisers:
                optimiser.zero_grad(set_to_none=True)
            # The mean over the whole batch, of which this process has a share; gradients are then summed.
            (losses.sum() / len(rows)).backward()  # type: ignore[no-untyped-call]
            sum_gradients(task.network)
            clip_gradients(task.network, config.clip)
            for optimiser in optimisers:
                optimiser.step()
        total += value
        callbacks.batch(epoch + 1, (number + 1) / len(batches))
    return total / sum(map(len, batches))


def _write_state(
    network: nn.Module, optimisers: Sequence[Optimizer], epochs: Sequence[Epoch], state: Path, made_of: str
) -> None:
    """Write the state needed for the next epoch, atomically."""
    state.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "made_of": made_of,
        "epochs": [(epoch.number, epoch.loss, epoch.seconds, epoch.figures) for epoch in epochs],
        "network": network.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in optimisers],
    }
    # In memory first, since torch's error for a failed write does not reveal a full disk.
    written = BytesIO()
    torch.save(record, written)
    with new_file(state / STATE) as file:
        file.write(written.getbuffer())


def _read_state(network: nn.Module, optimisers: Sequence[Optimizer], state: Path, made_of: str) -> list[Epoch]:
    """Load the state of a stopped training and return its epochs; empty without a usable state."""
    if not (state / STATE).is_file():
        return []
    try:
        record = torch.load(state / STATE, map_location="cpu", weights_only=True)
        if record["made_of"] != made_of:
            return []
        epochs = [Epoch(*epoch) for epoch in record["epochs"]]
        weights, states = record["network"], record["optimisers"]
    except Exception as error:  # A damaged file may raise anything.
        logger.warning("%s: cannot be read (%r); the training restarts", state / STATE, error)
        return []
    network.load_state_dict(weights)
    for optimiser, own_state in zip(optimisers, states, strict=True):
        optimiser.load_state_dict(own_state)
    return epochs


def remove_state(state: Path) -> None:
    remove_ours(state, lambda path: str(path) == STATE)


def _with_gradients(optimiser: Optimizer) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the parameters of an optimiser that have a gradient, each with the settings of its group."""
    for group in optimiser.param_groups:
        yield from ((parameter, group) for parameter in group["params"] if parameter.grad is not None)


class _AdaGradMomentum(Optimizer):
    """AdaGrad (Duchi et al. 2011) with momentum (Pham et al. 2015).

    G += g², step = lr·g / sqrt(G + 1e-6), velocity = momentum·velocity + share·step, parameter -= velocity. A share of
    1 adds up steps (classic momentum), one of 1 - momentum averages them.
    """

    def __init__(self, parameters: Iterable[Tensor], *, lr: float, momentum: float, share: float = 1.0) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})
        self.share = share

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter; of a table with sparse gradients, the rows that ever had one."""
        for parameter, group in _with_gradients(self):
            state = self.state[parameter]
            if not state:
                state |= {name: torch.zeros_like(parameter) for name in ("squares", "velocity")}
            gradient, squares, velocity = parameter.grad, state["squares"], state["velocity"]
            alpha = group["lr"] * self.share
            if gradient.is_sparse:
                # A word that occurs twice in a batch has two gradients, which are added.
                gradient = gradient.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                touched = squares[rows].addcmul_(values, values)
                squares[rows] = touched
                # A row that ever had a gradient keeps moving in later steps; all others stay.
                moving = state.setdefault("moving", torch.zeros_like(parameter[:, 0], dtype=torch.bool))
                moving[rows] = True
                (moved,) = moving.nonzero(as_tuple=True)
                velocity[moved] *= group["momentum"]
                velocity.index_add_(0, rows, values / touched.add_(_EPSILON).sqrt_(), alpha=alpha)
                parameter.index_add_(0, moved, velocity[moved], alpha=-1)
            else:
                squares.addcmul_(gradient, gradient)
                velocity.mul_(group["momentum"]).add_(gradient / (squares + _EPSILON).sqrt_(), alpha=alpha)
                parameter.sub_(velocity)


class RowAdaGrad(Optimizer):
    """G += mean of g² over a row, row -= lr·g / sqrt(G + 1e-6); of a sparse gradient only its rows are updated.

    Beyond the paper; Lerer et al. 2019 train entities so. Adam stores two numbers per component, this one per row.
    """

    def __init__(self, parameters: Iterable[Tensor], *, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for parameter, group in _with_gradients(self):
            state = self.state[parameter]
            if not state:
                state["squares"] = parameter.new_zeros(len(parameter))
            rows, values = torch.arange(len(parameter), device=parameter.device), parameter.grad
            if values.is_sparse:
                gradient = values.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
            squares = state["squares"][rows] + values.reshape(len(values), -1).square().mean(dim=1)
            state["squares"][rows] = squares
            scale = (squares + _EPSILON).rsqrt().reshape(-1, *[1] * (values.dim() - 1))
            parameter.index_add_(0, rows, values * scale, alpha=-group["lr"])


def make_optimisers(network: nn.Module, *, name: str, lr: float, momentum: float) -> list[Optimizer]:
    """Build the optimisers of a network: `adam` (sparse for word embeddings), or AdaGrad with momentum or by rows."""
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    for table in tables:  # A batch updates a few hundred of 400,000 words.
        table.sparse = True
    if name == "row-adagrad":
        return [RowAdaGrad(learned, lr=lr)]
    if name in ("adagrad", "adagrad-averaged"):
        share = 1.0 if name == "adagrad" else 1 - momentum
        return [_AdaGradMomentum(learned, lr=lr, momentum=momentum, share=share)]
    sparse = {table.weight for table in tables if table.weight.requires_grad}
    dense = [parameter for parameter in learned if parameter not in sparse]
    betas = (momentum, 0.999)  # The second as in Kingma and Ba 2015.
    optimisers: list[Optimizer] = [Adam(dense, lr=lr, betas=betas, fused=True)] if dense else []
    return [*optimisers, SparseAdam(list(sparse), lr=lr, betas=betas)] if sparse else optimisers


def set_rate(optimisers: Sequence[Optimizer], lr: float) -> None:
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = lr


def clip_gradients(network: nn.Module, most: float) -> None:
    """Scale the gradients so that their joint norm, dense and sparse, is at most `most`."""
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
