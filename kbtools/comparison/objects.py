"""Whether a pair leads to the gold object, remembered for the cells of one pruner that share their winners."""

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.gold import ABSENT, Gold, rows_of
from kbtools.comparison.pools import Pools
from kbtools.kb.contract import KnowledgeBase

UNASKED = -1
TOGETHER = 1024
"""Pairs whose objects are fetched at once."""


class ObjectCheck:
    """Look objects up where they are asked for, once each."""

    def __init__(self, kb: KnowledgeBase, pools: Pools, gold: Gold) -> None:
        self.kb, self.pools = kb, pools
        self.wanted = gold.object[pools.question_of_pair]
        self.subjects = rows_of(kb, pools.subject_ids)
        self.known = np.full(len(pools.column("pair_entry")), UNASKED, dtype=np.int8)

    def check(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give 1 for pairs that have the gold object among theirs: (all pairs,), 0 where not asked."""
        unasked = pairs[(self.known[pairs] == UNASKED) & (self.wanted[pairs] != ABSENT)].tolist()
        for start in range(0, len(unasked), TOGETHER):
            some = [(pair, self.row_of(pair)) for pair in unasked[start : start + TOGETHER]]
            self.kb.expect_objects([row for _, row in some])
            for pair, row in some:
                self.known[pair] = self.wanted[pair] in self.kb.objects_of(*row)
        found = np.zeros(len(self.known))
        found[pairs] = self.known[pairs] == 1
        return found

    def row_of(self, pair: int) -> tuple[int, int]:
        """Give the rows of a pair's subject and relation."""
        subject = self.subjects[self.pools.column("entry_subject")[self.pools.column("pair_entry")[pair]]]
        return int(subject), int(self.pools.relation_of_pair[pair])
