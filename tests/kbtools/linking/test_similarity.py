"""The one measure of every backend: rapidfuzz's ratio, digits apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from kbtools.linking.similarity import (
    LONGEST_NAME,
    MANY_NAMES,
    USUAL_CUTOFF,
    edits_suffice,
    has_neighbours,
    rescore,
    within_edits,
)

FORM = st.text("abc 01", min_size=1, max_size=8)


@given(FORM, st.lists(FORM, max_size=20), st.integers(0, 5), st.sampled_from([0.0, 50.0, 80.0]))
def test_forms_are_scored_as_a_plain_loop_would(form: str, recalled: list[str], limit: int, cutoff: float) -> None:
    looped = []
    for near in set(recalled):
        digits = ["".join(c if c.isdigit() else " " for c in text).split() for text in (form, near)]
        if near != form and digits[0] == digits[1] and fuzz.ratio(form, near) >= cutoff:
            looped.append((-fuzz.ratio(form, near), near))
    found = rescore(form, recalled, limit=limit, cutoff=cutoff)
    assert [(-near.similarity, near.form) for near in found] == sorted(looped)[:limit]


@pytest.mark.parametrize(
    ("form", "near"),
    [
        ("1984", "1985"),
        ("user100", "user1000"),
        ("apollo 11", "apollo 1 1"),
        ("part 2", "part"),
        ("level 42", "42 level"),
    ],
)
def test_other_digits_are_no_match_in_either_direction(form: str, near: str) -> None:
    expected = ["42 level"] if form == "level 42" else []
    assert [found.form for found in rescore(form, [near], limit=9, cutoff=0)] == expected
    assert bool(rescore(near, [form], limit=9, cutoff=0)) is bool(expected)


def test_forms_of_one_similarity_stand_in_the_order_of_their_letters() -> None:
    assert [near.form for near in rescore("aaaa", ["aaac", "aaab"], limit=2, cutoff=0)] == ["aaab", "aaac"]


def test_of_one_similarity_the_more_popular_stands_first() -> None:
    names = {"aaab": 1, "aaac": 3, "aaad": 3, "aaaaa": 0}

    near = rescore("aaaa", names, limit=3, cutoff=0, popularity=lambda forms: [names[form] for form in forms])

    assert [similar.form for similar in near] == ["aaaaa", "aaac", "aaad"]


@pytest.mark.parametrize(
    ("names", "cutoff", "form", "others"),
    [
        (MANY_NAMES + 1, USUAL_CUTOFF, "frankenstien", []),
        (MANY_NAMES + 1, USUAL_CUTOFF, "frankenstain", []),
        (MANY_NAMES, USUAL_CUTOFF, "frankenstien", ["frankenstein jr"]),
        (MANY_NAMES + 1, USUAL_CUTOFF - 1, "frankenstien", ["frankenstein jr"]),
        (
            MANY_NAMES + 1,
            USUAL_CUTOFF,
            "frankinstein r",
            ["frankenstein jr"],
        ),  # nearest by two edits, and less than 90 % alike
    ],
)
def test_among_many_names_close_ones_within_two_edits_are_listed_alone(
    names: int, cutoff: float, form: str, others: list[str]
) -> None:
    recalled = ["frankenstein", "frankenstein jr", "dracula"]

    listed = {name.form for name in rescore(form, recalled, limit=9, cutoff=cutoff, names=names)}

    assert listed == {"frankenstein", *others}
    assert edits_suffice(form, recalled, cutoff=cutoff, names=names) is (not others)


def test_edits_are_letters_inserted_left_out_or_exchanged() -> None:
    assert within_edits("abcd", ["abcd", "abdc", "bcda", "cdab", "abcdef", "abcdefg"]) == [
        "abcd", "abdc", "bcda", "abcdef",
    ]  # fmt: skip


@pytest.mark.parametrize(("word", "looked"), [("abc", False), ("abcd", True), ("abc4", False), ("", False)])
def test_neighbours_of_short_words_and_numbers_are_not_looked_up(word: str, looked: bool) -> None:
    assert has_neighbours(word) is looked


def test_long_forms_are_never_similar() -> None:
    long = "a" * LONGEST_NAME
    assert rescore(long, [long[1:]], limit=1, cutoff=80)
    assert rescore(long + "b", [long], limit=1, cutoff=80) == []
    assert rescore(long, [long + "b"], limit=1, cutoff=80) == []
