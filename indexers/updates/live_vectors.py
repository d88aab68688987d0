"""Vectors of a knowledge base that was updated after they were made: entities that are gone are no longer found."""

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.folder.faiss_index import FaissVectors
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import Neighbours, VectorOrigin


class LiveVectors:
    """The vectors of the entities that are still there; see `VectorIndex` for what each method promises.

    Entities that came since have none until the vectors are made again.
    """

    def __init__(self, index: FaissVectors, gone: EntityRows) -> None:
        self.index, self.gone = index, np.intersect1d(index.rows, gone)

    @property
    def origin(self) -> VectorOrigin:
        return self.index.origin

    @property
    def dim(self) -> int:
        return self.index.dim

    def __len__(self) -> int:
        return len(self.index) - len(self.gone)

    def nearest(self, vectors: NDArray[np.float32], *, limit: int = 10) -> Neighbours:
        wanted, more = min(limit, len(self)), min(limit, len(self.gone))
        while True:
            near = self.index.nearest(vectors, limit=limit + more)
            is_gone = np.isin(near.rows, self.gone)
            # Few of those that are near are gone as a rule; with as many more as are gone, enough remain.
            if more == len(self.gone) or (~is_gone).sum(axis=1).min(initial=wanted) >= wanted:
                break
            more = min(10 * max(more, 1), len(self.gone))
        # A stable sort puts what is gone behind the others, which stay in their order.
        order = np.argsort(is_gone, axis=1, kind="stable")[:, :wanted]
        return Neighbours(np.take_along_axis(near.rows, order, axis=1), np.take_along_axis(near.cosines, order, axis=1))

    def use(self, device: str) -> None:
        self.index.use(device)

    def vector(self, entity_row: int) -> NDArray[np.float32] | None:
        return None if entity_row in self.gone else self.index.vector(entity_row)
