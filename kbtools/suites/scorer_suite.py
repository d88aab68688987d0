"""The contracts of relation scorers, of subject scorers, and of rankers on candidates whose gold one feature tells, but
for noise."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import RANKERS, SCORERS, SUBJECT_SCORERS, construct, import_object, load_class
from kbtools.ranking.contracts import Trained, VectorScorer, ZeroShot, as_scores
from kbtools.ranking.features import Features
from kbtools.suites.checking import (
    LONG,
    Claim,
    check_claims,
    close,
    is_trainable,
    maker,
    marked_questions,
    rebuilt,
    world,
)
from kbtools.text.question import MarkedQuestion, Question

QUESTIONS, CANDIDATES = 300, 6
"""Questions to learn from, and candidates of each: enough for leaves of a hundred candidates."""


def check_relation_scorer(name: str) -> Iterator[str]:
    """Check a relation scorer, and yield each claim that holds."""
    plugin = load_class(SCORERS, name)
    if isinstance(plugin, ZeroShot):
        yield from check_untrained(name, plugin.zero_shot)
    elif not isinstance(plugin, Trained):
        yield from check_untrained(name, plugin)
    if isinstance(plugin, Trained):
        make = maker(SCORERS, name, untrained=world().relations)
        yield from check_claims(name, [*relation_claims(name, make), *claims_of_networks(plugin, make)])


def check_untrained(name: str, plugin: Callable[[Sequence[str]], Any]) -> Iterator[str]:
    """Check a scorer that is made with the relations alone."""
    yield from check_claims(name, relation_claims(name, lambda: construct(name, lambda: plugin(world().relations))))
    yield from check_claims(name, [("the order of relations changes no score", lambda: ignores_order(name, plugin))])


def relation_claims(name: str, make: Callable[[], Any]) -> list[Claim]:
    questions = marked_questions()
    long = MarkedQuestion(Question.read(LONG), 0, 0)

    def score(batch: Sequence[MarkedQuestion]) -> Any:
        return as_scores(make().score(batch), scorer=name, shape=(len(batch), len(world().relations)))

    return [
        ("a finite score for every relation of every question", lambda: score(questions) is not None),
        (
            "the size of a batch changes no score",
            lambda: close(score(questions), np.concatenate([score([question]) for question in questions])),
        ),
        (
            "the order of questions changes no score",
            lambda: close(score(questions), score(questions[::-1])[::-1]),
        ),
        (
            "a longer question beside it changes no score",
            lambda: close(score(questions), score([*questions, long])[:-1]),
        ),
        ("same seed, same scores", lambda: bool(np.array_equal(score(questions), score(questions)))),
        ("no questions, no scores", lambda: np.size(make().score([])) == 0),
    ]


def ignores_order(name: str, plugin: Callable[[Sequence[str]], Any]) -> bool:
    relations, questions = world().relations, marked_questions()
    scores = construct(name, lambda: plugin(relations)).score(questions)
    others = construct(name, lambda: plugin(relations[::-1])).score(questions)
    return close(np.asarray(scores), np.asarray(others)[:, ::-1])


def claims_of_networks(plugin: object, make: Callable[[], Any]) -> list[Claim]:
    return [
        ("saved and loaded, it scores the same", lambda: is_relation_scorer_rebuilt(make())),
        ("its gradients are finite", lambda: has_finite_gradients(plugin)),
    ]


def is_relation_scorer_rebuilt(scorer: Any) -> bool:
    questions = marked_questions()
    with tempfile.TemporaryDirectory() as folder:
        again = rebuilt(scorer, Path(folder, "model"), world())
    return bool(np.array_equal(scorer.score(questions), again.score(questions)))


def has_finite_gradients(plugin: object) -> bool:
    sketch: Callable[..., Any] = import_object("kbtools.scorers.fitting.training:small_task")
    with tempfile.TemporaryDirectory() as models:
        task = sketch(plugin, world(), marked_questions(), models=Path(models))
        task.network.train()
        # One question after the other: an encoder takes texts of one length.
        for row in range(len(task.lengths)):
            task.loss(np.array([row])).sum().backward()
    gradients = [parameter.grad for parameter in task.network.parameters() if parameter.grad is not None]
    return bool(gradients) and all(bool(gradient.isfinite().all()) for gradient in gradients)


def check_subject_scorer(name: str) -> Iterator[str]:
    """Check a subject scorer, and yield each claim that holds."""
    plugin = load_class(SUBJECT_SCORERS, name)
    make = maker(SUBJECT_SCORERS, name, untrained=world())
    yield from check_claims(name, subject_claims(name, make))
    if is_trainable(plugin):
        yield from check_claims(
            name, [("saved and loaded, it scores the same", lambda: is_subject_scorer_rebuilt(name, make()))]
        )
    if isinstance(make(), VectorScorer):
        yield from check_claims(name, [("its vectors are finite and of its dim", lambda: has_vectors(make()))])


def every_subject() -> NDArray[np.uint32]:
    return np.arange(world().manifest.counts["entities"].unique, dtype=np.uint32)


def score_all(name: str, scorer: Any, questions: list[MarkedQuestion]) -> NDArray[np.float64]:
    """Score every entity under every question: (questions, entities)."""
    # For every question, for every entity: one row.
    which = np.repeat(np.arange(len(questions)), len(every_subject()))
    subjects = np.tile(every_subject(), len(questions))
    scores = as_scores(scorer.score(questions, which=which, subjects=subjects), scorer=name, shape=(len(subjects),))
    return scores.reshape(len(questions), -1)


def subject_claims(name: str, make: Callable[[], Any]) -> list[Claim]:
    questions, subjects = marked_questions(), every_subject()

    def score(batch: list[MarkedQuestion]) -> NDArray[np.float64]:
        return score_all(name, make(), batch)

    def score_subjects(rows: NDArray[np.uint32]) -> NDArray[np.float64]:
        which = np.zeros(len(rows), dtype=np.int64)
        scores = make().score(questions[:1], which=which, subjects=rows)
        return as_scores(scores, scorer=name, shape=(len(rows),))

    return [
        ("a finite score for every subject of every question", lambda: score(questions) is not None),
        (
            "the size of a batch changes no score",
            lambda: close(score(questions), np.concatenate([score([question]) for question in questions])),
        ),
        (
            "a longer question beside it changes no score",
            lambda: close(score(questions), score([*questions, MarkedQuestion(Question.read(LONG), 0, 0)])[:-1]),
        ),
        (
            "the order of subjects changes no score",
            lambda: close(score_subjects(subjects), score_subjects(subjects[::-1])[::-1]),
        ),
        (
            "other subjects beside it change no score",
            lambda: close(score_subjects(subjects)[:2], score_subjects(subjects[:2])),
        ),
        ("same seed, same scores", lambda: bool(np.array_equal(score(questions), score(questions)))),
        ("no subjects, no scores", lambda: score_subjects(subjects[:0]).size == 0),
    ]


def is_subject_scorer_rebuilt(name: str, scorer: Any) -> bool:
    questions = marked_questions()
    with tempfile.TemporaryDirectory() as folder:
        again = rebuilt(scorer, Path(folder, "model"), world())
    return bool(np.array_equal(score_all(name, scorer, questions), score_all(name, again, questions)))


def has_vectors(scorer: VectorScorer) -> bool:
    vectors = scorer.embed_questions(marked_questions()), scorer.embed_subjects(every_subject())
    counts = len(marked_questions()), len(every_subject())
    return all(
        np.shape(table) == (count, scorer.dim) and bool(np.isfinite(table).all())
        for table, count in zip(vectors, counts, strict=True)
    )


def check_ranker(name: str) -> Iterator[str]:
    """Check a ranker, and yield each claim that holds."""
    plugin = load_class(RANKERS, name)
    features, gold = draw_candidates(seed=1)
    yield from check_claims(
        name, ranker_claims(name, lambda: construct(name, lambda: plugin.fit(features, gold, seed=1)))
    )


def draw_candidates(*, seed: int) -> tuple[Features, NDArray[np.bool_]]:
    """Draw candidates with three features, of which the first tells the gold one of each question most of the time."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(QUESTIONS * CANDIDATES, 3))
    liked = (values[:, 0] + 0.1 * random.normal(size=len(values))).reshape(QUESTIONS, CANDIDATES)
    gold = np.arange(CANDIDATES) == liked.argmax(axis=1)[:, np.newaxis]
    names = ("relation.mean", "subject", "mention")
    return Features(names, values, np.full(QUESTIONS, CANDIDATES)), gold.reshape(-1)


def ranker_claims(name: str, make: Callable[[], Any]) -> list[Claim]:
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
