"""Pruners and taggers of others: what goes wrong in one is a sentence that names it."""

from collections.abc import Sequence

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import BrokenPlugin
from kbtools.kb.contract import KnowledgeBase
from kbtools.pruning.pruners import words_of
from kbtools.text.question import Question


class Failing:
    """A pruner that fails."""

    def __init__(self, kb: KnowledgeBase) -> None: ...

    def links(self, questions: Sequence[Question]) -> object:
        raise KeyError("oops")


class Leaving(Failing):
    """A pruner that ends the program."""

    def links(self, questions: Sequence[Question]) -> object:
        raise SystemExit(3)


class Empty(Failing):
    """A pruner that gives nothing at all."""

    def links(self, questions: Sequence[Question]) -> object:
        return None


class Naming(Failing):
    """A pruner that gives names in place of links."""

    def links(self, questions: Sequence[Question]) -> object:
        return [["Dune", 7] for _ in questions]


class Silent(Failing):
    """A pruner that leaves out the questions without links."""

    def links(self, questions: Sequence[Question]) -> object:
        return []


class FailingTagger:
    """A tagger that fails."""

    def __init__(self, kb: KnowledgeBase) -> None: ...

    def spans(self, questions: Sequence[Question]) -> object:
        raise ValueError("no model here")


class FlatTagger(FailingTagger):
    """A tagger that gives a number for each word."""

    def spans(self, questions: Sequence[Question]) -> object:
        return [np.zeros(3) for _ in questions]


class SilentTagger(FailingTagger):
    """A tagger that forgets questions."""

    def spans(self, questions: Sequence[Question]) -> object:
        return []


@pytest.mark.parametrize(
    ("pruner", "sentence"),
    [
        ("Failing", r"pruner Failing failed: KeyError\('oops'\)"),
        ("Leaving", r"pruner Leaving failed: SystemExit\(3\)"),
        ("Empty", "pruner Empty failed: TypeError"),
        ("Naming", "pruner Naming gave int and str, expected links"),
        ("Silent", "pruner Silent gave links of 0 questions, expected 1"),
    ],
)
def test_a_pruner_that_breaks_its_contract_is_named(sample_memory: Answerer, pruner: str, sentence: str) -> None:
    with pytest.raises(BrokenPlugin, match=sentence):
        sample_memory.query("who wrote dune", pruning=f"{__name__}:{pruner}")


@pytest.mark.parametrize(
    ("tagger", "sentence"),
    [
        ("FailingTagger", r"tagger FailingTagger failed: ValueError\('no model here'\)"),
        ("FlatTagger", r"tagger FlatTagger gave \[\(3,\)\], expected \[\(3, 3\)\]"),
        ("SilentTagger", r"tagger SilentTagger gave \[\], expected \[\(3, 3\)\]"),
    ],
)
@pytest.mark.parametrize("pruning", ["focused", "focused-kb", "focused-k", "focused-idf"])
def test_a_tagger_that_breaks_its_contract_is_named(
    sample_memory: Answerer, pruning: str, tagger: str, sentence: str
) -> None:
    answerer = Answerer(sample_memory.kb, tagger=f"{__name__}:{tagger}")

    with pytest.raises(BrokenPlugin, match=sentence):
        answerer.query("who wrote dune", pruning=pruning)


class AnyWords(FailingTagger):
    """A tagger to which every n-gram is as probable as any other."""

    def spans(self, questions: Sequence[Question]) -> object:
        sizes = [len(words_of(question)) for question in questions]
        return [np.where(np.triu(np.ones((size, size))) > 0, 0.0, -np.inf) for size in sizes]


def test_a_result_names_the_tagger_that_guided_its_pruner(sample_memory: Answerer) -> None:
    answerer = Answerer(sample_memory.kb, tagger=f"{__name__}:AnyWords")

    results = [answerer.query("zzz", pruning=pruning) for pruning in ("focused-idf", "n-gram")]

    assert [result.tagger for result in results] == [f"{__name__}:AnyWords", None]


def test_the_room_offers_what_it_names() -> None:
    import kbtools.pruning as room

    assert [name for name in room.__all__ if not hasattr(room, name)] == []
