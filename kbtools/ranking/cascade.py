"""Cascades: a system of few scorers decides where it is sure, one of all of them ranks the questions in doubt.

Cascade ranking (Wang, Lin, Metzler, SIGIR 2011), by question and by mention: the other scorers are asked about the
questions in doubt alone, and of these about the mentions that are not ruled out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.confidence import find_ties, winner_confidence
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import Rating, Scoring
from kbtools.ranking.score import MICRO
from kbtools.ranking.system import System


@dataclass(frozen=True, eq=False)
class CascadeScoring:
    """A scoring by two rankers: the first reads some of the scorers, the last all; that is made when it is needed."""

    system: System
    first: Scoring
    make_last: Callable[[], Scoring]

    @cached_property
    def last(self) -> Scoring:
        return self.make_last()

    def rate(self, evidence: Evidence) -> Rating:
        """Score candidates, those of a question by one of both rankers; raise BrokenPlugin as these do."""
        cascade = self.system.cascade
        assert cascade  # as in the system that this is made for
        evidence = evidence.deferring(self.system.deferred)
        first = self.first.rate(evidence)
        shares = winner_shares if self.system.ranker else relation_shares
        late = shares(evidence.pools, first.scores) < cascade.threshold
        if not late.any():
            return replace(first, late=late)
        last = self.last.rate(self.complete(evidence, first.scores, late))
        stages = (*first.stages, *last.stages)
        if late.all():
            return replace(last, stages=stages, late=late)
        scores, parts = _join(first, last, late=late[evidence.pools.question_of_pair])
        return Rating(scores, parts, stages, late)

    def complete(self, evidence: Evidence, scores: NDArray[np.int64], late: NDArray[np.bool_]) -> Evidence:
        """Ask the scorers for the last about the questions in doubt."""
        pools, cascade = evidence.pools, self.system.cascade
        assert cascade
        read = unruled_mentions(pools, scores, cascade.margin) & late[pools.question_of("mention")]
        deferred = {name: evidence.later[name](read) for name in self.system.deferred}
        return complete(evidence, deferred, read, order=self.system.scorers).of(late)


def winner_shares(pools: Pools, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the winner's share of each pool, as exp(score) normalised; an empty one leaves no doubt: (questions,)."""
    return np.where(pools.counts["pair"] > 0, winner_confidence(pools, scores, of_links=False), 1.0)


def relation_shares(pools: Pools, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of the winner's mention and relation, namesakes counting once: (questions,).

    A relation scorer does not tell namesakes apart, so that they are no doubt.
    """
    shares, filled = np.ones(len(pools)), np.flatnonzero(pools.counts["pair"])
    if len(filled):
        ties = find_ties(scores, pools.first("pair")[filled])
        keys = pools.subject_mention[pools.pair_subject].astype(np.int64) << 32 | pools.relation_of_pair
        order = np.lexsort((-scores, keys))
        best = order[np.flatnonzero(np.diff(keys[order], prepend=-1))]
        weights = np.exp((scores - ties.spread(ties.best))[best] / MICRO)
        total = np.bincount(pools.question_of_pair[best], weights, minlength=len(pools))
        shares[filled] = 1 / total[filled]
    return shares


def unruled_mentions(pools: Pools, scores: NDArray[np.int64], margin: float) -> NDArray[np.bool_]:
    """Mark the mentions with a candidate that is behind the best of its question by no more than a margin."""
    marks, filled = np.zeros(len(pools.mention_start), dtype=np.bool_), np.flatnonzero(pools.counts["pair"])
    if len(filled):
        near = find_ties(scores, pools.first("pair")[filled], tolerance=margin * MICRO).tied
        marks[pools.subject_mention[pools.pair_subject[near]]] = True
    return marks


def complete(
    evidence: Evidence,
    deferred: Mapping[str, NDArray[np.floating]],
    read: NDArray[np.bool_],
    *,
    order: tuple[str, ...],
) -> Evidence:
    """Add the scorers that were asked about some mentions, in the order that the last ranker knows.

    Of the other mentions they are taken to say the mean of what the first scorers say.
    """
    _, sizes = evidence.pools.v_of_mention
    places = read.repeat(sizes)
    v: dict[str, NDArray[np.floating]] = dict(evidence.v)
    for name, scores in deferred.items():
        v[name] = np.array(evidence.mean, dtype=np.float64)
        v[name][places] = scores
    beside = {name: scores for name, scores in evidence.beside.items() if name not in order}
    return Evidence(evidence.pools, {name: v[name] for name in order}, evidence.u, beside)


def _join(
    first: Rating, last: Rating, *, late: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], Callable[[NDArray[np.int64]], dict[str, NDArray[np.float64]]]]:
    """Put the scores of the questions in doubt, whose candidates are marked, in place of those of the first ranker."""
    scores, places = first.scores.copy(), late.cumsum() - 1
    scores[late] = last.scores

    def parts(pairs: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        own = late[pairs]
        joined: dict[str, NDArray[np.float64]] = {}
        for marks, rating, at in ((~own, first, pairs), (own, last, places[pairs])):
            for name, values in rating.parts(at[marks]).items() if marks.any() else ():
                joined.setdefault(name, np.zeros(len(pairs)))[marks] = values
        return joined

    return scores, parts
