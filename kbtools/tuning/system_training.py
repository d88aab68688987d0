"""The end of a training: the weights of a system are chosen, and its ranker is fitted."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtools.answering.answerer import Answerer
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.errors import NothingToLearn
from kbtools.ranking.system import WEIGHTED_SUM, System
from kbtools.tuning.cascade_training import train_cascade
from kbtools.tuning.ranker_training import TrainedRanker, train_ranker, usual_ranker
from kbtools.tuning.weight_search import TunedWeights, tune_weights


@dataclass(frozen=True, slots=True)
class TrainedSystem:
    """A system as it answers from now on, how its weights were chosen, and the ranker that was fitted.

    Where the questions teach a ranker nothing, `note` says why the weighted sum ranks.
    """

    system: System
    weights: TunedWeights
    ranker: TrainedRanker | None = None
    note: str = ""


def train_system(
    answerer: Answerer,
    questions: Sequence[AnnotatedQuestion],
    system: System,
    *,
    ranker: str | None = None,
    in_doubt: Sequence[str] = (),
    seed: int = 1,
) -> TrainedSystem:
    """Choose weights for the parts of a system, and fit a ranker unless the weighted sum is to rank.

    Both are kept with the models. Without the name of a ranker the usual one is fitted, if the questions teach it
    something; raises NothingToLearn where one that is named learns nothing.
    """
    weights = tune_weights(answerer, questions, system)
    name = ranker or usual_ranker()
    if name == WEIGHTED_SUM:
        answerer.parts.forget_learned(weights.system)
        return TrainedSystem(weights.system, weights)
    try:
        if in_doubt:
            trained = train_cascade(answerer, questions, weights.system, in_doubt=in_doubt, ranker=name, seed=seed)
        else:
            trained = train_ranker(answerer, questions, weights.system, ranker=name, seed=seed)
    except NothingToLearn as error:
        if ranker:
            raise
        answerer.parts.forget_learned(weights.system)
        return TrainedSystem(weights.system, weights, note=f"the weighted sum ranks: {error}")
    return TrainedSystem(trained.system, weights, trained)
