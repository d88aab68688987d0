"""The one measure of every backend: rapidfuzz's ratio, digits apart."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from kbtools.kb.contract import SimilarName
from kbtools.linking.near_ranking import Bearer
from kbtools.linking.similarity import (
    EDITS_CUTOFF,
    LONGEST_NAME,
    MANY_NAMES,
    USUAL_CUTOFF,
    edits_suffice,
    has_neighbours,
    rescore,
    within_edits,
)


def near(
    form: str, recalled: Iterable[str], *, limit: int = 9, cutoff: float = USUAL_CUTOFF, names: int = 0,
    popularity: Mapping[str, int] | None = None,
) -> list[SimilarName]:  # fmt: skip
    """Order recalled forms, each the name of another entity with so many names."""
    counts = popularity or {}
    return rescore(
        form, recalled, limit=limit, cutoff=cutoff, names=names,
        bearers=lambda forms: [Bearer(counts.get(form, 1), row) for row, form in enumerate(forms)],
    )  # fmt: skip


FORM = st.text("abc 01", min_size=1, max_size=8)


@given(FORM, st.lists(FORM, max_size=20), st.integers(0, 5), st.sampled_from([0.0, 50.0, 80.0]))
def test_forms_are_chosen_as_a_plain_loop_would(form: str, recalled: list[str], limit: int, cutoff: float) -> None:
    looped = set()
    for other in set(recalled) - {form}:
        digits = ["".join(c if c.isdigit() else " " for c in text).split() for text in (form, other)]
        ratio, edits = fuzz.ratio(form, other), Levenshtein.distance(form, other)
        if digits[0] == digits[1] and (ratio >= cutoff or (ratio >= EDITS_CUTOFF and edits <= 2)):
            looped.add(other)

    listed = near(form, recalled, limit=20, cutoff=cutoff)

    assert {name.form for name in listed} == looped
    assert near(form, recalled, limit=limit, cutoff=cutoff) == listed[:limit]
    assert all(
        first.similarity > second.similarity or first.similarity == second.similarity == 100.0
        for first, second in pairwise(listed)
    )
    assert all(name.similarity >= fuzz.ratio(form, name.form) for name in listed)


@pytest.mark.parametrize(
    ("form", "other"),
    [
        ("1984", "1985"),
        ("user100", "user1000"),
        ("apollo 11", "apollo 1 1"),
        ("part 2", "part"),
        ("level 42", "42 level"),
    ],
)
def test_other_digits_are_no_match_in_either_direction(form: str, other: str) -> None:
    expected = ["42 level"] if form == "level 42" else []
    assert [name.form for name in near(form, [other], cutoff=0)] == expected
    assert bool(near(other, [form], cutoff=0)) is bool(expected)


def test_forms_that_nothing_tells_apart_stand_in_the_order_of_their_letters() -> None:
    assert [name.form for name in near("aaaa", ["aaaж", "aaaд"], cutoff=0)] == ["aaaд", "aaaж"]


def test_of_two_names_as_near_the_more_popular_stands_first() -> None:
    popularity = {"garla stone": 1, "karla stone": 5}

    assert [name.form for name in near("arla stone", popularity, popularity=popularity)] == [
        "karla stone", "garla stone",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("misspelt", "meant", "other"),
    [
        ("caesarea", "cesarea", "caesar"),
        ("phillip", "philip", "phillips"),
        ("smyth river", "smith river", "myth river"),
        ("catherine", "katherine", "catherines"),
        ("bejing", "beijing", "being"),
    ],
)
def test_the_name_that_is_meant_stands_before_one_as_near(misspelt: str, meant: str, other: str) -> None:
    assert [name.form for name in near(misspelt, [meant, other])] == [meant, other]


def test_within_two_edits_a_short_name_is_listed_however_little_of_it_is_alike() -> None:
    assert [name.form for name in near("kazyan", ["qazian", "qarxon"])] == ["qazian"]


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

    listed = {name.form for name in near(form, recalled, cutoff=cutoff, names=names)}

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
    assert near(long, [long[1:]])
    assert near(long + "b", [long]) == []
    assert near(long, [long + "b"]) == []
