"""The joint score: log p(r|q) + beta·log p(s|q, r) + gamma·log p(w|q) and further parts.

It is Eq. 2 of the paper, normalised over the pool C of Eq. 3, with a temperature per network and a weight per part.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import ask_plugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import RelationScorer, Selective, SubjectScorer, as_scores, log_total
from kbtools.ranking.pools import Pools
from kbtools.ranking.weights import Weights
from kbtools.text.question import MarkedQuestion, Question

DECIMALS = 6
"""Decimals to which equal scores agree; networks differ in the seventh between machines."""

MICRO = 10**DECIMALS
"""Scores are integers, in millionths of a log-probability, so that ties are the same on every machine."""

AT_ONCE = 1024
"""Mentions scored in one call, to limit memory; those of one question stay together."""

Progress = Callable[[int], None]
"""A function that is called with the number of questions scored so far."""

Constant = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""A function from scores (mentions, relations) to what is subtracted from each mention's: (mentions, 1)."""


def no_constant(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return zeros, which saves an exponential for each relation of the knowledge base."""
    return np.zeros((len(scores), 1))


def score_relations(
    kb: KnowledgeBase,
    pools: Pools,
    questions: Sequence[Question],
    scorer: RelationScorer,
    progress: Progress = lambda done: None,
    *,
    constant: Constant = log_total,
) -> NDArray[np.float64]:
    """Return v(r, q) of each mention and each relation of its pool, sorted by question, mention, then relation.

    By default it is log p(r|q) over all relations of the knowledge base, since `constant` removes any constant per
    question; `no_constant` keeps it if only differences count. Raises BrokenPlugin if the scorer fails or a score is
    missing or not finite.
    """
    mentions, relations = pools.first("mention").tolist(), pools.first("relation").tolist()
    blocks = []
    for first, last, marked in _mark_questions(pools, questions):
        if marked and constant is no_constant and first + 1 == last and isinstance(scorer, Selective):
            # A single question reads the vectors of about forty relations, not of thousands: 0.2 to 1 ms saved at
            # 6,700.
            columns = pools.relation[relations[first] : relations[last]]
            ask = methodcaller("score_some", marked, columns)
            blocks.append(check_scores(scorer, ask, shape=(len(marked), len(columns))).reshape(-1))
        elif marked:
            v = check_scores(scorer, methodcaller("score", marked), shape=(len(marked), len(kb.relations)))
            total = constant(v)
            for at in range(first, last):
                rows = slice(mentions[at] - mentions[first], mentions[at + 1] - mentions[first])
                columns = pools.relation[relations[at] : relations[at + 1]]
                blocks.append((v[rows].take(columns, axis=1) - total[rows]).reshape(-1))
        progress(last)
    return np.concatenate(blocks) if blocks else np.empty(0)


def score_subjects(
    pools: Pools, questions: Sequence[Question], scorer: SubjectScorer, progress: Progress = lambda done: None
) -> NDArray[np.float64]:
    """Return u(s, r, q) of each subject: (subjects,); raise BrokenPlugin as `score_relations` does."""
    mentions, subjects = pools.first("mention"), pools.first("subject")
    blocks = [np.empty(0)]
    for first, last, marked in _mark_questions(pools, questions):
        if marked:
            span = slice(subjects[first], subjects[last])
            rows, which = (pools.subject[span], pools.subject_mention[span].astype(np.int64) - mentions[first])
            ask = methodcaller("score", marked, which=which, subjects=rows)
            blocks.append(check_scores(scorer, ask, shape=(len(rows),)))
        progress(last)
    return np.concatenate(blocks)


def _mark_questions(pools: Pools, questions: Sequence[Question]) -> Iterator[tuple[int, int, list[MarkedQuestion]]]:
    """Yield batches of whole questions: the first, the one after the last, and a marked question per mention."""
    starts = pools.first("mention").tolist()
    begins, ends = pools.mention_start.tolist(), pools.mention_end.tolist()
    first = 0
    while first < len(pools):
        # As many questions as have AT_ONCE mentions together, at least one.
        last = max(first + 1, bisect_right(starts, starts[first] + AT_ONCE) - 1)
        yield (
            first,
            last,
            [
                MarkedQuestion(questions[at], begins[row], ends[row])
                for at in range(first, last)
                for row in range(starts[at], starts[at + 1])
            ],
        )
        first = last


def score_parts(
    pools: Pools, weights: Weights, *, v: NDArray[np.floating], u: NDArray[np.floating] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return the parts of each candidate's score, (pairs,) each, from v and u as returned above."""
    link = pools.link_of_pair
    parts: dict[str, NDArray[Any]] = {
        "relation": relation_part(pools, v, weights),
        "mention": (weights.mention * pools.link_weight)[link],
        "rung": (weights.rung * (1.0 - pools.link_rung))[link],
        "similarity": (weights.similarity * np.log(pools.link_similarity / 100))[link],
    }
    if u is not None:
        parts["subject"] = weights.subject * subject_part(pools, u, weights)
    if weights.popularity or u is None:
        facts = np.log1p(pools.subject_facts)
        parts["popularity"] = (weights.popularity * facts / (1 + facts))[pools.pair_subject]
    return parts


def add_parts(parts: dict[str, NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return the sums of the parts of scores, in millionths: (pairs,)."""
    # Added one by one: np.sum would first copy all of them into one array, which takes longer.
    return as_micro(reduce(np.add, parts.values()))


def as_micro(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return log-probabilities rounded to whole millionths."""
    micro: NDArray[np.int64] = np.rint(values * MICRO).astype(np.int64)
    return micro


def relation_part(pools: Pools, v: NDArray[np.floating], weights: Weights) -> NDArray[np.float64]:
    """Return log p(r|q), normalised over the relations of the pool (paper, Eq. 9): (pairs,)."""
    if not len(v):
        return np.zeros(pools.pairs)
    starts, sizes = pools.v_of_mention
    filled = sizes > 0
    firsts, lengths = starts[filled], sizes[filled]
    scaled = np.multiply(weights.relation, v, dtype=np.float64)
    # For each mention v - max(v) - log(sum(exp(v - max(v)))), the logarithm of its softmax.
    scaled -= np.maximum.reduceat(scaled, firsts).repeat(lengths)
    scaled -= np.log(np.add.reduceat(np.exp(scaled), firsts)).repeat(lengths)
    log_probability: NDArray[np.float64] = scaled[places_of_v(pools)]
    return log_probability


def places_of_v(pools: Pools) -> NDArray[np.int64]:
    """Return the position of each candidate's v among the scores of `score_relations`: (pairs,)."""
    starts, _ = pools.v_of_mention
    column = pools.pair_relation
    if len(pools) > 1:  # a single question starts at 0
        column = column - pools.first("relation")[:-1].repeat(pools.counts["pair"])
    places: NDArray[np.int64] = starts[pools.subject_mention[pools.pair_subject]] + column
    return places


def subject_part(pools: Pools, u: NDArray[np.floating], weights: Weights) -> NDArray[np.float64]:
    """Return log p(s|q, r), normalised over the subjects of the pool (paper, Eq. 11): (pairs,).

    alpha·h(r, s) only matters in the normaliser, where it separates subjects that have r from others; every pair has r.
    """
    filled = np.flatnonzero(pools.counts["subject"])
    starts, sizes = pools.first("subject")[filled], pools.counts["subject"][filled]
    scaled = weights.sharpness * u.astype(np.float64)
    scaled = scaled - np.repeat(np.maximum.reduceat(scaled, starts), sizes) if len(filled) else scaled
    total = np.zeros(len(pools))
    total[filled] = np.add.reduceat(np.exp(scaled), starts) if len(filled) else 0.0
    # For each relation of a pool, the sum of exp(u) over the subjects that have it, and over the others.
    able = np.bincount(pools.pair_relation, weights=np.exp(scaled)[pools.pair_subject], minlength=len(pools.relation))
    # Rounding may leave this difference just below zero.
    others = np.maximum(np.repeat(total, pools.counts["relation"]) - able, 0.0)
    normaliser = np.log(np.exp(weights.alpha) * able + others)
    log_probability: NDArray[np.float64] = scaled[pools.pair_subject] + weights.alpha - normaliser[pools.pair_relation]
    return log_probability


def check_scores(
    scorer: object, ask: Callable[[Any], NDArray[np.float64]], *, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return the scores of a scorer; raise BrokenPlugin unless they are finite and of this shape."""
    # The plugin's method is looked up only when called, since it may be missing.
    return as_scores(ask_plugin("scorer", scorer, lambda: ask(scorer)), scorer=type(scorer).__name__, shape=shape)
