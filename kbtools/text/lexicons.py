"""The words of languages: those that hold sentences together, and what words of questions hint at.

English has tables of its own, which were measured on questions; see `function_words` and `common_words`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from kbtools.text.normaliser import fold, split_words

ENGLISH = "en"

_UMLAUTS = {"ae": "a", "oe": "o", "ue": "u"}
"""Umlauts as who lacks the keys writes them; folding leaves the letters alone."""


class Label(str):
    """A text that is in a language."""

    language: str

    @classmethod
    def of(cls, text: str, language: str) -> "Label":
        label = cls(text)
        label.language = language
        return label


def language_of(text: str) -> str:
    """Return the language of a text, English for one that does not say it."""
    return base_language(getattr(text, "language", ENGLISH))


def base_language(tag: str) -> str:
    """Return the language that a tag is a region of, or itself."""
    return tag.partition("-")[0]


class Lexicon(NamedTuple):
    """The words of a language, folded: `hints` has for a word of questions those of relations that it hints at.

    In the table of these, question words stand behind a question mark.
    """

    language: str
    function_words: frozenset[str]
    hints: Mapping[str, Sequence[str]]

    def hinted(self, word: str) -> Sequence[str]:
        """Return the words of relations that a folded word of a question hints at."""
        return self.hints.get(respelt(self.language, word), ())


@cache
def lexicon(language: str) -> Lexicon:
    """Return the words of a language, none of one that no table has."""
    words_alone = [words for tag, words in _table("function_words.txt") if tag == language]
    hints: dict[str, list[str]] = {}
    for tag, words, hinted in _table("question_words.txt"):
        if tag == language:
            words_alone += [words] if words.startswith("?") else []
            for word in _folded(words):
                hints.setdefault(respelt(language, word), []).extend(_folded(hinted))
    return Lexicon(language, frozenset(_folded(*words_alone)), hints)


def reads_english(languages: Sequence[str]) -> bool:
    """Return whether the words of English count in languages: where none is given, or one has no table of its own."""
    return not all(lexicon(base_language(language)).function_words for language in languages) or not languages


def function_words(languages: Iterable[str]) -> frozenset[str]:
    """Return the function words and question words of languages."""
    return frozenset().union(*(lexicon(base_language(language)).function_words for language in languages))


def hinting_words(languages: Iterable[str]) -> frozenset[str]:
    """Return the words of questions in some languages that speak of a relation."""
    return frozenset().union(*(lexicon(base_language(language)).hints for language in languages))


def weak_words(languages: Sequence[str]) -> frozenset[str]:
    """Return the words that questions in some languages are made of."""
    return function_words(languages) | hinting_words(languages)


def _table(name: str) -> Iterator[list[str]]:
    """Yield the rows of a table beside this module; the first column is the language."""
    for line in files("kbtools.text").joinpath(name).read_text(encoding="utf-8").splitlines():
        yield line.split("\t")


def _folded(*texts: str) -> list[str]:
    """Return the words of texts as questions have them."""
    return split_words(fold(" ".join(texts)))


def respelt(language: str, word: str) -> str:
    """Return a folded word without the second letters of German umlauts, wherever these may stand."""
    if language == "de":
        for spelt, letter in _UMLAUTS.items():
            word = word.replace(spelt, letter)
    return word
