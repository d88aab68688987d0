"""The contract of vector indexes, which find the nearest entities, and an exact index as the reference."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BadVectors, WrongFormat
from kbtools.kb.rows import EntityRows

_Reader = Callable[[EntityRows], NDArray[np.float32]]

_VECTORS_AT_ONCE = 16_384
"""Vectors read at once: 13 MB with 200 dimensions."""


@dataclass(frozen=True, slots=True)
class VectorOrigin:
    """The origin of vectors: a subject scorer that also embeds questions, empty if there is none.

    `model` identifies one training of the subject scorer.
    """

    subject: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class EntityVectors:
    """E(s) of some entities; `read` returns the vectors (entities, dim) of some of the rows."""

    rows: EntityRows
    dim: int
    read: _Reader
    origin: VectorOrigin = VectorOrigin()

    def chunks(self) -> Iterator[tuple[EntityRows, NDArray[np.float32]]]:
        """Yield rows and their vectors, without zero vectors, which have no direction.

        Raises BadVectors for a value that is not a number.
        """
        for first in range(0, len(self.rows), _VECTORS_AT_ONCE):
            rows = self.rows[first : first + _VECTORS_AT_ONCE]
            vectors = np.asarray(self.read(rows), dtype=np.float32)
            if not np.isfinite(vectors).all():
                raise BadVectors("vectors of entities: one has a value that is not a number; make them again")
            directed = np.any(vectors != 0, axis=1)
            yield rows[directed], vectors[directed]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The nearest entities of each vector, closest first, ties by row, and their cosines, 1 to -1.

    Both are (vectors, limit), with fewer columns if there are fewer entities.
    """

    rows: EntityRows
    cosines: NDArray[np.float32]


class VectorIndex(Protocol):
    """Entities by the direction of their vectors, without entities that have none."""

    @property
    def origin(self) -> VectorOrigin:
        """Return the origin of the vectors."""
        ...

    @property
    def dim(self) -> int:
        """Return the number of components."""
        ...

    def __len__(self) -> int:
        """Return the number of entities with a vector."""
        ...

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        """Return the entities nearest to each vector, (vectors, dim); raise WrongFormat for another dim."""
        ...

    def use(self, device: str) -> None:
        """Search on a device (`cuda`, `cuda:1`) from now on, or on the CPU if that is impossible."""
        ...

    def vector(self, entity_row: int) -> NDArray[np.float32] | None:
        """Return the direction of an entity's vector, (dim,); None if it has none."""
        ...


class ExactVectors:
    """A search that compares every vector: exact, and slow for millions."""

    def __init__(
        self, rows: EntityRows, vectors: NDArray[np.float32], *, origin: VectorOrigin = VectorOrigin()
    ) -> None:
        # Sorted by row, so that a stable sort by cosine breaks ties by row.
        order = np.argsort(rows)
        self.rows, self.vectors, self.origin = rows[order], normalised(vectors[order]), origin

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.rows)

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        check_dim(vectors, self.dim)
        cosines = normalised(vectors) @ self.vectors.T
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :limit]
        return Neighbours(self.rows[best], np.take_along_axis(cosines, best, axis=1))

    def use(self, device: str) -> None:
        """Do nothing, since NumPy runs on the CPU."""

    def vector(self, entity_row: int) -> NDArray[np.float32] | None:
        place = int(np.searchsorted(self.rows, entity_row))
        return self.vectors[place] if place < len(self.rows) and self.rows[place] == entity_row else None


def check_dim(vectors: NDArray[np.float32], dim: int) -> None:
    """Raise WrongFormat for vectors of another dimension."""
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise WrongFormat(f"vectors {vectors.shape}: expected (vectors, {dim})")


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors scaled to length one; a zero vector stays zero."""
    # vector / |vector|, with a divisor of 1 for zero vectors.
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def recall(approximate: Neighbours, exact: Neighbours) -> float:
    """Return the share of the exact nearest entities that were found, 0 to 1."""
    hits = sum(len(np.intersect1d(a, b)) for a, b in zip(approximate.rows, exact.rows, strict=True))
    return hits / max(1, exact.rows.size)
