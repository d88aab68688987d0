"""Content words: what a name may be made of, and what stands beside one."""

from dataclasses import replace
from typing import Any

import pytest

from kbtools.linking.link_confidence import ContentWords


@pytest.fixture
def content(make_kb: Any, new_world: Any) -> ContentWords:
    """Give the content words of questions to a knowledge base of publishers."""
    return ContentWords(make_kb("memory", new_world(facts=(("a", "book.publication.publisher", "b"),), names=())))


@pytest.mark.parametrize(
    ("word", "has", "beside"),
    [
        pytest.param("irn", True, False, id="three letters"),
        pytest.param("ir", False, False, id="two letters"),
        pytest.param("texas", True, False, id="a name"),
        pytest.param("b2b", False, False, id="digits"),
        pytest.param("दिल्ली", True, False, id="vowel signs"),
        pytest.param("published", False, True, id="a form of a relation's word"),
        pytest.param("what", False, True, id="a question word"),
        pytest.param("wrote", False, True, id="a word of questions"),
    ],
)
def test_content_words_are_long_spelt_and_of_neither_questions_nor_relations(
    content: ContentWords, word: str, has: bool, beside: bool
) -> None:
    assert content.has(word) is has
    assert content.may_end_before(word) is beside


def test_words_of_questions_are_those_of_their_languages(make_kb: Any, new_world: Any) -> None:
    spoken = (("a", "Kite", "de"), ("b", "Lampe", "de"))
    world = new_world((("a", "p1", "b"),), (), spoken=spoken, language="de")
    german, english = (
        ContentWords(make_kb("memory", world)),
        ContentWords(make_kb("memory", replace(world, language="en,de"))),
    )

    assert [german.has(word) for word in ("give", "what", "wann", "aber")] == [True, True, False, False]
    assert ("wann" in german.outside, "what" in german.outside) == (True, False)
    assert not english.has("what") or english.has("wann") is False
