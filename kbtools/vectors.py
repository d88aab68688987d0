"""Nearest entities by their vectors: the contract of every vector index, and the exact one to measure others by."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.knowledge import EntityRows


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """For each vector asked, the rows of the nearest entities, closest first, ties by row, and their cosine, 1 to -1.

    Both are (vectors, limit); where there are fewer entities than asked for, there are fewer columns.
    """

    rows: EntityRows
    cosines: NDArray[np.float32]


class VectorIndex(Protocol):
    """Entities by the direction of their vectors; entities without a vector are never found."""

    @property
    def dim(self) -> int:
        """Give the number of components."""
        ...

    def __len__(self) -> int:
        """Count the entities that have a vector."""
        ...

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        """Find the entities nearest to each of some vectors, (vectors, dim)."""
        ...


class ExactVectors:
    """Compare with every vector: right, and slow for millions."""

    def __init__(self, rows: EntityRows, vectors: NDArray[np.float32]) -> None:
        order = np.argsort(rows)
        self.rows, self.vectors = rows[order], normalised(vectors[order])

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        cosines = normalised(vectors) @ self.vectors.T
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :limit]
        return Neighbours(self.rows[best], np.take_along_axis(cosines, best, axis=1))


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length one; a zero stays a zero, and is near to nothing."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def recall(found: Neighbours, exact: Neighbours) -> float:
    """Give the share of the exact nearest that were found, 0 to 1."""
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(found.rows, exact.rows, strict=True))
    return hits / max(1, exact.rows.size)
