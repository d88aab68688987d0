"""The ranking of a question's pool: candidates by score, those of one score by the ids of subject and relation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.pools import Pools
from kbtools.ranking.score import MICRO, add_parts, score_parts, score_relations, score_subjects
from kbtools.ranking.weights import DEFAULT, Weights
from kbtools.text.question import Question


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The parts and scores of candidates, (pairs,) each; `best` lists positions, highest score first.

    Candidates of one score stand in the order of their ids: a tie is part of the result, its order is not.
    """

    parts: dict[str, NDArray[np.float64]]
    scores: NDArray[np.float64]
    best: list[int]
    tied: int

    def winner_share(self) -> float:
        """Give the first candidate's share of the pool, as exp(score) normalised; 0 without candidates."""
        return float(1 / np.exp(self.scores - self.scores.max()).sum()) if len(self.scores) else 0.0


def rank(
    kb: KnowledgeBase,
    question: Question,
    pool: Pools,
    *,
    scorer: RelationScorer,
    top: int | None,
    subject: SubjectScorer | None = None,
    weights: Weights = DEFAULT,
) -> Ranking:
    """Score the candidates of one question and find the best `top` of them, all if it is None."""
    if not pool.pairs:
        return Ranking({}, np.empty(0), [], 0)
    v = score_relations(kb, pool, [question], scorer)
    u = score_subjects(pool, [question], subject) if subject else None
    parts = score_parts(pool, weights, v=v, u=u)
    scores = add_parts(parts)
    return Ranking(parts, scores / MICRO, order(kb, pool, scores, top), int(np.count_nonzero(scores == scores.max())))


def order(kb: KnowledgeBase, pool: Pools, scores: NDArray[np.int64], top: int | None) -> list[int]:
    """List the positions of the best candidates by score, then by the ids of subject and relation."""
    size = len(scores) if top is None else min(top, len(scores))
    if size == 0:
        return []
    # The scores that reach the top, ties at its edge among them, so that ids are fetched for no others.
    threshold = np.partition(scores, len(scores) - size)[len(scores) - size]
    within = np.flatnonzero(scores >= threshold)
    ids = dict(zip(within.tolist(), kb.ids(pool.subject_of_pair[within]), strict=True))
    return sorted(ids, key=lambda at: (-scores[at], ids[at], kb.relations[int(pool.relation_of_pair[at])]))[:size]
