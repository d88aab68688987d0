"""The learned order of similar names: its features by plain Python, and the order that the trees give."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import OSA, JaroWinkler

from kbtools.kb.contract import SimilarName
from kbtools.linking.near_ranking import (
    FEATURES,
    NO_ENTITY,
    Bearer,
    bearers_with_most_names,
    edit_weights,
    features_of,
    kinds_of_edits,
    order_by_entity,
    rank_names,
    trees,
)
from kbtools.linking.similarity import rescore

WEIGHTS = {"swap": 1.0, "=ei": 0.5, "-h": 0.25, "-C": -1.0, "+p&": 2.0, "=VC^": -0.5, "+S": 1.5}

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


def weight(form: str, name: str) -> float:
    return sum(WEIGHTS.get(kind, 0.0) for kind in kinds_of_edits(form, name))


def initials(form: str, name: str) -> int:
    words, others = form.split(), name.split()
    if [word for word in words if len(word) > 1] != [word for word in others if len(word) > 1]:
        return 0
    one, other = ([word for word in text if len(word) == 1] for text in (words, others))
    return 3 if one == other else 1 if one and other else 2


def plain_features(form: str, nearest: list[SimilarName], popularity: list[int]) -> list[list[float]]:
    names = [name.form for name in nearest]
    edits = [OSA.distance(form, name) for name in names]
    weights = [weight(form, name) for name in names]
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
            weights[at],
            max(weights) - weights[at],
            initials(form, name),
        ]
        for at, name in enumerate(names)
    ]


@given(FORMS, st.lists(st.tuples(FORMS, st.integers(0, 9)), min_size=1, max_size=6))
def test_features_are_those_of_plain_loops(form: str, names: list[tuple[str, int]]) -> None:
    nearest, popularity = (
        [SimilarName(name, fuzz.ratio(form, name)) for name, _ in names],
        [count for _, count in names],
    )

    features = features_of(form, nearest, popularity, weights=WEIGHTS)

    assert features.shape == (len(names), len(FEATURES))
    assert features == pytest.approx(np.array(plain_features(form, nearest, popularity), dtype=float))


@pytest.mark.parametrize(
    ("form", "name", "kinds"),
    [
        ("philip", "phillip", ["+l&", "+C&"]),
        ("phillip", "philip", ["-l&", "-C&"]),
        ("smith", "smyth", ["=iy", "=VV"]),
        ("katy", "caty", ["=kc", "=CC^"]),
        ("river", "rivers", ["+s$", "+C$"]),
        ("river", "rivet", ["=rt", "=CC$"]),
        ("recieve", "receive", ["swap"]),
        ("marth", "marht", ["swap"]),
        ("anan", "nad", ["-a^", "-V^", "=nd", "=CC$"]),
        ("aab", "aaabb", ["+a&", "+V&", "+b&", "+C&"]),
        ("snow white", "snowwhite", ["- ", "-S"]),
        ("same", "same", []),
    ],
)
def test_an_edit_has_the_kind_of_its_letters_and_of_their_sort(form: str, name: str, kinds: list[str]) -> None:
    assert list(kinds_of_edits(form, name)) == kinds


@given(FORMS, st.lists(FORMS, max_size=6, unique=True))
def test_names_of_different_entities_stand_by_the_score_of_the_trees(form: str, names: list[str]) -> None:
    nearest = [SimilarName(name, fuzz.ratio(form, name)) for name in names]
    counts = list(range(len(names)))
    features = features_of(form, nearest, counts, weights=edit_weights()) if names else None
    scores = [] if features is None else trees().predict(features).round(9).tolist()

    ranked = rank_names(form, nearest, bearers=lambda forms: [Bearer(count, NO_ENTITY) for count in counts])

    assert ranked == [nearest[at] for at in sorted(counts, key=lambda at: (-scores[at], at))]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-1, 2)), min_size=1, max_size=8))
def test_the_likelihoods_of_the_names_of_an_entity_are_summed(scored: list[tuple[int, int]]) -> None:
    summed = [
        sum(math.exp(other) for other, own in scored if own == row) if row != NO_ENTITY else math.exp(score)
        for score, row in scored
    ]

    order = order_by_entity(
        np.array([score for score, _ in scored], dtype=float), [Bearer(1, row) for _, row in scored]
    )

    keys = [(round(-summed[at] / math.exp(max(scored)[0]), 9), -scored[at][0]) for at in order]
    assert keys == sorted(keys)


def test_two_near_names_of_one_entity_stand_before_a_name_as_near() -> None:
    assert order_by_entity(np.array([0.5, 0.3, 0.3]), [Bearer(2, 7), Bearer(2, 8), Bearer(2, 8)]) == [1, 2, 0]
    assert order_by_entity(np.array([0.5, 0.3, 0.3]), [Bearer(2, NO_ENTITY)] * 3) == [0, 1, 2]


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=4), min_size=1))
def test_a_bearer_is_the_only_entity_with_the_most_names(groups: list[list[tuple[int, int]]]) -> None:
    flat = [pair for group in groups for pair in group]
    plain = []
    for group in groups:
        most = max(count for _, count in group)
        rows = {row for row, count in group if count == most}
        plain.append(Bearer(most, rows.pop() if len(rows) == 1 else NO_ENTITY))

    entities = np.array([row for row, _ in flat], dtype=np.uint32)
    counts = np.array([count for _, count in flat], dtype=np.int64)
    assert bearers_with_most_names(entities, counts, list(map(len, groups))) == plain


@given(FORMS, st.lists(FORMS, max_size=40, unique=True))
def test_similarities_are_raised_as_little_as_the_order_needs(form: str, recalled: list[str]) -> None:
    names = rescore(
        form, recalled, limit=99, cutoff=1.0, names=0, bearers=lambda forms: [Bearer(1, NO_ENTITY)] * len(forms)
    )

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

    def bearers(forms: Sequence[str]) -> list[Bearer]:
        asked.append(len(forms))
        return [Bearer(1, NO_ENTITY)] * len(forms)

    listed = rescore("kite", names, limit=40, cutoff=0.0, names=0, bearers=bearers)

    assert (asked, len(listed)) == ([30], 40)
