"""Cascades: a ranker over a few scorers decides where it is sure, one over all of them ranks the questions in doubt.

Cascade ranking (Wang, Lin, Metzler, SIGIR 2011), by question and by mention: the other scorers are asked about the
questions in doubt alone, and of these about the mentions that are not ruled out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.confidence import Calibration
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import LearnedScoring, Rating, Stage
from kbtools.ranking.score import MICRO
from kbtools.ranking.ties import find_ties
from kbtools.ranking.weights import Weights

MARGIN = 2.0
"""Log-probabilities that the best candidate of a mention may be behind the winner before the mention is ruled out.

Validation questions of FBSQ, cross-fitted: with 1, 2, 3 and 5 accuracy differs by 0.02 points; with 2 a question in
doubt has 1.3 mentions to read, of 3.3.
"""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The scorers of the first ranker of a cascade, its digest, and when its winner leaves a question in doubt.

    It does where its share of the pool is below the threshold; mentions behind it by more than the margin are ruled
    out. `confidence` and `correct` are the steps of its calibration on the questions that it leaves no doubt about.
    """

    scorer: str
    model: str
    threshold: float
    confidence: list[float]
    correct: list[float]
    margin: float = MARGIN

    @property
    def calibration(self) -> Calibration:
        return Calibration(np.array(self.confidence), np.array(self.correct))


@dataclass(frozen=True, eq=False)
class Cascade:
    """A scoring by two rankers: the first reads some of the scorers, the last all; it is made when it is needed."""

    name: str
    first: LearnedScoring
    make_last: Callable[[], LearnedScoring]
    scorers: tuple[str, ...]
    doubt: Doubt
    weights: Weights
    """Those of the last ranker, whose calibration is that of questions in doubt."""

    @cached_property
    def first_stage(self) -> Stage:
        return Stage(self.first, self.doubt.scorer)

    @cached_property
    def last_stage(self) -> Stage:
        return Stage(self.make_last(), ",".join(self.scorers))

    @property
    def in_doubt(self) -> tuple[str, ...]:
        first = self.doubt.scorer.split(",")
        return tuple(name for name in self.scorers if name not in first)

    @property
    def calibration(self) -> Calibration | None:
        """Give that of a question without candidates; of others it is that of the stage that ranks them."""
        return self.first.calibration

    def counting(self, subject: str | None) -> Mapping[str, float]:
        return {}

    def rate(self, evidence: Evidence) -> Rating:
        """Score candidates, those of a question by one of both rankers; raise BrokenPlugin as these do."""
        evidence = evidence.deferring(self.in_doubt)
        first = self.first.rate(evidence)
        doubtful = winner_shares(evidence.pools, first.scores) < self.doubt.threshold
        if not doubtful.any():
            return replace(first, stages=[self.first_stage] * len(doubtful))
        last = self.last_stage.scoring.rate(self.ask(evidence, first.scores, doubtful))
        stages = [self.last_stage if late else self.first_stage for late in doubtful.tolist()]
        if doubtful.all():
            return replace(last, stages=stages)
        return replace(join(first, last, late=doubtful[evidence.pools.question_of_pair]), stages=stages)

    def ask(self, evidence: Evidence, scores: NDArray[np.int64], doubtful: NDArray[np.bool_]) -> Evidence:
        """Ask the scorers for the last: give the evidence on the questions in doubt."""
        pools = evidence.pools
        read = unruled_mentions(pools, scores, self.doubt.margin) & doubtful[pools.question_of("mention")]
        asked = {name: evidence.later[name](read) for name in self.in_doubt}
        return complete(evidence, asked, read, order=self.scorers).of(doubtful)


def winner_shares(pools: Pools, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the winner's share of each pool, as exp(score) normalised; an empty one leaves no doubt: (questions,)."""
    shares, filled = np.ones(len(pools)), np.flatnonzero(pools.counts["pair"])
    if len(filled):
        ties = find_ties(scores, pools.first("pair")[filled])
        shares[filled] = 1 / np.add.reduceat(np.exp((scores - ties.spread(ties.best)) / MICRO), ties.starts)
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
    asked: Mapping[str, NDArray[np.floating]],
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
    for name, scores in asked.items():
        v[name] = np.array(evidence.mean, dtype=np.float64)
        v[name][places] = scores
    beside = {name: scores for name, scores in evidence.beside.items() if name not in order}
    return Evidence(evidence.pools, {name: v[name] for name in order}, evidence.u, beside)


def join(first: Rating, last: Rating, *, late: NDArray[np.bool_]) -> Rating:
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

    return Rating(scores, parts)
