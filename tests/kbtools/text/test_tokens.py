"""Tokens: the words of a question, and where they are in it."""

import html
from itertools import accumulate, groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.text.normaliser import normal_form
from kbtools.text.question import ascii_tokens, character_tokens, plain_tokens, tokenise

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "ab1é&'-_.!?İıßǰŉﬁℌ１Ａ가가़िが\u3099\u0301\u0338\u200d\u200b\u00ad\ufe0f\u20e3\u202e\ufeff\r\n\t\u2028…℀½¨\U0001f600\U0001d504"
        ),
    ),
    max_size=12,
)


def spelt(text: str) -> list[tuple[str, str, bool]]:
    return [(token.text, text[token.start : token.end], token.is_word) for token in tokenise(text)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Who wrote C++?", [("who", "Who", True), ("wrote", "wrote", True), ("c", "C", True), ("++?", "++?", False)]),
        ("AT&T", [("at", "AT", True), ("and", "&", True), ("t", "T", True)]),
        ("what 's", [("what", "what", True), ("'", "'", False), ("s", "s", True)]),
        ("m/s", [("m", "m", True), ("/", "/", False), ("s", "s", True)]),
        ("Ni\u0301zke", [("nizke", "Ni\u0301zke", True)]),
        ("Har\u200bry", [("harry", "Har\u200bry", True)]),
        ("❤\ufe0f?", [("❤?", "❤\ufe0f?", False)]),
        ("\u0301a", [("a", "a", True)]),
        ("😀a𝔄", [("😀", "😀", False), ("aa", "a𝔄", True)]),
        ("x℀y", [("xa", "x℀y", True), ("cy", "x℀y", True)]),
        ("a\r\n b", [("a", "a", True), ("b", "b", True)]),
        ("שלום?", [("שלום", "שלום", True), ("?", "?", False)]),
        ("…", [("...", "…", False)]),
        (
            "a AT&amp;T b",
            [("a", "a", True), ("at", "AT", True), ("and", "&amp;", True), ("t", "T", True), ("b", "b", True)],
        ),
        ("R&amp;D\nis", [("r", "R", True), ("and", "&amp;", True), ("d", "D", True), ("is", "is", True)]),
        ("x &eacute;t&#xE9; y", [("x", "x", True), ("ete", "&eacute;t&#xE9;", True), ("y", "y", True)]),
        ("a&NotEqualTilde;b", [("a", "a", True), ("≂", "&NotEqualTilde;", False), ("b", "b", True)]),
        ("&&", [("and", "&", True), ("and", "&", True)]),
        ("é&&", [("e", "é", True), ("and", "&", True), ("and", "&", True)]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_a_text_has_its_tokens(text: str, tokens: list[tuple[str, str, bool]]) -> None:
    assert spelt(text) == tokens


@given(ANY_TEXT)
def test_tokens_stand_in_order_where_they_say(text: str) -> None:
    found = [(token.start, token.end) for token in tokenise(text)]
    spans = list(dict.fromkeys(found))
    assert found == sorted(found)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert not any(character.isspace() for start, end in spans for character in text[start:end])


@given(ANY_TEXT)
def test_the_words_of_a_text_are_its_normal_form(text: str) -> None:
    words = [token.text for token in tokenise(text) if token.is_word]
    marks = [token.text for token in tokenise(text)]
    assert normal_form(text) == (" ".join(words) or "".join(marks))


@given(ANY_TEXT)
def test_every_token_has_the_normal_form_of_its_characters(text: str) -> None:
    spans = groupby(tokenise(text), lambda token: (token.start, token.end))
    assert all(
        normal_form(text[start:end]) == " ".join(token.text for token in tokens) for (start, end), tokens in spans
    )


def test_every_character_keeps_words_and_normal_form_together(characters: list[str]) -> None:
    texts = [f"x{character}y" for character in characters]
    words = [" ".join(token.text for token in tokenise(text) if token.is_word) for text in texts]
    assert words == list(map(normal_form, texts))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_cut_as_any_text_is(text: str) -> None:
    assert ascii_tokens(text) == character_tokens(text)


def test_a_text_of_thousands_of_words_is_read() -> None:
    assert len(tokenise("word? " * 5_000)) == 10_000


@given(st.lists(st.sampled_from(["&amp;", "&eacute;", "&#8230;", "&nbsp;", "a", "é", "&", "!", " ", "&x"]), max_size=9))
def test_an_entity_is_one_character_that_spans_its_letters(parts: list[str]) -> None:
    text = "".join(parts)
    plain = "".join(map(html.unescape, parts))
    # Where each character of the plain text begins and ends among the parts: each part of the list is one, but `&x`.
    spans = []
    for part, end in zip(parts, accumulate(map(len, parts)), strict=True):
        start = end - len(part)
        spans += [(start, end)] if len(html.unescape(part)) == 1 else [(at, at + 1) for at in range(start, end)]

    tokens = [(token.text, token.start, token.end) for token in tokenise(text)]

    expected = [(token.text, spans[token.start][0], spans[token.end - 1][1]) for token in plain_tokens(plain)]
    assert tokens == expected
