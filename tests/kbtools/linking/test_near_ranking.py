"""The learned order of similar names: its features by plain Python, and the order that the trees give."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, JaroWinkler

from kbtools.kb.contract import SimilarName
from kbtools.linking.near_ranking import FEATURES, features_of, rank_names, trees
from kbtools.linking.similarity import rescore

FORMS = st.text("aehknpstwy ", min_size=1, max_size=9).map(lambda text: " ".join(text.split()) or "a")


def skeleton(form: str) -> str:
    return "".join(letter for letter in form if letter not in "aeiouy")


def sound(form: str) -> str:
    digraphs = {"ph": "f", "sch": "s", "ch": "k", "ck": "k", "gh": "g", "sh": "s", "th": "t", "wr": "r", "kn": "n"}
    spoken, at = "", 0
    while at < len(form):
        written = next((one for one in digraphs if form.startswith(one, at)), form[at])
        spoken += digraphs.get(written, written)
        at += len(written)
    spoken = spoken.translate(str.maketrans("cqzxjvpdi", "kkssgfbty"))
    audible = spoken[:1] + "".join(letter for letter in spoken[1:] if letter not in "aeiouyhw ")
    return "".join(letter for at, letter in enumerate(audible) if at == 0 or letter != audible[at - 1])


def shared(one: str, other: str) -> int:
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )


def plain_features(form: str, nearest: list[SimilarName], popularity: list[int]) -> list[list[float]]:
    names = [name.form for name in nearest]
    edits = [OSA.distance(form, name) for name in names]
    best, popular = max(name.similarity for name in nearest), [math.log(1 + count) for count in popularity]
    return [
        [
            edits[at],
            edits[at] / max(len(name), len(form)),
            nearest[at].similarity,
            best - nearest[at].similarity,
            edits[at] - min(edits),
            at,
            fuzz.ratio(skeleton(form), skeleton(name)),
            fuzz.ratio(sound(form), sound(name)),
            OSA.distance(sound(form), sound(name)),
            OSA.distance(form.replace(" ", ""), name.replace(" ", "")),
            name[0] == form[0],
            name[-1] == form[-1],
            shared(form, name),
            shared(form[::-1], name[::-1]),
            fuzz.token_sort_ratio(form, name),
            name.count(" ") - form.count(" "),
            len(form),
            len(name) - len(form),
            popular[at],
            max(popular) - popular[at],
            JaroWinkler.similarity(form, name),
        ]
        for at, name in enumerate(names)
    ]


@given(FORMS, st.lists(st.tuples(FORMS, st.integers(0, 9)), min_size=1, max_size=6))
def test_features_are_those_of_plain_loops(form: str, names: list[tuple[str, int]]) -> None:
    nearest, popularity = (
        [SimilarName(name, fuzz.ratio(form, name)) for name, _ in names],
        [count for _, count in names],
    )

    features = features_of(form, nearest, popularity)

    assert features.shape == (len(names), len(FEATURES))
    assert features == pytest.approx(np.array(plain_features(form, nearest, popularity), dtype=float))


@given(FORMS, st.lists(FORMS, max_size=6, unique=True))
def test_names_stand_by_the_score_of_the_trees_and_ties_in_their_order(form: str, names: list[str]) -> None:
    nearest = [SimilarName(name, fuzz.ratio(form, name)) for name in names]
    counts = list(range(len(names)))
    scores = trees().predict(features_of(form, nearest, counts)).round(9).tolist() if names else []

    ranked = rank_names(form, nearest, popularity=lambda forms: counts)

    assert ranked == [nearest[at] for at in sorted(counts, key=lambda at: (-scores[at], at))]


@given(FORMS, st.lists(FORMS, max_size=40, unique=True))
def test_similarities_are_raised_as_little_as_the_order_needs(form: str, recalled: list[str]) -> None:
    names = rescore(form, recalled, limit=99, cutoff=1.0, names=0, popularity=lambda forms: [1] * len(forms))

    ratios = [fuzz.ratio(form, name.form) for name in names]
    assert [name.similarity for name in names] == pytest.approx(
        [
            min(100.0, max(ratios[below] + 0.001 * (below - at) for below in range(at, len(names))))
            for at in range(len(names))
        ]
    )


def test_only_the_thirty_nearest_are_ranked_by_the_trees() -> None:
    names = [f"kite{'abcdefgh'[at % 8]}{'abcdefgh'[at // 8]}" for at in range(40)]
    asked: list[int] = []

    def popularity(forms: object) -> list[int]:
        asked.append(len(list(forms)))  # type: ignore[call-overload]
        return [1] * asked[-1]

    listed = rescore("kite", names, limit=40, cutoff=0.0, names=0, popularity=popularity)

    assert (asked, len(listed)) == ([30], 40)
