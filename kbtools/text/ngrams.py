"""The n-grams of a question, W(q) of the paper: every run of its words, with the forms to look up."""

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
"""The most punctuation marks of a name without words; FBSQ has at most three."""

_LONGEST_RUN = 256
"""The most marks in a row that are read; a longer run is not a title, and n-grams grow with its square."""

_MOST_APOSTROPHES = 2
"""The most apostrophes of an n-gram, as in `rock 'n' roll`; each adds one to the lengths tried."""


class Ngram(NamedTuple):
    """Tokens `first` to `last` of a question; a name matches if it is stored under `form`.

    `reading` is how the form was made: as written, without an apostrophe, or rewritten.
    """

    form: str
    first: int
    last: int
    start: int
    end: int
    reading: Form = Form.NORMAL

    @property
    def joined(self) -> bool:
        """Return whether an apostrophe of the question was removed."""
        return self.reading is Form.APOSTROPHE


_NEW = partial(tuple.__new__, Ngram)


def span_ngram(
    words: Sequence[tuple[int, Token]], first: int, last: int, form: str, reading: Form = Form.NORMAL
) -> Ngram:
    """Return the n-gram of the words of a question from `first` to `last`, each given with its place, under a form."""
    (begin, opening), (end, closing) = words[first], words[last]
    return Ngram(form, begin, end, opening.start, closing.end, reading)


Runs = Callable[[Sequence[str], frozenset[int]], Iterable[tuple[int, int]]]
"""A function that returns runs of words with some lengths: first and last word of each, shorter first."""


def every_run(words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
    """Return every run of words with one of some lengths."""
    most = len(words)
    wanted = sorted(lengths.intersection(range(1, most + 1)))
    return [(first, first + length - 1) for length in wanted for first in range(most - length + 1)]


def ngrams(question: Question, *, lengths: Iterable[int], likely: Runs = every_run) -> list[Ngram]:
    """Return the n-grams whose number of words is in `lengths`, then the runs of punctuation.

    The lengths of a knowledge base's names keep a long question linear; `likely` excludes more runs.
    """
    words = [(position, token) for position, token in enumerate(question.tokens) if token.is_word]
    texts = [token.text for _, token in words]
    wanted = frozenset(lengths)
    # A form is cut out of the joined words, which takes a third of the time of joining it.
    joined = " ".join(texts)
    behind = list(accumulate([len(text) + 1 for text in texts]))
    before = [0, *behind]
    every: list[Ngram] = []
    for first, last in likely(texts, wanted):
        (begin, opening), (end, closing) = words[first], words[last]
        # Built as bare tuples: calling the class takes three times as long.
        form = joined[before[first] : behind[last] - 1]
        every.append(_NEW((form, begin, end, opening.start, closing.end, Form.NORMAL)))
    if len(words) < len(question.tokens):
        if APOSTROPHE.search(question.text):
            every += _joined_ngrams(question, words, sorted(wanted))
        every += _punctuation_ngrams(question)
    return every


def _joined_ngrams(question: Question, words: list[tuple[int, Token]], wanted: list[int]) -> Iterator[Ngram]:
    """Yield the n-grams with an apostrophe inside, without it."""
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
    """Yield all runs of punctuation without spaces, for names such as `!!!` or `( )`."""
    marks: list[_Mark] = []
    for position, token in enumerate(question.tokens):
        if token.is_word:
            yield from _runs(marks)
            marks = []
        else:
            marks.extend(_marks_of(position, token, question.text))
    yield from _runs(marks)


class _Mark(NamedTuple):
    """A punctuation mark and its place."""

    form: str
    token: int
    start: int
    end: int


def _marks_of(position: int, token: Token, text: str) -> Iterator[_Mark]:
    """Yield the marks of a run of punctuation, one per visible character, even if it folds to several (`…`)."""
    for start in range(token.start, token.end):
        form = fold_character(text[start])
        if form:
            yield _Mark(form, position, start, start + 1)


def _runs(marks: list[_Mark]) -> Iterator[Ngram]:
    """Yield every run of marks up to the longest name of punctuation."""
    if len(marks) > _LONGEST_RUN:
        return
    for offset, first in enumerate(marks):
        form = ""
        for last in marks[offset : offset + _LONGEST_PUNCTUATION]:
            form += last.form
            if len(form) <= _LONGEST_PUNCTUATION:
                yield Ngram(form, first.token, last.token, first.start, last.end)
