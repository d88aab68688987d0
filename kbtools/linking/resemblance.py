"""Resemblance of a mention to a name, word by word: which slips one may be a misspelling of the other by."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import OSA

from kbtools.text.function_words import FUNCTION_WORDS

SHORTEST_SLIP, LONG = 4, 6
"""Letters of the longer of two words that may be one misspelt; letters from which two slips are believed."""

MOST_LOST = 2
"""Words, articles and initials most of them, that one of mention and name may have more than the other."""

SHORTEST_JOINED = 6
"""Letters of a mention and a name that differ in where their words begin."""


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
    aligned = align(spoken, written)
    if aligned and any(len(word) >= (SHORTEST_SLIP if len(written) > 1 else 2) for word in aligned.words):
        return aligned
    together, apart = mention.replace(" ", ""), name.replace(" ", "")
    if len(spoken) != len(written) and min(len(together), len(apart)) >= SHORTEST_JOINED:
        slips = OSA.distance(together, apart, score_cutoff=1)
        if slips <= 1:
            return Resemblance(tuple(written), slips, 0)
    return None


def align(spoken: Sequence[str], written: Sequence[str]) -> Resemblance | None:
    """Find the alignment of two runs of words with the fewest words lost, then slips."""
    surplus = len(written) - len(spoken)
    if abs(surplus) > MOST_LOST:
        return None
    short, long = (spoken, written) if surplus >= 0 else (written, spoken)
    # Only the longer run loses words, so that `memory b cell` never stands for `memory t cell`.
    states: dict[int, tuple[int, int, tuple[str, ...]]] = {0: (0, 0, ())}
    for place, word in enumerate(long):
        following: dict[int, tuple[int, int, tuple[str, ...]]] = {}
        for done, (costly, slips, words) in states.items():
            if place - done < abs(surplus):
                dear = costly + (not is_light(word))
                if not dear or (surplus > 0 and dear == 1 and len(written) > MOST_LOST and not is_light(spoken[-1])):
                    keep(following, done, (dear, slips, words))
            if done < len(short):
                alike = slips_between(short[done], word)
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


def is_light(word: str) -> bool:
    """Return whether a word is often left out: an initial or a function word."""
    return len(word) == 1 or word in FUNCTION_WORDS


def slips_between(one: str, other: str) -> int | None:
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
    most = 1 if len(long) < LONG else 2
    slips = OSA.distance(one, other, score_cutoff=most)
    return slips if slips <= most else None


def singular(word: str) -> str:
    """Strip the ending of an English plural."""
    if word.endswith("ies") and len(word) > SHORTEST_SLIP:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
