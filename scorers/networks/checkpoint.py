"""Networks in folders: sizes, words, rows of the table and weights, everything needed to rebuild one.

Weights are in the safetensors format: names, shapes and raw numbers, which are mapped into memory unchanged.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import CheckpointMismatch, KBToolsError, ModelUnusable
from kbtools.ranking.model_store import FILES, Stamp, class_path, read_model, write_model

WEIGHTS = FILES[0]
"""The weights file of every network."""

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "|i1"}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

_ALIGNED = 8
"""Alignment of the numbers in bytes, as the format requires."""

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Graph:
    """A network for ONNX Runtime: an ONNX model, and the names of the weights it needs.

    `weights` are passed once; `tables`, of which a text reads a few rows, with each run.
    """

    model: bytes
    weights: Sequence[str]
    tables: Sequence[str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network on disk; `rows` are the relations or types that its table has a row for, in order.

    Without a graph it is computed by NumPy or torch.
    """

    config: dict[str, Any]
    vocabulary: tuple[str, ...]
    rows: tuple[str, ...]
    weights: Mapping[str, NDArray[Any]]
    graph: Graph | None = None

    def in_order(self, order: Sequence[int], *, by_row: Collection[str]) -> Self:
        """Return the checkpoint with its rows, and the weights with an entry for each, in another order."""
        if list(order) == list(range(len(order))):  # Unchanged, so nothing is copied.
            return self
        moved = {name: self.weights[name][order] for name in by_row if name in self.weights}
        return replace(self, rows=tuple(self.rows[row] for row in order), weights={**self.weights, **moved})


class StoredNetwork(Protocol):
    """A network, in torch or without."""

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to rebuild the network; rows may be missing."""
        ...


class SavedNetwork:
    """A scorer or tagger with its network in a folder; `rows` are those of its table, empty if it has none."""

    network: StoredNetwork
    rows: tuple[str, ...] = ()

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to rebuild the network."""
        return replace(self.network.checkpoint(), rows=self.rows)

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the network to a folder; without a stamp its plugin is recorded as `module:Class`."""
        write_checkpoint(folder, self.checkpoint(), stamp or Stamp(class_path(type(self))))


def write_checkpoint(folder: Path, checkpoint: Checkpoint, stamp: Stamp) -> None:
    """Write a network; the folder appears complete or not at all."""
    contents = {
        "config": checkpoint.config,
        "vocabulary": list(checkpoint.vocabulary),
        "rows": list(checkpoint.rows),
        "graph": checkpoint.graph and asdict(checkpoint.graph),
    }
    write_model(folder, stamp, contents, file=WEIGHTS, write=lambda path: write_weights(path, checkpoint.weights))


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a network; raise ModelMissing or ModelUnusable."""
    stored = read_model(folder)
    contents, weights = stored.contents, read_weights(stored.weights)
    graph = contents["graph"] and Graph(**contents["graph"])
    return Checkpoint(contents["config"], tuple(contents["vocabulary"]), tuple(contents["rows"]), weights, graph)


@contextmanager
def other_network(folder: Path) -> Iterator[None]:
    """Raise ModelUnusable if weights turn out to be those of another network."""
    try:
        yield
    except KBToolsError:
        raise
    except Exception as error:  # torch and ONNX Runtime each raise their own.
        raise ModelUnusable.at(folder, "its weights are those of another network; train the model again") from error


def match_rows(folder: Path, *, trained: Sequence[str], present: Sequence[str], what: str) -> list[int]:
    """Return the row of the model for each relation or type of the knowledge base.

    Raises CheckpointMismatch if they differ from those of the model other than in order.
    """
    # The same names in another order are the same model: its rows are reordered.
    place = {name: row for row, name in enumerate(trained)}
    if place.keys() == set(present):
        return [place[name] for name in present]
    missing, new = sorted(set(trained) - set(present)), sorted(set(present) - set(trained))
    raise CheckpointMismatch.at(
        folder,
        f"trained on {len(trained):,} {what} ({digest_rows(trained)}), the knowledge base has "
        f"{len(present):,} ({digest_rows(present)}); only in the model: {_sample(missing)}, only in the knowledge "
        f"base: {_sample(new)}; train the model again on this knowledge base",
    )


def _sample(names: Sequence[str]) -> str:
    return (f"{names[0]!r}" + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")) if names else "none"


def digest_rows(rows: Sequence[str]) -> str:
    """Return a few letters that identify a table."""
    # Twelve digits distinguish some thousand tables and fit into a sentence.
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


def write_weights(path: Path, weights: Weights) -> None:
    arrays = {name: np.asarray(array, order="C") for name, array in weights.items()}
    header, end = {}, 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.str], "shape": array.shape, "data_offsets": (start, end)}
    packed = json.dumps(header).encode()
    packed += b" " * (-len(packed) % _ALIGNED)
    with path.open("wb") as file:
        file.write(len(packed).to_bytes(8, "little"))
        file.write(packed)
        for array in arrays.values():
            file.write(array.data)


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Map arrays into memory; changes to them are not written. Raises ValueError or KeyError for a damaged file.

    bfloat16, which NumPy lacks, is read as float32.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    # Private to this process and writable, as torch requires. A file without numbers has no map.
    numbers = np.memmap(path, dtype=np.uint8, mode="c").view(np.ndarray)[8 + size :]
    return {name: _read_array(numbers, **tensor) for name, tensor in header.items()}


def _read_array(
    numbers: NDArray[np.uint8], *, dtype: str, shape: list[int], data_offsets: tuple[int, int]
) -> NDArray[Any]:
    raw = numbers[slice(*data_offsets)]
    if dtype == "BF16":  # The upper half of a float32.
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return raw.view(_DTYPES[dtype]).reshape(shape)
