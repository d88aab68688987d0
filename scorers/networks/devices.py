"""Devices of networks and their memory; a device is one argument, resolved once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import kbtools.free_memory
from kbtools.errors import DeviceFull, UnknownDevice
from kbtools.scorers.networks.checkpoint import Weights, other_network
from kbtools.scorers.networks.distributed import local_rank, processes
from kbtools.scorers.networks.words import TEXTS_AT_ONCE

_Network = TypeVar("_Network", bound=nn.Module)

_FEW = 16
"""Most texts scored on one thread: a BiGRU takes 15 ms for as many, and 55 on two threads of a busy machine."""

NUMBER = 4
"""Bytes of a weight."""

BF16, _TF32 = "-bf16", "-tf32"
"""What follows the name of a device: encoders in bfloat16, or matrices of float32 multiplied in TF32."""

_KNOWN = f"cpu, cuda, cuda:1 or mps, also with {_TF32}, or with {BF16} for queries (training has --set amp=true)"

_FULL = ("out of memory", "can't allocate memory")
"""Error texts of devices that have no error type of their own: mps and cpu."""


def resolve_device(name: str) -> torch.device:
    """Return a device by its name (`cpu`, `cuda`, `cuda:1`, `mps`); raise UnknownDevice if it does not exist.

    Under a launcher, `cuda` is a different GPU for each process of a machine. With `-tf32` after the name, this process
    multiplies matrices of float32 in TF32 from here on.
    """
    if name.endswith(_TF32):
        torch.set_float32_matmul_precision("high")
        name = name.removesuffix(_TF32)
    if processes() > 1:
        if name not in ("cpu", "cuda"):
            raise UnknownDevice(
                f"device {name!r} cannot be shared by {processes()} processes; use --device cuda, where each takes its "
                "own GPU, or --device cpu",
                name=name,
            )
        name = f"cuda:{local_rank()}" if name == "cuda" else name
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UnknownDevice(f"no device {name!r}; known: {_KNOWN}", name=name) from error
    available = {
        "cpu": True,
        "cuda": (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not available.get(device.type, False):
        raise UnknownDevice(
            f"device {name!r} is not available: this torch ({torch.__version__}) sees {torch.cuda.device_count()} CUDA "
            "devices; use cpu",
            name=name,
        )
    return device


@contextmanager
def memory_named(batch: int, *, instead: str = "lower --batch (half of it is a good start)") -> Iterator[None]:
    """Raise DeviceFull, with the batch size and advice, if a device runs out of memory."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(words in str(error) for words in _FULL):
            raise
        raise DeviceFull(f"a batch of {batch:,} does not fit into memory; {instead}", batch=batch) from error


@contextmanager
def scoring(texts: int) -> Iterator[None]:
    """Compute without gradients, and on one thread for a few texts.

    Threads with so little work wait for each other: ten times as long on two busy cores.
    """
    threads = torch.get_num_threads()
    alone = texts <= _FEW and threads > 1
    if alone:
        torch.set_num_threads(1)
    try:
        with torch.inference_mode(), memory_named(TEXTS_AT_ONCE, instead="use --device cpu"):
            yield
    finally:
        if alone:
            torch.set_num_threads(threads)


def build_network(build: Callable[[], _Network]) -> _Network:
    """Build a network on the CPU; raise DeviceFull if its weights, counted beforehand, are too many."""
    with torch.device("meta"):
        numbers = count_numbers(build())
    check_memory(NUMBER * numbers, torch.device("cpu"), instead="lower --set dim, hidden or words-dim")
    return build()


def restore_network(
    network: _Network, weights: Weights, *, folder: Path, device: str, encoder: nn.Module | None = None
) -> _Network:
    """Load weights into a network on a device; raise ModelUnusable if they are those of another network."""
    with other_network(folder):
        network.load_state_dict({name: torch.from_numpy(weights[name]) for name in network.state_dict()})
    return place_network(network, device, encoder=encoder)


def place_network(network: _Network, device: str, *, encoder: nn.Module | None = None) -> _Network:
    """Move a network to a device for queries; with `-bf16` after its name, the encoder computes in bfloat16.

    Vectors are compared in float32: with the eight bits of bfloat16, the scores of many relations would tie.
    """
    network.to(resolve_device(device.removesuffix(BF16))).eval()
    if encoder is not None and device.endswith(BF16):
        encoder.bfloat16().register_forward_hook(lambda *call: call[-1].float())
    return network


def arrays(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Return the weights of a network as arrays."""
    return {name: np.asarray(tensor.detach().cpu().numpy()) for name, tensor in network.state_dict().items()}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read the weights of a `pytorch_model.bin`."""
    # Only weights: a pickle could run code, and models come from anywhere.
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    return {name: np.asarray(tensor.numpy()) for name, tensor in tensors.items()}


def count_numbers(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def check_memory(needed: int, device: torch.device, *, instead: str) -> None:
    """Raise DeviceFull if a device has less free memory than needed."""
    free = free_memory(device)
    if free is not None and needed > free:
        raise DeviceFull(
            f"the network and its optimiser need {needed / 2**30:,.1f} GiB more memory, {free / 2**30:,.1f} GiB are "
            f"free; {instead}",
            needed=needed,
            free=free,
        )


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device; None if the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return kbtools.free_memory.free_memory() if device.type == "cpu" else None
