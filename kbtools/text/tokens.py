"""The tokens of a question: its words and runs of punctuation, with offsets into the text as it was given."""

import re
from dataclasses import dataclass

from kbtools.text.normaliser import fold, fold_character, is_word_character, split_words

ASCII_TOKENS = re.compile(r"[A-Za-z0-9]+|&|[^A-Za-z0-9&\s]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a run of punctuation: `text` is folded, `start` and `end` are characters of the question."""

    text: str
    start: int
    end: int
    is_word: bool


def tokenise(text: str) -> list[Token]:
    """Split a question into words and runs of punctuation, in order; no character but space is lost.

    The words, joined by spaces, are the normal form of the text.
    """
    spans = ascii_spans(text) if text.isascii() else character_spans(text)
    tokens = []
    for start, end in spans:
        folded = fold(text[start:end])
        words = split_words(folded)
        if not words:
            tokens.append(Token(folded, start, end, is_word=False))
        tokens.extend(Token(word, start, end, is_word=True) for word in words)
    return tokens


def ascii_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in ASCII_TOKENS.finditer(text)]


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
    """Name the kind of a character: word, punctuation, `&`, space, or a mark that joins what precedes it."""
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
