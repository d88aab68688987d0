"""Lexicons of languages: their function words, and words of questions that hint at relations.

The English tables were measured on questions; see `function_words` and `common_words`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from kbtools.text.normaliser import fold, split_words

ENGLISH = "en"

_UMLAUTS = {"ae": "a", "oe": "o", "ue": "u"}
"""Umlauts spelt with two letters; folding does not change them."""


class Label(str):
    """A text with a language."""

    language: str

    @classmethod
    def of(cls, text: str, language: str) -> "Label":
        label = cls(text)
        label.language = language
        return label


def language_of(text: str) -> str:
    """Return the language of a text, English by default."""
    return base_language(getattr(text, "language", ENGLISH))


def base_language(tag: str) -> str:
    """Return the language of a tag without its region."""
    return tag.partition("-")[0]


class Lexicon(NamedTuple):
    """The folded words of a language; `hints` maps a word of questions to words of relations.

    In the table of hints, question words have a question mark in front.
    """

    language: str
    function_words: frozenset[str]
    hints: Mapping[str, Sequence[str]]

    def hinted(self, word: str) -> Sequence[str]:
        """Return the words of relations that a folded word of a question hints at."""
        return self.hints.get(respelt(self.language, word), ())


@cache
def lexicon(language: str) -> Lexicon:
    """Return the lexicon of a language, empty if there is no table of it."""
    texts = [words for tag, words in _table("function_words.txt") if tag == language]
    hints: dict[str, list[str]] = {}
    for tag, words, hinted in _table("question_words.txt"):
        if tag == language:
            texts += [words] if words.startswith("?") else []
            for word in _folded(words):
                hints.setdefault(respelt(language, word), []).extend(_folded(hinted))
    return Lexicon(language, frozenset(_folded(*texts)), hints)


def reads_english(languages: Sequence[str]) -> bool:
    """Return whether English words apply: no language is given, or one has no table."""
    return not all(lexicon(base_language(language)).function_words for language in languages) or not languages


def function_words(languages: Iterable[str]) -> frozenset[str]:
    """Return the function words and question words of languages."""
    return frozenset().union(*(lexicon(base_language(language)).function_words for language in languages))


def hinting_words(languages: Iterable[str]) -> frozenset[str]:
    """Return the words of questions in some languages that hint at a relation."""
    return frozenset().union(*(lexicon(base_language(language)).hints for language in languages))


def weak_words(languages: Sequence[str]) -> frozenset[str]:
    """Return the function words and hinting words of languages."""
    return function_words(languages) | hinting_words(languages)


def _table(name: str) -> Iterator[list[str]]:
    """Yield the rows of a table; the first column is the language."""
    for line in files("kbtools.text").joinpath(name).read_text(encoding="utf-8").splitlines():
        yield line.split("\t")


def _folded(*texts: str) -> list[str]:
    """Return the folded words of texts."""
    return split_words(fold(" ".join(texts)))


def respelt(language: str, word: str) -> str:
    """Return a folded German word without the second letter of umlauts; other words are unchanged."""
    if language == "de":
        for spelt, letter in _UMLAUTS.items():
            word = word.replace(spelt, letter)
    return word
