"""A cell of the grid as a join: pools, relation scores and subject scores become outcomes, a row per question."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.adding import MICRO
from kbtools.comparison.gold import ABSENT, Gold
from kbtools.comparison.objects import ObjectCheck
from kbtools.comparison.pools import Pools

FARTHEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The winners of each question that has candidates: `tied` over pairs, the rest over `filled` questions."""

    filled: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    best: NDArray[np.int64]
    tied: NDArray[np.bool_]
    count: NDArray[np.int64]

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat a value per question for each of its pairs."""
        return np.repeat(values, self.sizes)

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average a value per pair over the winners of each question."""
        total: NDArray[np.float64] = np.add.reduceat(np.where(self.tied, values, 0.0), self.starts)
        return total / self.count


def find_ties(pools: Pools, score: NDArray[np.int64]) -> Ties:
    """Find the best pairs of every question that has any."""
    sizes = pools.column("pairs").astype(np.int64)
    filled = np.flatnonzero(sizes)
    starts = pools.first("pairs")[filled]
    best = np.maximum.reduceat(score, starts)
    tied = score == np.repeat(best, sizes[filled])
    return Ties(filled, starts, sizes[filled], best, tied, np.add.reduceat(tied, starts, dtype=np.int64))


def join(
    pools: Pools,
    gold: Gold,
    *,
    score: NDArray[np.int64],
    relation: NDArray[np.int64],
    objects: ObjectCheck,
    relation_ids: list[str],
) -> dict[str, NDArray[Any]]:
    """Give the outcomes of a cell in columns (questions,); a question without candidates has zeros and ABSENT.

    `score` and `relation` are of pairs: what ranks them, and log p(r|q) alone.
    """
    outcomes = empty_outcomes(pools)
    if not len(score):
        return outcomes
    ties = find_ties(pools, score)
    gold_pair = pools.column("gold_pair")[ties.filled]
    kept = gold_pair != ABSENT
    right = kept & ties.tied[gold_pair]
    first, last, winner = by_id(pools, ties, gold_pair, relation_ids)
    gold_relation = ties.spread(gold.relation[ties.filled]) == pools.relation_of_pair
    found = {
        "strict": np.where(right, 1 / ties.count, 0.0),
        "first": np.where(kept, first, False),
        "last": np.where(kept, last, False),
        "tied": ties.count,
        "winner": winner,
        "object": ties.mean(objects.check(np.flatnonzero(ties.tied))),
        "bound": ties.mean(1 / pools.column("namesakes")),
        "right_relations": np.add.reduceat(ties.tied & gold_relation, ties.starts, dtype=np.int64),
        "confidence": confidence(ties, score),
        "confidence_without": confidence_without(pools, ties, score),
    }
    for name, values in found.items():
        outcomes[name][ties.filled] = values
    outcomes["given_subject"] = given_subject(pools, relation)
    return outcomes


def empty_outcomes(pools: Pools) -> dict[str, NDArray[Any]]:
    """Give the outcomes of questions without candidates, and what the pools say of every question."""
    count, gold_pair = len(pools), pools.column("gold_pair")
    floats = ("strict", "object", "bound", "confidence", "confidence_without", "given_subject")
    outcomes: dict[str, NDArray[Any]] = {name: np.zeros(count) for name in floats}
    outcomes |= {name: np.zeros(count, dtype=np.int64) for name in ("tied", "right_relations")}
    outcomes |= {name: np.zeros(count, dtype=np.int8) for name in ("first", "last")}
    namesakes = pools.column("namesakes")
    oracle = np.zeros(count)
    oracle[gold_pair != ABSENT] = 1 / namesakes[gold_pair[gold_pair != ABSENT]]
    return outcomes | {
        "winner": np.full(count, ABSENT, dtype=np.int64),
        "recalled": (gold_pair != ABSENT).astype(np.int8),
        "subject_kept": (pools.column("gold_entry") != ABSENT).astype(np.int8),
        "subjects": pools.column("entries"),
        "pool": pools.column("pairs"),
        "oracle": oracle,
    }


def by_id(
    pools: Pools, ties: Ties, gold_pair: NDArray[np.int64], relation_ids: list[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Break ties by the ids of subject and relation: whether the first is right, the last, and which pair is first."""
    place = np.empty(len(relation_ids), dtype=np.int64)
    place[sorted(range(len(relation_ids)), key=relation_ids.__getitem__)] = np.arange(len(relation_ids))
    subject = pools.column("entry_subject")[pools.column("pair_entry")].astype(np.int64)
    key = subject * len(relation_ids) + place[pools.relation_of_pair]
    first = np.minimum.reduceat(np.where(ties.tied, key, FARTHEST), ties.starts)
    last = np.maximum.reduceat(np.where(ties.tied, key, ABSENT), ties.starts)
    winner = np.flatnonzero(ties.tied & (key == ties.spread(first)))
    return first == key[gold_pair], last == key[gold_pair], winner


def confidence(ties: Ties, score: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the probability of a winning pair: scores as log-probabilities, normalised over the pool."""
    weights = np.exp((score - ties.spread(ties.best)) / MICRO)
    return np.asarray(1 / np.add.reduceat(weights, ties.starts))


def confidence_without(pools: Pools, ties: Ties, score: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the confidence if the knowledge base lacked the gold subject; 0 if nothing else is in the pool."""
    others = pools.column("pair_entry") != ties.spread(pools.column("gold_entry")[ties.filled])
    best = np.maximum.reduceat(np.where(others, score, np.iinfo(np.int64).min // 2), ties.starts)
    weights = np.where(others, np.exp(np.minimum((score - ties.spread(best)) / MICRO, 0.0)), 0.0)
    total = np.add.reduceat(weights, ties.starts)
    return np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)


def given_subject(pools: Pools, relation: NDArray[np.int64]) -> NDArray[np.float64]:
    """Say whether the gold relation leads among those of the gold subject: (questions,), a tie as expected value."""
    found = np.zeros(len(pools))
    entry, gold_pair = pools.column("pair_entry"), pools.column("gold_pair")
    pairs = np.flatnonzero(entry == pools.column("gold_entry")[pools.question_of_pair])
    pairs = pairs[gold_pair[pools.question_of_pair[pairs]] != ABSENT]
    questions, starts, sizes = np.unique(pools.question_of_pair[pairs], return_index=True, return_counts=True)
    if len(questions):
        best = np.maximum.reduceat(relation[pairs], starts)
        ties = np.add.reduceat(relation[pairs] == np.repeat(best, sizes), starts, dtype=np.int64)
        found[questions] = np.where(relation[gold_pair[questions]] == best, 1 / ties, 0.0)
    return found
