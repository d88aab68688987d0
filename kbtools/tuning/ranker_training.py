"""The fit of a learned ranker on questions whose answers are known, and of the confidence that its scores deserve.

Scorers never saw these questions, which are not those that they were trained on. Accuracy and confidence are those of
questions that the ranker has not seen either: each fold is ranked by what was learned from the others.
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
from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.errors import ModelMissing, SourceEmpty
from kbtools.ranking import features as feature_columns
from kbtools.ranking.confidence import Calibration, fit_calibration, winner_confidence
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.features import Features, find_features
from kbtools.ranking.model_store import Stamp, check_replaceable
from kbtools.ranking.models import model_digest
from kbtools.ranking.rankers import LearnedScoring, Ranker, WeightedSum
from kbtools.ranking.system import WEIGHTED_SUM, Cascade, FittedRanker, System
from kbtools.ranking.trained import ranker_folder

FOLDS = 5
"""Folds of questions: each is ranked by what four fifths of the questions teach."""

USUAL = "lightgbm"
"""The ranker that training fits where the library of that name is installed."""


def usual_ranker() -> str:
    """Return the name of what ranks where nobody chose."""
    return USUAL if importlib.util.find_spec(USUAL) else WEIGHTED_SUM


@dataclass(frozen=True, slots=True)
class TrainedRanker:
    """A system with its ranker, and the accuracy of the weighted sum and of the ranker on questions it has not seen.

    `in_doubt` is the share of the questions that the whole system ranks, where another decides before it.
    """

    system: System
    folder: Path
    before: float
    after: float
    questions: int
    in_doubt: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Annotated questions with what scorers say of them, and their folds."""

    gold: Gold
    scores: GoldScores
    folds: NDArray[np.int64]

    @property
    def answerable(self) -> NDArray[np.bool_]:
        """Mark the questions that the knowledge base can answer: (questions,)."""
        return np.asarray(self.gold.fault == Fault.NONE)

    def calibrate(self, scores: NDArray[np.int64], questions: NDArray[np.bool_]) -> Calibration:
        """Fit the confidence of held-out scores to what is right, on the marked questions: (questions,)."""
        confidence = winner_confidence(self.scores.evidence.pools, scores)
        return fit_calibration(confidence[questions], self.scores.expected_by(scores)[questions])


@dataclass(frozen=True, slots=True)
class RankerFit:
    """The fit of a ranker for the pruner and the scorers of a system, to be kept with the models."""

    answerer: Answerer
    system: System
    ranker: str
    seed: int

    @property
    def folder(self) -> Path:
        models = self.answerer.models
        if models is None:
            raise ModelMissing("a ranker is kept with the models that it ranks by; name their folder", name=self.ranker)
        return ranker_folder(models, self.ranker, self.system.key)

    def features(self, evidence: Evidence) -> Features:
        return find_features(evidence, self.system.weights)

    def fit(self, features: Features, right: NDArray[np.bool_]) -> LearnedScoring:
        plugin: type[Ranker] = load_class(RANKERS, self.ranker)
        fitted = construct(self.ranker, lambda: plugin.fit(features, right, seed=self.seed))
        return LearnedScoring(self.ranker, fitted, self.system.weights)

    def hold_out(self, validation: Validation, features: Features, *others: Features) -> list[NDArray[np.int64]]:
        """Score the candidates of each fold, in millionths, by what the features of the other folds teach.

        So are they by other features of the same candidates: (pairs,) each.
        """
        folds, gold = validation.folds, validation.scores.gold
        scores = [np.zeros(len(gold), dtype=np.int64) for _ in (features, *others)]
        for fold in np.unique(folds).tolist():
            own = np.repeat(folds == fold, features.counts)
            fitted = self.fit(features.of(folds != fold), gold[~own])
            for some, read in zip(scores, (features, *others), strict=True):
                some[own] = fitted.score(read.of(folds == fold))
        return scores

    def keep(
        self,
        features: Features,
        validation: Validation,
        *,
        calibration: Calibration,
        right: float,
        cascade: Cascade | None = None,
    ) -> System:
        """Fit the ranker on all questions, and keep the system; `right` is the share by what was held out."""
        fitted, parts = self.fit(features, validation.scores.gold), self.answerer.parts
        fitted.ranker.save(self.folder, Stamp(self.ranker, figures={"pairs right": right}))
        fitted_on = tuple(sorted(parts.digests(self.system).items()))
        ranker = FittedRanker(self.ranker, model_digest(self.folder), fitted_on, feature_columns.VERSION, calibration)
        system = replace(self.system, ranker=ranker, cascade=cascade)
        parts.keep(system)
        return system


def train_ranker(
    answerer: Answerer, questions: Sequence[AnnotatedQuestion], system: System, *, ranker: str, seed: int = 1
) -> TrainedRanker:
    """Fit a ranker for the pruner and the scorers of a system on annotated questions, and keep it with the models.

    Raises SourceEmpty where there is no question, NothingToLearn where none has its answer in its pool.
    """
    fit = start_fit(answerer, system, ranker, seed)
    validation = score_validation(fit, questions)
    features = fit.features(validation.scores.evidence)
    (scores,) = fit.hold_out(validation, features)
    right = validation.scores.expected_by(scores)
    calibration = validation.calibrate(scores, validation.answerable)
    trained = fit.keep(features, validation, calibration=calibration, right=float(right.mean()))
    before = validation.scores.accuracy(WeightedSum(fit.system.weights))
    return TrainedRanker(trained, fit.folder, before, float(right.mean()), len(right))


def start_fit(answerer: Answerer, system: System, ranker: str, seed: int) -> RankerFit:
    """Return the fit of a ranker over the weighted sum that was chosen for the parts of a system."""
    return RankerFit(answerer, answerer.parts.complete(system, WEIGHTED_SUM), ranker, seed)


def score_validation(fit: RankerFit, questions: Sequence[AnnotatedQuestion]) -> Validation:
    """Ask all scorers about annotated questions; raise SourceEmpty where there is none."""
    if not questions:
        raise SourceEmpty("no question to fit a ranker on; name a file of annotated questions")
    load_class(RANKERS, fit.ranker)
    check_replaceable(fit.folder)
    gold = find_gold(fit.answerer.kb, questions)
    scores = score_gold(fit.answerer.opened(fit.system), gold)
    return Validation(gold, scores, deal_folds(questions, seed=fit.seed))


def deal_folds(questions: Sequence[AnnotatedQuestion], *, seed: int) -> NDArray[np.int64]:
    """Deal questions into folds, those about one subject into one: (questions,)."""
    subjects, at = np.unique([question.subject for question in questions], return_inverse=True)
    return np.random.default_rng(seed).integers(0, FOLDS, len(subjects))[at]
