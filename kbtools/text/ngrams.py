"""The n-grams of a question, W(q) of the paper: every run of its words, with the forms to look it up under."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from kbtools.deadline import check_time
from kbtools.text.normaliser import fold_character, normal_form
from kbtools.text.question import Question, Token
from kbtools.text.rewritings import APOSTROPHE, join_apostrophes
from kbtools.text.rungs import Form

_LONGEST_PUNCTUATION = 16
"""Marks of a name without words: those of FBSQ have three at most."""

_LONGEST_RUN = 256
"""Marks in a row that are read; a longer run is no title, and its n-grams grow with its square."""

_MOST_APOSTROPHES = 2
"""Apostrophes of one n-gram, `rock 'n' roll` has two; each adds one to the lengths that are tried."""


class Ngram(NamedTuple):
    """Tokens `first` to `last` of a question; `form` is what a name must be stored under to match.

    `reading` says how the form was made: as the words stand, by leaving out an apostrophe, or written otherwise.
    """

    form: str
    first: int
    last: int
    start: int
    end: int
    reading: Form = Form.NORMAL

    @property
    def joined(self) -> bool:
        """Return whether an apostrophe of the question was left out."""
        return self.reading is Form.APOSTROPHE


_NEW = partial(tuple.__new__, Ngram)

Runs = Callable[[Sequence[str], frozenset[int]], Iterable[tuple[int, int]]]
"""Lists runs of words whose number is among some lengths: the first and the last word of each, the shorter first."""


def every_run(words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
    """List every run of words that has one of some lengths."""
    most = len(words)
    wanted = sorted(lengths.intersection(range(1, most + 1)))
    return [(first, first + length - 1) for length in wanted for first in range(most - length + 1)]


def ngrams(question: Question, *, lengths: Iterable[int], likely: Runs = every_run) -> list[Ngram]:
    """List the n-grams whose number of words is in `lengths`, then the runs of punctuation.

    A knowledge base knows how many words its names have, so that a question of thousands of words costs no more
    than its own length times the few lengths that occur; and which runs of words are likely, so that few are made.
    """
    words = [(position, token) for position, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    wanted = frozenset(lengths)
    # A form is cut out of all words, which takes a third of the time of joining its own.
    spoken = " ".join(texts)
    behind = list(accumulate([len(text) + 1 for text in texts]))
    before = [0, *behind]
    every: list[Ngram] = []
    for first, last in likely(texts, wanted):
        (begin, opening), (end, closing) = words[first], words[last]
        # Made of tuples as they are: calling the class takes three times as long.
        form = spoken[before[first] : behind[last] - 1]
        every.append(_NEW((form, begin, end, opening.start, closing.end, Form.NORMAL)))
    if len(words) < len(question.tokens):
        if APOSTROPHE.search(question.text):
            every += _joined_ngrams(question, words, sorted(wanted))
        every += _punctuation_ngrams(question)
    return every


def _joined_ngrams(question: Question, words: list[tuple[int, Token]], wanted: list[int]) -> Iterator[Ngram]:
    """Yield the n-grams with an apostrophe inside, as if it were not there."""
    text = question.text
    apostrophes = min(len(APOSTROPHE.findall(text)), _MOST_APOSTROPHES)
    for length in sorted({length + more for length in wanted for more in range(1, apostrophes + 1)}):
        if length > len(words):
            break
        check_time()
        for offset in range(len(words) - length + 1):
            (first, begin), (last, finish) = words[offset], words[offset + length - 1]
            if APOSTROPHE.search(text, begin.start, finish.end):
                joined = normal_form(join_apostrophes(text[begin.start : finish.end]))
                if joined.count(" ") + 1 in wanted:
                    yield Ngram(joined, first, last, begin.start, finish.end, Form.APOSTROPHE)


def _punctuation_ngrams(question: Question) -> Iterator[Ngram]:
    """Yield the runs of punctuation, whole and in part, spaces left out: names such as `!!!` or `( )` are no more."""
    marks: list[_Mark] = []
    for position, token in enumerate(question.tokens):
        if token.is_word:
            yield from _runs(marks)
            marks = []
        else:
            marks.extend(_marks_of(position, token, question.text))
    yield from _runs(marks)


class _Mark(NamedTuple):
    """A mark of a run of punctuation, and where it stands."""

    form: str
    token: int
    start: int
    end: int


def _marks_of(position: int, token: Token, text: str) -> Iterator[_Mark]:
    """Take a run of punctuation apart: a character is one mark, though it fold to several (`…`) or be unseen."""
    for start in range(token.start, token.end):
        form = fold_character(text[start])
        if form:
            yield _Mark(form, position, start, start + 1)


def _runs(marks: list[_Mark]) -> Iterator[Ngram]:
    """Yield every run of marks up to the length of names of punctuation."""
    if len(marks) > _LONGEST_RUN:
        return
    for offset, first in enumerate(marks):
        form = ""
        for last in marks[offset : offset + _LONGEST_PUNCTUATION]:
            form += last.form
            if len(form) <= _LONGEST_PUNCTUATION:
                yield Ngram(form, first.token, last.token, first.start, last.end)
