"""A learned order of the names near a misspelt one; `benchmarks/make_near_ranking.py` fits its trees on real
misspellings."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, JaroWinkler, Postfix, Prefix

from kbtools.kb.contract import SimilarName
from kbtools.tree_ensemble import TreeEnsemble

RANKED = 30
"""The nearest names by edits that the trees sort; twenty are returned."""

TREES = "near_names.txt"

FEATURES = (
    "edits", "edits a letter", "similarity", "similarity below the best", "edits above the fewest", "place",
    "consonants", "sound", "edits of sound", "letters alone", "first letter", "last letter",
    "beginning", "ending", "words", "spaces", "length", "longer", "names of a bearer", "names below the most",
    "jaro-winkler",
)  # fmt: skip

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


def rank_names(
    form: str, nearest: Sequence[SimilarName], *, popularity: Callable[[Sequence[str]], Sequence[int]]
) -> Sequence[SimilarName]:
    """Return the names near a form by their likelihood of being meant; ties keep their order."""
    if len(nearest) < 2:
        return nearest
    scores = trees().predict(features_of(form, nearest, popularity([name.form for name in nearest])))
    return [nearest[place] for place in np.argsort(-scores.round(9), kind="stable").tolist()]


def features_of(form: str, nearest: Sequence[SimilarName], popularity: Sequence[int]) -> NDArray[np.float64]:
    """Return the features of names, nearest first, for a possibly misspelt form: (names, features)."""
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
    )
    return np.stack(columns, axis=1).astype(np.float64)


@cache
def trees() -> TreeEnsemble:
    """Return the trees of the package."""
    text = files("kbtools.linking").joinpath(TREES).read_text(encoding="utf-8")
    return TreeEnsemble.parse(text, features=len(FEATURES))
