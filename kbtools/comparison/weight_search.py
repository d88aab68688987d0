"""The choice of the weights and temperatures of the joint score on questions with known answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.system import System
from kbtools.ranking.weights import OF_SUBJECTS, Weights, default_weights

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
"""The values tried for each weight: the default, and steps of about a factor of two around it."""

SWEEPS = 2
"""Rounds over all weights; on FBSQ a third one changes nothing."""


def choose_weights(accuracy: Callable[[Weights], float], *, subject: bool) -> Weights:
    """Return weights found by changing one at a time from the defaults, to the highest accuracy on GRID."""
    best = default_weights("any" if subject else None)
    highest = accuracy(best)
    for _ in range(SWEEPS):
        before = highest
        for name in [name for name in GRID if subject or name not in OF_SUBJECTS]:
            for value in GRID[name]:
                weights = replace(best, **{name: value})
                share = accuracy(weights)
                # Only a higher accuracy changes a weight, so that the defaults win ties.
                if share > highest:
                    best, highest = weights, share
        if highest == before:
            break
    return best


def choose_system(system: System, scores: GoldScores) -> System:
    """Return a system with the weights that answer most scored questions right, ranked by the weighted sum.

    The defaults stay unless the gain exceeds its standard error: with 20 to 200 questions, chance moved weights and
    cost 1.2 points.
    """

    def scoring(weights: Weights) -> WeightedSum:
        return WeightedSum(system.weighted(weights).weights)

    usual = default_weights(system.subject_scorer)
    subject = system.subject_scorer is not None
    chosen = choose_weights(lambda weights: scores.accuracy(scoring(weights)), subject=subject)
    if chosen == usual:
        return system.weighted(usual)
    gains = scores.expected(scoring(chosen)) - scores.expected(scoring(usual))
    return system.weighted(chosen if gains.mean() > gains.std() / len(gains) ** 0.5 else usual)


@dataclass(frozen=True, slots=True, eq=False)
class TunedWeights:
    """A system with its weights, and the accuracy on the questions that chose them, with the defaults and now.

    `right` is the probability that each question is answered right now: (questions,).
    """

    system: System
    before: float
    after: float
    questions: int
    right: NDArray[np.float64]

    @property
    def weights(self) -> Weights:
        return self.system.weights


def tune_weights(answerer: Answerer, questions: Sequence[AnnotatedQuestion], system: System) -> TunedWeights:
    """Choose and save weights for the pruner and scorers of a system on annotated questions."""
    usual = system.weighted(default_weights(system.subject_scorer))
    scores = score_gold(answerer.opened(usual), find_gold(answerer.kb, questions))
    tuned = choose_system(usual, scores)
    answerer.parts.keep(tuned)
    before, after = (scores.accuracy(WeightedSum(one.weights)) for one in (usual, tuned))
    return TunedWeights(tuned, before, after, len(questions), scores.expected(WeightedSum(tuned.weights)))
