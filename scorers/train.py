"""The one training loop: whatever the network and the objective, it can be stopped and run again."""

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from kbtools.errors import NonFiniteLoss
from kbtools.ranking.model_store import Stamp
from kbtools.scorers.devices import memory_named
from kbtools.scorers.distributed import check_agreement, once, rank, share, sum_gradients, summed
from kbtools.scorers.optimisers import clip_gradients, make_optimisers, set_rate
from kbtools.scorers.settings import FitConfig

logger = logging.getLogger(__name__)

STATE = "training.pt"


class Task(Protocol):
    """An objective: which examples there are, what their loss is, and how good the network has become."""

    @property
    def network(self) -> nn.Module: ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Give the number of words of every example; a batch holds examples of one length, so that none is padded."""
        ...

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Give the loss of each example of a batch, in float32 also where the network computes in less: (batch,)."""
        ...

    def measure(self) -> dict[str, float]:
        """Measure the network on the validation split; the first figure is the one that matters, higher is better."""
        ...


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an epoch came to: mean loss, CPU seconds of this process, figures on the validation split."""

    number: int
    loss: float
    seconds: float
    figures: dict[str, float]


def fit_model(
    task: Task,
    config: FitConfig,
    folder: Path,
    *,
    save: Callable[..., None],
    plugin: str,
    made_of: str,
    report: Callable[[Epoch], None],
    spent: float = 0.0,
) -> dict[str, float]:
    """Train a network, go on where that was stopped, replace the model's folder at the end, and give its figures.

    Its seconds begin with those that were `spent` before.
    """
    state = folder.with_name(f".{folder.name}.training")
    epochs = fit(task, config, state=state, made_of=made_of, report=report)
    figures = {**epochs[-1].figures, "seconds": spent + sum(epoch.seconds for epoch in epochs)}
    once(lambda: save(folder, Stamp(plugin, made_of, figures)))
    once(lambda: shutil.rmtree(state, ignore_errors=True))
    return figures


def fit(
    task: Task,
    config: FitConfig,
    *,
    state: Path | None = None,
    made_of: str = "",
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> list[Epoch]:
    """Train a network in place and list its epochs.

    With a folder for its state, a killed training goes on after the last whole epoch, to the same weights as one
    that was not killed; a state of other settings or questions (`made_of`) is passed over. Of several processes
    (see `distributed`) the first alone measures, reports and writes.
    """
    torch.set_flush_denormal(True)
    optimisers = make_optimisers(task.network, name=config.optimiser, lr=config.learning_rate, momentum=config.momentum)
    done = restore(task.network, optimisers, state, made_of) if state else []
    check_agreement(len(done), len(task.lengths))
    for epoch in range(len(done), config.epochs):
        begun = time.process_time()
        torch.manual_seed(1_000_003 * (config.seed + 10_007 * rank()) + epoch)
        batches = make_batches(task.lengths, batch=config.batch, seed=[config.seed, epoch])
        loss = run_epoch(task, config, optimisers, batches, epoch)
        seconds = time.process_time() - begun
        task.network.eval()
        done.append(Epoch(epoch + 1, loss, seconds, {} if rank() else task.measure()))
        if rank():
            continue
        logger.info("epoch %d: loss %.4f, %s, %.1f s", epoch + 1, loss, done[-1].figures, seconds)
        if state:
            keep(task.network, optimisers, done, state, made_of)
        report(done[-1])
    return done


def make_batches(lengths: NDArray[np.int64], *, batch: int, seed: Sequence[int]) -> list[NDArray[np.int64]]:
    """Deal the examples into batches of one length each, in an order that only the seed decides."""
    random = np.random.default_rng(seed)
    batches = []
    for length in np.unique(lengths):
        rows = random.permutation(np.flatnonzero(lengths == length))
        batches += [rows[first : first + batch] for first in range(0, len(rows), batch)]
    return [batches[at] for at in random.permutation(len(batches))]


def run_epoch(
    task: Task,
    config: FitConfig,
    optimisers: Sequence[Optimizer],
    batches: Sequence[NDArray[np.int64]],
    epoch: int,
) -> float:
    """Go once through the batches and give the mean loss of an example; raise NonFiniteLoss where it is no number."""
    task.network.train()
    total, steps = 0.0, config.epochs * len(batches)
    device = next(task.network.parameters()).device
    for number, rows in enumerate(batches):
        set_rate(optimisers, config.learning_rate * (1 - (epoch * len(batches) + number) / steps))
        with memory_named(config.batch):
            own = share(rows)
            with torch.autocast(device.type, enabled=config.amp, dtype=torch.bfloat16):
                losses = task.loss(own) if len(own) else torch.zeros(0, device=device, requires_grad=True)
            value = float(summed(losses.detach().sum()))
            if not np.isfinite(value):
                raise NonFiniteLoss(
                    f"the loss of batch {number + 1} of epoch {epoch + 1} is {value}; lower --learning-rate or --clip",
                    batch=number + 1,
                    epoch=epoch + 1,
                )
            for optimiser in optimisers:
                optimiser.zero_grad(set_to_none=True)
            (losses.sum() / len(rows)).backward()  # type: ignore[no-untyped-call]
            sum_gradients(task.network)
            clip_gradients(task.network, config.clip)
            for optimiser in optimisers:
                optimiser.step()
        total += value
    return total / sum(map(len, batches))


def keep(network: nn.Module, optimisers: Sequence[Optimizer], done: Sequence[Epoch], state: Path, made_of: str) -> None:
    """Write all that the next epoch needs, whole or not at all."""
    state.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "made_of": made_of,
        "done": [(epoch.number, epoch.loss, epoch.seconds, epoch.figures) for epoch in done],
        "network": network.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in optimisers],
    }
    temporary = state / f"{STATE}.new"
    torch.save(record, temporary)
    temporary.replace(state / STATE)


def restore(network: nn.Module, optimisers: Sequence[Optimizer], state: Path, made_of: str) -> list[Epoch]:
    """Take up the state of a training that was stopped; no epochs where there is none of this kind."""
    if not (state / STATE).is_file():
        return []
    record = torch.load(state / STATE, map_location="cpu", weights_only=True)
    if record["made_of"] != made_of:
        return []
    network.load_state_dict(record["network"])
    for optimiser, kept in zip(optimisers, record["optimisers"], strict=True):
        optimiser.load_state_dict(kept)
    return [Epoch(*epoch) for epoch in record["done"]]
