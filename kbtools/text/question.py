"""A question as given, its tokens, and which of its words name the subject."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from kbtools.quick_records import quick_record
from kbtools.text.tokens import UNSPACED, Token, tokenise

MOST_RUNS = 10_000
"""Runs of letters or of marks that are read of a question; the longest of SimpleQuestions has 36 words."""

MOST_LETTERS = 2_000
"""Letters of scripts without spaces that are read of a question. A name may begin and end at each, so that they are
looked up two dozen times: 10,000 take three seconds, as many as are read half a second."""

REACH = 64
"""Words on either side of a mention that speak of the relation, more than a question of SimpleQuestions has. Without
a limit, scoring every mention beside all other words grows with the square: 2 s for 4,000 characters."""

RUN = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\w)+|[^\w\s]+")
"""A letter of a script without spaces is a run of its own: names may begin and end at each."""


@quick_record
@dataclass(frozen=True, slots=True)
class Question:
    """A question as given, and the tokens of what is read of it: all but the end of a very long one."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def read(cls, text: str) -> "Question":
        return cls(text, tuple(tokenise(text[: end_of_reading(text)])))

    @property
    def unread(self) -> int:
        """Count the characters that are not read, spaces at the ends left out."""
        return len(self.text[end_of_reading(self.text) :].strip())


def end_of_reading(text: str) -> int:
    """Find where the last run ends that is read."""
    # A text has no more letters and no more runs than characters.
    limits = [(UNSPACED, MOST_LETTERS), (RUN, MOST_RUNS)]
    return min((nth_end(pattern, text, most) for pattern, most in limits if len(text) > most), default=len(text))


def nth_end(pattern: re.Pattern[str], text: str, number: int) -> int:
    """Find where the match of a number ends, or the text where there are fewer."""
    return next((match.end() for match in islice(pattern.finditer(text), number - 1, None)), len(text))


@quick_record
@dataclass(frozen=True, slots=True)
class MarkedQuestion:
    """A question and the characters of it that name the subject; the rest speaks of the relation."""

    question: Question
    start: int
    end: int

    def words(self, *, symbol: str | None = None) -> list[str]:
        """List the words around the mention, within reach, with one symbol in its place if one is given."""
        words = []
        for token in self.tokens_within_reach():
            if token.is_word:
                mentioned = symbol is not None and self.start <= token.start and token.end <= self.end
                words.append(str(symbol) if mentioned else token.text)
        return [word for at, word in enumerate(words) if word != symbol or words[at - 1 : at] != [word]]

    def context(self) -> list[str]:
        """List the words outside the mention, within reach."""
        start, end = self.start, self.end
        return [
            text
            for text, first, last, is_word in self.tokens_within_reach()
            if is_word and not (start <= first and last <= end)
        ]

    def tokens_within_reach(self) -> Sequence[Token]:
        tokens = self.question.tokens
        if len(tokens) <= REACH:
            return tokens
        first = bisect_left(tokens, self.start, key=lambda token: token.start)
        last = bisect_left(tokens, self.end, key=lambda token: token.start)
        return tokens[max(first - REACH, 0) : last + REACH]
