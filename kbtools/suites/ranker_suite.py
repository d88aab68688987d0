"""The contract of rankers, on candidates whose gold one feature tells, but for noise."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import RANKERS, construct, load_class
from kbtools.ranking.contracts import as_scores
from kbtools.ranking.features import Features
from kbtools.suites.checking import Claim, check_claims, close

QUESTIONS, CANDIDATES = 300, 6
"""Questions to learn from, and candidates of each: enough for leaves of a hundred candidates."""


def check_ranker(name: str) -> Iterator[str]:
    """Check a ranker, and yield each claim that holds."""
    plugin = load_class(RANKERS, name)
    features, gold = draw_candidates(seed=1)
    yield from check_claims(name, claims(name, lambda: construct(name, lambda: plugin.fit(features, gold, seed=1))))


def draw_candidates(*, seed: int) -> tuple[Features, NDArray[np.bool_]]:
    """Draw candidates with three features, of which the first tells the gold one of each question most of the time."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(QUESTIONS * CANDIDATES, 3))
    liked = (values[:, 0] + 0.1 * random.normal(size=len(values))).reshape(QUESTIONS, CANDIDATES)
    gold = np.arange(CANDIDATES) == liked.argmax(axis=1)[:, np.newaxis]
    names = ("relation.mean", "subject", "mention")
    return Features(names, values, np.full(QUESTIONS, CANDIDATES)), gold.reshape(-1)


def claims(name: str, make: Callable[[], Any]) -> list[Claim]:
    ranker = make()
    features, gold = draw_candidates(seed=2)
    some = features.of(np.arange(QUESTIONS) < 2)
    backwards = Features(features.names, features.values[::-1], features.counts[::-1])

    def score(fitted: Any, asked: Features) -> NDArray[np.float64]:
        return as_scores(fitted.score(asked), scorer=name, shape=(len(asked.values),))

    def explain(asked: Features) -> NDArray[np.float64]:
        return as_scores(ranker.explain(asked), scorer=name, shape=asked.values.shape)

    scores = score(ranker, features)
    first = scores.reshape(QUESTIONS, CANDIDATES).argmax(axis=1) == gold.reshape(QUESTIONS, CANDIDATES).argmax(axis=1)
    return [
        ("it learns what a feature tells of new questions", lambda: bool(first.mean() > 0.5)),
        ("what its features add to a score is the score", lambda: close(explain(features).sum(axis=1), scores)),
        ("other questions beside it change no score", lambda: close(score(ranker, some), scores[: len(some.values)])),
        ("the order of candidates changes no score", lambda: close(score(ranker, backwards)[::-1], scores)),
        ("same seed, same scores", lambda: bool(np.array_equal(score(make(), features), scores))),
        ("saved and loaded, it scores the same", lambda: bool(np.array_equal(score(again(ranker), features), scores))),
        (
            "no candidates, no scores",
            lambda: score(ranker, features.of(np.zeros(QUESTIONS, dtype=np.bool_))).size == 0,
        ),
    ]


def again(ranker: Any) -> Any:
    """Save a ranker to a folder, and load it from there."""
    with tempfile.TemporaryDirectory() as folder:
        ranker.save(Path(folder, "model"))
        return type(ranker).load(Path(folder, "model"))
