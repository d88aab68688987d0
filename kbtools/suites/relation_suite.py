"""The contract of relation scorers."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbtools.entry_points import SCORERS, construct, import_object, load_class
from kbtools.ranking.contracts import Trained, ZeroShot, as_scores
from kbtools.suites.checking import Claim, check_claims, close, maker, rebuilt
from kbtools.suites.world import LONG, marked_questions, world
from kbtools.text.question import MarkedQuestion, Question


def check_relation_scorer(name: str) -> Iterator[str]:
    """Check a relation scorer, and yield each claim that holds."""
    plugin = load_class(SCORERS, name)
    if isinstance(plugin, ZeroShot):
        yield from check_untrained(name, plugin.zero_shot)
    elif not isinstance(plugin, Trained):
        yield from check_untrained(name, plugin)
    if isinstance(plugin, Trained):
        make = maker(SCORERS, name, untrained=world().relations)
        yield from check_claims(name, [*claims(name, make), *claims_of_networks(plugin, make)])


def check_untrained(name: str, plugin: Callable[[Sequence[str]], Any]) -> Iterator[str]:
    """Check a scorer that is made with the relations alone."""
    yield from check_claims(name, claims(name, lambda: construct(name, lambda: plugin(world().relations))))
    yield from check_claims(name, [("the order of relations changes no score", lambda: ignores_order(name, plugin))])


def claims(name: str, make: Callable[[], Any]) -> list[Claim]:
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
        ("saved and loaded, it scores the same", lambda: is_rebuilt(make())),
        ("its gradients are finite", lambda: has_finite_gradients(plugin)),
    ]


def is_rebuilt(scorer: Any) -> bool:
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
