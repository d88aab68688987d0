"""The fit of a cascade: a ranker of some scorers, one of all, and the doubt of the first in which the others are asked.

All of it is measured on questions that neither ranker has seen: each fold is ranked by what the others teach.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.errors import BadArgument
from kbtools.ranking.cascade import MARGIN, Doubt, complete, unruled_mentions, winner_shares
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.model_store import check_replaceable
from kbtools.ranking.models import LEXICAL, scorer_names
from kbtools.ranking.rankers import WeightedSum
from kbtools.ranking.weights import Weights, keep_weights
from kbtools.tuning.ranker_training import (
    RankerFit,
    TrainedRanker,
    Validation,
    calibrate_held_out,
    read_validation,
)
from kbtools.tuning.weight_search import GoldScores, choose_weights

THRESHOLDS = (*(step / 20 for step in range(20)), 0.98, 1.0)
"""The winner's shares that are tried: with 0 no question is in doubt, with 1 nearly all are."""

MOST_LOST = 0.0005
"""Share of right answers that sparing the scorers may cost: of the validation questions of FBSQ five, where the
standard error of what is lost is seven."""


def train_cascade(
    answerer: Answerer,
    path: Path,
    *,
    models: Path,
    ranker: str,
    pruning: str,
    scorer: str,
    subject: str | None,
    in_doubt: str,
    limit: int | None = None,
    seed: int = 1,
) -> TrainedRanker:
    """Fit a ranker as `train_ranker` does, and one of the scorers that are not `in_doubt`, which decides before it.

    Raises BadArgument for scorers in doubt of which the system has none, or that leave none to ask first.
    """
    order = tuple(scorer_names(scorer))
    first_scorers = put_off(order, scorer_names(in_doubt))
    last = RankerFit(answerer, models, ranker, pruning, scorer, subject, seed)
    first = replace(last, scorer=",".join(first_scorers))
    check_replaceable(first.folder)
    validation = read_validation(last, path, limit=limit)
    gold, pools = validation.gold, validation.gold.evidence.pools
    evidence = gold.evidence.deferring([name for name in order if name not in first_scorers])

    early, digest = train_first(first, replace(validation, gold=GoldScores(evidence, gold.gold)))
    read = unruled_mentions(pools, early, MARGIN)
    asked = {name: ask(read) for name, ask in evidence.later.items()}
    features = last.features(gold.evidence)
    spared = last.features(complete(evidence, asked, read, order=order))
    everywhere, late = last.hold_out(validation, features, spared)
    right = {name: gold.expected_by(scores, gold.gold) for name, scores in (("early", early), ("late", late))}
    shares = winner_shares(pools, early)
    most = float(gold.expected_by(everywhere, gold.gold).mean())
    threshold = choose_threshold(shares, right["early"], right["late"], least=most - MOST_LOST)
    doubtful = shares < threshold
    after = float(np.where(doubtful, right["late"], right["early"]).mean())
    sure = calibrate_where(validation, early, ~doubtful)
    calibration = calibrate_where(validation, late, doubtful)
    doubt = Doubt(first.scorer, digest, threshold, sure.confidence.tolist(), sure.correct.tolist())
    last.keep(features, validation, calibration=calibration, right=after, doubt=doubt)
    before = gold.expected(WeightedSum(last.weights))
    return TrainedRanker(last.folder, float(before.mean()), after, len(shares), doubt, float(doubtful.mean()))


def put_off(names: Sequence[str], in_doubt: Sequence[str]) -> list[str]:
    """Name the scorers that are asked about every question; raise BadArgument as `train_cascade` does."""
    first = [name for name in names if name not in in_doubt]
    unknown = [name for name in in_doubt if name not in names]
    if unknown or not first or LEXICAL in in_doubt:
        wrong = f"{unknown[0]!r} is none of the scorers" if unknown else "no scorer is left to ask first"
        wrong = f"{LEXICAL} is read by every learned ranker" if LEXICAL in in_doubt else wrong
        raise BadArgument(
            f"{wrong}: of the scorers {', '.join(names)} some are asked in doubt, found {', '.join(in_doubt)}",
            name="in_doubt",
        )
    return first


def train_first(first: RankerFit, validation: Validation) -> tuple[NDArray[np.int64], str]:
    """Choose weights and fit the ranker of the first scorers, and keep both; give held-out scores and its digest."""
    gold, answerer = validation.gold, first.answerer

    def accuracy(weights: Weights) -> float:
        return float(gold.expected(WeightedSum(weights)).mean())

    weights = choose_weights(accuracy, subject=first.subject is not None)
    keep_weights(first.models, first.key, weights)
    answerer.weights_by_key[first.key] = weights
    features = first.features(gold.evidence)
    (scores,) = first.hold_out(validation, features)
    right = float(gold.expected_by(scores, gold.gold).mean())
    calibration = calibrate_held_out(validation, scores, validation.answerable)
    return scores, first.keep(features, validation, calibration=calibration, right=right, doubt=None).model


def calibrate_where(validation: Validation, scores: NDArray[np.int64], questions: NDArray[np.bool_]) -> Calibration:
    """Fit the confidence of a ranker on the questions that it ranks, on all where it ranks none of the validation's."""
    own = validation.answerable & questions
    return calibrate_held_out(validation, scores, own if own.any() else validation.answerable)


def choose_threshold(
    shares: NDArray[np.float64], early: NDArray[np.float64], late: NDArray[np.float64], *, least: float
) -> float:
    """Choose the lowest threshold of the winner's share with which enough is right, else the one with which most is.

    A question is as right as it was early where its share reaches the threshold, else as right as it is late.
    """
    right = {threshold: float(np.where(shares < threshold, late, early).mean()) for threshold in THRESHOLDS}
    enough = [threshold for threshold in THRESHOLDS if right[threshold] >= least]
    return min(enough) if enough else max(THRESHOLDS, key=lambda threshold: right[threshold])
