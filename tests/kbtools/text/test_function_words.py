"""Function words: which forms say something of what a question is about."""

import pytest

from kbtools.text.common_words import COMMON, FUNCTION, ORDINARY, UNKNOWN, VERY_COMMON, bases_of, commonness
from kbtools.text.function_words import has_content, has_word


@pytest.mark.parametrize(
    ("form", "spoken", "content"),
    [
        ("paris", True, True),
        ("the who", True, False),
        ("the cure", True, True),
        ("it", True, False),
        ("!!!", False, True),
        ("!!", False, False),
        ("...", False, False),
        ("?", False, False),
    ],
)
def test_a_form_has_words_and_content(form: str, spoken: bool, content: bool) -> None:
    assert has_word(form) is spoken
    assert has_content(form) is content


@pytest.mark.parametrize(
    ("word", "bases"),
    [
        ("stories", {"storie", "stori", "story"}),
        ("stopped", {"stopp", "stoppe", "stop"}),
        ("making", {"mak", "make"}),
        ("sadly", {"sad"}),
        ("was", set()),
        ("cats", {"cat"}),
    ],
)
def test_a_word_may_be_a_form_of_others(word: str, bases: set[str]) -> None:
    assert set(bases_of(word)) == bases


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("the", FUNCTION),
        ("time", VERY_COMMON),
        ("xyzzy", UNKNOWN),
        ("timeness", VERY_COMMON),
        ("ability", VERY_COMMON),
        ("aardvark", COMMON),
        ("abdomen", ORDINARY),
        ("abdomens", ORDINARY),
    ],
)
def test_words_are_common_by_themselves_or_as_a_form(word: str, level: int) -> None:
    assert commonness(word) == level
    assert UNKNOWN < ORDINARY < COMMON < VERY_COMMON < FUNCTION
