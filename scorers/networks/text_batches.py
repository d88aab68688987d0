"""Batches of texts: those of one length together, and at most so many."""

from collections import defaultdict
from collections.abc import Sequence, Sized

AT_ONCE = 4_096
"""Texts that are scored in one batch: 37 MB of scores over the 2,247 relations of FBSQ."""


def group_by_length(texts: Sequence[Sized], *, most: int | None = None) -> list[list[int]]:
    """List the positions of the texts of each length, the shortest first, and at most so many together."""
    groups = defaultdict(list)
    for position, text in enumerate(texts):
        groups[len(text)].append(position)
    step = most or len(texts)
    return [
        groups[size][first : first + step] for size in sorted(groups) for first in range(0, len(groups[size]), step)
    ]
