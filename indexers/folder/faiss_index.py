"""Entity vectors of an embedded knowledge base, searched by FAISS: exhaustively, by clusters, or by a graph."""

import logging
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_optional
from kbtools.errors import BadSetting, KBUnusable, VectorsMissing
from kbtools.free_memory import require_memory
from kbtools.indexers.folder.checksums import require_files
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import EntityVectors, Neighbours, VectorOrigin, check_dim, normalised
from kbtools.record_files import file_digest, fits, read_record, write_record
from kbtools.storage import built_folder

logger = logging.getLogger(__name__)

FOLDER = "vectors"
RECORD, INDEX, ROWS = "vectors.msgpack", "index.faiss", "rows.npy"
VECTOR_FILES = frozenset({RECORD, INDEX, ROWS})
"""The files in the folder of vectors."""

_FORMAT_NAME, _FORMAT_VERSION = "kbtools-vectors", 1

KINDS = ("flat", "ivf", "hnsw")
"""Exhaustive; by the nearest clusters, small and quick to build; by a graph, fastest to search and slow to build."""

_LISTS = 4
"""Clusters of `ivf`, in square roots of the number of entities, as FAISS recommends."""

_LEARNT_FROM = 64
"""Training vectors per cluster."""

_PROBED, _LEAST_PROBED = 3, 16
"""A search examines one in this many clusters, and at least this many."""

MOST_ON_GPU = 2_048
"""Most neighbours, and most clusters examined, that FAISS supports on a GPU."""

_NUMBER = 4
"""Bytes of a number in a vector, and of a link."""

_MOST_COSINE = 1.001
"""Largest cosine of intact vectors: float32 of a thousand dimensions rounds in the fifth digit."""

_NOBODY: EntityRows = np.empty(0, dtype=np.uint32)

_LINKS, _BUILT, _SEARCHED = 32, 128, 1_024
"""For the graph of `hnsw`: links per vector; candidates considered while building and while searching."""


def load_faiss() -> ModuleType:
    """Import FAISS; raise MissingDependency if it is not installed."""
    faiss: ModuleType = import_optional("faiss", "searching entity vectors", more=", or the extra gpu")
    return faiss


def write_vectors(
    path: Path, kb: KnowledgeBase, vectors: EntityVectors, *, kind: str = "flat", seed: int = 1
) -> "FaissVectors":
    """Index vectors in the folder of a knowledge base, replacing existing ones, and open them.

    Raises BadSetting for an unknown kind, VectorsMissing if no entity has a vector, BadVectors for a value that is not
    a number; existing vectors are kept if it raises.
    """
    if kind not in KINDS:
        raise BadSetting(f"no kind of vector index {kind!r}; known: {', '.join(KINDS)}", name=kind)
    faiss = load_faiss()
    _require_room(kind, vectors)
    index = _empty_index(faiss, kind, vectors, seed=seed)
    row_parts = []
    for rows, chunk in vectors.chunks():
        index.add(normalised(chunk))
        row_parts.append(rows)
    if not index.ntotal:
        raise VectorsMissing(f"{path}: none of its entities has a vector, so there is nothing to search")
    with built_folder(path / FOLDER, ours=lambda file: str(file) in VECTOR_FILES) as folder:
        faiss.write_index(index, os.fspath(folder / INDEX))
        np.save(folder / ROWS, np.concatenate(row_parts), allow_pickle=False)
        record = {
            "kb": kb.manifest.digest,
            "kind": kind,
            "dim": vectors.dim,
            "count": index.ntotal,
            "subject": vectors.origin.subject,
            "model": vectors.origin.model,
            "files": {name: (folder / name).stat().st_size for name in (INDEX, ROWS)},
            "checksums": {name: file_digest(folder / name) for name in (INDEX, ROWS)},
        }
        write_record(folder / RECORD, record, name=_FORMAT_NAME, version=_FORMAT_VERSION)
    return FaissVectors(path, kb.manifest)


def _require_room(kind: str, vectors: EntityVectors) -> None:
    """Raise MemoryExhausted for vectors that do not fit in memory, since FAISS loads them all."""
    count = len(vectors.rows)
    flat = count * _NUMBER * vectors.dim
    # Each vector has twice LINKS neighbours on the lowest level of a graph, and half as many on the few above.
    links = count * _NUMBER * (2 * _LINKS + 2) if kind == "hnsw" else 0
    fewer = "vectors of fewer dimensions take less (--dim of kbtools train), --elasticsearch keeps them on a cluster"
    instead = f"--kind flat takes {flat / 2**30:,.1f} GiB, {fewer}" if links else fewer
    require_memory(
        flat + links, f"{count:,} vectors of {vectors.dim} dimensions in an index of kind {kind}", instead=instead
    )


def _empty_index(faiss: ModuleType, kind: str, vectors: EntityVectors, *, seed: int) -> Any:
    """Build an empty index; clusters are trained on a sample of the vectors."""
    dim, inner = vectors.dim, faiss.METRIC_INNER_PRODUCT
    if kind == "flat":
        return faiss.IndexFlatIP(dim)
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, _LINKS, inner)
        index.hnsw.efConstruction, index.hnsw.efSearch = _BUILT, _SEARCHED
        return index
    lists = max(1, round(_LISTS * len(vectors.rows) ** 0.5))
    lists = min(lists, max(1, len(vectors.rows) // _LEARNT_FROM))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, lists, inner)
    index.nprobe = min(lists, max(_LEAST_PROBED, lists // _PROBED))
    sampled = np.random.default_rng(seed).permutation(len(vectors.rows))[: lists * _LEARNT_FROM]
    sample = EntityVectors(vectors.rows[np.sort(sampled)], dim, vectors.read)
    learnt_from = np.concatenate([np.zeros((0, dim), dtype=np.float32), *(chunk for _, chunk in sample.chunks())])
    if not len(learnt_from):  # FAISS finds no cluster without a vector.
        return faiss.IndexFlatIP(dim)
    index.cp.seed, index.cp.min_points_per_centroid = seed, 1
    index.train(normalised(learnt_from))
    return index


class _VectorsRecord(TypedDict):
    """The record of the vectors of a knowledge base."""

    kb: str
    kind: str
    dim: int
    count: int
    subject: str
    model: str
    files: dict[str, int]
    checksums: dict[str, str]


def vectors_cure(path: Path) -> str:
    """Return the advice for damaged vectors."""
    return f"create the vectors again with kbtools index vectors --kb {path}"


def read_vectors_record(path: Path, manifest: Manifest) -> dict[str, Any]:
    """Return the record of the vectors of a knowledge base.

    Raises VectorsMissing if there are none, KBUnusable if they are damaged or belong to another knowledge base.
    """
    folder = path / FOLDER
    if folder.is_dir() and not (folder / RECORD).is_file():
        raise KBUnusable(f"{folder / RECORD}: missing; {vectors_cure(path)}", path=str(folder))
    if not folder.is_dir():
        raise VectorsMissing.at(
            path,
            f"has no entity vectors; create them with kbtools index vectors --kb {path}, or use a pruner "
            "that needs none",
        )
    record = read_record(folder / RECORD, name=_FORMAT_NAME, version=_FORMAT_VERSION, cure=vectors_cure(path))
    if not fits(record, _VectorsRecord):
        raise KBUnusable(f"{folder / RECORD}: damaged (a part is of another type); {vectors_cure(path)}")
    if record["kb"] not in manifest.lineage:
        raise KBUnusable.at(
            folder,
            f"its vectors belong to a knowledge base with digest {record['kb'][:12]}, this one has "
            f"{manifest.digest[:12]}; {vectors_cure(path)}",
        )
    require_files(folder, record["files"], record["checksums"], vectors_cure(path))
    return record


class FaissVectors:
    """The vectors of an embedded knowledge base; see `VectorIndex` for the contract of each method.

    Entities deleted since the vectors were made (`gone`) are not found; those added since have no vector.
    """

    def __init__(self, path: Path, manifest: Manifest, *, gone: EntityRows = _NOBODY) -> None:
        """Open the vectors of a knowledge base through the memory map; raises as `read_vectors_record` does."""
        record, folder = read_vectors_record(path, manifest), path / FOLDER
        faiss = load_faiss()
        try:
            self.index = faiss.read_index(os.fspath(folder / INDEX), faiss.IO_FLAG_MMAP_IFC)
            self.rows: EntityRows = np.load(folder / ROWS, allow_pickle=False)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise KBUnusable.at(folder, f"damaged ({error}); {vectors_cure(path)}") from error
        if (self.index.d, self.index.ntotal) != (record["dim"], record["count"]) or len(self.rows) != record["count"]:
            raise KBUnusable.at(folder, f"damaged (its sizes disagree); {vectors_cure(path)}")
        self.folder, self.cure, self.gone = folder, vectors_cure(path), np.intersect1d(self.rows, gone)
        self.kind = str(record["kind"])
        self.on_gpu: Any = None
        self.gpu, self.gpu_lock = -1, threading.Lock()
        self.origin = VectorOrigin(record["subject"], record["model"])

    @property
    def dim(self) -> int:
        return int(self.index.d)

    def __len__(self) -> int:
        return len(self.rows) - len(self.gone)

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        check_dim(vectors, self.dim)
        count, searched = min(limit, len(self)), min(limit, len(self.gone))
        while True:
            near = self.nearest_stored(vectors, limit + searched)
            is_gone = np.isin(near.rows, self.gone)
            # Few near entities are usually deleted; searching for as many more as are deleted is always enough.
            if searched == len(self.gone) or (~is_gone).sum(axis=1).min(initial=count) >= count:
                break
            searched = min(10 * max(searched, 1), len(self.gone))
        # A stable sort moves deleted entities to the end and keeps the order of the others.
        order = np.argsort(is_gone, axis=1, kind="stable")[:, :count]
        return Neighbours(np.take_along_axis(near.rows, order, axis=1), np.take_along_axis(near.cosines, order, axis=1))

    def nearest_stored(self, vectors: NDArray[np.float32], limit: int) -> Neighbours:
        """Return the nearest vectors, deleted entities included."""
        limit = min(limit, len(self.rows))
        cosines, places = self.search(normalised(vectors), limit)
        short = np.flatnonzero((places < 0).any(axis=1))
        if len(short):  # The clusters examined, or the part of the graph, held too few.
            cosines[short], places[short] = self.search_all(normalised(vectors[short]), limit)
        # Cosines are between -1 and 1 up to float32 rounding; others come from damaged numbers.
        if not (np.abs(cosines) <= _MOST_COSINE).all() or places.max(initial=0) >= len(self.rows):
            raise KBUnusable(f"{self.folder}: damaged (its vectors are not of length one); {self.cure}")
        rows = self.rows[places]
        # FAISS leaves ties unordered: sort by cosine, the highest first, then by row.
        order = np.lexsort((rows, -cosines), axis=1)
        return Neighbours(np.take_along_axis(rows, order, axis=1), np.take_along_axis(cosines, order, axis=1))

    def search(self, vectors: NDArray[np.float32], limit: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Search on the GPU in use, or on the CPU if there is none or it finds fewer than `limit`."""
        # On a GPU FAISS allows only one search at a time, since searches share memory; on a CPU any number.
        if self.on_gpu is not None and limit <= MOST_ON_GPU:
            with self.gpu_lock:
                cosines, places = self.on_gpu.search(vectors, limit)
        else:
            cosines, places = self.index.search(vectors, limit)
        return cosines, places

    def search_all(self, vectors: NDArray[np.float32], limit: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Compare with every vector."""
        cosines = vectors @ self.read(self.rows).T
        places = np.argsort(-cosines, axis=1, kind="stable")[:, :limit]
        return np.take_along_axis(cosines, places, axis=1), places

    def vector(self, entity_row: int) -> NDArray[np.float32] | None:
        place = int(np.searchsorted(self.rows, entity_row))
        if place == len(self.rows) or self.rows[place] != entity_row or entity_row in self.gone:
            return None
        vector: NDArray[np.float32] = self.read(self.rows[place : place + 1])[0]
        return vector

    def read(self, entities: EntityRows) -> NDArray[np.float32]:
        """Return the normalised vectors of entities that have one: (entities, dim)."""
        if self.kind == "ivf":
            self.index.make_direct_map()
        vectors: NDArray[np.float32] = self.index.reconstruct_batch(np.searchsorted(self.rows, entities))
        return vectors

    def use(self, device: str) -> None:
        kind, _, number = device.partition("-")[0].partition(":")
        if kind != "cuda":
            return
        faiss, gpu = load_faiss(), int(number or 0)
        gpus = faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0
        if self.kind == "hnsw" or gpu >= gpus:
            logger.warning("vectors are searched on the CPU: FAISS sees %d GPUs, and searches flat and ivf there", gpus)
            return
        with self.gpu_lock:
            if gpu == self.gpu:  # Another pruner already uses the same vectors.
                return
            # The index on the CPU stays, memory-mapped: an inverted index on a GPU cannot return stored vectors.
            self.resources = faiss.StandardGpuResources()
            self.on_gpu, self.gpu = faiss.index_cpu_to_gpu(self.resources, gpu, self.index), gpu
            if self.kind == "ivf":
                self.on_gpu.nprobe = min(self.index.nprobe, MOST_ON_GPU)
