"""The ranker `lightgbm`: boosted trees whose scores are log-probabilities over the pool; beyond the paper."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import import_object
from kbtools.errors import CheckpointMismatch, NothingToLearn
from kbtools.ranking.features import Features
from kbtools.ranking.model_store import Stamp, class_path, read_model, write_model
from kbtools.tree_ensemble import TreeEnsemble

_MODEL = "trees.txt"

# The next two were chosen on validation questions of FBSQ in five folds.
_ROUNDS = 400
PARAMETERS = {
    "num_leaves": 15, "learning_rate": 0.05, "min_data_in_leaf": 100, "lambda_l2": 5.0, "feature_fraction": 0.5,
    "bagging_fraction": 0.7, "bagging_freq": 1, "feature_pre_filter": False, "deterministic": True,
    "force_row_wise": True, "num_threads": 1, "verbosity": -1,
}  # fmt: skip

_LEAST = 100
"""Least number of questions to learn from: fewer do not fill two leaves."""

_HARDEST = 20
"""Negative candidates per question: those with the highest scores of the relation scorers."""

_LEAST_CURVATURE = 1e-6
"""Keeps the leaves of candidates with nearly certain probabilities finite."""


class BoostedRanker:
    """Gradient-boosted trees that minimise the cross entropy of the gold candidate in the softmax over its pool."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text = text
        self.names = names
        self.trees = TreeEnsemble.parse(text, features=len(names))

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        """Learn from the questions with a gold candidate; raise NothingToLearn if there are too few."""
        counts = features.counts
        question = np.repeat(np.arange(len(counts)), counts)
        able = np.bincount(question[gold], minlength=len(counts)) > 0
        if able.sum() < _LEAST:
            raise NothingToLearn(
                f"{able.sum()} questions have their gold answer among their candidates, and a ranker learns from "
                f"{_LEAST} or more; choose --ranker weighted-sum, or give more questions"
            )
        kept = able[question] & (gold | (places(features, question) < _HARDEST))
        sizes = np.bincount(question[kept], minlength=len(counts))
        sizes = sizes[sizes > 0]
        data = import_object("lightgbm:Dataset")(features.values[kept], label=gold[kept].astype(np.int64), group=sizes)
        parameters = PARAMETERS | {"seed": seed, "objective": softmax_objective(gold[kept].astype(np.float64), sizes)}
        trees = import_object("lightgbm:train")(parameters, data, num_boost_round=_ROUNDS)
        return cls(trees.model_to_string(), features.names)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Rebuild a ranker; raise ModelError if the folder is damaged or newer."""
        model = read_model(folder)
        return cls(model.weights.read_text(encoding="utf-8"), tuple(model.contents["features"]))

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        """Write the trees to a folder; without a stamp the plugin is recorded as `module:Class`."""
        stamp = stamp or Stamp(class_path(type(self)))
        contents = {"features": list(self.names)}
        write_model(folder, stamp, contents, file=_MODEL, write=lambda path: path.write_text(self.text, "utf-8"))

    def score(self, features: Features) -> NDArray[np.float64]:
        self.require(features)
        return self.trees.predict(features.values)

    def explain(self, features: Features) -> NDArray[np.float64]:
        self.require(features)
        return self.trees.contributions(features.values)

    def require(self, features: Features) -> None:
        """Raise CheckpointMismatch if the features differ from those of the training."""
        if features.names != self.names:
            raise CheckpointMismatch(
                f"the ranker learned from the features {', '.join(self.names)}, found {', '.join(features.names)}; "
                "run kbtools train ranking again"
            )


def places(features: Features, question: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rank of each candidate within its question by its first feature, 0 for the highest."""
    order = np.lexsort((-features.values[:, 0], question))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(features.counts) - features.counts, features.counts)
    return place


def softmax_objective(
    gold: NDArray[np.float64], sizes: NDArray[np.int64]
) -> Callable[[NDArray[np.float64], Any], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return a function of scores for gradients and curvatures of -log p(gold), a softmax over each question's pool."""
    starts = np.cumsum(sizes) - sizes

    def gradients(scores: NDArray[np.float64], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raised = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
        probability = raised / np.repeat(np.add.reduceat(raised, starts), sizes)
        # Twice the curvature, as in LightGBM's own softmax: scores of one question move together.
        return probability - gold, np.maximum(2 * probability * (1 - probability), _LEAST_CURVATURE)

    return gradients
