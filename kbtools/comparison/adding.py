"""The joint score of every pair of the pools at once: what `kbtools.ranking.joint` computes question by question."""

import numpy as np
from numpy.typing import NDArray

from kbtools.comparison.pools import Pools
from kbtools.ranking.joint import Weights
from kbtools.ranking.ranking import DECIMALS

MICRO = 10**DECIMALS
"""Scores are kept as integers, in millionths of a log-probability: what ties on one machine ties on every other."""


def joint_scores(
    pools: Pools, *, v: NDArray[np.float32], u: NDArray[np.float32] | None, weights: Weights
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the score of each pair, and the part of it that is log p(r|q): (pairs,) each, in millionths."""
    link, entry = pools.link_of_pair, pools.column("pair_entry")
    relation = relation_part(pools, v, weights)
    score = relation + weights.mention * pools.column("link_weight")[link]
    score += weights.rung * (1.0 - pools.column("link_rung")[link])
    score += weights.similarity * np.log(pools.column("link_similarity")[link] / 100)
    if u is not None:
        score += weights.subject * subject_part(pools, u, weights)
    if weights.popularity:
        facts = np.log1p(pools.column("entry_facts"))
        score += (weights.popularity * facts / (1 + facts))[entry]
    return as_micro(score), as_micro(relation)


def as_micro(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(np.round(values * MICRO)).astype(np.int64)


def relation_part(pools: Pools, v: NDArray[np.float32], weights: Weights) -> NDArray[np.float64]:
    """Give log p(r|q), normalised over the relations of the pool (paper, Eq. 9)."""
    width = pools.column("relations").astype(np.int64)
    rows = np.concatenate([[0], np.cumsum(width[pools.question_of("mentions")])])
    if not len(v):
        return np.zeros(len(pools.column("pair_entry")))
    scaled = weights.relation * v.astype(np.float64)
    peak = np.repeat(np.maximum.reduceat(scaled, rows[:-1]), np.diff(rows))
    normaliser = np.log(np.add.reduceat(np.exp(scaled - peak), rows[:-1]))
    log_probability = scaled - peak - np.repeat(normaliser, np.diff(rows))
    column = pools.column("pair_relation") - pools.first("relations")[pools.question_of_pair]
    found: NDArray[np.float64] = log_probability[
        rows[pools.column("entry_mention")[pools.column("pair_entry")]] + column
    ]
    return found


def subject_part(pools: Pools, u: NDArray[np.float32], weights: Weights) -> NDArray[np.float64]:
    """Give log p(s|q, r), normalised over the subjects of the pool (paper, Eq. 11)."""
    entry, relation = pools.column("pair_entry"), pools.column("pair_relation")
    filled = np.flatnonzero(pools.column("entries"))
    starts, sizes = pools.first("entries")[filled], pools.column("entries")[filled]
    scaled = weights.sharpness * u.astype(np.float64)
    scaled = scaled - np.repeat(np.maximum.reduceat(scaled, starts), sizes)
    total = np.zeros(len(pools))
    total[filled] = np.add.reduceat(np.exp(scaled), starts)
    able = np.bincount(relation, weights=np.exp(scaled)[entry], minlength=len(pools.column("relation")))
    others = np.maximum(total[pools.question_of("relations")] - able, 0.0)
    normaliser = np.log(np.exp(weights.alpha) * able + others)
    found: NDArray[np.float64] = scaled[entry] + weights.alpha - normaliser[relation]
    return found
