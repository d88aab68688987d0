"""Rows of relations and types after an update: those in use, by their ids, as a build would number them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NOWHERE = np.iinfo(np.uint32).max
"""The row of a label that is no longer in use."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelRows:
    """The labels in use, and the row of each of the base's, and of each of a draft's, among them."""

    labels: list[str]
    of_base: NDArray[np.uint32]
    of_draft: NDArray[np.uint32]

    @classmethod
    def of(
        cls,
        base: Sequence[str],
        draft: Sequence[str],
        *,
        column: NDArray[np.uint32],
        replaced: NDArray[np.integer],
        own: NDArray[np.integer],
    ) -> "LabelRows":
        """Number the labels of a base, and those that a draft has its own values of.

        `column` holds the base's values, of which those that are `replaced` no longer count; `own` are the draft's.
        """
        written = {draft[row] for row in np.unique(own).tolist()}
        lost = [row for row in np.unique(replaced).tolist() if base[row] not in written]
        dropped = set()
        if lost:
            before, gone = (np.bincount(values, minlength=len(base)) for values in (column, replaced))
            dropped = {base[row] for row in lost if before[row] == gone[row]}
        labels = sorted(written.union(base) - dropped)
        rows = {label: row for row, label in enumerate(labels)}
        return cls(
            labels,
            *(np.array([rows.get(label, NOWHERE) for label in known], dtype=np.uint32) for known in (base, draft)),
        )
