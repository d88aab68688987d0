"""Rank the candidates of a question: every part of a score is a column, and the score is their sum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.candidates import Candidates
from kbtools.ranking.contracts import RelationScorer, SubjectScorer
from kbtools.ranking.joint import DEFAULT, Weights, joint_parts, score_pools
from kbtools.text.question import Question

DECIMALS = 6
"""Scores are equal if they agree to this many decimals."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The parts and scores of candidates, (candidates,) each; `best` lists positions, highest score first.

    Candidates of one score stand in the order of their ids: a tie is part of the result, its order is not.
    """

    parts: dict[str, NDArray[np.float64]]
    scores: NDArray[np.float64]
    best: list[int]
    tied: int


def rank(
    kb: KnowledgeBase,
    question: Question,
    candidates: Candidates,
    *,
    scorer: RelationScorer,
    top: int | None,
    subject: SubjectScorer | None = None,
    weights: Weights = DEFAULT,
) -> Ranking:
    """Score candidates and find the best `top` of them, all if it is None."""
    if not len(candidates):
        return Ranking({}, np.empty(0), [], 0)
    (scored,) = score_pools(kb, [question], [candidates], scorer=scorer, subject=subject)
    parts = joint_parts(scored, weights)
    scores = add_parts(parts)
    return Ranking(parts, scores, order(kb, candidates, scores, top), int(np.count_nonzero(scores == scores.max())))


def add_parts(parts: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Add the parts up; what agrees to DECIMALS is equal."""
    added: NDArray[np.float64] = np.round(np.sum(list(parts.values()), axis=0), DECIMALS)
    return added


def order(kb: KnowledgeBase, candidates: Candidates, scores: NDArray[np.float64], top: int | None) -> list[int]:
    """List the positions of the best candidates by score, then by the ids of subject and relation."""
    kept = len(scores) if top is None else min(top, len(scores))
    if kept == 0:
        return []
    threshold = np.partition(scores, len(scores) - kept)[len(scores) - kept]
    within = np.flatnonzero(scores >= threshold)
    ids = dict(zip(within.tolist(), kb.ids(candidates.subjects[candidates.subject[within]]), strict=True))
    within_order = sorted(ids, key=lambda at: (-scores[at], ids[at], kb.relations[int(candidates.relation[at])]))
    return within_order[:kept]
