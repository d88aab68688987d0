"""How close two normal forms are: rapidfuzz's ratio, the one measure of every backend."""

import re
from collections.abc import Iterable

from rapidfuzz import fuzz, process

from kbtools.knowledge import SimilarName

DIGITS = re.compile(r"\d+")
LONGEST_NAME = 200
"""Characters of a normal form; longer names are found exactly, never fuzzily."""


def rescore(form: str, recalled: Iterable[str], *, limit: int, cutoff: float) -> list[SimilarName]:
    """Order recalled forms by similarity, ties by form; one with other digits is no match, nor is the form itself."""
    if len(form) > LONGEST_NAME:
        return []
    digits = DIGITS.findall(form)
    short = {near for near in recalled if near != form and len(near) <= LONGEST_NAME}
    kept = sorted(near for near in short if DIGITS.findall(near) == digits)
    best = process.extract(form, kept, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff)
    ordered = sorted(best, key=lambda found: (-found[1], found[0]))
    return [SimilarName(near, float(similarity)) for near, similarity, _ in ordered[:limit]]
