"""Weights in the safetensors format: names, shapes and raw numbers, which are mapped into memory as they lie."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "|i1"}
CODES = {dtype: code for code, dtype in DTYPES.items()}

ALIGNED = 8
"""Bytes whose multiples the numbers begin at, as the format has it: a processor reads them whole."""

Weights = Mapping[str, NDArray[Any]]


def write_weights(path: Path, weights: Weights) -> None:
    """Write arrays by their names."""
    arrays = {name: np.asarray(array, order="C") for name, array in weights.items()}
    header, end = {}, 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": CODES[array.dtype.str], "shape": array.shape, "data_offsets": (start, end)}
    packed = json.dumps(header).encode()
    packed += b" " * (-len(packed) % ALIGNED)
    with path.open("wb") as file:
        file.write(len(packed).to_bytes(8, "little"))
        file.write(packed)
        for array in arrays.values():
            file.write(array.data)


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Map arrays into memory; what is changed in them is not written. Raises ValueError or KeyError for a damaged file.

    bfloat16, which NumPy lacks, is read as float32.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    # Private to this process and writable, which torch wants of what it takes over. A file of no numbers has no map.
    numbers = np.memmap(path, dtype=np.uint8, mode="c").view(np.ndarray)[8 + size :]
    return {name: read_array(numbers, **tensor) for name, tensor in header.items()}


def read_array(
    numbers: NDArray[np.uint8], *, dtype: str, shape: list[int], data_offsets: tuple[int, int]
) -> NDArray[Any]:
    own = numbers[slice(*data_offsets)]
    if dtype == "BF16":  # the upper half of a float32
        return (own.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return own.view(DTYPES[dtype]).reshape(shape)
