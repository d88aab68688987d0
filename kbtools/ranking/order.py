"""The ranking of a question's pool: candidates by score, those of one score by the ids of subject and relation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.links import Link
from kbtools.quick_records import quick_record
from kbtools.ranking.pools import Pools, concatenate_pools
from kbtools.ranking.rankers import Rating
from kbtools.ranking.score import MICRO
from kbtools.text.question import Question


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class LinkedQuestions:
    """Questions with the links that a pruner keeps, the better first, and the pools that these open up, one each."""

    questions: Sequence[Question]
    links: list[list[Link]]
    pools: list[Pools]

    def together(self) -> Pools:
        """Return the pools end to end."""
        return self.pools[0] if len(self.pools) == 1 else concatenate_pools(self.pools)


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A question with its links and its pool, the scores of the candidates, (pairs,), and the parts of the best ones.

    `best` lists positions, highest score first. Candidates of one score stand in the order of their ids: a tie is part
    of the result, its order is not. `scored_by` names the relation scorers of the ranker that gave them, where a
    cascade has several.
    """

    question: Question
    links: list[Link]
    pool: Pools
    parts: dict[str, NDArray[np.float64]]
    scores: NDArray[np.float64]
    best: list[int]
    tied: int
    scored_by: tuple[str, ...] | None = None

    @property
    def best_pair(self) -> tuple[int, int] | None:
        """Return the subject and relation that stand first, as rows."""
        if not self.best:
            return None
        pool, first = self.pool, self.best[0]
        return int(pool.subject[pool.pair_subject[first]]), int(pool.relation[pool.pair_relation[first]])


def rank_candidates(
    kb: KnowledgeBase, linked: LinkedQuestions, rating: Rating | None, *, top: int | None
) -> list[Ranking]:
    """Find the best `top` candidates of each question, all if it is None; without a rating no question has one."""
    every = zip(linked.questions, linked.links, linked.pools, strict=True)
    if rating is None:
        return [Ranking(*question, {}, np.empty(0), [], 0) for question in every]
    scores = [rating.scores[first:end] for first, end in runs(pool.pairs for pool in linked.pools)]
    best = [order(kb, pool, own, top) for pool, own in zip(linked.pools, scores, strict=True)]
    # Those of all pools together: a learned ranker explains them at once.
    firsts = accumulate((len(own) for own in scores), initial=0)
    chosen = [first + at for first, own in zip(firsts, best, strict=False) for at in own]
    parts = rating.parts(np.array(chosen, dtype=np.int64))
    return [
        Ranking(
            *question,
            {name: values[first:end] for name, values in parts.items()},
            own / MICRO,
            own_best,
            int(np.count_nonzero(own == own[own_best[0]])),
            rating.stage_of(at).scorers if rating.late is not None else None,
        )
        if own_best
        else Ranking(*question, {}, np.empty(0), [], 0)
        for at, (question, own, own_best, (first, end)) in enumerate(
            zip(every, scores, best, runs(map(len, best)), strict=True)
        )
    ]


def runs(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield where runs of some sizes begin and end that lie end to end."""
    return pairwise(accumulate(sizes, initial=0))


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
    """Return the ids of entities, which are fetched once each: one has several relations."""
    listed = rows.tolist()
    distinct = list(dict.fromkeys(listed))
    ids = dict(zip(distinct, kb.ids(np.array(distinct, dtype=np.uint32)), strict=True))
    return [ids[row] for row in listed]
