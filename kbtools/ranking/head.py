"""The taught head: what a relation scorer that compares vectors learns from questions with known answers."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

STRENGTH = 0.5
"""The factor of everything learned, during and after learning. Of the Human Phenotype Ontology's questions, 82.5 % are
right with 50 taught, and 79.3 % with a factor of 1 that is halved afterwards; 3,000 validation questions of FBSQ differ
by 0.3 points."""

SHARPNESS = 15.0
"""Log-probability of a cosine of 1 with a learned vector, as for `encoder`."""

VECTOR_PENALTY, BIAS_PENALTY = 2.25, 1.0
"""Weights of the squared vectors and biases in the loss. A fifth and four times the first change at most 1 point."""

_DOUBTED = 2
"""Questions at the origin added to the mean, so that a single question differs from it."""

UNTAUGHT = 0.5
"""The score that relations without taught questions gain, times the share of questions whose relation has no other,
which estimates how likely the next question is about an untaught relation (Good 1953). After 10 questions on the Human
Phenotype Ontology and 50 on FBSQ untaught relations lose 4.3 and 2.0 points, and 7.8 and 2.6 without it; all questions
gain 0.9 and 0.2. With 1 they lose 1.4, and questions about the chemical elements lose 1 point with 10 taught."""

BLOCK = 1024
"""Questions scored at once."""

_LEAST, _TURNS, _REMEMBERED = 1e-5, 100, 10
"""The relative decrease of the loss that ends the search, the most steps, and the steps that estimate the curvature."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """An addition to the scores of the taught relations: s (15 phi·dE(r) + b(r)).

    phi is the direction of a question's vector from the mean of the taught ones. mean (dim,); relations, as rows
    (taught,); vectors (taught, dim) and biases (taught,) include all factors.
    """

    mean: NDArray[np.float32]
    relations: NDArray[np.int64]
    vectors: NDArray[np.float32]
    biases: NDArray[np.float32]

    def add(self, scores: _Floats, vectors: NDArray[np.float32]) -> _Floats:
        """Return scores (questions, relations) with the addition for questions with these vectors (questions, dim)."""
        scores[:, self.relations] += _directions(vectors, self.mean) @ self.vectors.T + self.biases
        return scores

    def to_bytes(self) -> bytes:
        """Return the arrays as a NumPy archive."""
        archive = BytesIO()
        np.savez(archive, mean=self.mean, relations=self.relations, vectors=self.vectors, biases=self.biases)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Head":
        """Return a head from the output of `to_bytes`."""
        with np.load(BytesIO(content)) as arrays:
            return cls(**arrays)


def _directions(vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the differences of vectors from a mean, scaled to length 1.

    Questions have much in common: with plain vectors, taught relations rise for every other question, and WordNet's
    untaught relations lose 8 points instead of 1.
    """
    differences = vectors - mean
    lengths = np.linalg.norm(differences, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = differences / np.maximum(lengths, np.float32(1e-6))
    return scaled


def fit_head(vectors: NDArray[np.float32], relations: NDArray[np.int64], score: Callable[[slice], _Floats]) -> Head:
    """Return the head learned from questions with vectors (questions, dim) and relations as rows (questions,).

    `score` returns the scores before teaching for a slice of them: (questions, all relations). The cross entropy over
    all relations is minimised; untaught relations keep their scores.
    """
    taught, place = np.unique(relations, return_inverse=True)
    mean = (vectors.sum(axis=0) / (len(vectors) + _DOUBTED)).astype(np.float32)
    phi = _directions(vectors, mean).astype(np.float64)
    taught_scores, rest = np.empty((len(vectors), len(taught))), np.empty(len(vectors))
    for start in range(0, len(vectors), BLOCK):
        at = slice(start, start + BLOCK)
        scores = score(at)
        taught_scores[at] = scores[:, taught]
        scores[:, taught] = -np.inf
        peak = scores.max(axis=1, initial=-1e300)
        rest[at] = peak + np.log(np.maximum(np.exp(scores - peak[:, None]).sum(axis=1), 1e-300))
    size, rows = (len(taught), phi.shape[1]), np.arange(len(phi))

    def loss(weights: _Floats) -> tuple[float, _Floats]:
        table, biases = weights[: -len(taught)].reshape(size), weights[-len(taught) :]
        scores = taught_scores + STRENGTH * (SHARPNESS * (phi @ table.T) + biases)
        peak = np.maximum(scores.max(axis=1), rest)
        wrong = np.exp(scores - peak[:, None])
        total = wrong.sum(axis=1) + np.exp(rest - peak)
        penalty = VECTOR_PENALTY * (table * table).sum() + BIAS_PENALTY * (biases * biases).sum()
        value = float((np.log(total) + peak - scores[rows, place]).sum() + penalty)
        wrong /= total[:, None]
        wrong[rows, place] -= 1
        slopes = STRENGTH * SHARPNESS * (wrong.T @ phi) + 2 * VECTOR_PENALTY * table
        return value, np.concatenate([slopes.reshape(-1), STRENGTH * wrong.sum(axis=0) + 2 * BIAS_PENALTY * biases])

    weights = minimise(loss, np.zeros(len(taught) * (size[1] + 1)))
    table, biases = weights[: -len(taught)].reshape(size), weights[-len(taught) :]
    alone = np.count_nonzero(np.bincount(place) == 1) / len(relations)
    table, biases = STRENGTH * SHARPNESS * table, STRENGTH * biases - UNTAUGHT * alone
    return Head(mean, taught, table.astype(np.float32), biases.astype(np.float32))


def minimise(function: Callable[[_Floats], tuple[float, _Floats]], start: _Floats) -> _Floats:
    """Return the minimum of a convex function, which returns its value and gradient, by L-BFGS (Nocedal 1980).

    It replaces scipy.optimize, which a plain installation lacks.
    """
    at, (value, slopes) = start, function(start)
    steps: list[tuple[_Floats, _Floats, float]] = []
    for _ in range(_TURNS):
        way, shares = slopes.copy(), []
        for step, change, product in reversed(steps):
            shares.append(step @ way / product)
            way -= shares[-1] * change
        if steps:
            way *= steps[-1][2] / (steps[-1][1] @ steps[-1][1])
        else:
            way /= max(1.0, float(np.linalg.norm(way)))
        for (step, change, product), share in zip(steps, reversed(shares), strict=True):
            way += (share - change @ way / product) * step
        length, fall = 1.0, float(slopes @ way)
        while True:
            new_value, new_slopes = function(at - length * way)
            if new_value <= value - 1e-4 * length * fall or length < 1e-8:
                break
            length /= 2
        step, change = -length * way, new_slopes - slopes
        if step @ change > 1e-10:
            steps = [*steps[1 - _REMEMBERED :], (step, change, float(step @ change))]
        finished = value - new_value < _LEAST * max(1.0, abs(value))
        at, value, slopes = at + step, new_value, new_slopes
        if finished:
            break
    return at
