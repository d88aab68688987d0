"""A ranker that is linear in the features of candidates."""

from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kbtools.ranking.features import Features
from kbtools.ranking.model_store import Stamp, class_path, read_model, write_model

SHARPNESS = 10.0
"""The factor from the predicted mark of a candidate, 0 to 1, to a log-probability."""


class LeastSquares:
    """A linear score of the features, fitted to the marks of gold candidates by least squares."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights

    @classmethod
    def fit(cls, features: Features, gold: NDArray[np.bool_], *, seed: int) -> Self:
        weights = np.linalg.lstsq(features.values, gold.astype(np.float64), rcond=None)[0]
        return cls(SHARPNESS * weights)

    def score(self, features: Features) -> NDArray[np.float64]:
        return self.explain(features).sum(axis=1)

    def explain(self, features: Features) -> NDArray[np.float64]:
        return features.values * self.weights

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls(np.frombuffer(read_model(folder).weights.read_bytes()))

    def save(self, folder: Path, stamp: Stamp | None = None) -> None:
        stamp = stamp or Stamp(class_path(type(self)))
        write_model(folder, stamp, {}, file="weights", write=lambda path: path.write_bytes(self.weights.tobytes()))
