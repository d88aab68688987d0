"""Training of one network by several processes: each computes a share of every batch, and all make the same step.

`torchrun` starts them. Without it there is one process, and these functions do nothing.
"""

import os
import sys
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.errors import BadLaunch

_Result = TypeVar("_Result")


def processes() -> int:
    """Return the number of processes that the launcher started; one without a launcher."""
    return int(os.environ["WORLD_SIZE"]) if dist.is_torchelastic_launched() else 1


def rank() -> int:
    """Return the number of this process; process 0 writes and reports for all."""
    return int(os.environ["RANK"]) if processes() > 1 else 0


def local_rank() -> int:
    """Return the number of this process on its machine, which is that of its GPU."""
    return int(os.environ["LOCAL_RANK"])


def _join() -> None:
    """Connect to the other processes, once: over gloo on CPUs, over nccl on GPUs."""
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")


def leave() -> None:
    """End one of several processes immediately, since torch's threads may abort a slow shutdown."""
    if processes() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def once(work: Callable[[], _Result]) -> _Result | None:
    """Do work such as writing in the first process only, and return its result; None in the others, which wait."""
    result = work() if rank() == 0 else None
    if processes() > 1:
        _join()
        dist.all_reduce(torch.zeros(1))
    return result


def check_agreement(*numbers: int) -> None:
    """Raise BadLaunch unless the numbers, which describe the next step, are the same in every process."""
    if processes() == 1:
        return
    _join()
    of_processes = [part.tolist() for part in _gather(torch.tensor(numbers))]
    if any(others != of_processes[0] for others in of_processes):
        raise BadLaunch(
            f"the processes see different states of the training or different questions (found {of_processes}); give "
            "all of them the same files and one folder of models",
            found=of_processes,
        )


def share(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the examples of a batch that this process computes; may be empty."""
    return rows[rank() :: processes()]


def summed(value: Tensor) -> Tensor:
    """Sum a value over all processes."""
    if processes() > 1:
        dist.all_reduce(value)
    return value


@torch.no_grad()
def sum_gradients(network: nn.Module) -> None:
    """Sum the gradients of all processes: dense ones in one message, sparse ones by their rows."""
    if processes() == 1:
        return
    tables = {table.weight for table in network.modules() if isinstance(table, nn.Embedding) and table.sparse}
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    dense = [parameter for parameter in learned if parameter not in tables]
    if dense:
        gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in dense]
        flat = summed(torch.cat([gradient.flatten() for gradient in gradients]))
        for parameter, gradient in zip(dense, torch.split(flat, [weight.numel() for weight in dense]), strict=True):
            parameter.grad = gradient.view_as(parameter)
    for parameter in learned:
        if parameter in tables:
            parameter.grad = _sum_rows(parameter)


def _sum_rows(table: nn.Parameter) -> Tensor | None:
    """Sum the sparse gradients of all processes for a table, without a dense copy."""
    rows, values = torch.empty(0, dtype=torch.int64, device=table.device), table.new_empty(0, table.shape[1])
    if table.grad is not None:
        gradient = table.grad.coalesce()  # Each row once, even if it occurs several times in the batch.
        rows, values = gradient.indices()[0], gradient.values()
    counts = [int(count) for count in _gather(torch.tensor(len(rows), device=table.device))]
    if not any(counts):
        return None
    # Gathered tensors must have one shape: shorter ones are padded, and cut afterwards.
    missing = max(counts) - len(rows)
    all_rows = [part[:count] for part, count in zip(_gather(F.pad(rows, (0, missing))), counts, strict=True)]
    all_values = [part[:count] for part, count in zip(_gather(F.pad(values, (0, 0, 0, missing))), counts, strict=True)]
    places, summands = torch.cat(all_rows)[None], torch.cat(all_values)
    return torch.sparse_coo_tensor(places, summands, table.shape, check_invariants=False).coalesce()


def _gather(tensor: Tensor) -> list[Tensor]:
    """Return the tensors of all processes, which have one shape."""
    parts = [torch.empty_like(tensor) for _ in range(processes())]
    dist.all_gather(parts, tensor.contiguous())
    return parts
