"""Where a network computes: one argument, resolved once."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kbtools.errors import DeviceFull, UnknownDevice
from kbtools.scorers.distributed import local_rank, processes


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
def memory_named(batch: int) -> Iterator[None]:
    """Turn a device's running out of memory into an error that names the batch size and its option."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceFull(
            f"the device's memory does not hold a batch of {batch}; lower --batch (half of it is a good start)",
            batch=batch,
        ) from error
