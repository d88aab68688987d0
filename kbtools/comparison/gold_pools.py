"""The pools of every question under one pruner with the places of gold, stored once for all scorers.

With scores they become the outcomes of a cell: columns with a row per question.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.gold import Gold
from kbtools.comparison.column_store import Columns
from kbtools.kb.contract import ABSENT, KnowledgeBase, find_rows
from kbtools.kb.rows import EntityRows
from kbtools.linking.strict import link_all_strictly
from kbtools.pruning.pruners import Tagger, label_mentions, tag, word_span
from kbtools.ranking.confidence import Ties, find_ties, winner_confidence
from kbtools.ranking.opened_system import TOGETHER, OpenedSystem
from kbtools.ranking.pools import COLUMNS, KINDS, Pools, concatenate_pools

_TAGGED_AT_ONCE = 512
"""Questions that a tagger reads in one call; its spans grow with the square of a question's words."""

_FARTHEST = np.iinfo(np.int64).max
"""A place after that of every id, for pairs that are not tied."""

_UNKNOWN = -1
"""The mark of a pair whose objects have not been looked up."""

OBJECTS_AT_ONCE = 1024
"""Pairs whose objects are fetched in one call."""


@dataclass(frozen=True, slots=True, eq=False)
class GoldPools:
    """Pools with the places of their gold.

    subject_ids     the ids of all subjects, ascending; subject_place: the place of each subject among them (subjects,)
    namesakes       the number of pairs that no question can distinguish from a pair, including itself (pairs,)
    gold_subject, gold_pair   positions, ABSENT if the gold is not in the pool (questions,)
    seconds         spent on pruning, shared equally among questions pruned together (questions,)
    """

    pools: Pools
    subject_ids: list[str]
    subject_place: NDArray[np.uint32]
    namesakes: NDArray[np.int32]
    gold_subject: NDArray[np.int64]
    gold_pair: NDArray[np.int64]
    seconds: NDArray[np.float32]

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.pools)

    def to_columns(self, fingerprint: str) -> Columns:
        """Return the columns to store, with ids instead of rows, which are only valid in an open knowledge base."""
        arrays: dict[str, NDArray[Any]] = {f"{kind}s": self.pools.counts[kind].astype(np.int32) for kind in KINDS}
        arrays |= {name: getattr(self.pools, name) for name in COLUMNS}
        arrays |= {"subject": self.subject_place, "seconds": self.seconds}
        return Columns(fingerprint, arrays, {"subject_ids": self.subject_ids})


def read_gold_pools(columns: Columns, gold: Gold) -> GoldPools:
    """Return pools from the columns of `to_columns`, for the same knowledge base."""
    ids: list[str] = columns.facts["subject_ids"]
    place = columns["subject"]
    arrays = {name: columns[name] for name in COLUMNS} | {"subject": find_rows(gold.kb, ids).astype(np.uint32)[place]}
    pools = Pools({kind: columns[f"{kind}s"].astype(np.int64) for kind in KINDS}, **arrays)
    return _place_gold(pools, gold, ids, place, columns["seconds"])


def gather_gold_pools(opened: OpenedSystem, gold: Gold, *, progress: Callable[[int], None]) -> GoldPools:
    """Return the pools of every question, with the places of gold and the number of namesakes."""
    gathered: list[Pools] = []
    seconds: list[float] = []
    begun = time.perf_counter()
    for batch in opened.gather_batches(gold.texts):
        gathered += batch.pools
        now = time.perf_counter()
        seconds += [(now - begun) / len(batch.pools)] * len(batch.pools)
        progress(len(gathered))
        begun = time.perf_counter()
    pools = concatenate_pools(gathered)
    subject_ids, place = _name_subjects(gold.kb, pools.subject)
    return _place_gold(pools, gold, subject_ids, place, np.array(seconds, dtype=np.float32))


def _place_gold(
    pools: Pools, gold: Gold, ids: list[str], place: NDArray[np.uint32], seconds: NDArray[np.float32]
) -> GoldPools:
    """Return pools with the places of their gold."""
    return GoldPools(
        pools,
        ids,
        place,
        count_namesakes(pools),
        gold_subject=_positions(pools.question_of("subject"), gold.subjects(pools), len(gold)),
        gold_pair=_positions(pools.question_of_pair, gold.pairs(pools), len(gold)),
        seconds=seconds,
    )


def _name_subjects(kb: KnowledgeBase, rows: EntityRows) -> tuple[list[str], NDArray[np.uint32]]:
    """Return the ids of subjects, ascending, and the place of each subject among them."""
    unique, inverse = np.unique(rows, return_inverse=True)
    ids = kb.ids(unique)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    place = np.empty(len(ids), dtype=np.uint32)
    place[order] = np.arange(len(ids), dtype=np.uint32)
    return [ids[at] for at in order], place[inverse]


def count_namesakes(pools: Pools) -> NDArray[np.int32]:
    """Return the number of indistinguishable pairs for each pair: same kind of link, same relation."""
    if not pools.pairs:
        return np.empty(0, dtype=np.int32)
    how: Sequence[NDArray[Any]] = (
        *(pools.link_start, pools.link_end),
        *(pools.link_rung, pools.link_similarity, pools.link_weight),
    )
    alike = np.stack([pools.question_of("link").astype(np.float64), *how])
    # Links of one question with the same span, rung and similarity get the same number.
    group = np.unique(alike, axis=1, return_inverse=True)[1].reshape(-1)[pools.link_of_pair]
    relation = pools.relation_of_pair.astype(np.int64)
    # One number per group and relation, instead of np.unique over rows of both.
    _, inverse, count = np.unique(group * (relation.max() + 1) + relation, return_inverse=True, return_counts=True)
    return count[inverse].astype(np.int32)


def _positions(question: NDArray[np.int64], wanted: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Return the position of the wanted row of each question, ABSENT if it has none: (count,)."""
    where = np.full(count, ABSENT, dtype=np.int64)
    at = np.flatnonzero(wanted)
    where[question[at]] = at
    return where


def find_linkable(kb: KnowledgeBase, gold: Gold) -> NDArray[np.bool_]:
    """Return whether each question has an n-gram that strictly matches a name of its gold subject: (questions,)."""
    linkable = np.zeros(len(gold), dtype=np.bool_)
    for start in range(0, len(gold), TOGETHER):
        for at, links in enumerate(link_all_strictly(kb, gold.texts[start : start + TOGETHER]), start):
            linkable[at] = any(gold.subject[at] in link.entities for link in links)
    return linkable


def mark_mentions(
    kb: KnowledgeBase, tagger: Tagger, gold: Gold, progress: Callable[[int], None]
) -> dict[str, NDArray[np.int8]]:
    """Return which questions have a known mention, and for which of these a tagger finds it: (questions,).

    The mention is the longest name of the gold subject in the question; the tagger must rank it first.
    """
    labelled, right = np.zeros(len(gold), dtype=np.int8), np.zeros(len(gold), dtype=np.int8)
    for start in range(0, len(gold), _TAGGED_AT_ONCE):
        spans: dict[int, tuple[int, int]] = {}
        texts = gold.texts[start : start + _TAGGED_AT_ONCE]
        mentions = label_mentions(kb, texts, subjects=gold.subject[start : start + _TAGGED_AT_ONCE])
        for at, (question, mention) in enumerate(zip(texts, mentions, strict=True), start):
            if mention and (span := word_span(question, mention)):
                spans[at] = span
        probable = tag(tagger, [gold.texts[at] for at in spans]) if spans else []
        for (at, span), log_probability in zip(spans.items(), probable, strict=True):
            labelled[at] = 1
            # Row and column of the largest entry are the first and last word.
            right[at] = span == divmod(int(np.argmax(log_probability)), log_probability.shape[1])
        progress(min(start + _TAGGED_AT_ONCE, len(gold)))
    return {"labelled": labelled, "right": right}


def find_outcomes(
    gold_pools: GoldPools,
    gold: Gold,
    *,
    score: NDArray[np.int64],
    relation: NDArray[np.int64],
    objects: "ObjectCheck",
    relation_ids: list[str],
) -> dict[str, NDArray[Any]]:
    """Return the outcomes of a cell as columns (questions,); a question without candidates has zeros and ABSENT.

    `score` and `relation`, of pairs in millionths, are the score that ranks them and log p(r|q) alone.
    """
    outcomes = _empty_outcomes(gold_pools)
    if not len(score):
        return outcomes
    pools = gold_pools.pools
    filled = np.flatnonzero(pools.counts["pair"])
    ties = find_ties(score, pools.first("pair")[filled])
    gold_pair = gold_pools.gold_pair[filled]
    in_pool = gold_pair != ABSENT
    is_gold = np.zeros(len(score), dtype=np.bool_)
    is_gold[gold_pair[in_pool]] = True
    first, last, winner = _by_id(gold_pools, ties, gold_pair, relation_ids)
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
    # As if the knowledge base lacked the gold subject.
    others = pools.pair_subject != gold_pools.gold_subject[pools.question_of_pair]
    outcomes["confidence"] = winner_confidence(pools, score)
    outcomes["confidence_without"] = winner_confidence(pools, score, among=others)
    outcomes["given_subject"] = given_subject(gold_pools, relation)
    return outcomes


def _empty_outcomes(gold_pools: GoldPools) -> dict[str, NDArray[Any]]:
    """Return the outcomes without a ranking: those of questions without candidates, and those from pools alone."""
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


def _by_id(
    gold_pools: GoldPools, ties: Ties, gold_pair: NDArray[np.int64], relation_ids: list[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Return ties broken by the ids of subject and relation: whether the first is gold, the last, and the first
    pair."""
    place = np.empty(len(relation_ids), dtype=np.int64)
    place[sorted(range(len(relation_ids)), key=relation_ids.__getitem__)] = np.arange(len(relation_ids))
    subject = gold_pools.subject_place[gold_pools.pools.pair_subject].astype(np.int64)
    # One number that sorts by subject, then by relation.
    key = subject * len(relation_ids) + place[gold_pools.pools.relation_of_pair]
    first = np.minimum.reduceat(np.where(ties.tied, key, _FARTHEST), ties.starts)
    last = np.maximum.reduceat(np.where(ties.tied, key, ABSENT), ties.starts)
    winner = np.flatnonzero(ties.tied & (key == ties.spread(first)))
    return first == key[gold_pair], last == key[gold_pair], winner


def given_subject(gold_pools: GoldPools, relation: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the chance that the gold relation is first among the gold subject's, 0 without it: (questions,)."""
    pools, gold_pair = gold_pools.pools, gold_pools.gold_pair
    expected = np.zeros(len(pools))
    # The pairs of each question's gold subject, concatenated, so that one call finds all ties.
    pairs = np.flatnonzero(pools.pair_subject == gold_pools.gold_subject[pools.question_of_pair])
    questions, starts = np.unique(pools.question_of_pair[pairs], return_index=True)
    if len(questions):
        is_gold = pairs == gold_pair[pools.question_of_pair[pairs]]
        expected[questions] = find_ties(relation[pairs], starts).expected(is_gold)
    return expected


class ObjectCheck:
    """A cached check whether pairs have the gold object."""

    def __init__(self, kb: KnowledgeBase, pools: Pools, gold: Gold) -> None:
        self.kb, self.pools = kb, pools
        self.wanted = gold.object[pools.question_of_pair]
        self.known = np.full(pools.pairs, _UNKNOWN, dtype=np.int8)

    def check(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 1 for each of the given pairs that has the gold object, 0 for all other pairs: (all pairs,)."""
        unknown = pairs[(self.known[pairs] == _UNKNOWN) & (self.wanted[pairs] != ABSENT)]
        for start in range(0, len(unknown), OBJECTS_AT_ONCE):
            batch = unknown[start : start + OBJECTS_AT_ONCE]
            subjects, relations = self.pools.subject_of_pair[batch], self.pools.relation_of_pair[batch]
            facts = list(zip(subjects.tolist(), relations.tolist(), strict=True))
            for pair, objects in zip(batch.tolist(), self.kb.objects_of(facts), strict=True):
                self.known[pair] = self.wanted[pair] in objects
        right = np.zeros(len(self.known))
        right[pairs] = self.known[pairs] == 1
        return right
