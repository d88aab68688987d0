"""Languages cover one another as their tags say, and texts keep one wording for each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.errors import UnknownLanguage
from kbtools.kb.language_tags import (
    ALIAS,
    MUL,
    NAME,
    UND,
    SpokenName,
    SpokenText,
    accepted_tags,
    part_among,
    read_languages,
    read_text,
    spoken_texts,
    stored_text,
    tags_for,
    text_in,
    usual_language,
    with_text,
)

KNOWN = ("en", "en-gb", "en-us", "de", "de-at", "de-at-1996", MUL, UND)


@pytest.mark.parametrize(
    ("text", "tags"),
    [("de,en", ("de", "en")), (" EN_us , de,en-US", ("en-us", "de")), ("de-CH", ("de-ch",)), ("mul", ("mul",))],
)
def test_tags_are_read_in_any_spelling_and_once(text: str, tags: tuple[str, ...]) -> None:
    assert read_languages(text, KNOWN) == tags


@pytest.mark.parametrize(
    ("text", "named"), [("fr", "'fr'"), ("de,fr", "'fr'"), ("d", "'d'"), ("", "''"), ("und", "'und'")]
)
def test_a_language_without_names_is_named_with_those_that_have_some(text: str, named: str) -> None:
    with pytest.raises(UnknownLanguage, match=f"no name is in the language {named}; there are de, de-at, .* mul$"):
        read_languages(text, KNOWN)


def test_without_any_language_the_cure_is_told() -> None:
    with pytest.raises(UnknownLanguage, match="'de' was requested, but no name has a language"):
        read_languages("de", [UND])


@pytest.mark.parametrize(
    ("wanted", "covering"),
    [
        ("en", ["en", "en-gb", "en-us"]),
        ("en-gb", ["en-gb", "en"]),
        ("de-at-1996", ["de-at-1996", "de-at", "de"]),
        ("de-at", ["de-at", "de", "de-at-1996"]),
        ("de-a", ["de"]),
        ("den", []),
        ("d", []),
        ("fr", []),
    ],
)
def test_a_language_is_covered_by_itself_less_specific_tags_and_its_regions(wanted: str, covering: list[str]) -> None:
    assert tags_for(wanted, KNOWN[::-1]) == covering


def test_names_for_all_languages_and_without_one_come_last() -> None:
    assert accepted_tags(("en-gb", "de"), KNOWN) == ("en-gb", "en", "de", "de-at", "de-at-1996", MUL, UND)
    assert accepted_tags(("mul",), (UND, MUL)) == (MUL, UND)
    assert accepted_tags(("en",), ("en",)) == ("en",)


def test_a_name_has_a_role_in_each_of_its_languages() -> None:
    name, alias = SpokenName("Köln", ("de", "en"), ("fr", "als")), SpokenName("Cologne", (), ("en",))

    assert name.languages == ("als", "de", "en", "fr")
    assert name.parts == {"de": False, "en": False, "fr": True, "als": True}
    assert [name.part_in(tags) for tags in (["en"], ["fr"], ["fr", "de"], ["it"], [])] == [NAME, ALIAS, NAME, 0, 0]
    assert [part_among([name, alias], text, ["en"]) for text in ("Köln", "Cologne", "köln")] == [NAME, ALIAS, 0]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x1e\x1f"), min_size=1, max_size=5)


@given(st.dictionaries(st.sampled_from(KNOWN), texts, min_size=1))
def test_a_text_in_languages_comes_back_as_it_was_stored(by_tag: dict[str, str]) -> None:
    text = SpokenText.of(by_tag)

    again = read_text(stored_text(text))

    assert isinstance(again, SpokenText)
    assert (again, list(again.by_tag.items())) == (text, list(by_tag.items()))
    assert text == next(iter(by_tag.values()))
    assert list(spoken_texts(text)) == list(by_tag.values())


def test_a_text_without_languages_is_stored_as_it_is() -> None:
    assert (stored_text("plain"), read_text("plain"), spoken_texts("plain")) == ("plain", "plain", ["plain"])
    assert (stored_text(None), read_text(""), read_text(None)) == ("", None, None)


def test_a_text_is_shown_in_the_first_language_that_it_has() -> None:
    text = SpokenText.of({"en": "book", "de": "Buch"})

    assert [text_in(text, tags) for tags in (["de", "en"], ["fr", "de"], ["fr"], [])] == [
        "Buch",
        "Buch",
        "book",
        "book",
    ]
    assert (text_in("plain", ["de"]), text_in(None, ["de"])) == ("plain", None)


@pytest.mark.parametrize(
    ("before", "tag", "after"),
    [
        ("old", "", "new"),
        (None, "", "new"),
        ({"en": "a", "de": "b"}, "", "new"),
        ("old", "en", "new"),
        (None, "en", "new"),
        ("old", "de", {"en": "old", "de": "new"}),
        (None, "de", {"de": "new"}),
        ("", "de", {"de": "new"}),
        ({"en": "a", "de": "b"}, "en", {"en": "new", "de": "b"}),
        ({"en": "a"}, "fr", {"en": "a", "fr": "new"}),
    ],
)
def test_a_new_text_replaces_that_of_its_language(
    before: str | dict[str, str] | None, tag: str, after: str | dict[str, str]
) -> None:
    text = with_text(SpokenText.of(before) if isinstance(before, dict) else before, tag, "new", usual="en")

    assert (dict(text.by_tag) if isinstance(text, SpokenText) else text) == after


def test_the_usual_language_is_the_first_of_names() -> None:
    assert [usual_language(tags) for tags in ([UND, "de", "en"], [UND], [])] == ["de", "", ""]
