"""Lexicons of languages: function words, hints at relations, and when English applies."""

import pytest

from kbtools.text.lexicons import (
    Label,
    base_language,
    function_words,
    hinting_words,
    language_of,
    lexicon,
    reads_english,
    weak_words,
)


def test_a_word_of_a_question_hints_at_words_of_relations() -> None:
    german = lexicon("de")

    assert {"datum", "jahr"} <= {*german.hinted("wann")}
    assert {"ort", "stadt"} <= {*german.hinted("wo")}
    assert list(german.hinted("stadt")) == ["ort"]
    assert list(german.hinted("kite")) == list(lexicon("fr").hinted("wann")) == []


def test_an_umlaut_may_be_spelt_with_two_letters_in_german_alone() -> None:
    hints = {"de": {"laender": ["x"], "lander": ["y"], "grosse": ["z"], "hute": ["h"]}, "fr": {"laender": ["x"]}}

    german, french = (lexicon(tag)._replace(hints=words) for tag, words in hints.items())

    assert [german.hinted(word) for word in ("laender", "lander", "groesse", "huete")] == [["y"], ["y"], ["z"], ["h"]]
    assert french.hinted("laender") == ["x"]


def test_question_words_are_function_words_and_other_hints_are_not() -> None:
    words = function_words(["de-AT", "fr"])

    assert {"aber", "wann", "wo", "quand"} <= words
    assert "stadt" not in words
    assert {"stadt", "wann", "quand"} <= hinting_words(["de-AT", "fr"])
    assert weak_words(["de-AT", "fr"]) == words | hinting_words(["de-AT", "fr"])
    assert function_words([]) == hinting_words([]) == frozenset()


@pytest.mark.parametrize(
    ("languages", "english"),
    [
        ([], True),
        (["en"], True),
        (["de"], False),
        (["de-CH", "fr"], False),
        (["de", "tlh"], True),
        (["de", "en"], True),
    ],
)
def test_english_applies_unless_every_language_has_a_table(languages: list[str], english: bool) -> None:
    assert reads_english(languages) is english


def test_a_text_without_a_language_is_english() -> None:
    assert language_of("author") == "en"
    assert language_of(Label.of("Autor", "de-AT")) == base_language("de-AT") == "de"
    assert Label.of("Autor", "de") == "Autor"
