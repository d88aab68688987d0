"""The last steps of training: the weights of a system are chosen, and its ranker or cascade is fitted.

A cascade has a ranker over some scorers, one over all, and the first one's doubt above which the other scorers run.
All of it is measured on held-out questions: each fold is ranked by a ranker fitted on the others. The scorers were not
trained on these questions either.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.gold import Fault, Gold, GoldScores, find_gold, score_gold
from kbtools.answering.questions import AnnotatedQuestion
from kbtools.comparison.weight_search import TunedWeights, choose_system, tune_weights
from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.errors import BadArgument, ModelMissing, NothingToLearn, SourceEmpty
from kbtools.ranking import features as feature_columns
from kbtools.ranking.cascade import complete, unruled_mentions, winner_shares
from kbtools.ranking.confidence import Calibration, fit_calibration, winner_confidence
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.features import Features, find_features
from kbtools.ranking.model_store import Stamp, check_replaceable
from kbtools.ranking.models import LEXICAL, model_digest
from kbtools.ranking.rankers import LearnedScoring, Ranker, WeightedSum
from kbtools.ranking.system import MARGIN, WEIGHTED_SUM, Cascade, FittedRanker, System
from kbtools.ranking.trained import ranker_folder


@dataclass(frozen=True, slots=True, eq=False)
class _Validation:
    """Annotated questions with their scores and folds."""

    gold: Gold
    scores: GoldScores
    folds: NDArray[np.int64]

    @property
    def answerable(self) -> NDArray[np.bool_]:
        """Whether the knowledge base can answer each question: (questions,)."""
        return np.asarray(self.gold.fault == Fault.NONE)

    def calibrate(self, scores: NDArray[np.int64], questions: NDArray[np.bool_]) -> Calibration:
        """Return the calibration of held-out scores on the marked questions: (questions,)."""
        confidence = winner_confidence(self.scores.evidence.pools, scores)
        return fit_calibration(confidence[questions], self.scores.expected_by(scores)[questions])


@dataclass(frozen=True, slots=True, eq=False)
class _TrainedRanker:
    """A system with its ranker, and the accuracy of the weighted sum and of the ranker on held-out questions.

    `in_doubt` is the share of questions that the last ranker of a cascade ranks; `right` is the probability that each
    question is answered right: (questions,).
    """

    system: System
    folder: Path
    before: float
    after: float
    questions: int
    right: NDArray[np.float64]
    in_doubt: float = 1.0


@dataclass(frozen=True, slots=True)
class _RankerFit:
    """The fit of a ranker for a system, stored with the models."""

    answerer: Answerer
    system: System
    ranker: str
    seed: int

    @property
    def folder(self) -> Path:
        models = self.answerer.models
        if models is None:
            raise ModelMissing("a ranker is stored with its models; name their folder", name=self.ranker)
        return ranker_folder(models, self.ranker, self.system.key)

    def features(self, evidence: Evidence) -> Features:
        return find_features(evidence, self.system.weights)

    def fit(self, features: Features, right: NDArray[np.bool_]) -> LearnedScoring:
        plugin: type[Ranker] = load_class(RANKERS, self.ranker)
        fitted = construct(self.ranker, lambda: plugin.fit(features, right, seed=self.seed))
        return LearnedScoring(self.ranker, fitted, self.system.weights)

    def hold_out(self, validation: _Validation, features: Features, *others: Features) -> list[NDArray[np.int64]]:
        """Return the scores of candidates in millionths, each fold ranked by a ranker fitted on the others: (pairs,).

        The same rankers also score `others`, other features of the same candidates: (pairs,) each.
        """
        folds, gold = validation.folds, validation.scores.gold
        scores = [np.zeros(len(gold), dtype=np.int64) for _ in (features, *others)]
        for fold in np.unique(folds).tolist():
            held_out = np.repeat(folds == fold, features.counts)
            fitted = self.fit(features.of(folds != fold), gold[~held_out])
            for some, read in zip(scores, (features, *others), strict=True):
                some[held_out] = fitted.score(read.of(folds == fold))
        return scores

    def keep(
        self,
        features: Features,
        validation: _Validation,
        *,
        calibration: Calibration,
        right: float,
        cascade: Cascade | None = None,
    ) -> System:
        """Fit the ranker on all questions and save the system; `right` is the held-out share."""
        fitted, parts = self.fit(features, validation.scores.gold), self.answerer.parts
        fitted.ranker.save(self.folder, Stamp(self.ranker, figures={"pairs right": right}))
        fitted_on = tuple(sorted(parts.digests(self.system).items()))
        ranker = FittedRanker(self.ranker, model_digest(self.folder), fitted_on, feature_columns.VERSION, calibration)
        system = replace(self.system, ranker=ranker, cascade=cascade)
        parts.keep(system)
        return system


THRESHOLDS = (*(step / 20 for step in range(20)), 0.98, 1.0)
"""Thresholds that are tried: with 0 no question is in doubt, with 1 nearly all are."""

MOST_LOST = 0.0005
"""Share of right answers that a cascade may lose: five of FBSQ's validation questions, where the standard error of the
loss is seven."""

FOLDS = 5
"""Folds of questions: each is ranked by a ranker fitted on the other four fifths."""

_USUAL = "lightgbm"
"""The default ranker, if its library is installed."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedSystem:
    """A trained system, the choice of its weights, and its fitted ranker.

    If the questions teach a ranker nothing, `note` explains why the weighted sum ranks.
    """

    system: System
    weights: TunedWeights
    ranker: _TrainedRanker | None = None
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
    """Choose the weights of a system, and fit a ranker unless the weighted sum is to rank.

    Both are saved with the models. Without a name the default ranker is fitted if the questions teach it anything;
    raises NothingToLearn if a named ranker learns nothing.
    """
    weights = tune_weights(answerer, questions, system)
    name = ranker or (_USUAL if importlib.util.find_spec(_USUAL) else WEIGHTED_SUM)
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
) -> _TrainedRanker:
    """Fit a ranker as `train_ranker` does, and a first ranker over the scorers that are not `in_doubt`.

    Raises BadArgument for scorers in doubt that the system lacks, or if none is left to run first.
    """
    names = _put_off(system.scorers, in_doubt)
    last = _start_fit(answerer, system, ranker, seed)
    first = _start_fit(answerer, replace(last.system, scorers=names), ranker, seed)
    check_replaceable(first.folder)
    validation = _score_validation(last, questions)
    scores, pools = validation.scores, validation.scores.evidence.pools
    evidence = scores.evidence.deferring([name for name in system.scorers if name not in names])

    early, trained_first = _train_first(first, replace(validation, scores=GoldScores(evidence, scores.gold)))
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
    right = np.where(doubtful, right_late, right_early)
    after = float(right.mean())
    assert trained_first.ranker  # fitted by `_train_first`
    sure = replace(trained_first.ranker, calibration=_calibrate_where(validation, early, ~doubtful))
    trained = last.keep(
        features,
        validation,
        calibration=_calibrate_where(validation, late, doubtful),
        right=after,
        cascade=Cascade(replace(trained_first, ranker=sure), threshold),
    )
    before = scores.accuracy(WeightedSum(last.system.weights))
    return _TrainedRanker(trained, last.folder, before, after, len(shares), right, float(doubtful.mean()))


def _put_off(names: Sequence[str], in_doubt: Sequence[str]) -> tuple[str, ...]:
    """Return the scorers that run for every question; raise BadArgument as `train_cascade` does."""
    first = tuple(name for name in names if name not in in_doubt)
    unknown = [name for name in in_doubt if name not in names]
    if unknown or not first or LEXICAL in in_doubt:
        problem = f"{unknown[0]!r} is not one of the scorers" if unknown else "no scorer is left to run first"
        problem = f"{LEXICAL} is read by every learned ranker" if LEXICAL in in_doubt else problem
        raise BadArgument(
            f"{problem}: choose the scorers in doubt among {', '.join(names)}, found {', '.join(in_doubt)}",
            name="in_doubt",
        )
    return first


def _train_first(first: _RankerFit, validation: _Validation) -> tuple[NDArray[np.int64], System]:
    """Choose weights and fit the ranker of the first scorers; return held-out scores and the system."""
    weighted = choose_system(first.system, validation.scores)
    first.answerer.parts.keep(weighted)
    first = replace(first, system=weighted)
    features = first.features(validation.scores.evidence)
    (scores,) = first.hold_out(validation, features)
    right = float(validation.scores.expected_by(scores).mean())
    calibration = validation.calibrate(scores, validation.answerable)
    return scores, first.keep(features, validation, calibration=calibration, right=right)


def _calibrate_where(validation: _Validation, scores: NDArray[np.int64], questions: NDArray[np.bool_]) -> Calibration:
    """Return the calibration of a ranker on the questions that it ranks, or on all if it ranks none."""
    ranked = validation.answerable & questions
    return validation.calibrate(scores, ranked if ranked.any() else validation.answerable)


def choose_threshold(
    shares: NDArray[np.float64], early: NDArray[np.float64], late: NDArray[np.float64], *, least: float
) -> float:
    """Return the lowest threshold of the winner's share with enough right answers, or else the one with the most.

    A question counts as in `early` if its share reaches the threshold, else as in `late`.
    """
    right = {threshold: float(np.where(shares < threshold, late, early).mean()) for threshold in THRESHOLDS}
    enough = [threshold for threshold in THRESHOLDS if right[threshold] >= least]
    return min(enough) if enough else max(THRESHOLDS, key=lambda threshold: right[threshold])


def train_ranker(
    answerer: Answerer, questions: Sequence[AnnotatedQuestion], system: System, *, ranker: str, seed: int = 1
) -> _TrainedRanker:
    """Fit a ranker for the pruner and scorers of a system on annotated questions, and save it with the models.

    Raises SourceEmpty without questions, NothingToLearn if no answer is in its pool.
    """
    fit = _start_fit(answerer, system, ranker, seed)
    validation = _score_validation(fit, questions)
    features = fit.features(validation.scores.evidence)
    (scores,) = fit.hold_out(validation, features)
    right = validation.scores.expected_by(scores)
    calibration = validation.calibrate(scores, validation.answerable)
    trained = fit.keep(features, validation, calibration=calibration, right=float(right.mean()))
    before = validation.scores.accuracy(WeightedSum(fit.system.weights))
    return _TrainedRanker(trained, fit.folder, before, float(right.mean()), len(right), right)


def _start_fit(answerer: Answerer, system: System, ranker: str, seed: int) -> _RankerFit:
    """Return the fit of a ranker over the weighted sum of a system's parts."""
    return _RankerFit(answerer, answerer.parts.complete(system, WEIGHTED_SUM), ranker, seed)


def _score_validation(fit: _RankerFit, questions: Sequence[AnnotatedQuestion]) -> _Validation:
    """Return annotated questions with the scores of all scorers; raise SourceEmpty without questions."""
    if not questions:
        raise SourceEmpty("no question to fit a ranker on; name a file of annotated questions")
    load_class(RANKERS, fit.ranker)
    check_replaceable(fit.folder)
    gold = find_gold(fit.answerer.kb, questions)
    scores = score_gold(fit.answerer.opened(fit.system), gold)
    return _Validation(gold, scores, deal_folds(questions, seed=fit.seed))


def deal_folds(questions: Sequence[AnnotatedQuestion], *, seed: int) -> NDArray[np.int64]:
    """Return the fold of each question, the same for questions about one subject: (questions,)."""
    subjects, at = np.unique([question.subject for question in questions], return_inverse=True)
    return np.random.default_rng(seed).integers(0, FOLDS, len(subjects))[at]
