"""Vectors of entities that PyKEEN trained: the folder that its `PipelineResult.save_to_directory` writes."""

import csv
import gzip
import io
import pickle
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BadVectors, SourceMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.scorers.entities.vector_files import GivenVectors, match_vectors

MODEL, IDS = "trained_model.pkl", "training_triples/entity_to_id.tsv.gz"


def read_pykeen(kb: KnowledgeBase, folder: Path) -> GivenVectors:
    """Read the vectors of entities in a folder that PyKEEN saved a result to; raise as `match_vectors` does.

    The model is a pickle, of which tensors alone are taken: for every class and function that it names stands one that
    does nothing.
    """
    model, ids = folder / MODEL, folder / IDS
    for path in (model, ids):
        if not path.is_file():
            raise SourceMissing(
                f"{path}: no such file; name the folder that PyKEEN's save_to_directory wrote", path=str(path)
            )
    try:
        with gzip.open(ids, "rt", encoding="utf-8", newline="") as file:
            numbered = {int(row["id"]): row["label"] for row in csv.DictReader(file, delimiter="\t")}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, csv.Error) as error:
        raise BadVectors(
            f"{ids}: cannot be read as PyKEEN's table of ids ({error!r}), expected the columns id and label"
        ) from error
    if sorted(numbered) != list(range(len(numbered))):
        raise BadVectors(f"{ids}: its ids are not 0 to {len(numbered) - 1:,}, one each")
    names = [numbered[number] for number in range(len(numbered))]
    return match_vectors(kb, read_pickled(model), names, vectors=model, ids=ids)


def read_pickled(path: Path) -> NDArray[np.float32]:
    """Take the vectors of entities out of a pickled PyKEEN model: (entities, dim), complex numbers as two reals."""
    try:
        with zipfile.ZipFile(path) as archive:
            (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            model = TensorsAlone(archive, pickled).load()
    except Exception as error:  # what a damaged pickle raises is anything
        raise BadVectors(f"{path}: cannot be read as a model of PyKEEN ({error!r})") from error
    table = next(tensors(part(part(model, "entity_representations"), "0")), None)
    if table is None or table.ndim < 2:
        raise BadVectors(f"{path}: found no vectors of entities, expected a model of PyKEEN with a table of them")
    real = table.view(table.real.dtype) if np.iscomplexobj(table) else table
    return real.reshape(len(real), -1).astype(np.float32)


class Empty:
    """A stand-in for whatever else a pickle names: it takes anything and does nothing."""

    def __new__(cls, *args: object, **kwargs: object) -> "Empty":
        return super().__new__(cls)

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    def take(self, *args: object) -> None: ...

    __setitem__ = append = extend = add = take


class TensorsAlone(pickle.Unpickler):
    """An unpickler of torch.save's files: tensors become arrays, and nothing of the file's choice is run."""

    def __init__(self, archive: zipfile.ZipFile, pickled: str) -> None:
        super().__init__(io.BytesIO(archive.read(pickled)))
        self.archive, self.folder = archive, pickled.removesuffix("data.pkl") + "data/"

    def find_class(self, module: str, name: str) -> Any:
        # Four names of torch make a tensor; whatever else the file asks for becomes an `Empty`.
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuild
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda data, *_: data
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        return dict if (module, name) == ("collections", "OrderedDict") else Empty

    def persistent_load(self, storage: Any) -> NDArray[Any]:
        """Read a storage: its kind, its name and its length."""
        _, dtype, key, _, length = storage
        return np.frombuffer(self.archive.read(self.folder + key), dtype=dtype if dtype is not Empty else "u1")[:length]


STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "ComplexFloatStorage": "<c8",
    "ComplexDoubleStorage": "<c16",
    "LongStorage": "<i8",
    "BoolStorage": "?",
}


def rebuild(
    storage: NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> NDArray[Any]:
    """Cut a tensor out of its storage."""
    # Torch counts the steps between values in values, NumPy in bytes.
    strides = [step * storage.itemsize for step in stride]
    needed = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + 1
    if min(size, default=1) and needed > len(storage):
        raise ValueError(f"a tensor of {size} does not fit into its {len(storage)} numbers")
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides, writeable=False)


def part(module: object, name: str) -> object:
    """Find a module inside another."""
    return vars(module).get("_modules", {}).get(name) if hasattr(module, "__dict__") else None


def tensors(module: object) -> Iterator[NDArray[Any]]:
    """Yield the parameters of a module, then of those inside it."""
    if hasattr(module, "__dict__"):
        own = vars(module).get("_parameters", {}).values()
        yield from (tensor for tensor in own if isinstance(tensor, np.ndarray))
        for inner in vars(module).get("_modules", {}).values():
            yield from tensors(inner)
