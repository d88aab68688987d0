"""Cascades: a system with few scorers ranks first, and one with all of them ranks the questions in doubt.

It is cascade ranking (Wang, Lin, Metzler, SIGIR 2011) by question and by mention: the other scorers read only the
questions in doubt, and of these only the mentions that are not ruled out.
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
    """A scoring by two rankers; the last one reads all scorers and is made when first needed."""

    system: System
    first: Scoring
    make_last: Callable[[], Scoring]

    @cached_property
    def last(self) -> Scoring:
        return self.make_last()

    def rate(self, evidence: Evidence) -> Rating:
        """Return the rating, each question by one of both rankers; raise BrokenPlugin as these do."""
        cascade = self.system.cascade
        assert cascade  # only made for a cascade
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
        """Return the evidence for the last ranker on the questions in doubt."""
        pools, cascade = evidence.pools, self.system.cascade
        assert cascade
        read = unruled_mentions(pools, scores, cascade.margin) & late[pools.question_of("mention")]
        deferred = {name: evidence.later[name](read) for name in self.system.deferred}
        return complete(evidence, deferred, read, order=self.system.scorers).of(late)


def winner_shares(pools: Pools, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the winner's share of each pool by normalised exp(score), 1 for an empty pool: (questions,)."""
    return np.where(pools.counts["pair"] > 0, winner_confidence(pools, scores, of_links=False), 1.0)


def relation_shares(pools: Pools, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of the winner's mention and relation, with namesakes counted once: (questions,).

    Relation scorers cannot distinguish namesakes, so these are no reason for doubt.
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
    """Return whether each mention has a candidate within a margin of the best of its question: (mentions,)."""
    marks, filled = np.zeros(len(pools.mention_start), dtype=np.bool_), np.flatnonzero(pools.counts["pair"])
    if len(filled):
        near = find_ties(scores, pools.first("pair")[filled], tolerance=margin * MICRO).tied
        marks[pools.subject_mention[pools.pair_subject[near]]] = True
    return marks


def complete(
    evidence: Evidence, deferred: Mapping[str, NDArray[np.floating]], read: NDArray[np.bool_], *, order: tuple[str, ...]
) -> Evidence:
    """Return the evidence with the deferred scorers added, in the order of the last ranker.

    Mentions that they did not read get the mean score of the first scorers.
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
    """Return scores and parts of the first rating, with those of the last for the candidates marked in `late`."""
    scores, places = first.scores.copy(), late.cumsum() - 1
    scores[late] = last.scores

    def parts(pairs: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        is_late = late[pairs]
        joined: dict[str, NDArray[np.float64]] = {}
        for marks, rating, at in ((~is_late, first, pairs), (is_late, last, places[pairs])):
            for name, values in rating.parts(at[marks]).items() if marks.any() else ():
                joined.setdefault(name, np.zeros(len(pairs)))[marks] = values
        return joined

    return scores, parts
