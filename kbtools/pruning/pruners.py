"""Pruners, H(K, q) of the paper (Eq. 3): their contract, and how one is made from its name."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import PRUNERS, ask_plugin, construct, load_class
from kbtools.errors import BrokenPlugin, ModelMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.links import Link
from kbtools.pruning.tagging import Tagger
from kbtools.text.question import MarkedQuestion, Question

EmbedQuestions = Callable[[Sequence[MarkedQuestion]], NDArray[np.float32]]
"""g(q) of questions: (questions, dim)."""

Guide = Literal["tagger", "vectors"]
"""The second argument of a pruner, after the knowledge base: a tagger, or g(q) beside the vectors of entities."""

DEFAULT = "n-gram-idf"

UNGUIDED = ("n-gram", "n-gram+", "n-gram-idf")
"""The built-in pruners that are made with a knowledge base alone."""


class Pruner(Protocol):
    """A choice of the mentions of questions.

    A plugin is a class that is made with the knowledge base; one that declares `guide` gets its guide as well. An
    integer `version` in the class rises when the links that it gives change.
    """

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        """Return the links that are kept of each question; a weight of 0 throughout means no opinion between them."""
        ...


def prune(pruner: Pruner, questions: Sequence[Question]) -> list[list[Link]]:
    """Return the links that a pruner keeps of each question; raise BrokenPlugin if it fails or returns other things."""
    name = type(pruner).__name__
    links = ask_plugin("pruner", pruner, lambda: [list(own) for own in pruner.links(questions)])
    strangers = {type(link).__name__ for own in links for link in own if not isinstance(link, Link)}
    if strangers:
        raise BrokenPlugin(f"pruner {name} gave {' and '.join(sorted(strangers))}, expected links", name=name)
    if len(links) != len(questions):
        raise BrokenPlugin(f"pruner {name} gave links of {len(links)} questions, expected {len(questions)}", name=name)
    return links


def guide_of(pruner: object) -> Guide | None:
    """Return the guide of a pruner, or of its class; raise BrokenPlugin for an unknown one."""
    guide: Guide | None = getattr(pruner, "guide", None)
    if guide not in ("tagger", "vectors", None):
        raise BrokenPlugin(f"pruner {pruner!r} declares the guide {guide!r}, expected 'tagger', 'vectors' or None")
    return guide


def make_pruner(
    name: str,
    kb: KnowledgeBase,
    *,
    tagger: Callable[[], Tagger] | None = None,
    embedder: Callable[[], EmbedQuestions] | None = None,
) -> Pruner:
    """Make a pruner by its name or as module:Class, with the guide that it declares.

    Raises UnknownPlugin, BrokenPlugin, and ModelMissing where it is guided by what is not given.
    """
    plugin = load_class(PRUNERS, name)
    guide = guide_of(plugin)
    if guide is None:
        unguided: Pruner = construct(name, lambda: plugin(kb))
        return unguided
    make_guide, what = (tagger, "a tagger") if guide == "tagger" else (embedder, "vectors")
    if make_guide is None:
        raise ModelMissing(f"pruner {name!r} is guided by {what}, which this call does not give", name=name)
    made_with = make_guide()
    pruner: Pruner = construct(name, lambda: plugin(kb, made_with))
    return pruner
