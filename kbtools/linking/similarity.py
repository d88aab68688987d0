"""The similarity of two normal forms, rapidfuzz's ratio on every backend, and the slips between their words."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, Levenshtein

from kbtools.kb.contract import EDITS, SimilarName
from kbtools.linking.near_ranking import RANKED, Bearer, rank_names
from kbtools.text.function_words import FUNCTION_WORDS

_DIGITS = re.compile(r"\d+")
_SHORTEST_FUZZED = 3
"""The most letters of a word that is only looked up exactly: one edit in three letters makes another word."""

LONGEST_NAME = 200
"""The most characters of a normal form that is linked fuzzily."""

USUAL_CUTOFF, CLOSE_SIMILARITY, MANY_NAMES = 80.0, 90.0, 1_000_000
"""With the usual cutoff and more than a million names, only names within two edits are returned if one of them is this
close. Finding the others takes 3 ms more, and none was the right name for 1,500 variants among 5.9 million names."""

_ABOVE = 0.001
"""The amount by which a more likely name's similarity is raised above that of the next name."""

_RANKED_CUTOFF = 70.0
"""Lowest similarity of a name beyond two edits that the learned order ranks; others follow by similarity, since the
misspellings that it was fitted on have no such names."""

EDITS_CUTOFF = 60.0
"""Lowest similarity of a name within edits: two changes are allowed in five letters, but not in four."""

SHORTEST_SLIP, _LONG = 4, 6
"""Fewest letters of the longer of two words that may be misspellings, and fewest letters for two slips."""

_MOST_LOST = 2
"""The most words, mainly articles and initials, that a mention may have more or fewer than a name."""

_SHORTEST_JOINED = 6
"""Fewest letters of a mention and a name that differ only in their spaces."""


def has_neighbours(word: str) -> bool:
    """Return whether a word may be misspelt: it is long enough and has no digits."""
    return len(word) > _SHORTEST_FUZZED and not _DIGITS.search(word)


def rescore(
    form: str,
    recalled: Iterable[str],
    *,
    limit: int,
    cutoff: float,
    names: int,
    bearers: Callable[[Sequence[str]], Sequence[Bearer]],
) -> list[SimilarName]:
    """Return the recalled forms by their likelihood of being meant, without the form itself and other digits.

    `bearers` returns the entity with the most names of each form; the learned order depends on it. The least similar
    forms follow by similarity.
    """
    nearest = by_edits(form, _closest(form, recalled, cutoff=cutoff, names=names))
    within = set(within_edits(form, [name.form for name in nearest if name.similarity < _RANKED_CUTOFF]))
    ranked = [name for name in nearest if name.similarity >= _RANKED_CUTOFF or name.form in within][:RANKED]
    chosen = {name.form for name in ranked}
    others = sorted((name for name in nearest if name.form not in chosen), key=lambda name: -name.similarity)
    return _raise_similarities([*rank_names(form, ranked, bearers=bearers), *others])[:limit]


def _raise_similarities(ranked: Sequence[SimilarName]) -> list[SimilarName]:
    """Return the names with similarities that decrease strictly, so that sorting by similarity keeps their order."""
    raised: list[SimilarName] = []
    least = 0.0
    for name in reversed(ranked):
        least = max(name.similarity, least + _ABOVE)
        raised.append(name if least == name.similarity else SimilarName(name.form, min(least, 100.0)))
    return raised[::-1]


def by_edits(form: str, similar: Sequence[SimilarName]) -> list[SimilarName]:
    """Return the names by edits, in which a swap of two letters counts once, then similarity, then form."""
    if not similar:
        return []
    edits = process.cdist([form], [name.form for name in similar], scorer=OSA.distance)[0].tolist()
    order = sorted(zip(edits, similar, strict=True), key=lambda pair: (pair[0], -pair[1].similarity, pair[1].form))
    return [name for _, name in order]


def _closest(form: str, recalled: Iterable[str], *, cutoff: float, names: int) -> list[SimilarName]:
    """Return the recalled forms that are within edits or similar enough, or only the former if one is close enough.

    Edits decide for short names: two changes in six letters leave a similarity of only 67.
    """
    recalled = list(recalled)
    near = _score(form, within_edits(form, recalled), cutoff=min(cutoff, EDITS_CUTOFF))
    if may_settle(cutoff=cutoff, names=names) and any(name.similarity >= CLOSE_SIMILARITY for name in near):
        return near
    near_forms = {name.form for name in near}
    return near + [name for name in _score(form, recalled, cutoff=cutoff) if name.form not in near_forms]


def may_settle(*, cutoff: float, names: int) -> bool:
    """Return whether forms within edits may be the only result, given the number of names."""
    return names > MANY_NAMES and cutoff >= USUAL_CUTOFF


def edits_suffice(form: str, near: Iterable[str], *, cutoff: float, names: int) -> bool:
    """Return whether the forms within edits, all in `near`, are the only result, given the number of names."""
    return may_settle(cutoff=cutoff, names=names) and bool(
        _score(form, within_edits(form, list(near)), cutoff=CLOSE_SIMILARITY)
    )


def within_edits(form: str, recalled: Sequence[str]) -> list[str]:
    """Return the recalled forms at most EDITS edits away."""
    return [near for near, _, _ in process.extract(
        form, recalled, scorer=Levenshtein.distance, limit=None, score_cutoff=EDITS
    )]  # fmt: skip


def _score(form: str, recalled: Iterable[str], *, cutoff: float) -> list[SimilarName]:
    """Return the recalled forms with a similarity of at least the cutoff."""
    if len(form) > LONGEST_NAME:
        return []
    digits = _DIGITS.findall(form)
    names = [near for near in set(recalled) if near != form and len(near) <= LONGEST_NAME]
    scored = process.extract(form, names, scorer=fuzz.ratio, limit=None, score_cutoff=cutoff)
    return [SimilarName(near, float(ratio)) for near, ratio, _ in scored if _DIGITS.findall(near) == digits]


class Resemblance(NamedTuple):
    """The words of a name that a mention has, the slips in them, and the number of words that only one of both has."""

    words: tuple[str, ...]
    slips: int
    lost: int

    @property
    def score(self) -> int:
        """The number of words in common minus the number of words that only one has."""
        return len(self.words) - self.lost

    @property
    def is_slip(self) -> bool:
        """Whether one misspelt word explains every difference."""
        return self.slips <= 1 and not self.lost


def resemblance(mention: str, name: str) -> Resemblance | None:
    """Return the alignment of a mention with a name, None if a word of one has no counterpart.

    A word may be misspelt, an initial or a plural. A name of at least three words may have one word more than the
    mention. Either may have additional initials and function words, and words may be joined or split.
    """
    mention_words, name_words = mention.split(" "), name.split(" ")
    aligned = _align(mention_words, name_words)
    if aligned and any(len(word) >= (SHORTEST_SLIP if len(name_words) > 1 else 2) for word in aligned.words):
        return aligned
    together, apart = mention.replace(" ", ""), name.replace(" ", "")
    if len(mention_words) != len(name_words) and min(len(together), len(apart)) >= _SHORTEST_JOINED:
        slips = OSA.distance(together, apart, score_cutoff=1)
        if slips <= 1:
            return Resemblance(tuple(name_words), slips, 0)
    return None


def _align(mention_words: Sequence[str], name_words: Sequence[str]) -> Resemblance | None:
    """Return the alignment of two runs of words with the fewest words lost, then the fewest slips."""
    surplus = len(name_words) - len(mention_words)
    if abs(surplus) > _MOST_LOST:
        return None
    short, long = (mention_words, name_words) if surplus >= 0 else (name_words, mention_words)
    # Only the longer run loses words, so `memory b cell` never matches `memory t cell`.
    states: dict[int, tuple[int, int, tuple[str, ...]]] = {0: (0, 0, ())}
    for place, word in enumerate(long):
        following: dict[int, tuple[int, int, tuple[str, ...]]] = {}
        for done, (costly, slips, words) in states.items():
            if place - done < abs(surplus):
                dear = costly + (not _is_light(word))
                if not dear or (
                    surplus > 0 and dear == 1 and len(name_words) > _MOST_LOST and not _is_light(mention_words[-1])
                ):
                    keep(following, done, (dear, slips, words))
            if done < len(short):
                alike = _slips_between(short[done], word)
                if alike is not None:
                    name_word = word if surplus >= 0 else short[done]
                    keep(following, done + 1, (costly, slips + alike, (*words, name_word)))
        states = following
    if len(short) not in states:
        return None
    _, slips, words = states[len(short)]
    if surplus < 0 and not slips:  # the mention contains the whole name, which links strictly
        return None
    return Resemblance(words, slips, abs(surplus))


def keep(states: dict[int, tuple[int, int, tuple[str, ...]]], at: int, state: tuple[int, int, tuple[str, ...]]) -> None:
    """Replace a state by a cheaper one."""
    if at not in states or state[:2] < states[at][:2]:
        states[at] = state


def _is_light(word: str) -> bool:
    """Return whether a word is often left out, an initial or a function word."""
    return len(word) == 1 or word in FUNCTION_WORDS


def _slips_between(one: str, other: str) -> int | None:
    """Return the number of slips between two words, 0 to 2, None if they are different words."""
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


_NO_PLURAL = ("ss", "us", "is", "gas", "lens", "news", "series", "species", "atlas", "alias", "bias", "canvas")
"""Endings of English words in the singular that end in `s`."""


def singular(word: str) -> str:
    """Return a word without the ending of an English plural."""
    if word.endswith("ies") and len(word) > SHORTEST_SLIP and not word.endswith(_NO_PLURAL):
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(_NO_PLURAL) else word
