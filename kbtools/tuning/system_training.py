"""The end of a training: the weights of a system are chosen, and its ranker or cascade is fitted.

A cascade is a ranker of some scorers, one of all, and the doubt of the first in which the others are asked. All of it
is measured on questions that neither ranker has seen: each fold is ranked by what the others teach.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import GoldScores
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.errors import BadArgument, NothingToLearn
from kbtools.ranking.cascade import complete, unruled_mentions, winner_shares
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.model_store import check_replaceable
from kbtools.ranking.models import LEXICAL
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.system import MARGIN, WEIGHTED_SUM, Cascade, System
from kbtools.tuning.ranker_training import (
    RankerFit,
    TrainedRanker,
    Validation,
    score_validation,
    start_fit,
    train_ranker,
    usual_ranker,
)
from kbtools.tuning.weight_search import TunedWeights, choose_system, tune_weights

THRESHOLDS = (*(step / 20 for step in range(20)), 0.98, 1.0)
"""The winner's shares that are tried: with 0 no question is in doubt, with 1 nearly all are."""

MOST_LOST = 0.0005
"""Share of right answers that sparing the scorers may cost: of the validation questions of FBSQ five, where the
standard error of what is lost is seven."""


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


def train_cascade(
    answerer: Answerer,
    questions: Sequence[AnnotatedQuestion],
    system: System,
    *,
    in_doubt: Sequence[str],
    ranker: str,
    seed: int = 1,
) -> TrainedRanker:
    """Fit a ranker as `train_ranker` does, and one of the scorers that are not `in_doubt`, which decides before it.

    Raises BadArgument for scorers in doubt of which the system has none, or that leave none to ask first.
    """
    names = put_off(system.scorers, in_doubt)
    last = start_fit(answerer, system, ranker, seed)
    first = start_fit(answerer, replace(last.system, scorers=names), ranker, seed)
    check_replaceable(first.folder)
    validation = score_validation(last, questions)
    scores, pools = validation.scores, validation.scores.evidence.pools
    evidence = scores.evidence.deferring([name for name in system.scorers if name not in names])

    early, trained_first = train_first(first, replace(validation, scores=GoldScores(evidence, scores.gold)))
    read = unruled_mentions(pools, early, MARGIN)
    deferred = {name: ask(read) for name, ask in evidence.later.items()}
    features = last.features(scores.evidence)
    spared = last.features(complete(evidence, deferred, read, order=system.scorers))
    everywhere, late = last.hold_out(validation, features, spared)
    right_early, right_late = scores.expected_by(early), scores.expected_by(late)
    shares = winner_shares(pools, early)
    least = float(scores.expected_by(everywhere).mean()) - MOST_LOST
    threshold = choose_threshold(shares, right_early, right_late, least=least)
    doubtful = shares < threshold
    after = float(np.where(doubtful, right_late, right_early).mean())
    assert trained_first.ranker  # as `train_first` fits it
    sure = replace(trained_first.ranker, calibration=calibrate_where(validation, early, ~doubtful))
    trained = last.keep(
        features,
        validation,
        calibration=calibrate_where(validation, late, doubtful),
        right=after,
        cascade=Cascade(replace(trained_first, ranker=sure), threshold),
    )
    before = scores.accuracy(WeightedSum(last.system.weights))
    return TrainedRanker(trained, last.folder, before, after, len(shares), float(doubtful.mean()))


def put_off(names: Sequence[str], in_doubt: Sequence[str]) -> tuple[str, ...]:
    """Return the scorers that are asked about every question; raise BadArgument as `train_cascade` does."""
    first = tuple(name for name in names if name not in in_doubt)
    unknown = [name for name in in_doubt if name not in names]
    if unknown or not first or LEXICAL in in_doubt:
        wrong = f"{unknown[0]!r} is none of the scorers" if unknown else "no scorer is left to ask first"
        wrong = f"{LEXICAL} is read by every learned ranker" if LEXICAL in in_doubt else wrong
        raise BadArgument(
            f"{wrong}: of the scorers {', '.join(names)} some are asked in doubt, found {', '.join(in_doubt)}",
            name="in_doubt",
        )
    return first


def train_first(first: RankerFit, validation: Validation) -> tuple[NDArray[np.int64], System]:
    """Choose weights and fit the ranker of the first scorers, and keep both; return held-out scores and the system."""
    weighted = choose_system(first.system, validation.scores)
    first.answerer.parts.keep(weighted)
    first = replace(first, system=weighted)
    features = first.features(validation.scores.evidence)
    (scores,) = first.hold_out(validation, features)
    right = float(validation.scores.expected_by(scores).mean())
    calibration = validation.calibrate(scores, validation.answerable)
    return scores, first.keep(features, validation, calibration=calibration, right=right)


def calibrate_where(validation: Validation, scores: NDArray[np.int64], questions: NDArray[np.bool_]) -> Calibration:
    """Fit the confidence of a ranker on the questions that it ranks, on all where it ranks none of the validation's."""
    own = validation.answerable & questions
    return validation.calibrate(scores, own if own.any() else validation.answerable)


def choose_threshold(
    shares: NDArray[np.float64], early: NDArray[np.float64], late: NDArray[np.float64], *, least: float
) -> float:
    """Choose the lowest threshold of the winner's share with which enough is right, else the one with which most is.

    A question is as right as it was early where its share reaches the threshold, else as right as it is late.
    """
    right = {threshold: float(np.where(shares < threshold, late, early).mean()) for threshold in THRESHOLDS}
    enough = [threshold for threshold in THRESHOLDS if right[threshold] >= least]
    return min(enough) if enough else max(THRESHOLDS, key=lambda threshold: right[threshold])
