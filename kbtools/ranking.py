"""Rank the candidates of a question: every part of a score is a column, and the score is their sum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbtools.candidates import Candidates
from kbtools.errors import BrokenPlugin
from kbtools.knowledge import KnowledgeBase
from kbtools.ngrams import Question
from kbtools.scoring import Asked, RelationScorer

RUNG = 0.2
"""What each rung of the ladder costs, in log-probability."""

POPULARITY = 0.15
"""What the most popular subject gains; less than a rung, so that a stricter link outranks a namesake's facts."""

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
    kb: KnowledgeBase, question: Question, candidates: Candidates, *, scorer: RelationScorer, top: int | None
) -> Ranking:
    """Score candidates and find the best `top` of them, all if it is None."""
    if not len(candidates):
        return Ranking({}, np.empty(0), [], 0)
    parts = {
        "relation": relation_scores(question, candidates, scorer, count=len(kb.relations)),
        "mention": by_link(candidates, [link.weight for link in candidates.links]),
        "rung": by_link(candidates, [RUNG * (1 - link.rung) for link in candidates.links]),
        "similarity": by_link(candidates, [np.log(link.similarity / 100) for link in candidates.links]),
        "popularity": popularity(kb, candidates),
    }
    scores = np.round(np.sum(list(parts.values()), axis=0), DECIMALS)
    return Ranking(parts, scores, order(kb, candidates, scores, top), int(np.count_nonzero(scores == scores.max())))


def by_link(candidates: Candidates, values: list[float]) -> NDArray[np.float64]:
    """Spread what is known of each link over its candidates."""
    return np.array(values, dtype=np.float64)[candidates.link][candidates.subject]


def relation_scores(
    question: Question, candidates: Candidates, scorer: RelationScorer, *, count: int
) -> NDArray[np.float64]:
    """Give log p(r|q) of every candidate, normalised over the relations of the pool (paper, Eq. 9).

    Raises BrokenPlugin where the scorer does not give a finite score for each of the `count` relations.
    """
    links, row = np.unique(candidates.link, return_inverse=True)
    asked = [Asked(question, candidates.links[link].start, candidates.links[link].end) for link in links]
    relations, column = np.unique(candidates.relation, return_inverse=True)
    scored = scorer.score(asked)
    name = type(scorer).__name__
    if scored.shape != (len(asked), count):
        raise BrokenPlugin(f"scorer {name} gave scores {scored.shape}, expected {(len(asked), count)}", name=name)
    scores = scored[:, relations]
    if not np.isfinite(scores).all():
        raise BrokenPlugin(f"scorer {name} gave a score that is no finite number", name=name)
    peak = scores.max(axis=1, keepdims=True)
    normaliser = peak + np.log(np.exp(scores - peak).sum(axis=1, keepdims=True))
    found: NDArray[np.float64] = (scores - normaliser)[row[candidates.subject], column]
    return found


def popularity(kb: KnowledgeBase, candidates: Candidates) -> NDArray[np.float64]:
    """Weigh subjects by the logarithm of their number of facts, between 0 and POPULARITY."""
    counts = np.log1p(kb.fact_counts(candidates.subjects))
    gained: NDArray[np.float64] = POPULARITY * counts / (1 + counts)
    return gained[candidates.subject]


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
