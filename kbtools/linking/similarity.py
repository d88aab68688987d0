"""The similarity of two normal forms, rapidfuzz's ratio: the one measure of every backend; and word by word, which
slips a mention may be a misspelling of a name by."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, Levenshtein

from kbtools.kb.contract import EDITS, SimilarName
from kbtools.linking.near_ranking import RANKED, rank_names
from kbtools.text.function_words import FUNCTION_WORDS

_DIGITS = re.compile(r"\d+")
_SHORTEST_FUZZED = 3
"""Letters up to which a word is looked up as it is: one edit of three letters leaves another word."""

LONGEST_NAME = 200
"""Characters of a normal form; longer names are found exactly, never fuzzily."""

USUAL_CUTOFF, CLOSE_SIMILARITY, MANY_NAMES = 80.0, 90.0, 1_000_000
"""At the usual cutoff and among more than a million names, those within two edits are listed alone where one of them is
so close: what else resembles the form takes a folder 3 ms more to find, and the name that was meant is none of it for
1,500 variants among 5.9 million names."""

_ABOVE = 0.001
"""Similarity by which a name that is likelier to be meant is raised above one that is no less similar."""

EDITS_CUTOFF = 60.0
"""Similarity of a name within edits: of five letters, two may be changed, but not of four."""

SHORTEST_SLIP, _LONG = 4, 6
"""Letters of the longer of two words that may be one misspelt; letters from which two slips are believed."""

_MOST_LOST = 2
"""Words, articles and initials most of them, that one of mention and name may have more than the other."""

_SHORTEST_JOINED = 6
"""Letters of a mention and a name that differ in where their words begin."""


def has_neighbours(word: str) -> bool:
    """Return whether a word may be misspelt: a short one is looked up as it is, and a number always."""
    return len(word) > _SHORTEST_FUZZED and not _DIGITS.search(word)


def rescore(
    form: str,
    recalled: Iterable[str],
    *,
    limit: int,
    cutoff: float,
    names: int,
    popularity: Callable[[Sequence[str]], Sequence[int]],
) -> list[SimilarName]:
    """Order recalled forms, the likeliest to be meant first; one with other digits is no match, nor is the form itself.

    The nearest are ordered by what was learned from real misspellings. It uses the number of names of their bearers,
    too, which a backend tells.
    """
    nearest = by_edits(form, _closest(form, recalled, cutoff=cutoff, names=names))
    ranked = [*rank_names(form, nearest[:RANKED], popularity=popularity), *nearest[RANKED:]]
    return _raise_similarities(ranked)[:limit]


def _raise_similarities(ranked: Sequence[SimilarName]) -> list[SimilarName]:
    """Raise the similarity of each name above that of all behind it, so that whatever sorts by it keeps the order."""
    raised: list[SimilarName] = []
    least = 0.0
    for name in reversed(ranked):
        least = max(name.similarity, least + _ABOVE)
        raised.append(name if least == name.similarity else SimilarName(name.form, min(least, 100.0)))
    return raised[::-1]


def by_edits(form: str, similar: Sequence[SimilarName]) -> list[SimilarName]:
    """Order names by edits, two letters swapped being one; equal ones by similarity, then form."""
    if not similar:
        return []
    edits = process.cdist([form], [name.form for name in similar], scorer=OSA.distance)[0].tolist()
    order = sorted(zip(edits, similar, strict=True), key=lambda pair: (pair[0], -pair[1].similarity, pair[1].form))
    return [name for _, name in order]


def _closest(form: str, recalled: Iterable[str], *, cutoff: float, names: int) -> list[SimilarName]:
    """Return the recalled forms to list, of so many names: those similar enough or within edits, or the latter alone.

    Of six letters with two of them changed, the similarity is 67 and no longer one to go by.
    """
    recalled = list(recalled)
    near = _score(form, within_edits(form, recalled), cutoff=min(cutoff, EDITS_CUTOFF))
    if may_settle(cutoff=cutoff, names=names) and any(name.similarity >= CLOSE_SIMILARITY for name in near):
        return near
    inside = {name.form for name in near}
    return near + [name for name in _score(form, recalled, cutoff=cutoff) if name.form not in inside]


def may_settle(*, cutoff: float, names: int) -> bool:
    """Return whether only forms within edits may be listed, among so many names."""
    return names > MANY_NAMES and cutoff >= USUAL_CUTOFF


def edits_suffice(form: str, near: Iterable[str], *, cutoff: float, names: int) -> bool:
    """Return whether only the forms within edits, which are among these, are listed, of so many names."""
    return may_settle(cutoff=cutoff, names=names) and bool(
        _score(form, within_edits(form, list(near)), cutoff=CLOSE_SIMILARITY)
    )


def within_edits(form: str, recalled: Sequence[str]) -> list[str]:
    """Keep the recalled forms that are EDITS edits from one at most."""
    return [near for near, _, _ in process.extract(
        form, recalled, scorer=Levenshtein.distance, limit=None, score_cutoff=EDITS
    )]  # fmt: skip


def _score(form: str, recalled: Iterable[str], *, cutoff: float) -> list[SimilarName]:
    """Return the recalled forms that are similar enough."""
    if len(form) > LONGEST_NAME:
        return []
    digits = _DIGITS.findall(form)
    names = [near for near in set(recalled) if near != form and len(near) <= LONGEST_NAME]
    scored = process.extract(form, names, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff)
    return [SimilarName(near, float(ratio)) for near, ratio, _ in scored if _DIGITS.findall(near) == digits]


class Resemblance(NamedTuple):
    """The words of a name that a mention stands for, the slips in them, and the words that only one of both has."""

    words: tuple[str, ...]
    slips: int
    lost: int

    @property
    def score(self) -> int:
        """Count the words in favour: those alike, less those that only one of both has."""
        return len(self.words) - self.lost

    @property
    def is_slip(self) -> bool:
        """Return whether one misspelt word explains all."""
        return self.slips <= 1 and not self.lost


def resemblance(mention: str, name: str) -> Resemblance | None:
    """Align the words of a mention with those of a name; None if different words face each other.

    A word may be misspelt, be an initial or a plural of the other. The name may have one word more if three or more
    are left, and initials and function words more; so may the mention. Words may be joined or apart.
    """
    spoken, written = mention.split(" "), name.split(" ")
    aligned = _align(spoken, written)
    if aligned and any(len(word) >= (SHORTEST_SLIP if len(written) > 1 else 2) for word in aligned.words):
        return aligned
    together, apart = mention.replace(" ", ""), name.replace(" ", "")
    if len(spoken) != len(written) and min(len(together), len(apart)) >= _SHORTEST_JOINED:
        slips = OSA.distance(together, apart, score_cutoff=1)
        if slips <= 1:
            return Resemblance(tuple(written), slips, 0)
    return None


def _align(spoken: Sequence[str], written: Sequence[str]) -> Resemblance | None:
    """Find the alignment of two runs of words with the fewest words lost, then slips."""
    surplus = len(written) - len(spoken)
    if abs(surplus) > _MOST_LOST:
        return None
    short, long = (spoken, written) if surplus >= 0 else (written, spoken)
    # Only the longer run loses words, so that `memory b cell` never stands for `memory t cell`.
    states: dict[int, tuple[int, int, tuple[str, ...]]] = {0: (0, 0, ())}
    for place, word in enumerate(long):
        following: dict[int, tuple[int, int, tuple[str, ...]]] = {}
        for done, (costly, slips, words) in states.items():
            if place - done < abs(surplus):
                dear = costly + (not _is_light(word))
                if not dear or (surplus > 0 and dear == 1 and len(written) > _MOST_LOST and not _is_light(spoken[-1])):
                    keep(following, done, (dear, slips, words))
            if done < len(short):
                alike = _slips_between(short[done], word)
                if alike is not None:
                    own = word if surplus >= 0 else short[done]
                    keep(following, done + 1, (costly, slips + alike, (*words, own)))
        states = following
    if len(short) not in states:
        return None
    _, slips, words = states[len(short)]
    if surplus < 0 and not slips:  # the name itself stands in the mention, and is linked strictly
        return None
    return Resemblance(words, slips, abs(surplus))


def keep(states: dict[int, tuple[int, int, tuple[str, ...]]], at: int, state: tuple[int, int, tuple[str, ...]]) -> None:
    """Keep the cheaper of two states."""
    if at not in states or state[:2] < states[at][:2]:
        states[at] = state


def _is_light(word: str) -> bool:
    """Return whether a word is often left out: an initial or a function word."""
    return len(word) == 1 or word in FUNCTION_WORDS


def _slips_between(one: str, other: str) -> int | None:
    """Count the slips between two words, 0 to 2; None if they are different words."""
    if one == other:
        return 0
    short, long = sorted((one, other), key=len)
    if len(short) == 1:
        return 1 if len(long) > 1 and long.startswith(short) and long.isalpha() else None
    if len(long) < SHORTEST_SLIP:
        return None
    if singular(one) == singular(other):
        return 1
    most = 1 if len(long) < _LONG else 2
    slips = OSA.distance(one, other, score_cutoff=most)
    return slips if slips <= most else None


def singular(word: str) -> str:
    """Strip the ending of an English plural."""
    if word.endswith("ies") and len(word) > SHORTEST_SLIP:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
