"""Where a network computes: one argument, resolved once."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kbtools.errors import DeviceFull, UnknownDevice
from kbtools.scorers.distributed import local_rank, processes

AT_ONCE = 4_096
"""Texts that are scored in one batch."""

FULL = ("out of memory", "can't allocate memory")
"""What devices say that have no error of their own for it: mps and cpu."""


def resolve_device(name: str) -> torch.device:
    """Find a device by its name (`cpu`, `cuda`, `cuda:1`, `mps`); raise UnknownDevice where it is not there.

    Under a launcher `cuda` is for each process the GPU of its place.
    """
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
        raise UnknownDevice(f"no device {name!r}; known: cpu, cuda, cuda:1, mps", name=name) from error
    there = {
        "cpu": True,
        "cuda": (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise UnknownDevice(
            f"device {name!r} is not there: this torch ({torch.__version__}) sees {torch.cuda.device_count()} CUDA "
            "devices; use --device cpu",
            name=name,
        )
    return device


@contextmanager
def memory_named(batch: int, *, instead: str = "lower --batch (half of it is a good start)") -> Iterator[None]:
    """Turn a device's running out of memory into an error that names the batch size and what to do instead."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not any(said in str(error) for said in FULL):
            raise
        raise DeviceFull(
            f"the device's memory does not hold a batch of {batch:,}; {instead}",
            batch=batch,
        ) from error


@contextmanager
def scoring() -> Iterator[None]:
    """Compute without gradients, `AT_ONCE` texts at a time."""
    with torch.inference_mode(), memory_named(AT_ONCE, instead="use --device cpu"):
        yield
