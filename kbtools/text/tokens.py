"""The tokens of a question: its words and runs of punctuation, with offsets into the text as it was given."""

import html
import re
from functools import partial
from typing import NamedTuple

from kbtools.text.normaliser import fold, fold_character, is_word_character, split_words

ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w*);")
ENTITY_OR_CHARACTER = re.compile(rf"{ENTITY.pattern}|.", re.DOTALL)
ASCII_TOKENS = re.compile(r"([a-z0-9]+)|&|[^a-z0-9&\s]+")


UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Letters of Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese, which are written without spaces."""


class Token(NamedTuple):
    """A word or a run of punctuation: `text` is folded, `start` and `end` are characters of the question."""

    text: str
    start: int
    end: int
    is_word: bool


NEW = partial(tuple.__new__, Token)


def tokenise(text: str) -> list[Token]:
    """Split a question into words and runs of punctuation, in order; no character but space is lost.

    The words, joined by spaces, are the normal form of the text.
    """
    return unescaped_tokens(text) if "&" in text and ENTITY.search(text) else plain_tokens(text)


def plain_tokens(text: str) -> list[Token]:
    """Split a text into words and runs of punctuation by its characters."""
    return ascii_tokens(text) if text.isascii() else character_tokens(text)


def ascii_tokens(text: str) -> list[Token]:
    """Split a text of ASCII, as most questions are, in a third of the time that any text takes."""
    # Made of tuples as they are: calling the class takes twice as long.
    return [
        NEW(("and", *match.span(), True) if match[0] == "&" else (match[0], *match.span(), match.lastindex == 1))
        for match in ASCII_TOKENS.finditer(text.lower())
    ]


def character_tokens(text: str) -> list[Token]:
    """Split any text by the kind of each folded character."""
    tokens = []
    for start, end in character_spans(text):
        folded = fold(text[start:end])
        words = split_words(folded)
        if not words:
            tokens.append(Token(folded, start, end, is_word=False))
        tokens.extend(Token(word, start, end, is_word=True) for word in words)
    return tokens


def unescaped_tokens(text: str) -> list[Token]:
    """Split a text with HTML entities (`&amp;`); a character spans all letters of its entity."""
    decoded = ""
    places: list[tuple[int, int]] = []
    for match in ENTITY_OR_CHARACTER.finditer(text):
        characters = html.unescape(match.group())
        decoded += characters
        places += [match.span()] * len(characters)
    return [
        Token(token.text, places[token.start][0], places[token.end - 1][1], token.is_word)
        for token in plain_tokens(decoded)
    ]


def character_spans(text: str) -> list[tuple[int, int]]:
    """Find the tokens of any text by the kind of each folded character."""
    spans: list[tuple[int, int]] = []
    start, kind = 0, " "
    for position, character in enumerate(text):
        now = character_kind(character)
        if now == "mark":
            now = kind if kind == "word" else "punctuation" if kind == "punctuation" else " "
        if now != kind or now == "&":
            if kind != " ":
                spans.append((start, position))
            start, kind = position, now
    if kind != " ":
        spans.append((start, len(text)))
    return spans


def character_kind(character: str) -> str:
    """Return the kind of a character: word, punctuation, `&`, space, or a mark that joins what precedes it."""
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
