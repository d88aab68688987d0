"""The common part of contract suites: a small knowledge base, questions, claims, and models to check."""

import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import construct, import_object, load_class
from kbtools.errors import BrokenPlugin
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import Trained
from kbtools.text.question import MarkedQuestion, Question

TOLERANCE = 1e-5
"""Tolerance between two scores of a question, about ten units in the last place of a float32."""

Claim = tuple[str, Callable[[], bool]]

_Arrays = Sequence[NDArray[Any]] | NDArray[Any]
"""An array for each question."""

_FACTS = (
    ("m.dune", "book.written_work.author", "m.herbert"),
    ("m.dune_film", "film.film.directed_by", "m.lynch"),
    ("m.2001", "film.film.directed_by", "m.kubrick"),
    ("m.2001", "film.film.directed_by", "m.clarke"),
    ("m.harder", "music.album.genre", "m.house"),
    ("m.herbert", "people.person.place_of_birth", "m.tacoma"),
    ("m.tokyo", "location.location.containedby", "m.japan"),
    ("m.tokyo", "location.location.time_zone", '"UTC+9"'),
)
_NAMES = (
    ("m.dune", "Dune"),
    ("m.dune_film", "Dune"),
    ("m.herbert", "Frank Herbert"),
    ("m.lynch", "David Lynch"),
    ("m.2001", "2001"),
    ("m.harder", "Harder.....Faster?"),
    ("m.tacoma", "Tacoma"),
    ("m.tokyo", "東京"),
)
_ALIASES = (("m.tokyo", "Tokyo"), ("m.2001", "2001: A Space Odyssey"))
_TYPES = (
    ("m.dune", "book.written_work"),
    ("m.dune_film", "film.film"),
    ("m.2001", "film.film"),
    ("m.herbert", "people.person"),
    ("m.herbert", "book.author"),
)

QUESTIONS = (
    ("who wrote dune", "dune"),
    ("where was frank herbert born ?", "frank herbert"),
    ("what", ""),
    ("", ""),
    ("which director made the film 2001 and what else is there to say of it at such length", "2001"),
    ("what genre of album is harder.....faster?", "harder.....faster"),
    ("Vujačić 東京 نجيب", "東京"),
    ("where was frank herbret born", "frank herbret"),
)
"""Texts and mentions: short and long, empty, without a mention, in other scripts, misspelt."""

LONG = "and so on " * 50
"""A question longer than all others."""


def check_claims(name: str, claims: Iterable[Claim]) -> Iterator[str]:
    """Yield each claim that holds; raise BrokenPlugin at the first that fails, or if the plugin raises an error."""
    for claim, holds in claims:
        try:
            holding, reason = holds(), ""
        except Exception as error:  # any error of the plugin
            holding, reason = False, f" ({error!r})"
        if not holding:
            raise BrokenPlugin(f"plugin {name!r} breaks its contract: {claim}{reason}", name=name)
        yield claim


def maker(group: str, name: str, *, untrained: object) -> Callable[[], Any]:
    """Return a function that makes a plugin, from the argument of an untrained one or as a small untrained model."""
    plugin = load_class(group, name)
    if not isinstance(plugin, Trained):
        return lambda: construct(name, lambda: plugin(untrained))
    if not is_trainable(plugin):
        raise BrokenPlugin(
            f"plugin {name!r} is rebuilt by its `load` alone, without `task`; check it in tests of its own", name=name
        )
    sketch: Callable[..., Any] = import_object("kbtools.scorers.fitting.training:small_model")
    return lambda: construct(name, lambda: sketch(plugin, world(), marked_questions()))


def is_trainable(plugin: object) -> bool:
    """Return whether a small model of a plugin can be made without training."""
    return isinstance(plugin, Trained) and hasattr(plugin, "task")


def close(scores: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Return whether two arrays of scores are equal up to rounding."""
    return scores.shape == expected.shape and bool(np.allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE))


def _is_same(arrays: _Arrays, expected: _Arrays) -> bool:
    """Return whether two lists of arrays are equal up to rounding."""
    return len(arrays) == len(expected) and all(map(close, arrays, expected))


def batch_claims(
    result: str, ask: Callable[[list[MarkedQuestion]], _Arrays], ask_new: Callable[[list[MarkedQuestion]], _Arrays]
) -> list[Claim]:
    """Return the claims that results for a question depend only on it.

    `ask` returns an array for each question by one model, and `ask_new` by a new one each time.
    """
    questions = marked_questions()
    long = MarkedQuestion(Question.read(LONG), 0, 0)
    return [
        (
            f"the size of a batch changes no {result}",
            lambda: _is_same(ask(questions), [array for question in questions for array in ask([question])]),
        ),
        (f"the order of questions changes no {result}", lambda: _is_same(ask(questions), ask(questions[::-1])[::-1])),
        (
            f"a longer question beside it changes no {result}",
            lambda: _is_same(ask(questions), ask([*questions, long])[:-1]),
        ),
        (f"same seed, same {result}s", lambda: all(map(np.array_equal, ask(questions), ask_new(questions)))),
    ]


def saved_and_loaded(model: Any, *loaded_with: object) -> Any:
    """Return a model after saving and loading it."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        return type(model).load(Path(folder, "model"), *loaded_with)


@functools.cache
def world() -> KnowledgeBase:
    """Return the small knowledge base in memory, the reference of all backends."""
    return MemoryKB(_FACTS, _NAMES, _TYPES, aliases=_ALIASES)


def marked_questions() -> list[MarkedQuestion]:
    """Return the questions with their mentions marked."""
    return [
        MarkedQuestion(Question.read(text), text.find(mention), text.find(mention) + len(mention))
        for text, mention in QUESTIONS
    ]
