"""The fit of a learned ranker on questions whose answers are known, and of the confidence that its scores deserve.

Scorers never saw these questions, which are not those that they were trained on. Accuracy and confidence are those of
questions that the ranker has not seen either: each fold is ranked by what was learned from the others.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.answering import Answerer
from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.errors import SourceEmpty
from kbtools.kb.contract import ABSENT, find_rows
from kbtools.question_faults import Fault, find_faults
from kbtools.questions import AnnotatedQuestion, read_gold
from kbtools.ranking.confidence import fit_calibration
from kbtools.ranking.features import Features, find_features
from kbtools.ranking.learned import Fitted, forget_fitted, keep_fitted, ranker_folder
from kbtools.ranking.model_store import Stamp, check_replaceable
from kbtools.ranking.models import model_digest, training_digests
from kbtools.ranking.order import winner_confidence
from kbtools.ranking.rankers import WEIGHTED_SUM, LearnedScoring, Ranker, WeightedSum
from kbtools.ranking.ties import find_ties
from kbtools.ranking.weights import ranking_key
from kbtools.tuning import GoldScores, score_gold

FOLDS = 5
"""Folds of questions: each is ranked by what four fifths of the questions teach."""


USUAL = "lightgbm"
"""The ranker that training fits where the library of that name is installed."""


def usual_ranker() -> str:
    """Name what ranks where nobody chose."""
    return USUAL if importlib.util.find_spec(USUAL) else WEIGHTED_SUM


@dataclass(frozen=True, slots=True)
class TrainedRanker:
    """A ranker in its folder; accuracy of the weighted sum, and of the ranker on questions that it has not seen."""

    folder: Path
    before: float
    after: float
    questions: int


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
    questions = read_gold(path, answerer.kb)[:limit]
    if not questions:
        raise SourceEmpty(f"{path}: holds no question to fit a ranker on", path=str(path))
    plugin: type[Ranker] = load_class(RANKERS, ranker)
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    folder = ranker_folder(models, ranker, key)
    check_replaceable(folder)
    gold = score_gold(answerer, questions, pruning=pruning, scorer=scorer, subject=subject)
    weights = answerer.weights(pruning=pruning, scorer=scorer, subject=subject)

    def fit(features: Features, right: NDArray[np.bool_]) -> LearnedScoring:
        return LearnedScoring(ranker, construct(ranker, lambda: plugin.fit(features, right, seed=seed)), weights)

    features = find_features(gold.evidence, weights)
    held_out = cross_fit(fit, features, gold.gold, deal_folds(questions, seed=seed))
    right = gold.expected_by(held_out, gold.gold)
    answerable = find_question_faults(answerer, questions) == Fault.NONE
    calibration = fit_calibration(confidence(gold, held_out)[answerable], right[answerable])
    before = gold.expected(WeightedSum(weights))
    fitted = replace(fit(features, gold.gold), calibration=calibration)
    fitted.ranker.save(folder, Stamp(ranker, figures={"pairs right": float(right.mean())}))
    record = Fitted(
        ranker,
        model_digest(folder),
        training_digests(scorer, subject, answerer.guide(pruning), models=models),
        asdict(weights),
        calibration.confidence.tolist(),
        calibration.correct.tolist(),
    )
    keep_fitted(models, key, record)
    others = {name: one for name, one in answerer.fitted_by_key.get(key, {}).items() if name != ranker}
    answerer.fitted_by_key[key] = others | {ranker: record}
    answerer.rankers[key, ranker] = fitted
    return TrainedRanker(folder, float(before.mean()), float(right.mean()), len(questions))


def rank_by_weights(answerer: Answerer, *, models: Path, pruning: str, scorer: str, subject: str | None) -> None:
    """Let the weighted sum rank for a pruner and its scorers from now on, and forget what was fitted for them."""
    key = ranking_key(pruning=answerer.pruning_key(pruning), scorer=scorer, subject=subject)
    forget_fitted(models, key)
    answerer.fitted_by_key.pop(key, None)


def deal_folds(questions: list[AnnotatedQuestion], *, seed: int) -> NDArray[np.int64]:
    """Deal questions into folds, those about one subject into one: (questions,)."""
    subjects, at = np.unique([question.subject for question in questions], return_inverse=True)
    return np.random.default_rng(seed).integers(0, FOLDS, len(subjects))[at]


def cross_fit(
    fit: Callable[[Features, NDArray[np.bool_]], LearnedScoring],
    features: Features,
    gold: NDArray[np.bool_],
    folds: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Score the candidates of each fold by what the other folds teach, in millionths: (pairs,)."""
    scores = np.zeros(len(gold), dtype=np.int64)
    for fold in np.unique(folds).tolist():
        own = np.repeat(folds == fold, features.counts)
        scores[own] = fit(features.of(folds != fold), gold[~own]).score(features.of(folds == fold))
    return scores


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
