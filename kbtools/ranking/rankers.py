"""Rankers: the weighted sum of the parts of a score, and plugins that learn a score from features."""

from collections.abc import Callable
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


class Ranker(Protocol):
    """A learned score of candidates; a plugin is made by `fit` and loaded by `load`."""

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        """Return a ranker learned from questions with one gold candidate each: (pairs,)."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return a saved ranker; raise ModelError if its folder is damaged or of a newer version."""
        ...

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the ranker to a folder; without a stamp its plugin is recorded as `module:Class`."""
        ...

    def score(self, features: Features) -> NDArray[np.float64]:
        """Return the scores of candidates, log-probabilities up to a constant per question, higher is better:
        (pairs,)."""
        ...

    def explain(self, features: Features) -> NDArray[np.float64]:
        """Return the contribution of each feature, which add up to the scores: (pairs, features)."""
        ...


@quick_record
@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """The ranker of some questions: its relation scorers and the calibration of its confidence."""

    scorers: tuple[str, ...]
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Rating:
    """Scores of candidates in millionths, (pairs,), and a function that returns their parts at some positions.

    A cascade has two stages; `late` marks the questions that the second one ranked: (questions,).
    """

    scores: NDArray[np.int64]
    parts: Callable[[NDArray[np.int64]], dict[str, NDArray[np.float64]]]
    stages: tuple[_Stage, ...]
    late: NDArray[np.bool_] | None = None

    def stage_of(self, question: int) -> _Stage:
        return self.stages[-1 if self.late is not None and self.late[question] else 0]

    def calibrate(self, confidence: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return confidences in the first candidates, calibrated by the stage that ranked each question."""
        calibrated = [stage.calibration.apply(confidence) if stage.calibration else confidence for stage in self.stages]
        return calibrated[0] if self.late is None else np.where(self.late, calibrated[-1], calibrated[0])


class Scoring(Protocol):
    """A way to score candidates."""

    def rate(self, evidence: Evidence) -> Rating:
        """Return the rating of the candidates of some questions."""
        ...


@quick_record
@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The weighted sum of the parts of a score."""

    weights: Weights

    def rate(self, evidence: Evidence) -> Rating:
        parts = score_parts(evidence.pools, self.weights, v=evidence.mean, u=evidence.u)

        def chosen(pairs: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
            return {part: values[pairs] for part, values in parts.items()}

        return Rating(add_parts(parts), chosen, (_Stage(tuple(evidence.v)),))


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScoring:
    """A ranker fitted for a pruner and its scorers; `weights` are those of the weighted sum, one of its features."""

    name: str
    ranker: Ranker
    weights: Weights
    calibration: Calibration | None = None

    def rate(self, evidence: Evidence) -> Rating:
        """Return the rating of candidates; raise BrokenPlugin unless the ranker gives each a finite score."""
        features = find_features(evidence, self.weights)

        def parts(pairs: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
            chosen = Features(features.names, features.values[pairs], np.array([len(pairs)]))
            added = self.ask(lambda: self.ranker.explain(chosen), shape=chosen.values.shape)
            return _add_by_part(features.names, added)

        return Rating(self.score(features), parts, (_Stage(tuple(evidence.v), self.calibration),))

    def score(self, features: Features) -> NDArray[np.int64]:
        """Return scores in millionths; raise BrokenPlugin as `rate` does."""
        return as_micro(self.ask(lambda: self.ranker.score(features), shape=(len(features.values),)))

    def ask(self, ask: Callable[[], object], *, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return as_scores(ask_plugin("ranker", self.ranker, ask), scorer=self.name, shape=shape)


def _add_by_part(names: tuple[str, ...], added: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the sums of contributions, (pairs, features), over features with the same first word, the part of the
    score."""
    parts: dict[str, NDArray[np.float64]] = {}
    for column, name in enumerate(names):
        part = name.partition(".")[0]
        parts[part] = parts.get(part, 0.0) + added[:, column]
    return parts
