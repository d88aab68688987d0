"""A plugin is found, and held to the contract of its kind, on a small knowledge base with questions.

from kbtools.suites import check_plugin

def test_contract():
    assert list(check_plugin("my_package:MyPruner", kind="pruner"))
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import (
    BACKENDS,
    KINDS,
    PRUNERS,
    RANKERS,
    READERS,
    SCORERS,
    SUBJECT_SCORERS,
    TAGGERS,
    construct,
    import_object,
    list_plugins,
    load_class,
)
from kbtools.errors import BrokenPlugin, UnknownPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.contracts import Trained
from kbtools.text.question import MarkedQuestion, Question

SUITES = {
    SCORERS: "kbtools.suites.scorer_suite:check_relation_scorer",
    SUBJECT_SCORERS: "kbtools.suites.scorer_suite:check_subject_scorer",
    TAGGERS: "kbtools.suites.pruner_suite:check_tagger",
    RANKERS: "kbtools.suites.scorer_suite:check_ranker",
    PRUNERS: "kbtools.suites.pruner_suite:check_pruner",
    READERS: "kbtools.suites.reader_suite:check_reader",
    BACKENDS: "kbtools.suites.backend_suite:check_backend",
}
"""The suite of each kind by its name: a suite imports what it checks."""

METHODS = {TAGGERS: "spans", RANKERS: "fit", PRUNERS: "links", READERS: "read", BACKENDS: "lookup"}
"""A method that only one kind of plugin has; scorers of both kinds have `score` alone, with `which` for subjects."""

TOLERANCE = 1e-5
"""The tolerance between two scores of one question: float32 sums in another order, about ten of its last digits."""

Claim = tuple[str, Callable[[], bool]]

FACTS = (
    ("m.dune", "book.written_work.author", "m.herbert"),
    ("m.dune_film", "film.film.directed_by", "m.lynch"),
    ("m.2001", "film.film.directed_by", "m.kubrick"),
    ("m.2001", "film.film.directed_by", "m.clarke"),
    ("m.harder", "music.album.genre", "m.house"),
    ("m.herbert", "people.person.place_of_birth", "m.tacoma"),
    ("m.tokyo", "location.location.containedby", "m.japan"),
    ("m.tokyo", "location.location.time_zone", '"UTC+9"'),
)
NAMES = (
    ("m.dune", "Dune"),
    ("m.dune_film", "Dune"),
    ("m.herbert", "Frank Herbert"),
    ("m.lynch", "David Lynch"),
    ("m.2001", "2001"),
    ("m.harder", "Harder.....Faster?"),
    ("m.tacoma", "Tacoma"),
    ("m.tokyo", "東京"),
)
ALIASES = (("m.tokyo", "Tokyo"), ("m.2001", "2001: A Space Odyssey"))
TYPES = (
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
"""A question longer than the others, to stand beside them."""


def check_plugin(name: str, *, kind: str | None = None, sample: Path | None = None) -> Iterator[str]:
    """Check a plugin by its name or as module:Class, and yield each claim that holds.

    `kind` is one of `kbtools plugins`, needed where the name does not tell it; `sample` is a small file for a reader,
    a small knowledge base for a backend.

    Raises BrokenPlugin at the first claim that does not hold, UnknownPlugin for a name that is offered by no kind, or
    by several.
    """
    group = group_of(name, kind)
    suite: Callable[..., Iterator[str]] = import_object(SUITES[group])
    return suite(name, sample) if group in (READERS, BACKENDS) else suite(name)


def group_of(name: str, kind: str | None) -> str:
    """Find the group of entry points that a plugin belongs to."""
    if kind:
        groups = [group for group, noun in KINDS.items() if noun == kind]
        if not groups:
            raise UnknownPlugin(f"no kind of plugin {kind!r}; known: {', '.join(KINDS.values())}", name=name)
        return groups[0]
    groups = groups_of_class(name) if ":" in name else [group for group in KINDS if name in list_plugins(group)]
    if len(groups) == 1:
        return groups[0]
    kinds = " and ".join(f"a {KINDS[group]}" for group in groups)
    status = f"is {kinds}" if groups else "has no method of a plugin" if ":" in name else "is no plugin's name"
    raise UnknownPlugin(f"{name!r} {status}; say which kind: {', '.join(KINDS.values())}", name=name)


def groups_of_class(name: str) -> list[str]:
    """Return the kinds of plugin that a class may be, by its methods."""
    plugin = import_object(name)
    groups = [group for group, method in METHODS.items() if hasattr(plugin, method)]
    if hasattr(plugin, "score") and not groups:
        groups.append(SUBJECT_SCORERS if "which" in inspect.signature(plugin.score).parameters else SCORERS)
    return groups


def check_claims(name: str, claims: Iterable[Claim]) -> Iterator[str]:
    """Yield each claim that holds; raise BrokenPlugin at the first that does not, or where the plugin fails."""
    for claim, holds in claims:
        try:
            holding, reason = holds(), ""
        except Exception as error:  # the plugin's, of whatever kind
            holding, reason = False, f" ({error!r})"
        if not holding:
            raise BrokenPlugin(f"plugin {name!r} breaks its contract: {claim}{reason}", name=name)
        yield claim


def maker(group: str, name: str, *, untrained: object) -> Callable[[], Any]:
    """Return a function that makes a plugin: from the argument of an untrained one, or as a small untrained model."""
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
    """Return whether two arrays of scores are the same up to rounding."""
    return scores.shape == expected.shape and bool(np.allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE))


def rebuilt(model: Any, folder: Path, kb: KnowledgeBase) -> Any:
    """Save a model to a folder, and load it from there."""
    model.save(folder)
    return type(model).load(folder, kb)


@functools.cache
def world() -> KnowledgeBase:
    """Return the small knowledge base in memory, the reference of all backends."""
    make = import_object("kbtools.indexers.folder.memory:MemoryKB")
    kb: KnowledgeBase = make(FACTS, NAMES, TYPES, aliases=ALIASES)
    return kb


def marked_questions() -> list[MarkedQuestion]:
    """Return the questions with their mentions marked."""
    return [
        MarkedQuestion(Question.read(text), text.find(mention), text.find(mention) + len(mention))
        for text, mention in QUESTIONS
    ]
