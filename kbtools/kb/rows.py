"""Entities as rows, and values of several entities end to end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.quick_records import quick_record

EntityRows = NDArray[np.uint32]
"""Entities as rows: handles of one open knowledge base, without meaning outside of it."""


@dataclass(frozen=True, slots=True, eq=False)
class IncomingFacts:
    """The facts that an entity is the object of, by relation, then by subject: rows of both, (facts,) each."""

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
        """Put runs of values one after the other."""
        # The ends of the runs, with a 0 before them, are where each begins.
        starts = np.cumsum([0, *map(len, runs)], dtype=np.int64)
        return cls(starts, np.array([value for run in runs for value in run], dtype=np.uint32))
