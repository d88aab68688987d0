"""Choose the temperatures and weights of the joint score on questions whose answers are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.kb.contract import ABSENT, KnowledgeBase, find_rows
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.pools import Pools, concatenate_pools
from kbtools.ranking.rankers import Scoring, WeightedSum
from kbtools.ranking.ties import find_ties
from kbtools.ranking.weights import OF_SUBJECTS, Weights, default_weights, keep_weights, ranking_key
from kbtools.text.question import Question

GRID: dict[str, tuple[float, ...]] = {
    "relation": (0.4, 0.6, 0.8, 1.0, 1.3),
    "mention": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5),
    "subject": (0.0, 0.25, 0.5, 1.0, 1.5),
    "sharpness": (0.5, 1.0, 2.0, 4.0, 8.0),
    "alpha": (0.0, 1.0, 3.0),
    "rung": (0.0, 0.05, 0.1, 0.2, 0.4),
    "similarity": (1.0, 4.0, 8.0),
    "popularity": (0.0, 0.05, 0.15, 0.3),
}
"""The values tried for each weight: the defaults, with steps of about two to either side."""

SWEEPS = 2
"""Rounds over all weights; on FBSQ a third one changes nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class GoldScores:
    """Evidence on questions, and marks of their gold candidates: (pairs,)."""

    evidence: Evidence
    gold: NDArray[np.bool_]

    def expected(self, scoring: Scoring, values: NDArray[np.floating] | None = None) -> NDArray[np.float64]:
        """Give the expected value of each question's first candidate, of those tied: (questions,).

        Without `values` of candidates, 1 is the gold pair and all others 0; a question without candidates has 0.
        """
        pools = self.evidence.pools
        if not pools.pairs:
            return np.zeros(len(pools))
        return self.expected_by(scoring.rate(self.evidence).scores, self.gold if values is None else values)

    def expected_by(self, scores: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
        """Give the same by the scores of candidates in millionths."""
        pools = self.evidence.pools
        expected = np.zeros(len(pools))
        filled = np.flatnonzero(pools.counts["pair"])
        expected[filled] = find_ties(scores, pools.first("pair")[filled]).expected(values)
        return expected


def score_gold(
    answerer: Answerer, questions: Sequence[AnnotatedQuestion], *, pruning: str, scorer: str, subject: str | None = None
) -> GoldScores:
    """Gather and score the pools of annotated questions."""
    kb, texts = answerer.kb, [Question.read(question.text) for question in questions]
    pools = concatenate_pools([one.pool for one in answerer.gather(texts, pruning=pruning, trusted=True)])
    evidence = answerer.evidence(pools, texts, scorer=scorer, subject=subject, learned=True)
    return GoldScores(evidence, mark_gold(kb, pools, questions))


def mark_gold(kb: KnowledgeBase, pools: Pools, questions: Sequence[AnnotatedQuestion]) -> NDArray[np.bool_]:
    """Mark the gold candidates in the pools of questions: (pairs,)."""
    rows = {relation: row for row, relation in enumerate(kb.relations)}
    relations = np.array([rows.get(question.relation, ABSENT) for question in questions], dtype=np.int64)
    subjects = find_rows(kb, [question.subject for question in questions])
    at = pools.question_of_pair
    gold: NDArray[np.bool_] = (pools.subject_of_pair == subjects[at]) & (pools.relation_of_pair == relations[at])
    return gold


def choose_weights(accuracy: Callable[[Weights], float], *, subject: bool) -> Weights:
    """Climb the grid one weight at a time, from the defaults to the highest accuracy; the smaller change wins ties."""
    best = default_weights("any" if subject else None)
    highest = accuracy(best)
    for _ in range(SWEEPS):
        before = highest
        for name in [name for name in GRID if subject or name not in OF_SUBJECTS]:
            for value in GRID[name]:
                weights = replace(best, **{name: value})
                share = accuracy(weights)
                # Only a higher accuracy moves a weight, so that the defaults win where nothing tells values apart.
                if share > highest:
                    best, highest = weights, share
        if highest == before:
            break
    return best


@dataclass(frozen=True, slots=True)
class TunedWeights:
    """Weights, and the accuracy on the questions they were chosen on: with the defaults, and with them."""

    weights: Weights
    before: float
    after: float
    questions: int


def tune_weights(
    answerer: Answerer,
    path: Path,
    *,
    models: Path,
    pruning: str,
    scorer: str,
    subject: str | None,
    limit: int | None = None,
) -> TunedWeights:
    """Choose weights for a pruner and its scorers on a file of annotated questions, and keep them with the models."""
    questions = read_gold(path, answerer.kb)[:limit]
    scores = score_gold(answerer, questions, pruning=pruning, scorer=scorer, subject=subject)

    def accuracy(weights: Weights) -> float:
        return float(scores.expected(WeightedSum(weights)).mean()) if questions else 0.0

    weights = choose_weights(accuracy, subject=subject is not None)
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    keep_weights(models, key, weights)
    answerer.weights_by_key[key] = weights
    return TunedWeights(weights, accuracy(default_weights(subject)), accuracy(weights), len(questions))
