"""The similarity of two normal forms, rapidfuzz's ratio: the one measure of every backend."""

import re
from collections.abc import Iterable

from rapidfuzz import fuzz, process

from kbtools.kb.contract import SimilarName

DIGITS = re.compile(r"\d+")
SHORTEST_FUZZED = 3
"""Letters up to which a word is looked up as it is: one edit of three letters leaves another word."""

LONGEST_NAME = 200
"""Characters of a normal form; longer names are found exactly, never fuzzily."""


def has_neighbours(word: str) -> bool:
    """Tell whether the neighbours of a word are worth a look: not those of a short one, never those of a number."""
    return len(word) > SHORTEST_FUZZED and not DIGITS.search(word)


def rescore(form: str, recalled: Iterable[str], *, limit: int, cutoff: float) -> list[SimilarName]:
    """Order recalled forms by similarity, ties by form; one with other digits is no match, nor is the form itself."""
    if len(form) > LONGEST_NAME:
        return []
    digits = DIGITS.findall(form)
    short = {near for near in recalled if near != form and len(near) <= LONGEST_NAME}
    kept = sorted(near for near in short if DIGITS.findall(near) == digits)
    best = process.extract(form, kept, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff)
    ordered = sorted(best, key=lambda scored: (-scored[1], scored[0]))
    return [SimilarName(near, float(similarity)) for near, similarity, _ in ordered[:limit]]
