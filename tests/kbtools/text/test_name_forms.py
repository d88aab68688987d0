"""Forms: the rewritings under which questions ask for a name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.text.normaliser import normal_form
from kbtools.text.rewritings import join_apostrophes
from kbtools.text.rungs import Form
from kbtools.text.variants import name_forms

NAME = st.text(st.one_of(st.characters(), st.sampled_from("aB1 '’,()[]&;#u0e4.\u200b")), max_size=14)


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("Jaws", {"jaws": Form.NORMAL}),
        ("Red Cloud's War", {"red cloud s war": Form.NORMAL, "red clouds war": Form.APOSTROPHE}),
        ("Hawaiʻi", {"hawai i": Form.NORMAL, "hawaii": Form.APOSTROPHE}),
        ("The Who", {"the who": Form.NORMAL, "who": Form.ARTICLE}),
        ("The", {"the": Form.NORMAL}),
        ("An", {"an": Form.NORMAL}),
        ("Theme", {"theme": Form.NORMAL}),
        ("Jaws (film)", {"jaws film": Form.NORMAL, "jaws": Form.BRACKET}),
        ("Jaws [film] ", {"jaws film": Form.NORMAL, "jaws": Form.BRACKET}),
        ("(What)", {"what": Form.NORMAL}),
        (
            "Emma's (film)",
            {
                "emma s film": Form.NORMAL,
                "emmas film": Form.APOSTROPHE,
                "emma s": Form.BRACKET,
                "emmas": Form.BRACKET,
            },
        ),
        (
            "The Bank (film)",
            {"the bank film": Form.NORMAL, "the bank": Form.BRACKET, "bank film": Form.ARTICLE, "bank": Form.ARTICLE},
        ),
        ("Paris, Texas", {"paris texas": Form.NORMAL, "texas paris": Form.COMMA, "paris": Form.COMMA}),
        ("a, b, c", {"a b c": Form.NORMAL, "abc": Form.OTHERWISE, "b c": Form.ARTICLE}),
        (",", {",": Form.NORMAL}),
        ("Aku Syrj00e4", {"aku syrj00e4": Form.NORMAL, "aku syrja": Form.ESCAPE}),
        ("2010", {"2010": Form.NORMAL}),
        (
            "Tom &amp; Jerry",
            {"tom and amp jerry": Form.NORMAL, "tom and jerry": Form.ESCAPE, "tom jerry": Form.OTHERWISE},
        ),
        (
            "The Iron Kite II (film)",
            {
                "the iron kite ii film": Form.NORMAL,
                "iron kite ii film": Form.ARTICLE,
                "the iron kite ii": Form.BRACKET,
                "iron kite ii": Form.ARTICLE,
                "the iron kite 2 film": Form.OTHERWISE,
                "iron kite 2 film": Form.OTHERWISE,
                "the iron kite 2": Form.OTHERWISE,
                "iron kite 2": Form.OTHERWISE,
            },
        ),
        ("AT&T", {"at and t": Form.NORMAL, "att": Form.OTHERWISE}),
        ("Joan P. Strelow", {"joan p strelow": Form.NORMAL, "joan strelow": Form.SHORTENED}),
        ("&#233;t&#233;", {"and 233 t and 233": Form.NORMAL, "ete": Form.ESCAPE}),
        ("!!!", {"!!!": Form.NORMAL}),
        ("", {}),
        (" \u200b", {}),
    ],
)
def test_a_name_is_stored_under_its_forms(name: str, forms: dict[str, Any]) -> None:
    assert name_forms(name) == forms


@given(NAME)
def test_forms_are_normal_and_begin_with_that_of_the_name(name: str) -> None:
    forms = name_forms(name)
    assert list(forms)[:1] == [form for form in [normal_form(name)] if form]
    assert all(form and normal_form(form) == form for form in forms)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("Nadir's", "Nadirs"),
        ("nadir 's", "nadirs"),
        ("nadir’s", "nadirs"),
        ("nadir‘s", "nadirs"),
        ("nadir´s", "nadirs"),
        ("Kaʿba", "Kaba"),
        ("O`Brien", "OBrien"),
        ("nadirʼs", "nadirs"),
        ("Hawaiʻi", "Hawaii"),
        ("Qurʾan", "Quran"),
        ("'quoted'", "'quoted'"),
        ("the boys' own", "the boys' own"),
        ("rock 'n' roll", "rockn' roll"),
    ],
)
def test_apostrophes_inside_words_are_joined(text: str, joined: str) -> None:
    assert join_apostrophes(text) == joined


@pytest.mark.parametrize("name", ["(" * 50_000, "(" + " " * 50_000 + "x", "&" * 50_000, "'" * 50_000, "x, " * 50_000])
def test_a_long_name_of_awkward_characters_is_no_trap(name: str) -> None:
    assert normal_form(name) in name_forms(name)
