"""The ranking of a question's pool: candidates by score, those of one score by the ids of subject and relation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.quick_records import quick_record
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools
from kbtools.ranking.rankers import Scoring, Stage
from kbtools.ranking.score import MICRO
from kbtools.ranking.ties import Ties


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The scores of candidates, (pairs,), and the parts that those of the best add up from: (best,) each.

    `best` lists positions, highest score first. Candidates of one score stand in the order of their ids: a tie is part
    of the result, its order is not. `stage` is the ranker that gave them where there are several.
    """

    parts: dict[str, NDArray[np.float64]]
    scores: NDArray[np.float64]
    best: list[int]
    tied: int
    stage: Stage | None = None

    def winner_share(self) -> float:
        """Give the first candidate's share of the pool, as exp(score) normalised; 0 without candidates."""
        return float(1 / np.exp(self.scores - self.scores.max()).sum()) if len(self.scores) else 0.0


NOTHING = Ranking({}, np.empty(0), [], 0)
"""The ranking of a pool without candidates."""


def rank(kb: KnowledgeBase, evidence: Evidence, scoring: Scoring, *, top: int | None) -> Ranking:
    """Score the candidates of one question and find the best `top` of them, all if it is None."""
    (ranking,) = rank_pools(kb, [evidence.pools], evidence, scoring, top=top)
    return ranking


def rank_pools(
    kb: KnowledgeBase, pools: Sequence[Pools], evidence: Evidence, scoring: Scoring, *, top: int | None
) -> list[Ranking]:
    """Score the candidates of questions, whose pools lie end to end in the evidence, and find the best of each."""
    if not evidence.pools.pairs:
        return [NOTHING] * len(pools)
    rating = scoring.rate(evidence)
    scores = [rating.scores[first:end] for first, end in runs(pool.pairs for pool in pools)]
    best = [order(kb, pool, own, top) for pool, own in zip(pools, scores, strict=True)]
    # Those of all pools together: a learned ranker explains them at once.
    firsts = accumulate((len(own) for own in scores), initial=0)
    chosen = [first + at for first, own in zip(firsts, best, strict=False) for at in own]
    parts = rating.parts(np.array(chosen, dtype=np.int64))
    stages: Sequence[Stage | None] = rating.stages or [None] * len(pools)
    return [
        Ranking(
            {name: values[first:end] for name, values in parts.items()},
            own / MICRO,
            own_best,
            int(np.count_nonzero(own == own[own_best[0]])),
            stage,
        )
        if own_best
        else NOTHING
        for own, own_best, (first, end), stage in zip(scores, best, runs(map(len, best)), stages, strict=True)
    ]


def runs(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Say where runs of some sizes begin and end that lie end to end."""
    return pairwise(accumulate(sizes, initial=0))


def winner_confidence(pools: Pools, ties: Ties, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the winner's share of each pool that is not empty, as exp(score) normalised, times the trust in its link."""
    raised = np.exp((scores - ties.spread(ties.best)) / MICRO)
    return ties.expected(pools.link_trust[pools.link_of_pair]) / np.add.reduceat(raised, ties.starts)


def order(kb: KnowledgeBase, pool: Pools, scores: NDArray[np.int64], top: int | None) -> list[int]:
    """List the positions of the best candidates by score, then by the ids of subject and relation."""
    size = len(scores) if top is None else min(top, len(scores))
    if size == 0:
        return []
    # The scores that reach the top, ties at its edge among them, so that ids are fetched for no others.
    partitioned = scores.copy()
    partitioned.partition(len(scores) - size)
    threshold = partitioned[len(scores) - size]
    (within,) = (scores >= threshold).nonzero()
    names = kb.relations
    subjects = ids_of(kb, pool.subject[pool.pair_subject[within]])
    relations = pool.relation[pool.pair_relation[within]].tolist()
    rows = zip((-scores[within]).tolist(), subjects, [names[row] for row in relations], within.tolist(), strict=True)
    return [at for _, _, _, at in sorted(rows)[:size]]


def ids_of(kb: KnowledgeBase, rows: EntityRows) -> list[str]:
    """Give the ids of entities, which are fetched once each: one has several relations."""
    listed = rows.tolist()
    distinct = list(dict.fromkeys(listed))
    ids = dict(zip(distinct, kb.ids(np.array(distinct, dtype=np.uint32)), strict=True))
    return [ids[row] for row in listed]
