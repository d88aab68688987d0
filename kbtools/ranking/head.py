"""The taught head: what questions with known answers add to a relation scorer that compares vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

STRENGTH = 0.5
"""The factor of all that is learned, while it is learned and afterwards. Of the Human Phenotype Ontology's questions
82.5 % are right with 50 taught, 79.3 % where the factor is 1 and halved afterwards; 3,000 validation questions of FBSQ
differ by 0.3 points."""

SHARPNESS = 15.0
"""Log-probability of a cosine of 1 with a learned vector, as for `encoder`."""

VECTOR_PENALTY, BIAS_PENALTY = 2.25, 1.0
"""Cost of the squares of what is learned. A fifth of the first and four times of it differ by 1 point at most."""

_DOUBTED = 2
"""Questions at the origin that the mean is taken with, so that a single question differs from its mean."""

UNTAUGHT = 0.5
"""What relations without a taught question gain, times the share of the questions whose relation has no other: so
likely is the next question about a relation that nobody taught (Good 1953). After 10 questions on the Human Phenotype
Ontology and 50 on FBSQ these relations lose 4.3 and 2.0 points, 7.8 and 2.6 without it; all questions gain 0.9 and 0.2.
At 1 they lose 1.4, and of the elements' questions 1 point is lost with 10 taught."""

BLOCK = 1024
"""Questions that are scored at once."""

_LEAST, _TURNS, _REMEMBERED = 1e-5, 100, 10
"""Share of the loss by which a step must lower it, the most steps, and how many of them estimate the curvature."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """An addition to the scores of some relations: s (15 phi·dE(r) + b(r)), where phi is the direction in which a
    question's vector differs from the mean of those taught.

    mean (dim,); relations, as rows (taught,); vectors (taught, dim) and biases (taught,) with all factors.
    """

    mean: NDArray[np.float32]
    relations: NDArray[np.int64]
    vectors: NDArray[np.float32]
    biases: NDArray[np.float32]

    def add(self, scores: _Floats, vectors: NDArray[np.float32]) -> _Floats:
        """Add to scores (questions, relations) of questions with these vectors (questions, dim)."""
        scores[:, self.relations] += _directions(vectors, self.mean) @ self.vectors.T + self.biases
        return scores

    def to_bytes(self) -> bytes:
        """Return the arrays in the format of NumPy's archives."""
        archive = BytesIO()
        np.savez(archive, mean=self.mean, relations=self.relations, vectors=self.vectors, biases=self.biases)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Head":
        """Read a head that `to_bytes` wrote."""
        with np.load(BytesIO(content)) as arrays:
            return cls(**arrays)


def _directions(vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the differences of vectors from a mean, scaled to length 1.

    All questions have much in common. As plain vectors, those taught raise their relations in every other question, at
    the cost of relations that nobody taught: of WordNet's these lose 8 points, and 1 by the differences.
    """
    differences = vectors - mean
    lengths = np.linalg.norm(differences, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = differences / np.maximum(lengths, np.float32(1e-6))
    return scaled


def fit_head(vectors: NDArray[np.float32], relations: NDArray[np.int64], score: Callable[[slice], _Floats]) -> Head:
    """Learn from questions with vectors (questions, dim) and the rows of their relations (questions,).

    `score` returns the scores before teaching of a slice of them: (questions, all relations). The cross entropy over
    all relations is minimised; those that are not taught keep their scores.
    """
    taught, place = np.unique(relations, return_inverse=True)
    mean = (vectors.sum(axis=0) / (len(vectors) + _DOUBTED)).astype(np.float32)
    phi = _directions(vectors, mean).astype(np.float64)
    own, rest = np.empty((len(vectors), len(taught))), np.empty(len(vectors))
    for start in range(0, len(vectors), BLOCK):
        at = slice(start, start + BLOCK)
        scores = score(at)
        own[at] = scores[:, taught]
        scores[:, taught] = -np.inf
        peak = scores.max(axis=1, initial=-1e300)
        rest[at] = peak + np.log(np.maximum(np.exp(scores - peak[:, None]).sum(axis=1), 1e-300))
    size, rows = (len(taught), phi.shape[1]), np.arange(len(phi))

    def loss(weights: _Floats) -> tuple[float, _Floats]:
        table, biases = weights[: -len(taught)].reshape(size), weights[-len(taught) :]
        scores = own + STRENGTH * (SHARPNESS * (phi @ table.T) + biases)
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
    """Return where a convex function, which gives its value and its slopes, is least: L-BFGS (Nocedal 1980).

    It stands for scipy.optimize, which a plain installation lacks.
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
