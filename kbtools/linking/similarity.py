"""The similarity of two normal forms, rapidfuzz's ratio: the one measure of every backend."""

import re
from collections.abc import Callable, Iterable, Sequence

from rapidfuzz import fuzz, process
from rapidfuzz.distance import Levenshtein

from kbtools.kb.contract import EDITS, SimilarName, keep_within_edits

DIGITS = re.compile(r"\d+")
SHORTEST_FUZZED = 3
"""Letters up to which a word is looked up as it is: one edit of three letters leaves another word."""

LONGEST_NAME = 200
"""Characters of a normal form; longer names are found exactly, never fuzzily."""

USUAL_CUTOFF, CLOSE_SIMILARITY, MANY_NAMES = 80.0, 90.0, 1_000_000
"""At the usual cutoff and among more than a million names, those within two edits are listed alone where one of them is
so close: what else resembles the form takes a folder 3 ms more to find, and the name that was meant is none of it for
1,500 variants among 5.9 million names."""


def has_neighbours(word: str) -> bool:
    """Return whether a word may be misspelt: a short one is looked up as it is, and a number always."""
    return len(word) > SHORTEST_FUZZED and not DIGITS.search(word)


def rescore(
    form: str,
    recalled: Iterable[str],
    *,
    limit: int,
    cutoff: float,
    names: int = 0,
    popularity: Callable[[Sequence[str]], Sequence[int]] | None = None,
) -> list[SimilarName]:
    """Order recalled forms by similarity; one with other digits is no match, nor is the form itself.

    Of equal similarity the more popular comes first, where a backend can tell, then the first by form. Of 3,000 real
    misspellings among 5.9 million names, 2.5 in a hundred more have the entity first that way.
    """
    similar = shortlist(closest(form, recalled, cutoff=cutoff, names=names), limit=limit)
    return order(similar, limit=limit, popularity=popularity)


def closest(form: str, recalled: Iterable[str], *, cutoff: float, names: int) -> list[SimilarName]:
    """Return the recalled forms to list, of so many names: all similar ones, or only those within edits."""
    similar = score(form, recalled, cutoff=cutoff)
    if may_settle(cutoff=cutoff, names=names) and similar and similar[0].similarity >= CLOSE_SIMILARITY:
        near = keep_within_edits(form, similar)
        if near and near[0].similarity >= CLOSE_SIMILARITY:
            return near
    return similar


def may_settle(*, cutoff: float, names: int) -> bool:
    """Return whether only forms within edits may be listed, among so many names."""
    return names > MANY_NAMES and cutoff >= USUAL_CUTOFF


def edits_suffice(form: str, near: Iterable[str], *, cutoff: float, names: int) -> bool:
    """Return whether only the forms within edits, which are among these, are listed, of so many names."""
    return may_settle(cutoff=cutoff, names=names) and bool(
        keep_within_edits(form, score(form, near, cutoff=CLOSE_SIMILARITY))
    )


def within_edits(form: str, recalled: Sequence[str]) -> list[str]:
    """Keep the recalled forms that are EDITS edits from one at most."""
    return [near for near, _, _ in process.extract(
        form, recalled, scorer=Levenshtein.distance, limit=None, score_cutoff=EDITS
    )]  # fmt: skip


def score(form: str, recalled: Iterable[str], *, cutoff: float) -> list[SimilarName]:
    """Return the recalled forms that are similar enough, closest first, equal ones by form."""
    if len(form) > LONGEST_NAME:
        return []
    digits = DIGITS.findall(form)
    names = [near for near in set(recalled) if near != form and len(near) <= LONGEST_NAME]
    scored = process.extract(form, names, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff)
    similar = [SimilarName(near, float(ratio)) for near, ratio, _ in scored if DIGITS.findall(near) == digits]
    return sorted(similar, key=lambda name: (-name.similarity, name.form))


def shortlist(similar: Sequence[SimilarName], *, limit: int) -> Sequence[SimilarName]:
    """Keep the names that may be among the first so many, whichever of equal similarity come first."""
    if not limit or len(similar) <= limit:
        return similar[:limit]
    return [name for name in similar if name.similarity >= similar[limit - 1].similarity]


def order(
    similar: Sequence[SimilarName], *, limit: int, popularity: Callable[[Sequence[str]], Sequence[int]] | None
) -> list[SimilarName]:
    """Order a shortlist, the more popular first of equal similarity."""
    if popularity is not None and len({name.similarity for name in similar}) < len(similar):
        counts = popularity([name.form for name in similar])
        ranked = sorted(
            zip(similar, counts, strict=True), key=lambda pair: (-pair[0].similarity, -pair[1], pair[0].form)
        )
        similar = [name for name, _ in ranked]
    return list(similar[:limit])
