"""A question, its tokens with offsets, and the words that name the subject."""

import html
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

from kbtools.quick_records import quick_record
from kbtools.text.normaliser import fold, fold_character, is_word_character, split_words

_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w*);")
_ENTITY_OR_CHARACTER = re.compile(rf"{_ENTITY.pattern}|.", re.DOTALL)
_ASCII_TOKENS = re.compile(r"([a-z0-9]+)|&|[^a-z0-9&\s]+")

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Letters of Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese, written without spaces."""

MOST_RUNS = 10_000
"""The most words and runs of punctuation read of a question; the longest of SimpleQuestions has 36 words."""

MOST_LETTERS = 2_000
"""The most letters of scripts without spaces read of a question: a name may begin and end at each, which takes half a
second for this many and three for 10,000."""

_REACH = 64
"""Words read before and after a mention, more than questions of SimpleQuestions have. Without this limit, scoring all
mentions takes quadratic time: 2 s for 4,000 characters."""

_RUN = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\w)+|[^\w\s]+")
"""Runs of letters or punctuation; each letter of a script without spaces is a run, since names may begin and end
there."""


class Token(NamedTuple):
    """A word or a run of punctuation: `text` is folded, `start` and `end` are character offsets in the question."""

    text: str
    start: int
    end: int
    is_word: bool


_NEW = partial(tuple.__new__, Token)


def tokenise(text: str) -> list[Token]:
    """Return the words and runs of punctuation of a question, in order, without spaces.

    The words, joined by spaces, are the normal form of the text.
    """
    return _unescaped_tokens(text) if "&" in text and _ENTITY.search(text) else plain_tokens(text)


def plain_tokens(text: str) -> list[Token]:
    """Return the words and runs of punctuation of a text without HTML entities."""
    return ascii_tokens(text) if text.isascii() else character_tokens(text)


def ascii_tokens(text: str) -> list[Token]:
    """Return the tokens of an ASCII text, three times as fast as for other texts."""
    # Built as bare tuples: calling the class takes twice as long.
    return [
        _NEW(("and", *match.span(), True) if match[0] == "&" else (match[0], *match.span(), match.lastindex == 1))
        for match in _ASCII_TOKENS.finditer(text.lower())
    ]


def character_tokens(text: str) -> list[Token]:
    """Return the tokens of any text by the kind of each folded character."""
    tokens = []
    for start, end in _character_spans(text):
        folded = fold(text[start:end])
        words = split_words(folded)
        if not words:
            tokens.append(Token(folded, start, end, is_word=False))
        tokens.extend(Token(word, start, end, is_word=True) for word in words)
    return tokens


def _unescaped_tokens(text: str) -> list[Token]:
    """Return the tokens of a text with HTML entities (`&amp;`); a character spans its whole entity."""
    decoded = ""
    places: list[tuple[int, int]] = []
    for match in _ENTITY_OR_CHARACTER.finditer(text):
        characters = html.unescape(match.group())
        decoded += characters
        places += [match.span()] * len(characters)
    return [
        Token(token.text, places[token.start][0], places[token.end - 1][1], token.is_word)
        for token in plain_tokens(decoded)
    ]


def _character_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each token by the kind of each folded character."""
    spans: list[tuple[int, int]] = []
    start, kind = 0, " "
    for position, character in enumerate(text):
        now = _character_kind(character)
        if now == "mark":
            now = kind if kind == "word" else "punctuation" if kind == "punctuation" else " "
        if now != kind or now == "&":
            if kind != " ":
                spans.append((start, position))
            start, kind = position, now
    if kind != " ":
        spans.append((start, len(text)))
    return spans


def _character_kind(character: str) -> str:
    """Return the kind of a character: word, punctuation, `&`, space, or a mark that joins the one before."""
    if character.isspace():
        return " "
    folded = fold_character(character)
    if folded == "&":
        return "&"
    if not folded:
        return "mark"
    if is_word_character(folded):
        return "word"
    return "punctuation" if folded.strip() else " "


@quick_record
@dataclass(frozen=True, slots=True)
class Question:
    """A question and its tokens, without the end of a very long one."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def read(cls, text: str) -> "Question":
        return cls(text, tuple(tokenise(text[: _end_of_reading(text)])))

    @property
    def unread(self) -> int:
        """Return the number of characters that are not read, without surrounding spaces."""
        return len(self.text[_end_of_reading(self.text) :].strip())


def _end_of_reading(text: str) -> int:
    """Return the end of the last run that is read."""
    # A text has at least as many characters as letters or runs.
    limits = [(UNSPACED, MOST_LETTERS), (_RUN, MOST_RUNS)]
    return min((_nth_end(pattern, text, most) for pattern, most in limits if len(text) > most), default=len(text))


def _nth_end(pattern: re.Pattern[str], text: str, number: int) -> int:
    """Return the end of the n-th match, or of the text if there are fewer."""
    return next((match.end() for match in islice(pattern.finditer(text), number - 1, None)), len(text))


@quick_record
@dataclass(frozen=True, slots=True)
class MarkedQuestion:
    """A question and the characters that name the subject; the rest is about the relation."""

    question: Question
    start: int
    end: int

    def words(self, *, symbol: str | None = None) -> list[str]:
        """Return the words near the mention, with the mention as one symbol if given."""
        words = []
        for token in self.tokens_within_reach():
            if token.is_word:
                mentioned = symbol is not None and self.start <= token.start and token.end <= self.end
                words.append(str(symbol) if mentioned else token.text)
        return [word for at, word in enumerate(words) if word != symbol or words[at - 1 : at] != [word]]

    def context(self) -> list[str]:
        """Return the words outside the mention, within reach."""
        start, end = self.start, self.end
        return [
            text
            for text, first, last, is_word in self.tokens_within_reach()
            if is_word and not (start <= first and last <= end)
        ]

    def tokens_within_reach(self) -> Sequence[Token]:
        tokens = self.question.tokens
        if len(tokens) <= _REACH:
            return tokens
        first = bisect_left(tokens, self.start, key=lambda token: token.start)
        last = bisect_left(tokens, self.end, key=lambda token: token.start)
        return tokens[max(first - _REACH, 0) : last + _REACH]
