"""The fit of a learned ranker on questions whose answers are known, and of the confidence that its scores deserve.

Scorers never saw these questions, which are not those that they were trained on. Accuracy and confidence are those of
questions that the ranker has not seen either: each fold is ranked by what was learned from the others.
"""

import importlib.util
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.answering.answerer import Answerer
from kbtools.answering.question_faults import Fault, find_faults
from kbtools.answering.questions import AnnotatedQuestion, read_gold
from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.errors import SourceEmpty
from kbtools.kb.contract import ABSENT, find_rows
from kbtools.ranking.cascade import Doubt
from kbtools.ranking.confidence import Calibration, fit_calibration
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.features import Features, find_features
from kbtools.ranking.learned import Fitted, forget_fitted, keep_fitted, ranker_folder
from kbtools.ranking.model_store import Stamp, check_replaceable
from kbtools.ranking.models import model_digest, training_digests
from kbtools.ranking.order import winner_confidence
from kbtools.ranking.rankers import WEIGHTED_SUM, LearnedScoring, Ranker, WeightedSum
from kbtools.ranking.ties import find_ties
from kbtools.ranking.weights import Weights, ranking_key
from kbtools.tuning.weight_search import GoldScores, score_gold

FOLDS = 5
"""Folds of questions: each is ranked by what four fifths of the questions teach."""


USUAL = "lightgbm"
"""The ranker that training fits where the library of that name is installed."""


def usual_ranker() -> str:
    """Name what ranks where nobody chose."""
    return USUAL if importlib.util.find_spec(USUAL) else WEIGHTED_SUM


@dataclass(frozen=True, slots=True)
class TrainedRanker:
    """A ranker in its folder; accuracy of the weighted sum, and of the ranker on questions that it has not seen.

    `doubt` says when it is asked, where another decides before it, and `in_doubt` about which share of the questions.
    """

    folder: Path
    before: float
    after: float
    questions: int
    doubt: Doubt | None = None
    in_doubt: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Annotated questions with what scorers say of them, their folds, and which the knowledge base can answer."""

    questions: list[AnnotatedQuestion]
    gold: GoldScores
    folds: NDArray[np.int64]
    answerable: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RankerFit:
    """The fit of a ranker for a pruner and its scorers, to be kept with the models."""

    answerer: Answerer
    models: Path
    ranker: str
    pruning: str
    scorer: str
    subject: str | None
    seed: int

    @property
    def names(self) -> dict[str, Any]:
        return {"pruning": self.pruning, "scorer": self.scorer, "subject": self.subject}

    @property
    def key(self) -> str:
        return ranking_key(**self.names | {"pruning": self.answerer.pruning_key(self.pruning)})

    @property
    def folder(self) -> Path:
        return ranker_folder(self.models, self.ranker, self.key)

    @property
    def weights(self) -> Weights:
        return self.answerer.weights(**self.names)

    def features(self, evidence: Evidence) -> Features:
        return find_features(evidence, self.weights)

    def fit(self, features: Features, right: NDArray[np.bool_]) -> LearnedScoring:
        plugin: type[Ranker] = load_class(RANKERS, self.ranker)
        fitted = construct(self.ranker, lambda: plugin.fit(features, right, seed=self.seed))
        return LearnedScoring(self.ranker, fitted, self.weights)

    def hold_out(self, validation: Validation, features: Features, *others: Features) -> list[NDArray[np.int64]]:
        """Score the candidates of each fold, in millionths, by what the features of the other folds teach.

        So are they by other features of the same candidates: (pairs,) each.
        """
        folds, gold = validation.folds, validation.gold.gold
        scores = [np.zeros(len(gold), dtype=np.int64) for _ in (features, *others)]
        for fold in np.unique(folds).tolist():
            own = np.repeat(folds == fold, features.counts)
            fitted = self.fit(features.of(folds != fold), gold[~own])
            for some, read in zip(scores, (features, *others), strict=True):
                some[own] = fitted.score(read.of(folds == fold))
        return scores

    def keep(
        self, features: Features, validation: Validation, *, calibration: Calibration, right: float, doubt: Doubt | None
    ) -> Fitted:
        """Fit the ranker on all questions, and keep it; `right` is the share by what was held out."""
        fitted = self.fit(features, validation.gold.gold)
        fitted.ranker.save(self.folder, Stamp(self.ranker, figures={"pairs right": right}))
        guide = self.answerer.guide(self.pruning)
        record = Fitted(
            self.ranker,
            model_digest(self.folder),
            training_digests(self.scorer, self.subject, guide, models=self.models),
            asdict(self.weights),
            calibration.confidence.tolist(),
            calibration.correct.tolist(),
            doubt=doubt,
        )
        keep_fitted(self.models, self.key, record)
        before = self.answerer.fitted_by_key.get(self.key, {})
        others = {name: one for name, one in before.items() if name != self.ranker}
        self.answerer.fitted_by_key[self.key] = others | {self.ranker: record}
        # Made from its folder when it is asked next.
        self.answerer.rankers.pop((self.key, self.ranker), None)
        return record


def train_ranker(
    answerer: Answerer,
    path: Path,
    *,
    models: Path,
    ranker: str,
    pruning: str,
    scorer: str,
    subject: str | None,
    limit: int | None = None,
    seed: int = 1,
) -> TrainedRanker:
    """Fit a ranker for a pruner and its scorers on a file of annotated questions, and keep it with the models.

    Raises SourceEmpty where there is no question, NothingToLearn where none has its answer in its pool.
    """
    fit = RankerFit(answerer, models, ranker, pruning, scorer, subject, seed)
    validation = read_validation(fit, path, limit=limit)
    features = fit.features(validation.gold.evidence)
    (scores,) = fit.hold_out(validation, features)
    right = validation.gold.expected_by(scores, validation.gold.gold)
    calibration = calibrate_held_out(validation, scores, validation.answerable)
    fit.keep(features, validation, calibration=calibration, right=float(right.mean()), doubt=None)
    before = validation.gold.expected(WeightedSum(fit.weights))
    return TrainedRanker(fit.folder, float(before.mean()), float(right.mean()), len(right))


def read_validation(fit: RankerFit, path: Path, *, limit: int | None) -> Validation:
    """Read annotated questions and ask all scorers about them; raise SourceEmpty where there is none."""
    answerer = fit.answerer
    questions = read_gold(path, answerer.kb)[:limit]
    if not questions:
        raise SourceEmpty(f"{path}: holds no question to fit a ranker on", path=str(path))
    load_class(RANKERS, fit.ranker)
    check_replaceable(fit.folder)
    gold = score_gold(answerer, questions, **fit.names)
    answerable = find_question_faults(answerer, questions) == Fault.NONE
    return Validation(questions, gold, deal_folds(questions, seed=fit.seed), answerable)


def calibrate_held_out(validation: Validation, scores: NDArray[np.int64], questions: NDArray[np.bool_]) -> Calibration:
    """Fit the confidence of held-out scores to what is right, on the marked questions: (questions,)."""
    gold = validation.gold
    right = gold.expected_by(scores, gold.gold)
    return fit_calibration(confidence(gold, scores)[questions], right[questions])


def rank_by_weights(answerer: Answerer, *, models: Path, pruning: str, scorer: str, subject: str | None) -> None:
    """Let the weighted sum rank for a pruner and its scorers from now on, and forget what was fitted for them."""
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    forget_fitted(models, key)
    answerer.fitted_by_key.pop(key, None)


def deal_folds(questions: list[AnnotatedQuestion], *, seed: int) -> NDArray[np.int64]:
    """Deal questions into folds, those about one subject into one: (questions,)."""
    subjects, at = np.unique([question.subject for question in questions], return_inverse=True)
    return np.random.default_rng(seed).integers(0, FOLDS, len(subjects))[at]


def confidence(gold: GoldScores, scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the confidence in the first candidates before any calibration, 0 without candidates: (questions,)."""
    pools = gold.evidence.pools
    claimed, filled = np.zeros(len(pools)), np.flatnonzero(pools.counts["pair"])
    claimed[filled] = winner_confidence(pools, find_ties(scores, pools.first("pair")[filled]), scores)
    return claimed


def find_question_faults(answerer: Answerer, questions: list[AnnotatedQuestion]) -> NDArray[np.int8]:
    """Find why the knowledge base cannot answer questions: (questions,)."""
    rows = {relation: row for row, relation in enumerate(answerer.kb.relations)}
    relations = np.array([rows.get(question.relation, ABSENT) for question in questions], dtype=np.int64)
    return find_faults(answerer.kb, find_rows(answerer.kb, [question.subject for question in questions]), relations)
