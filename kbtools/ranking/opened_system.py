"""The path from questions to rankings, for one question or many thousand: links, pools, evidence, rating, ranking.

Queries, comparisons, tuning and the fitting of rankers all use its steps.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.linking.link_confidence import LinkConfidence
from kbtools.linking.links import Link, keep_type
from kbtools.linking.partial_names import link_ids
from kbtools.pruning.pruners import Pruner, prune
from kbtools.quick_records import quick_record
from kbtools.ranking.confidence import winner_confidence
from kbtools.ranking.contracts import RelationScorer, SubjectScorer, log_total
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.models import LEXICAL, RELATION, SUBJECT
from kbtools.ranking.pools import Pools, concatenate_pools, gather_pool, order_links
from kbtools.ranking.rankers import Rating, Scoring
from kbtools.ranking.score import MICRO, Constant, Progress, no_constant, score_relations, score_subjects
from kbtools.ranking.system import System
from kbtools.text.question import Question


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class LinkedQuestions:
    """Questions with their pruned links, best first, and their pools, one each."""

    questions: Sequence[Question]
    links: list[list[Link]]
    pools: list[Pools]

    def together(self) -> Pools:
        """Return the concatenated pools."""
        return self.pools[0] if len(self.pools) == 1 else concatenate_pools(self.pools)


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A question with its links, its pool, the scores of its candidates, (pairs,), and the parts of the best ones.

    `best` lists positions by score, ties by id. `tied` counts candidates with the best score, `level` those within
    rounding of it. `scored_by` names the relation scorers of the ranker that was used, for a cascade.
    """

    question: Question
    links: list[Link]
    pool: Pools
    parts: dict[str, NDArray[np.float64]]
    scores: NDArray[np.float64]
    best: list[int]
    tied: int
    level: int = 0
    scored_by: tuple[str, ...] | None = None

    def pairs(self, positions: Sequence[int]) -> list[tuple[int, int]]:
        """Return the subjects and relations of some candidates, as rows."""
        at, pool = np.array(positions, dtype=np.int64), self.pool
        return list(zip(pool.subject_of_pair[at].tolist(), pool.relation_of_pair[at].tolist(), strict=True))

    @property
    def likeliest(self) -> list[tuple[int, int]]:
        """The first pairs that are level, among the best."""
        return self.pairs(self.best[: self.level])

    @property
    def all_level(self) -> list[tuple[int, int]]:
        """All pairs that are level with the first, in any order."""
        return self.pairs(np.flatnonzero(self.scores >= self.scores.max() - (_ROUNDING + 0.5) / MICRO).tolist())


_ROUNDING = 10
"""Millionths between level scores; a network differs by about three between batches."""

TOGETHER = 64
"""Questions answered together, on a cluster with one look-up."""

Compute = Callable[[Progress], NDArray[np.floating]]
_Keep = Callable[[str, str, Compute], NDArray[np.floating]]
"""A function that returns the scores of a scorer, by part and name, from a store or else computed."""

_Prefer = Callable[[Rating, Pools, Sequence[Question]], Rating]
"""A function that changes a rating according to taught questions."""


class OpenedSystem:
    """A system with its parts loaded, over a knowledge base or a view of one."""

    def __init__(
        self,
        system: System,
        kb: KnowledgeBase,
        *,
        pruner: Pruner,
        link_confidence: LinkConfidence,
        scorer: Callable[[str], RelationScorer],
        subject_scorer: Callable[[str], SubjectScorer],
        scoring: Scoring,
        prefer: _Prefer | None = None,
        taught: int = 0,
    ) -> None:
        self.system, self.kb, self.pruner, self.scoring = system, kb, pruner, scoring
        self.prefer, self.taught = prefer, taught
        self.link_confidence, self.scorer, self.subject_scorer = link_confidence, scorer, subject_scorer
        # Scorers used for every question are loaded now, others at the first question in doubt.
        for name in system.every_scorer:
            if name not in system.deferred:
                scorer(name)
        if system.subject_scorer:
            subject_scorer(system.subject_scorer)

    def gather(self, questions: Sequence[Question], *, type_row: int | None = None) -> LinkedQuestions:
        """Return the links and pools of questions, only with subjects of a type if one is given."""
        links, pools = [], []
        for question, kept in zip(questions, prune(self.pruner, questions), strict=True):
            ordered = order_links(kept) or link_ids(self.kb, question)
            ordered = ordered if type_row is None else keep_type(self.kb, ordered, type_row)
            links.append(ordered)
            pools.append(gather_pool(self.kb, ordered, link_confidence=self.link_confidence.of(question, ordered)))
        return LinkedQuestions(questions, links, pools)

    def gather_batches(self, questions: Sequence[Question]) -> Iterator[LinkedQuestions]:
        """Yield the links and pools of many questions, one batch at a time."""
        for start in range(0, len(questions), TOGETHER):
            yield self.gather(questions[start : start + TOGETHER])

    def gather_pools(self, questions: Sequence[Question]) -> Pools:
        """Return the concatenated pools of many questions."""
        return concatenate_pools([pool for batch in self.gather_batches(questions) for pool in batch.pools])

    @cached_property
    def reads_lexical(self) -> bool:
        """Whether a learned ranker also reads the overlap of words."""
        return LEXICAL not in self.system.scorers

    def evidence(
        self, pools: Pools, questions: Sequence[Question], *, learned: bool | None = None, keep: _Keep | None = None
    ) -> Evidence:
        """Return the scores of the scorers for pools; deferred scorers run only when the evidence is rated.

        With `learned` the overlap of words is included. With `keep`, which may return stored scores, no scorer is
        deferred. Raises BrokenPlugin if a scorer fails.
        """
        learned = self.system.ranker is not None if learned is None else learned
        # The weighted sum normalises over the pool, so a constant per mention has no effect.
        constant = log_total if learned or keep else no_constant

        def v_of(name: str) -> NDArray[np.floating]:
            compute = partial(self.relation_scores, name, pools, questions, constant=constant)
            return keep(RELATION, name, compute) if keep else compute()

        deferred = () if keep else self.system.deferred
        v = {name: v_of(name) for name in self.system.every_scorer if name not in deferred}
        beside = {LEXICAL: v_of(LEXICAL)} if learned and self.reads_lexical else {}
        u, subject = None, self.system.subject_scorer
        if subject:
            score = partial(score_subjects, pools, questions, self.subject_scorer(subject))
            u = keep(SUBJECT, subject, score) if keep else score()

        def ask(name: str, mentions: NDArray[np.bool_]) -> NDArray[np.floating]:
            return self.relation_scores(name, pools.with_mentions(mentions), questions)

        later = {name: partial(ask, name) for name in deferred}
        return Evidence(pools, v, u, beside, later)

    def relation_scores(
        self,
        name: str,
        pools: Pools,
        questions: Sequence[Question],
        progress: Progress = lambda done: None,
        *,
        constant: Constant = log_total,
    ) -> NDArray[np.float64]:
        """Return v of a relation scorer, as `score_relations` does."""
        return score_relations(self.kb, pools, questions, self.scorer(name), progress, constant=constant)

    def rate(self, evidence: Evidence) -> Rating | None:
        """Return the rating of the candidates, None if there are none."""
        return self.scoring.rate(evidence) if evidence.pools.pairs else None

    def rate_taught(self, pools: Pools, questions: Sequence[Question]) -> Rating | None:
        """Return the rating of the candidates with taught questions, None if there are none."""
        rating = self.rate(self.evidence(pools, questions))
        return self.prefer(rating, pools, questions) if rating and self.prefer else rating

    def rank(self, linked: LinkedQuestions, *, top: int | None) -> tuple[Pools, Rating | None, list[Ranking]]:
        """Return the concatenated pools, their rating, and the rankings of linked questions."""
        pools = linked.together()
        rating = self.rate_taught(pools, linked.questions)
        return pools, rating, rank_candidates(self.kb, linked, rating, top=top)

    def confidence(self, pools: Pools, rating: Rating | None) -> NDArray[np.float64]:
        """Return the calibrated confidence in the first candidate of each question, 0 without one: (questions,)."""
        if rating is None:
            return np.zeros(len(pools))
        return self.calibrate(rating, winner_confidence(pools, rating.scores))

    def calibrate(self, rating: Rating, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return confidences calibrated by the ranker of each question, then by the system's comparison."""
        calibrated, measured = rating.calibrate(confidence), self.system.calibration
        return measured.apply(calibrated) if measured else calibrated


def rank_candidates(
    kb: KnowledgeBase, linked: LinkedQuestions, rating: Rating | None, *, top: int | None
) -> list[Ranking]:
    """Return rankings with the best `top` candidates of each question, all if None."""
    every = zip(linked.questions, linked.links, linked.pools, strict=True)
    if rating is None:
        return [Ranking(*question, {}, np.empty(0), [], 0) for question in every]
    scores = [rating.scores[first:end] for first, end in _runs(pool.pairs for pool in linked.pools)]
    level = [
        max(1, int(np.count_nonzero(values >= values.max() - _ROUNDING))) if len(values) else 0 for values in scores
    ]
    best = [order(kb, pool, values, top) for pool, values in zip(linked.pools, scores, strict=True)]
    # For all pools at once, since a learned ranker explains them in one call.
    firsts = accumulate((len(values) for values in scores), initial=0)
    chosen = [first + at for first, positions in zip(firsts, best, strict=False) for at in positions]
    parts = rating.parts(np.array(chosen, dtype=np.int64))
    return [
        Ranking(
            *question,
            {name: values[first:end] for name, values in parts.items()},
            values / MICRO,
            best_positions,
            int(np.count_nonzero(values == values[best_positions[0]])),
            level[at],
            rating.stage_of(at).scorers if rating.late is not None else None,
        )
        if best_positions
        else Ranking(*question, {}, np.empty(0), [], 0)
        for at, (question, values, best_positions, (first, end)) in enumerate(
            zip(every, scores, best, _runs(map(len, best)), strict=True)
        )
    ]


def _runs(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each concatenated run."""
    return pairwise(accumulate(sizes, initial=0))


def order(kb: KnowledgeBase, pool: Pools, scores: NDArray[np.int64], top: int | None) -> list[int]:
    """Return the positions of the best candidates by score, ties by the ids of subject and relation."""
    size = len(scores) if top is None else min(top, len(scores))
    if size == 0:
        return []
    # Scores that reach the top, with ties at its edge, so that ids are fetched for no others.
    partitioned = scores.copy()
    partitioned.partition(len(scores) - size)
    threshold = partitioned[len(scores) - size]
    (within,) = (scores >= threshold).nonzero()
    names = kb.relations
    subjects = _ids_of(kb, pool.subject[pool.pair_subject[within]])
    relations = pool.relation[pool.pair_relation[within]].tolist()
    rows = zip((-scores[within]).tolist(), subjects, [names[row] for row in relations], within.tolist(), strict=True)
    return [at for _, _, _, at in sorted(rows)[:size]]


def _ids_of(kb: KnowledgeBase, rows: EntityRows) -> list[str]:
    """Return the ids of entities, each fetched once."""
    listed = rows.tolist()
    distinct = list(dict.fromkeys(listed))
    ids = dict(zip(distinct, kb.ids(np.array(distinct, dtype=np.uint32)), strict=True))
    return [ids[row] for row in listed]
