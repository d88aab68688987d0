"""Entities as rows, and concatenated values of several entities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.quick_records import quick_record

EntityRows = NDArray[np.uint32]
"""Entities as rows, which are valid only in one open knowledge base."""


@dataclass(frozen=True, slots=True, eq=False)
class IncomingFacts:
    """The facts with an entity as object, by relation, then subject: rows, (facts,) each."""

    relations: NDArray[np.uint32]
    subjects: EntityRows


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Values of several entities: those of entity k are `values[starts[k]:starts[k + 1]]`."""

    starts: NDArray[np.int64]
    values: NDArray[np.uint32]

    @classmethod
    def of(cls, runs: Sequence[Sequence[int]]) -> "Grouped":
        """Return concatenated runs of values."""
        # The ends of the runs, after a 0, are the starts.
        starts = np.cumsum([0, *map(len, runs)], dtype=np.int64)
        return cls(starts, np.array([value for run in runs for value in run], dtype=np.uint32))
