"""A stand-in for a GPU on any machine: it computes on the CPU, and refuses to mix its tensors with others."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("meta")
"""The device name of the stand-in: torch has it on every machine, and does not initialise it."""

INDEXING = {"aten.index.Tensor", "aten.index_put_.default", "aten.index_put.default", "aten._index_put_impl_.default"}
"""Operations that accept CPU indices with tensors of a device; a copy accepts both anyway."""


class OnDevice(Tensor):
    """A tensor of the stand-in: its numbers are in `held`, on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls: type["OnDevice"], held: Tensor) -> "OnDevice":
        held = held.to_dense() if held.is_sparse else held
        made: OnDevice = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), dtype=held.dtype, device=DEVICE
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return compute(operation, args, kwargs or {})


def compute(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operation of the stand-in on the CPU; raise RuntimeError for mixed devices, and for doubles."""
    name, wanted = str(operation), kwargs.get("device")
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    here = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    others = [tensor for tensor in tensors if not isinstance(tensor, OnDevice) and tensor.dim()]
    if (
        here
        and others
        and not name.startswith("aten.copy_")
        and not (name in INDEXING and isinstance(args[0], OnDevice))
    ):
        raise RuntimeError(f"{name}: expected all tensors to be on the same device")
    made_here = bool(here) if wanted is None else torch.device(wanted) == DEVICE
    if wanted is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    args, kwargs = tree_map_only(OnDevice, lambda tensor: tensor.held, (args, kwargs))
    result = operation(*args, **kwargs)
    if made_here and any(leaf.dtype == torch.float64 for leaf in tree_leaves(result) if isinstance(leaf, Tensor)):
        raise RuntimeError(f"{name}: the device has no doubles")
    if name.split(".")[1].endswith("_") and here:  # In place: return the tensor that was passed.
        return tensors[0]
    return tree_map_only(Tensor, OnDevice, result) if made_here else result


class StandIn(TorchDispatchMode):
    """A mode that creates tensors on the stand-in if they name its device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        wanted = kwargs.get("device")
        if any(issubclass(kind, OnDevice) for kind in types) or (wanted and torch.device(wanted) == DEVICE):
            return compute(func, args, kwargs)
        return func(*args, **kwargs)
