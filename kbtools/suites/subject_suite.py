"""The contract of subject scorers."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import SUBJECT_SCORERS, load_class
from kbtools.ranking.contracts import VectorScorer, as_scores
from kbtools.suites.checking import Claim, check_claims, close, is_trainable, maker, rebuilt
from kbtools.suites.world import LONG, marked_questions, world
from kbtools.text.question import MarkedQuestion, Question


def check_subject_scorer(name: str) -> Iterator[str]:
    """Check a subject scorer, and yield each claim that holds."""
    plugin = load_class(SUBJECT_SCORERS, name)
    make = maker(SUBJECT_SCORERS, name, untrained=world())
    yield from check_claims(name, claims(name, make))
    if is_trainable(plugin):
        yield from check_claims(name, [("saved and loaded, it scores the same", lambda: is_rebuilt(name, make()))])
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


def claims(name: str, make: Callable[[], Any]) -> list[Claim]:
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


def is_rebuilt(name: str, scorer: Any) -> bool:
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
