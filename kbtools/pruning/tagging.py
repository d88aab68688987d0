"""The contract of taggers, p(w|q): how probable each n-gram is as the mention (paper, Focused Pruning)."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbtools.entry_points import ask_plugin
from kbtools.errors import BrokenPlugin
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question

MOST_WORDS = 100
"""Words that a tagger reads: the longest question of FBSQ has 36, and spans grow with their square."""


class Tagger(Protocol):
    """A model of how probable each n-gram of a question is as the mention of the subject."""

    def spans(self, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
        """Give log p(w|q) of each question: (words, words), [i, j] for words i to j, minus infinity where j < i."""
        ...


def tag(tagger: Tagger, questions: Sequence[Question]) -> list[NDArray[np.float64]]:
    """Give log p(w|q) of each question; raise BrokenPlugin where a tagger fails, or gives tables of other shapes."""
    tables = ask_plugin("tagger", tagger, lambda: list(tagger.spans(questions)))
    shapes = [(len(words_of(question)),) * 2 for question in questions]
    if [np.shape(table) for table in tables] != shapes:
        name = type(tagger).__name__
        raise BrokenPlugin(f"tagger {name} gave {[*map(np.shape, tables)]}, expected {shapes}", name=name)
    return tables


class ExpectedTags:
    """The tables of a tagger, a question at a time; those of questions that come together are made together."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger
        self.tables: dict[Question, NDArray[np.float64]] = {}

    def expect(self, questions: Sequence[Question]) -> None:
        """Make the tables of the questions that come next, in place of those before."""
        self.tables = dict(zip(questions, tag(self.tagger, questions), strict=True))

    def of(self, question: Question) -> NDArray[np.float64]:
        """Give log p(w|q) of a question; raise BrokenPlugin as `tag` does."""
        table = self.tables.get(question)
        return tag(self.tagger, [question])[0] if table is None else table


def opening(question: Question) -> Question:
    """Cut a question after as many words as a tagger reads; what is beyond cannot be the mention."""
    places = [place for place, token in enumerate(question.tokens) if token.is_word]
    if len(places) <= MOST_WORDS:
        return question
    return Question(question.text, question.tokens[: places[MOST_WORDS]])


def word_places(question: Question) -> list[int]:
    """List the places of the words, of those a tagger reads, among the tokens of a question."""
    return [place for place, token in enumerate(opening(question).tokens) if token.is_word]


def words_of(question: Question) -> list[str]:
    """List the words of a question that a tagger reads."""
    return [question.tokens[place].text for place in word_places(question)]


def word_span(question: Question, mention: Ngram) -> tuple[int, int] | None:
    """Say which words a mention covers, first and last; nothing for one of punctuation alone."""
    covered = [word for word, place in enumerate(word_places(question)) if mention.first <= place <= mention.last]
    return (covered[0], covered[-1]) if covered else None
