"""A learned order of the names near a misspelt one; `benchmarks/make_near_ranking.py` fits it on real misspellings.

Trees score each name by its features, and the names of one entity are ranked together, by the sum of their likelihoods.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, JaroWinkler, Levenshtein, Postfix, Prefix

from kbtools.kb.contract import SimilarName
from kbtools.kb.rows import EntityRows
from kbtools.tree_ensemble import TreeEnsemble

RANKED = 30
"""The nearest names by edits that the trees sort; twenty are returned."""

TREES = "near_names.txt"

FEATURES = (
    "edits", "edits a letter", "similarity", "similarity below the best", "edits above the fewest", "place",
    "consonants", "sound", "edits of sound", "letters alone", "first letter", "last letter",
    "beginning", "ending", "words", "spaces", "length", "longer", "names of a bearer", "names below the most",
    "jaro-winkler", "weight of the edits", "weight below the best", "initials",
)  # fmt: skip

NO_ENTITY = -1
"""The row of a bearer if several entities have the same number of names."""

_VOWELS = re.compile("[aeiouy]")
_SILENT = re.compile("(?<!^)[aeiouyhw ]+", re.MULTILINE)
_DOUBLED = re.compile(r"([^\n])\1+")
_DIGRAPHS = {"ph": "f", "sch": "s", "ch": "k", "ck": "k", "gh": "g", "sh": "s", "th": "t", "wr": "r", "kn": "n"}
_DIGRAPH = re.compile("|".join(_DIGRAPHS))
_ALIKE = str.maketrans("cqzxjvpdi", "kkssgfbty")
"""Letters that are often confused, though not always alike in sound."""


def _sounds(joined: str) -> list[str]:
    """Return a rough phonetic form of each line, in which letters that are often confused are equal."""
    joined = _DIGRAPH.sub(lambda match: _DIGRAPHS[match[0]], joined).translate(_ALIKE)
    return _DOUBLED.sub(r"\1", _SILENT.sub("", joined)).split("\n")


class Bearer(NamedTuple):
    """The entity with the most names among those with a form: the number of its names, and its row or NO_ENTITY."""

    names: int
    row: int


def bearers_with_most_names(entities: EntityRows, counts: NDArray[np.int64], sizes: Sequence[int]) -> list[Bearer]:
    """Return the bearer of each form, whose entities are the next `sizes` of `entities`; `counts` are their names."""
    starts = np.cumsum([0, *sizes[:-1]])
    most = np.maximum.reduceat(counts, starts)
    rows = entities.astype(np.int64)
    has_most = counts == np.repeat(most, sizes)
    last = np.maximum.reduceat(np.where(has_most, rows, NO_ENTITY), starts)
    first = np.minimum.reduceat(np.where(has_most, rows, np.iinfo(np.int64).max), starts)
    return list(map(Bearer, most.tolist(), np.where(first == last, last, NO_ENTITY).tolist()))


def rank_names(
    form: str, nearest: Sequence[SimilarName], *, bearers: Callable[[Sequence[str]], Sequence[Bearer]]
) -> Sequence[SimilarName]:
    """Return the names near a form by the likelihood that their entity is meant, then that the name is meant."""
    if len(nearest) < 2:
        return nearest
    own = bearers([name.form for name in nearest])
    scores = trees().predict(features_of(form, nearest, [bearer.names for bearer in own], weights=edit_weights()))
    return [nearest[place] for place in order_by_entity(scores, own)]


def order_by_entity(scores: NDArray[np.float64], bearers: Sequence[Bearer]) -> list[int]:
    """Return the places of names by the summed likelihood of their bearer's names, then by their own.

    A score is a log-likelihood up to a constant; a name without a single bearer stands alone.
    """
    scores = scores.round(9)
    keys = [(bearer.row, place if bearer.row == NO_ENTITY else 0) for place, bearer in enumerate(bearers)]
    summed = dict.fromkeys(keys, 0.0)
    for key, likelihood in zip(keys, np.exp(scores - scores.max()).tolist(), strict=True):
        summed[key] += likelihood
    order: list[int] = np.lexsort((-scores, -np.array([summed[key] for key in keys]).round(9))).tolist()
    return order


def features_of(
    form: str, nearest: Sequence[SimilarName], popularity: Sequence[int], *, weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """Return the features of names, nearest first, for a possibly misspelt form: (names, features).

    `popularity` is the number of names of each bearer, `weights` the weight of each kind of edit.
    """
    names = [name.form for name in nearest]
    joined = "\n".join((form, *names))
    (skeleton, *own_skeletons), (sound, *own_sounds) = _VOWELS.sub("", joined).split("\n"), _sounds(joined)
    (alone, *own_alone) = joined.replace(" ", "").split("\n")
    count = len(names)

    def compare(scorer: Callable[..., float], one: str, others: Sequence[str]) -> NDArray[np.float64]:
        compared: NDArray[np.float64] = process.cdist([one], others, scorer=scorer, dtype=np.float64)[0]
        return compared

    edits = compare(OSA.distance, form, names)
    similarity = np.array([name.similarity for name in nearest])
    lengths = np.fromiter(map(len, names), dtype=np.float64, count=count)
    popular = np.log1p(np.array(popularity, dtype=np.float64))
    edited = np.array([sum([weights.get(kind, 0.0) for kind in kinds_of_edits(form, name)]) for name in names])
    spaces = form.count(" ")
    columns = (
        edits,
        edits / np.maximum(lengths, len(form)),
        similarity,
        similarity.max() - similarity,
        edits - edits.min(),
        np.arange(count),
        compare(fuzz.ratio, skeleton, own_skeletons),
        compare(fuzz.ratio, sound, own_sounds),
        compare(OSA.distance, sound, own_sounds),
        compare(OSA.distance, alone, own_alone),
        np.array([name[:1] == form[:1] for name in names]),
        np.array([name[-1:] == form[-1:] for name in names]),
        compare(Prefix.similarity, form, names),
        compare(Postfix.similarity, form, names),
        compare(fuzz.token_sort_ratio, form, names),
        np.array([name.count(" ") - spaces for name in names]),
        np.full(count, len(form)),
        lengths - len(form),
        popular,
        popular.max() - popular,
        compare(JaroWinkler.similarity, form, names),
        edited,
        edited.max() - edited,
        _compare_initials(form, names),
    )
    return np.stack(columns, axis=1).astype(np.float64)


def kinds_of_edits(form: str, name: str) -> Iterator[str]:
    """Yield the kinds of the edits that turn a form into a name: each by its letters, then by their sorts.

    A letter that is added or left out has its place: doubled, first or last in a word, or a word of its own.
    """
    edits = list(Levenshtein.editops(form, name))
    skipped = False
    for edit, following in zip_longest(edits, edits[1:]):
        at, to = edit.src_pos, edit.dest_pos
        own, other = form[at : at + 2], name[to : to + 2]
        if skipped:
            skipped = False
        elif (
            following
            and own != other
            and own == other[::-1]
            and max(following.src_pos - at, following.dest_pos - to) <= 2
        ):
            skipped = True  # two edits make one swap
            yield "swap"
        elif edit.tag == "replace":
            where = _place_in_word(form, at)
            yield f"={own[0]}{other[0]}"
            yield f"={_sort_of(own[0])}{_sort_of(other[0])}{where[:1]}"
        else:
            text, place, sign = (form, at, "-") if edit.tag == "delete" else (name, to, "+")
            letter = text[place]
            where = "&" if letter in f" {text} "[place : place + 3 : 2] else _place_in_word(text, place)
            yield f"{sign}{letter}{where}"
            yield f"{sign}{_sort_of(letter)}{where}"


def _place_in_word(text: str, place: int) -> str:
    """Return signs for the first and the last letter of a word."""
    padded = f" {text} "
    return "^" * (padded[place] == " ") + "$" * (padded[place + 2] == " ")


def _sort_of(letter: str) -> str:
    """Return a sign for vowels, consonants and spaces."""
    return "V" if letter in "aeiouy" else "C" if letter != " " else "S"


def _compare_initials(form: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Return 0 if long words differ, 1 if initials differ, 2 if one of both lacks some, 3 if they are the same."""

    def split(text: str) -> tuple[list[str], list[str]]:
        words = text.split(" ")
        return [word for word in words if len(word) > 1], [word for word in words if len(word) == 1]

    words, initials = split(form)
    others = map(split, names)
    return np.array(
        [
            0.0 if own_words != words else 3.0 if own == initials else 1.0 if own and initials else 2.0
            for own_words, own in others
        ]
    )


@cache
def _tables() -> str:
    return files("kbtools.linking").joinpath(TREES).read_text(encoding="utf-8")


@cache
def trees() -> TreeEnsemble:
    """Return the trees of the package."""
    return TreeEnsemble.parse(_tables(), features=len(FEATURES))


@cache
def edit_weights() -> Mapping[str, float]:
    """Return the learned weight of each kind of edit, stored before the trees."""
    lines = _tables().partition("Tree=")[0].rstrip("\n").split("\n")
    return {kind: float(weight) for kind, _, weight in (line.rpartition("\t") for line in lines)}
