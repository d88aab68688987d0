"""A check that pairs lead to the gold object, remembered for the cells of one pruner that share their winners."""

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.gold import ABSENT, Gold
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.pools import Pools

UNKNOWN = -1
TOGETHER = 1024
"""Pairs whose objects are fetched at once."""


class ObjectCheck:
    """The pairs that lead to the gold object: each is looked up when it is first asked for, and once."""

    def __init__(self, kb: KnowledgeBase, pools: Pools, gold: Gold) -> None:
        self.kb, self.pools = kb, pools
        self.wanted = gold.object[pools.question_of_pair]
        self.known = np.full(pools.pairs, UNKNOWN, dtype=np.int8)

    def check(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give 1 for those of some pairs that have the gold object among theirs: (all pairs,), 0 for all others."""
        unknown = pairs[(self.known[pairs] == UNKNOWN) & (self.wanted[pairs] != ABSENT)]
        for start in range(0, len(unknown), TOGETHER):
            batch = unknown[start : start + TOGETHER]
            subjects, relations = self.pools.subject_of_pair[batch], self.pools.relation_of_pair[batch]
            facts = list(zip(subjects.tolist(), relations.tolist(), strict=True))
            self.kb.expect_objects(facts)
            for pair, fact in zip(batch.tolist(), facts, strict=True):
                self.known[pair] = self.wanted[pair] in self.kb.objects_of(*fact)
        right = np.zeros(len(self.known))
        right[pairs] = self.known[pairs] == 1
        return right
