"""Whether a pair leads to the gold object, remembered for the cells of one pruner that share their winners."""

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.gold import ABSENT, Gold, rows_of
from kbtools.comparison.pools import Pools
from kbtools.knowledge import KnowledgeBase

UNASKED = -1


class ObjectCheck:
    """Look objects up where they are asked for, once each."""

    def __init__(self, kb: KnowledgeBase, pools: Pools, gold: Gold) -> None:
        self.kb, self.pools, self.gold = kb, pools, gold
        self.subjects = rows_of(kb, pools.subject_ids)
        self.known = np.full(len(pools.column("pair_entry")), UNASKED, dtype=np.int8)

    def check(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give 1 for pairs that have the gold object among theirs: (all pairs,), 0 where not asked."""
        for pair in pairs[self.known[pairs] == UNASKED].tolist():
            self.known[pair] = self.leads_to_gold(pair)
        found = np.zeros(len(self.known))
        found[pairs] = self.known[pairs]
        return found

    def leads_to_gold(self, pair: int) -> bool:
        wanted = self.gold.object[self.pools.question_of_pair[pair]]
        if wanted == ABSENT:
            return False
        subject = self.subjects[self.pools.column("entry_subject")[self.pools.column("pair_entry")[pair]]]
        return bool(wanted in self.kb.objects_of(int(subject), int(self.pools.relation_of_pair[pair])))
