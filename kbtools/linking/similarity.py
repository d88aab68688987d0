"""The similarity of two normal forms, rapidfuzz's ratio: the one measure of every backend."""

import re
from collections.abc import Callable, Iterable, Sequence

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


def rescore(
    form: str,
    recalled: Iterable[str],
    *,
    limit: int,
    cutoff: float,
    popularity: Callable[[Sequence[str]], Sequence[int]] | None = None,
) -> list[SimilarName]:
    """Order recalled forms by similarity; one with other digits is no match, nor is the form itself.

    Of equal similarity the more popular comes first, where a backend can tell, then the first by form. Of 3,000 real
    misspellings among 5.9 million names, 2.5 in a hundred more have the entity first that way.
    """
    if len(form) > LONGEST_NAME:
        return []
    digits = DIGITS.findall(form)
    short = {near for near in recalled if near != form and len(near) <= LONGEST_NAME}
    names = sorted(near for near in short if DIGITS.findall(near) == digits)
    scored = process.extract(form, names, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff)
    ordered = sorted(scored, key=lambda score: (-score[1], score[0]))
    if popularity is not None and len({similarity for _, similarity, _ in ordered[: limit + 1]}) <= min(
        limit, len(ordered) - 1
    ):
        best = [score for score in ordered if score[1] >= ordered[:limit][-1][1]]
        counts = dict(zip((near for near, _, _ in best), popularity([near for near, _, _ in best]), strict=True))
        ordered = sorted(best, key=lambda score: (-score[1], -counts[score[0]], score[0]))
    return [SimilarName(near, float(similarity)) for near, similarity, _ in ordered[:limit]]
