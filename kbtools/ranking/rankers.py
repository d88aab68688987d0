"""Rankers: the weighted sum of the parts, and the contract of plugins that learn a score from features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import ask_plugin
from kbtools.quick_records import quick_record
from kbtools.ranking.confidence import Calibration
from kbtools.ranking.contracts import as_scores
from kbtools.ranking.evidence import Evidence
from kbtools.ranking.features import Features, find_features
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.score import add_parts, as_micro, score_parts
from kbtools.ranking.weights import Weights

WEIGHTED_SUM = "weighted-sum"
"""The name of the score that is not learned."""


class Ranker(Protocol):
    """A score of candidates that is learned from their features; a plugin is made by `fit`, and rebuilt by `load`."""

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        """Learn from questions with one gold candidate each: (pairs,)."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Rebuild a ranker; raise ModelError where the folder is damaged or newer."""
        ...

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the ranker to a folder; without a stamp its plugin is known as `module:Class`."""
        ...

    def score(self, features: Features) -> NDArray[np.float64]:
        """Score candidates, higher is better, log-probabilities up to a constant per question: (pairs,)."""
        ...

    def explain(self, features: Features) -> NDArray[np.float64]:
        """Give what each feature adds to the scores, whose sums they are: (pairs, features)."""
        ...


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One of several rankers that share questions out among them, with the relation scorers that it reads."""

    scoring: "LearnedScoring"
    scorer: str


@dataclass(frozen=True, slots=True, eq=False)
class Rating:
    """Scores of candidates in millionths, (pairs,), and the parts that those at some positions are the sums of.

    `stages` holds for each question the one that ranked it, where there are several.
    """

    scores: NDArray[np.int64]
    parts: Callable[[NDArray[np.int64]], dict[str, NDArray[np.float64]]]
    stages: Sequence[Stage] | None = None


class Scoring(Protocol):
    """A way to score candidates, known by its name."""

    @property
    def name(self) -> str: ...

    @property
    def calibration(self) -> Calibration | None:
        """Give the map from the winner's share of a pool, times the trust in its link, to the share that is right."""
        ...

    @property
    def in_doubt(self) -> tuple[str, ...]:
        """Name the relation scorers that are asked only where a question is in doubt."""
        ...

    def counting(self, subject: str | None) -> Mapping[str, float]:
        """Give the weights that count, by name; none where the score is learned."""
        ...

    def rate(self, evidence: Evidence) -> Rating: ...


@quick_record
@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The weighted sum of the parts of a score."""

    weights: Weights
    name: str = WEIGHTED_SUM
    calibration: Calibration | None = None
    in_doubt: tuple[str, ...] = ()

    def counting(self, subject: str | None) -> Mapping[str, float]:
        return self.weights.counting(subject)

    def rate(self, evidence: Evidence) -> Rating:
        parts = score_parts(evidence.pools, self.weights, v=evidence.mean, u=evidence.u)
        return Rating(add_parts(parts), lambda pairs: {part: values[pairs] for part, values in parts.items()})


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScoring:
    """A ranker that was fitted for a pruner and its scorers; the weights are those of the sum among its features."""

    name: str
    ranker: Ranker
    weights: Weights
    calibration: Calibration | None = None
    in_doubt: tuple[str, ...] = ()

    def counting(self, subject: str | None) -> Mapping[str, float]:
        return {}

    def rate(self, evidence: Evidence) -> Rating:
        """Score candidates; raise BrokenPlugin where the ranker fails, or gives other than a finite score for each."""
        features = find_features(evidence, self.weights)

        def parts(pairs: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
            chosen = Features(features.names, features.values[pairs], np.array([len(pairs)]))
            added = self.ask(lambda: self.ranker.explain(chosen), shape=chosen.values.shape)
            return add_by_part(features.names, added)

        return Rating(self.score(features), parts)

    def score(self, features: Features) -> NDArray[np.int64]:
        """Score candidates in millionths; raise BrokenPlugin as `rate` does."""
        return as_micro(self.ask(lambda: self.ranker.score(features), shape=(len(features.values),)))

    def ask(self, ask: Callable[[], object], *, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return as_scores(ask_plugin("ranker", self.ranker, ask), scorer=self.name, shape=shape)


def calibrate_all(scoring: Scoring, rating: Rating, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Calibrate the confidence in the first candidate of each question by what ranked it, where it has a map."""
    rankers = [stage.scoring for stage in rating.stages] if rating.stages else [scoring] * len(confidence)
    calibrated = confidence.copy()
    for ranker in {id(ranker): ranker for ranker in rankers}.values():
        own = np.array([ranker is other for other in rankers])
        if ranker.calibration:
            calibrated[own] = ranker.calibration.apply(confidence[own])
    return calibrated


def add_by_part(names: tuple[str, ...], added: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Add up what features of one part of the score add to it, (pairs, features), by the first word of their names."""
    parts: dict[str, NDArray[np.float64]] = {}
    for column, name in enumerate(names):
        part = name.partition(".")[0]
        parts[part] = parts.get(part, 0.0) + added[:, column]
    return parts
