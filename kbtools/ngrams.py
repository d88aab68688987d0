"""The n-grams of a question, W(q) of the paper: every run of its words, with the forms to look it up under."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kbtools.forms import APOSTROPHE, join_apostrophes
from kbtools.normalise import normal_form
from kbtools.tokens import Token, tokenise

LONGEST_PUNCTUATION = 16
MOST_APOSTROPHES = 2
"""Apostrophes that an n-gram may hold beyond the words that names have."""


class Ngram(NamedTuple):
    """Tokens `first` to `last` of a question; `form` is what a name must be stored under to match.

    `joined` says that the form was made by leaving out an apostrophe of the question.
    """

    form: str
    first: int
    last: int
    start: int
    end: int
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A question as given, and its tokens."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def read(cls, text: str) -> "Question":
        return cls(text, tuple(tokenise(text)))


def ngrams(question: Question, *, lengths: Iterable[int]) -> Iterator[Ngram]:
    """Yield the n-grams whose number of words is in `lengths`, then the runs of punctuation.

    A knowledge base knows how many words its names have, so that a question of thousands of words costs no more
    than its own length times the few lengths that occur.
    """
    tokens, text = question.tokens, question.text
    words = [position for position, token in enumerate(tokens) if token.is_word]
    spoken = [tokens[position].text for position in words]
    wanted = set(lengths)
    apostrophes = len(APOSTROPHE.findall(text))
    longer = {length + more for length in wanted for more in range(1, min(apostrophes, MOST_APOSTROPHES) + 1)}
    for length in sorted(wanted | longer):
        for offset in range(len(words) - length + 1):
            first, last = words[offset], words[offset + length - 1]
            start, end = tokens[first].start, tokens[last].end
            if length in wanted:
                yield Ngram(" ".join(spoken[offset : offset + length]), first, last, start, end)
            if apostrophes and APOSTROPHE.search(text, start, end):
                joined = normal_form(join_apostrophes(text[start:end]))
                if joined.count(" ") + 1 in wanted:
                    yield Ngram(joined, first, last, start, end, joined=True)
    yield from punctuation_ngrams(question)


def punctuation_ngrams(question: Question) -> Iterator[Ngram]:
    """Yield the runs of punctuation, whole and in part, spaces left out: names such as `!!!` or `( )` are no more."""
    marks: list[Mark] = []
    for position, token in enumerate(question.tokens):
        if token.is_word:
            yield from runs(marks)
            marks = []
        else:
            marks.extend(marks_of(position, token))
    yield from runs(marks)


class Mark(NamedTuple):
    """A mark of a run of punctuation, and where it stands."""

    form: str
    token: int
    start: int
    end: int


def marks_of(position: int, token: Token) -> Iterator[Mark]:
    """Take a run of punctuation apart, unless it folds to other characters than it has (`…`)."""
    if len(token.text) == token.end - token.start:
        yield from (Mark(mark, position, start, start + 1) for start, mark in enumerate(token.text, token.start))
    else:
        yield Mark(token.text, position, token.start, token.end)


def runs(marks: list[Mark]) -> Iterator[Ngram]:
    """Yield every run of marks that is no longer than names of punctuation are."""
    for offset, first in enumerate(marks):
        form = ""
        for last in marks[offset : offset + LONGEST_PUNCTUATION]:
            form += last.form
            if len(form) <= LONGEST_PUNCTUATION:
                yield Ngram(form, first.token, last.token, first.start, last.end)
