"""Networks in folders: sizes, words, the rows of the table and weights, which are all that rebuilds one.

Weights are in the safetensors format: names, shapes and raw numbers, which are mapped into memory as they lie.
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
"""The file that every network keeps its weights in."""

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "|i1"}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

_ALIGNED = 8
"""Bytes whose multiples the numbers begin at, as the format has it: a processor reads them whole."""

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Graph:
    """A network as ONNX Runtime computes it: an ONNX model, and the names of the weights that it is given.

    `weights` are given once, `tables`, of which a text reads a few rows, at each run.
    """

    model: bytes
    weights: Sequence[str]
    tables: Sequence[str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network on disk; `rows` are the relations or types that its table has a row for, in order.

    One without a graph is computed by NumPy, or by torch.
    """

    config: dict[str, Any]
    vocabulary: tuple[str, ...]
    rows: tuple[str, ...]
    weights: Mapping[str, NDArray[Any]]
    graph: Graph | None = None

    def in_order(self, order: Sequence[int], *, by_row: Collection[str]) -> Self:
        """Return the checkpoint with its rows, and the weights that have an entry for each, in another order."""
        if list(order) == list(range(len(order))):  # as they lie, none is copied
            return self
        moved = {name: self.weights[name][order] for name in by_row if name in self.weights}
        return replace(self, rows=tuple(self.rows[row] for row in order), weights={**self.weights, **moved})


class StoredNetwork(Protocol):
    """A network, as torch computes it or as it is computed without."""

    def checkpoint(self) -> Checkpoint:
        """Return all that the network is rebuilt from, which need not name its rows."""
        ...


class SavedNetwork:
    """A scorer or tagger whose network a folder holds; `rows` are those of its table, none if it has no table."""

    network: StoredNetwork
    rows: tuple[str, ...] = ()

    def checkpoint(self) -> Checkpoint:
        """Return all that the network is rebuilt from."""
        return replace(self.network.checkpoint(), rows=self.rows)

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the network to a folder; without a stamp its plugin is known as `module:Class`."""
        write_checkpoint(folder, self.checkpoint(), stamp or Stamp(class_path(type(self))))


def write_checkpoint(folder: Path, checkpoint: Checkpoint, stamp: Stamp) -> None:
    """Write a network; the folder appears whole or not at all."""
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
    """Raise ModelUnusable where weights turn out to be those of another network."""
    try:
        yield
    except KBToolsError:
        raise
    except Exception as error:  # torch and ONNX Runtime each raise what they like
        raise ModelUnusable(
            f"{folder}: its weights are those of another network; train the model again", path=str(folder)
        ) from error


def match_rows(folder: Path, *, trained: Sequence[str], present: Sequence[str], what: str) -> list[int]:
    """Return the row of the model for each relation or type of the knowledge base.

    Raises CheckpointMismatch if they are others than those of the model, in whatever order.
    """
    # The same names in another order are the same model: its rows are put in the order of this knowledge base.
    place = {name: row for row, name in enumerate(trained)}
    if place.keys() == set(present):
        return [place[name] for name in present]
    missing, new = sorted(set(trained) - set(present)), sorted(set(present) - set(trained))
    raise CheckpointMismatch(
        f"{folder}: trained on {len(trained):,} {what} ({digest_rows(trained)}), the knowledge base has "
        f"{len(present):,} ({digest_rows(present)}); only in the model: {_sample(missing)}, only in the knowledge "
        f"base: {_sample(new)}; train the model again on this knowledge base",
        path=str(folder),
    )


def _sample(names: Sequence[str]) -> str:
    return (f"{names[0]!r}" + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")) if names else "none"


def digest_rows(rows: Sequence[str]) -> str:
    """Return a few letters that identify a table."""
    # Twelve of its digits tell some thousand tables apart, and fit into a sentence.
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:12]


def write_weights(path: Path, weights: Weights) -> None:
    """Write arrays by their names."""
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
    """Map arrays into memory; what is changed in them is not written. Raises ValueError or KeyError for a damaged file.

    bfloat16, which NumPy lacks, is read as float32.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    # Private to this process and writable, which torch wants of what it takes over. A file of no numbers has no map.
    numbers = np.memmap(path, dtype=np.uint8, mode="c").view(np.ndarray)[8 + size :]
    return {name: _read_array(numbers, **tensor) for name, tensor in header.items()}


def _read_array(
    numbers: NDArray[np.uint8], *, dtype: str, shape: list[int], data_offsets: tuple[int, int]
) -> NDArray[Any]:
    own = numbers[slice(*data_offsets)]
    if dtype == "BF16":  # the upper half of a float32
        return (own.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return own.view(_DTYPES[dtype]).reshape(shape)
