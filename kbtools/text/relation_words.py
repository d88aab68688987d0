"""The words that the name of a relation or a type is made of, for whoever compares them with a question's."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote

from kbtools.text.normaliser import fold, split_words

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
PARTS = re.compile(r"[/.#:]+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")
"""The borders of words inside a part, besides punctuation: `birthPlace`, `HTMLPage`, `place_of_birth`."""


WORDS_REMEMBERED = 50_000
"""Names whose words are remembered: the relations and types of several knowledge bases."""


def relation_parts(name: str) -> list[list[str]]:
    """Split a name into its parts, and each into its words; the last part says most.

    `people.person.place_of_birth` has the parts people, person and place of birth. Of a URL only the last part counts:
    `http://dbpedia.org/ontology/birthPlace` is birth place.
    """
    if SCHEME.match(name):
        name = unquote(re.split(r"[/#]", name.rstrip("/#"))[-1])
    parts = (split_part(part) for part in PARTS.split(name))
    return [list(part) for part in parts if part]


@lru_cache(WORDS_REMEMBERED)
def split_part(part: str) -> tuple[str, ...]:
    """Split a part of a name into words; thousands of relations share domains and types."""
    return tuple(split_words(fold(CAMEL.sub(" ", part))))


def relation_words(name: str) -> list[str]:
    """Split a name into its words, those of all its parts in order; empty if it has no letter or digit."""
    return list(split_once(name))


@lru_cache(WORDS_REMEMBERED)
def split_once(name: str) -> tuple[str, ...]:
    """Split a name that linking and several scorers read."""
    return tuple(word for part in relation_parts(name) for word in part)


def words_of_all(names: Iterable[str]) -> frozenset[str]:
    """Gather the words of several names."""
    return frozenset().union(*map(split_once, names))


SUFFIXES = (
    *("", "s", "es", "e", "ed", "d", "er", "r", "ers", "or", "ors", "ing", "ings", "ion", "ions", "ation", "ations"),
    *("ition", "ment", "ly", "y", "ies", "al", "ity", "n", "en", "ian", "ist", "ists", "ness", "ship"),
)
"""Endings of English words: `published`, `publisher` and `publishing` are forms of one."""

SHORTEST_STEM = 4
"""Letters of a stem: of fewer, words that mean other things share one."""


def stems_of(word: str) -> set[str]:
    """List what a word may be a form of: it, and it without each ending that it has."""
    cut = (word[: len(word) - len(suffix)] for suffix in SUFFIXES if word.endswith(suffix))
    return {word} | {stem for stem in cut if len(stem) >= SHORTEST_STEM}
