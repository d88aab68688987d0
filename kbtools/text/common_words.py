"""The frequency class of English words, from SCOWL's levels, which separates the word `rest` from the name `REST`."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files

from kbtools.text.function_words import FUNCTION_WORDS

_ENDINGS = ("s", "es", "ed", "d", "ing", "ly", "er", "r", "ers", "rs", "est", "st", "ness")
"""Endings that words in the table lack; before them an `e` or a doubled letter may be missing."""

_SHORTEST_BASE = 3

UNKNOWN, ORDINARY, COMMON, VERY_COMMON, FUNCTION = range(5)
"""A word outside the table, such as a name; SCOWL's levels 35, 20 and 10; a function word."""

_WORDS_REMEMBERED = 100_000


@cache
def _word_levels() -> Mapping[str, int]:
    """Return the table made by `benchmarks/make_word_tables.py`."""
    lines = files("kbtools.text").joinpath("english_words.txt").read_text(encoding="utf-8").splitlines()
    return {
        word: level
        for level, line in zip((VERY_COMMON, COMMON, ORDINARY), lines, strict=True)
        for word in line.split(" ")
    }


def bases_of(word: str) -> Iterator[str]:
    """Yield possible base forms of a word: `story` for `stories`, `stop` for `stopped`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(base := word[: -len(ending)]) >= _SHORTEST_BASE:
            yield base
            if ending[0] in "ei":
                yield f"{base}e"
                if base[-1] == base[-2]:
                    yield base[:-1]
            if base[-1] == "i":
                yield f"{base[:-1]}y"


@lru_cache(_WORDS_REMEMBERED)
def commonness(word: str) -> int:
    """Return how common a folded word is in English, UNKNOWN to FUNCTION."""
    if word in FUNCTION_WORDS:
        return FUNCTION
    levels = _word_levels()
    return levels.get(word) or max((levels.get(base, UNKNOWN) for base in bases_of(word)), default=UNKNOWN)
