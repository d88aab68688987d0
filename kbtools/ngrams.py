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
    """Yield the runs of punctuation, in part, whole, and with those beside them: names such as `!!!` or `( )`.

    Of a run longer than any name, only the start is taken apart.
    """
    tokens = question.tokens
    for position, token in enumerate(tokens):
        if token.is_word:
            continue
        yield from parts_of_run(position, token)
        form, last = token.text, position + 1
        while last < len(tokens) and not tokens[last].is_word:
            form += tokens[last].text
            if len(form) > LONGEST_PUNCTUATION:
                break
            yield Ngram(form, position, last, token.start, tokens[last].end)
            last += 1


def parts_of_run(position: int, token: Token) -> Iterator[Ngram]:
    """Yield a run and its parts, longest first; one that folds to other characters (`…`) stays whole."""
    whole = min(len(token.text), LONGEST_PUNCTUATION)
    if len(token.text) != token.end - token.start:
        yield Ngram(token.text[:whole], position, position, token.start, token.end)
        return
    for length in range(whole, 0, -1):
        for offset in range(len(token.text) - length + 1 if length == whole else whole - length + 1):
            start = token.start + offset
            yield Ngram(token.text[offset : offset + length], position, position, start, start + length)
