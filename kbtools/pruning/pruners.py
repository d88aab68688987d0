"""Pruners, H(K, q) in the paper (Eq. 3), and taggers, p(w|q): how probable each n-gram is as the mention (Focused
Pruning)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import PRUNERS, ask_plugin, construct, load_class
from kbtools.errors import BrokenPlugin, ModelMissing
from kbtools.kb.contract import ABSENT, KnowledgeBase
from kbtools.linking.links import Link
from kbtools.text.ngrams import Ngram, ngrams
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.variants import name_forms


class Tagger(Protocol):
    """A model of the probability of each n-gram as the mention of the subject."""

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        """Return log p(w|q) of each question: (words, words), [i, j] for words i to j, minus infinity if j < i."""
        ...


EmbedQuestions = Callable[[Sequence[MarkedQuestion]], NDArray[np.float32]]
"""g(q) of questions: (questions, dim)."""

Guide = Literal["tagger", "vectors"]
"""The second argument of a pruner, after the knowledge base: a tagger, or g(q) if there are entity vectors."""

DEFAULT = "n-gram-idf"

UNGUIDED = ("n-gram", "n-gram+", "n-gram-idf")
"""The built-in pruners that need only a knowledge base."""

MOST_WORDS = 100
"""The most words that a tagger reads: FBSQ's longest question has 36, and spans grow with the square."""


class Pruner(Protocol):
    """A choice of the mentions of questions.

    A plugin is a class that is called with the knowledge base, and with its guide if it declares `guide`. An integer
    `version` in the class rises when its links change.
    """

    def links(self, questions: Sequence[Question]) -> list[list[Link]]:
        """Return the links kept of each question; all weights are 0 if the pruner has no preference."""
        ...


def prune(pruner: Pruner, questions: Sequence[Question]) -> list[list[Link]]:
    """Return the links that a pruner keeps; raise BrokenPlugin if it fails or returns something else."""
    name = type(pruner).__name__
    links = ask_plugin("pruner", pruner, lambda: [list(kept) for kept in pruner.links(questions)])
    strangers = {type(link).__name__ for kept in links for link in kept if not isinstance(link, Link)}
    if strangers:
        raise BrokenPlugin(f"pruner {name} gave {' and '.join(sorted(strangers))}, expected links", name=name)
    if len(links) != len(questions):
        raise BrokenPlugin(f"pruner {name} gave links of {len(links)} questions, expected {len(questions)}", name=name)
    return links


def guide_of(pruner: object) -> Guide | None:
    """Return the guide of a pruner or its class; raise BrokenPlugin for an unknown one."""
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
    """Return a pruner by its name or as `module:Class`, with the guide that it declares.

    Raises UnknownPlugin, BrokenPlugin, and ModelMissing if its guide is not provided.
    """
    plugin = load_class(PRUNERS, name)
    guide = guide_of(plugin)
    if guide is None:
        unguided: Pruner = construct(name, lambda: plugin(kb))
        return unguided
    make_guide, what = (tagger, "a tagger") if guide == "tagger" else (embedder, "vectors")
    if make_guide is None:
        raise ModelMissing(f"pruner {name!r} is guided by {what}, which this call does not provide", name=name)
    guide_model = make_guide()
    pruner: Pruner = construct(name, lambda: plugin(kb, guide_model))
    return pruner


def tag(tagger: Tagger, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
    """Return log p(w|q) of each question; raise BrokenPlugin if a tagger fails or returns other shapes."""
    tables = ask_plugin("tagger", tagger, lambda: list(tagger.spans(questions)))
    shapes = [(len(words_of(question)),) * 2 for question in questions]
    if [np.shape(table) for table in tables] != shapes:
        name = type(tagger).__name__
        raise BrokenPlugin(f"tagger {name} gave {[*map(np.shape, tables)]}, expected {shapes}", name=name)
    return tables


def opening(question: Question) -> Question:
    """Return a question cut after the words that a tagger reads, which alone can be the mention."""
    places = [place for place, token in enumerate(question.tokens) if token.is_word]
    if len(places) <= MOST_WORDS:
        return question
    return Question(question.text, question.tokens[: places[MOST_WORDS]])


def word_places(question: Question) -> list[int]:
    """Return the places, among the tokens of a question, of the words that a tagger reads."""
    return [place for place, token in enumerate(opening(question).tokens) if token.is_word]


def words_of(question: Question) -> list[str]:
    """Return the words of a question that a tagger reads."""
    return [question.tokens[place].text for place in word_places(question)]


def word_span(question: Question, mention: Ngram) -> tuple[int, int] | None:
    """Return the first and last word of a mention, None for one that is only punctuation."""
    covered = [word for word, place in enumerate(word_places(question)) if mention.first <= place <= mention.last]
    return (covered[0], covered[-1]) if covered else None


def label_mentions(
    kb: KnowledgeBase, questions: Sequence[Question], *, subjects: NDArray[np.int64]
) -> list[Ngram | None]:
    """Return the mention of each gold subject: the longest n-gram that is one of its names, ties by place.

    None if there is no such n-gram, or if the subject is ABSENT (paper, section Dataset).
    """
    known = np.unique(subjects[subjects != ABSENT]).astype(np.uint32)
    names = dict(zip(known.tolist(), kb.names_of(known), strict=True))
    return [
        longest_match(question, (form for name in names.get(subject, ()) for form in name_forms(name.text)))
        for question, subject in zip(questions, subjects.tolist(), strict=True)
    ]


def longest_match(question: Question, forms: Iterable[str]) -> Ngram | None:
    """Return the longest n-gram with one of some forms, ties by place, None if there is none."""
    form_set = set(forms)
    lengths = {form.count(" ") + 1 for form in form_set}
    matches = [ngram for ngram in ngrams(question, lengths=lengths) if ngram.form in form_set]
    return min(matches, key=lambda ngram: (ngram.first - ngram.last, ngram.first, ngram.joined), default=None)
