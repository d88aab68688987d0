"""Outcomes of a cell of the grid: pools and their scores become columns with a row for each question."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.gold import Gold
from kbtools.comparison.gold_pools import GoldPools
from kbtools.kb.contract import ABSENT, KnowledgeBase
from kbtools.ranking.confidence import Ties, find_ties, winner_confidence
from kbtools.ranking.pools import Pools

FARTHEST = np.iinfo(np.int64).max
"""A place behind that of every id, for the pairs that are not tied."""

UNKNOWN = -1
"""The mark of a pair whose objects have not been looked up."""

OBJECTS_AT_ONCE = 1024
"""Pairs whose objects are fetched at once."""


def find_outcomes(
    gold_pools: GoldPools,
    gold: Gold,
    *,
    score: NDArray[np.int64],
    relation: NDArray[np.int64],
    objects: "ObjectCheck",
    relation_ids: list[str],
) -> dict[str, NDArray[Any]]:
    """Return the outcomes of a cell in columns (questions,); a question without candidates has zeros and ABSENT.

    `score` and `relation` are of pairs, in millionths: what ranks them, and log p(r|q) alone.
    """
    outcomes = empty_outcomes(gold_pools)
    if not len(score):
        return outcomes
    pools = gold_pools.pools
    filled = np.flatnonzero(pools.counts["pair"])
    ties = find_ties(score, pools.first("pair")[filled])
    gold_pair = gold_pools.gold_pair[filled]
    in_pool = gold_pair != ABSENT
    is_gold = np.zeros(len(score), dtype=np.bool_)
    is_gold[gold_pair[in_pool]] = True
    first, last, winner = by_id(gold_pools, ties, gold_pair, relation_ids)
    gold_relation = ties.spread(gold.relation[filled]) == pools.relation_of_pair
    of_filled = {
        "strict": ties.expected(is_gold),
        "first": np.where(in_pool, first, False),
        "last": np.where(in_pool, last, False),
        "tied": ties.count,
        "winner": winner,
        "object": ties.expected(objects.check(np.flatnonzero(ties.tied))),
        "bound": ties.expected(1 / gold_pools.namesakes),
        "right_relations": np.add.reduceat(ties.tied & gold_relation, ties.starts, dtype=np.int64),
    }
    for name, values in of_filled.items():
        outcomes[name][filled] = values
    # If the knowledge base lacked the gold subject.
    others = pools.pair_subject != gold_pools.gold_subject[pools.question_of_pair]
    outcomes["confidence"] = winner_confidence(pools, score)
    outcomes["confidence_without"] = winner_confidence(pools, score, among=others)
    outcomes["given_subject"] = given_subject(gold_pools, relation)
    return outcomes


def empty_outcomes(gold_pools: GoldPools) -> dict[str, NDArray[Any]]:
    """Return the outcomes of questions without candidates, and what the pools say of every question."""
    count, gold_pair = len(gold_pools), gold_pools.gold_pair
    floats = ("strict", "object", "bound", "confidence", "confidence_without", "given_subject")
    outcomes: dict[str, NDArray[Any]] = {name: np.zeros(count) for name in floats}
    outcomes |= {name: np.zeros(count, dtype=np.int64) for name in ("tied", "right_relations")}
    outcomes |= {name: np.zeros(count, dtype=np.int8) for name in ("first", "last")}
    oracle = np.zeros(count)
    oracle[gold_pair != ABSENT] = 1 / gold_pools.namesakes[gold_pair[gold_pair != ABSENT]]
    counts = gold_pools.pools.counts
    return outcomes | {
        "winner": np.full(count, ABSENT, dtype=np.int64),
        "recalled": (gold_pair != ABSENT).astype(np.int8),
        "subject_kept": (gold_pools.gold_subject != ABSENT).astype(np.int8),
        "subjects": counts["subject"].astype(np.int32),
        "pool": counts["pair"].astype(np.int32),
        "oracle": oracle,
    }


def by_id(
    gold_pools: GoldPools, ties: Ties, gold_pair: NDArray[np.int64], relation_ids: list[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Break ties by the ids of subject and relation: whether the first is right, the last, and which pair is first."""
    place = np.empty(len(relation_ids), dtype=np.int64)
    place[sorted(range(len(relation_ids)), key=relation_ids.__getitem__)] = np.arange(len(relation_ids))
    subject = gold_pools.subject_place[gold_pools.pools.pair_subject].astype(np.int64)
    # One number that sorts by subject, then by relation.
    key = subject * len(relation_ids) + place[gold_pools.pools.relation_of_pair]
    first = np.minimum.reduceat(np.where(ties.tied, key, FARTHEST), ties.starts)
    last = np.maximum.reduceat(np.where(ties.tied, key, ABSENT), ties.starts)
    winner = np.flatnonzero(ties.tied & (key == ties.spread(first)))
    return first == key[gold_pair], last == key[gold_pair], winner


def given_subject(gold_pools: GoldPools, relation: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the chance that the gold relation leads among those of the gold subject, 0 without it: (questions,)."""
    pools, gold_pair = gold_pools.pools, gold_pools.gold_pair
    expected = np.zeros(len(pools))
    # The pairs of the gold subject of each question, end to end, so that one call finds all ties.
    pairs = np.flatnonzero(pools.pair_subject == gold_pools.gold_subject[pools.question_of_pair])
    questions, starts = np.unique(pools.question_of_pair[pairs], return_index=True)
    if len(questions):
        is_gold = pairs == gold_pair[pools.question_of_pair[pairs]]
        expected[questions] = find_ties(relation[pairs], starts).expected(is_gold)
    return expected


class ObjectCheck:
    """The pairs that lead to the gold object: each is looked up when it is first asked for, and once."""

    def __init__(self, kb: KnowledgeBase, pools: Pools, gold: Gold) -> None:
        self.kb, self.pools = kb, pools
        self.wanted = gold.object[pools.question_of_pair]
        self.known = np.full(pools.pairs, UNKNOWN, dtype=np.int8)

    def check(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 1 for those of some pairs that have the gold object among theirs: (all pairs,), 0 for all others."""
        unknown = pairs[(self.known[pairs] == UNKNOWN) & (self.wanted[pairs] != ABSENT)]
        for start in range(0, len(unknown), OBJECTS_AT_ONCE):
            batch = unknown[start : start + OBJECTS_AT_ONCE]
            subjects, relations = self.pools.subject_of_pair[batch], self.pools.relation_of_pair[batch]
            facts = list(zip(subjects.tolist(), relations.tolist(), strict=True))
            for pair, objects in zip(batch.tolist(), self.kb.objects_of(facts), strict=True):
                self.known[pair] = self.wanted[pair] in objects
        right = np.zeros(len(self.known))
        right[pairs] = self.known[pairs] == 1
        return right
