"""The ladder: how far two spellings of one normal form are apart."""

import pytest

from kbtools.text.rungs import Form, Rung, compare


@pytest.mark.parametrize(
    ("surface", "name", "rung"),
    [
        ("Machine Learning", "Machine Learning", Rung.EXACT),
        ("Nízke Tatry", "Ni\u0301zke Tatry", Rung.EXACT),
        ("Nízke  Tatry", "Nízke Tatry", Rung.EXACT),
        ("machine learning", "Machine Learning", Rung.CASE),
        ("MAP", "map", Rung.CASE),
        ("ŁÓDŹ", "Łódź", Rung.CASE),
        ("nizke tatry", "Nízke Tatry", Rung.ACCENTS),
        ("sasha vujacic", "Sasha Vujačić", Rung.ACCENTS),
        ("I ❤ Huckabees", "I ❤\ufe0f Huckabees", Rung.ACCENTS),
        ("harder faster", "Harder.....Faster", Rung.PUNCTUATION),
        ("AT and T", "AT&T", Rung.PUNCTUATION),
        ("c", "C++", Rung.PUNCTUATION),
    ],
)
def test_two_spellings_stand_on_the_strictest_rung_that_holds(surface: str, name: str, rung: Rung) -> None:
    assert compare(surface, name) is rung
    assert compare(name, surface) is rung


def test_the_ladder_runs_from_strict_to_loose() -> None:
    assert [rung.label for rung in sorted(Rung)] == [
        "exact",
        "case",
        "accents",
        "punctuation",
        "apostrophe",
        "variant",
        "fuzzy",
        "near",
    ]


@pytest.mark.parametrize(
    ("form", "rung"),
    [
        (Form.NORMAL, Rung.EXACT),
        (Form.APOSTROPHE, Rung.APOSTROPHE),
        (Form.ARTICLE, Rung.VARIANT),
        (Form.BRACKET, Rung.VARIANT),
        (Form.COMMA, Rung.VARIANT),
        (Form.ESCAPE, Rung.VARIANT),
    ],
)
def test_a_form_says_the_strictest_rung_of_its_matches(form: Form, rung: Rung) -> None:
    assert form.rung is rung
