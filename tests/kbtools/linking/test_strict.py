"""Strict linking: which characters a mention covers, and on which rung of the ladder it stands."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.linking.strict import link_strictly
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question
from kbtools.text.rungs import Rung, compare
from tests.conftest import World


@pytest.fixture(scope="session")
def names(make_kb: Callable[[str, World], Any], new_world: type[World]) -> KnowledgeBase:
    """Give a knowledge base in which each of these names has an entity of its own."""
    spelt = [
        "C", "C++", "C#", ".NET", "Who?", "¿Qué?", "Wham!", "!!!", "Red Cloud's War", "The Who", "Paris, Texas",
        "Emma (film)", "Łódź", "Rock & Roll", "M*A*S*H", "Syrj00e4", "東京", "I'm Not There", "...And Justice", "$",
    ]  # fmt: skip
    facts = tuple((f"m.{at}", "r", "o") for at in range(len(spelt)))
    return make_kb("memory", new_world(facts=facts, names=tuple((f"m.{at}", name) for at, name in enumerate(spelt))))


def links(kb: KnowledgeBase, text: str) -> set[tuple[str, str, Rung]]:
    """List what a question links to: the mention, the name, the rung."""
    return {(text[link.start : link.end], link.name, link.rung) for link in link_strictly(kb, Question.read(text))}


@pytest.mark.parametrize(
    ("text", "mention", "name", "rung"),
    [
        ("C", "C", "C", Rung.EXACT),
        ("is c old", "c", "C", Rung.CASE),
        ("is C++ old", "C++", "C++", Rung.EXACT),
        ("is c++ old", "c++", "C++", Rung.CASE),
        ("is C++ old", "C", "C", Rung.PUNCTUATION),
        ("is C# old", "C#", "C#", Rung.EXACT),
        ("is C= old", "C", "C", Rung.PUNCTUATION),
        ("C++?", "C++", "C++", Rung.EXACT),
        ("what is .net?", ".net", ".NET", Rung.CASE),
        ("what is net", "net", ".NET", Rung.PUNCTUATION),
        ("list Who?", "Who?", "Who?", Rung.EXACT),
        ("¿qué?", "¿qué?", "¿Qué?", Rung.CASE),
        ("que", "que", "¿Qué?", Rung.PUNCTUATION),
        ("wham! songs", "wham!", "Wham!", Rung.CASE),
        ("what is !!! like", "!!!", "!!!", Rung.EXACT),
        ("is it !!!!", "!!!", "!!!", Rung.EXACT),
        ("red clouds war", "red clouds war", "Red Cloud's War", Rung.APOSTROPHE),
        ("Red Cloud's War", "Red Cloud's War", "Red Cloud's War", Rung.EXACT),
        ("red cloud 's war", "red cloud 's war", "Red Cloud's War", Rung.PUNCTUATION),
        ("the who", "the who", "The Who", Rung.CASE),
        ("Who", "Who", "The Who", Rung.VARIANT),
        ("emma", "emma", "Emma (film)", Rung.VARIANT),
        ("in Texas Paris", "Texas Paris", "Paris, Texas", Rung.VARIANT),
        ("in paris texas", "paris texas", "Paris, Texas", Rung.PUNCTUATION),
        ("in Lodz", "Lodz", "Łódź", Rung.ACCENTS),
        ("rock and roll", "rock and roll", "Rock & Roll", Rung.PUNCTUATION),
        ("Rock & Roll", "Rock & Roll", "Rock & Roll", Rung.EXACT),
        ("m*a*s*h", "m*a*s*h", "M*A*S*H", Rung.CASE),
        ("syrjä", "syrjä", "Syrj00e4", Rung.VARIANT),
        ("where is 東京?", "東京", "東京", Rung.EXACT),
        ("im not there", "im not there", "I'm Not There", Rung.APOSTROPHE),
        ("and justice", "and justice", "...And Justice", Rung.PUNCTUATION),
        ("...And Justice", "...And Justice", "...And Justice", Rung.EXACT),
        ("is it in $", "$", "$", Rung.EXACT),
    ],
)
def test_a_mention_covers_its_name_and_stands_on_its_rung(
    names: KnowledgeBase, text: str, mention: str, name: str, rung: Rung
) -> None:
    assert (mention, name, rung) in links(names, text)


@pytest.mark.parametrize("text", ["", " ", "zebra", "1984", "te", "cc", "¡"])
def test_words_that_no_name_is_made_of_link_to_nothing(names: KnowledgeBase, text: str) -> None:
    assert links(names, text) == set()


def test_an_apostrophe_of_the_question_alone_is_told_by_the_rung(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    kb = make_kb("memory", new_world(facts=(("a", "r", "b"),), names=(("a", "Nadirs"),)))
    assert links(kb, "who is nadir's") == {("nadir's", "Nadirs", Rung.APOSTROPHE)}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("who is joan strelow", "Joan P. Strelow"),
        ("who is joan p strelow", "Joan P. Strelow"),
        ("who is joan k strelow", None),
        ("who is carl b dorne", "Carl Dorne"),
    ],
)
def test_an_initial_is_left_out_of_the_name_or_of_the_question_but_not_of_both(
    make_kb: Callable[[str, World], Any], new_world: type[World], text: str, name: str | None
) -> None:
    names = (("a", "Joan P. Strelow"), ("b", "Carl Dorne"))
    kb = make_kb("memory", new_world(facts=(("a", "r", "o"), ("b", "r", "o")), names=names))

    assert {link.name for link in link_strictly(kb, Question.read(text))} == ({name} if name else set())


def test_only_the_n_grams_asked_for_are_linked(names: KnowledgeBase) -> None:
    question = Question.read("the who in paris texas")
    asked = [ngram for ngram in ngrams(question, lengths=[2]) if ngram.form == "paris texas"]
    assert [link.name for link in link_strictly(names, question, asked)] == ["Paris, Texas"]
    assert link_strictly(names, question, []) == []


@given(
    st.text(st.sampled_from(list("cC+#.!?¿ '$&*\U0001f600")) | st.characters(exclude_categories=["Cs"]), max_size=20)
)
def test_every_mention_is_a_part_of_the_question_that_names_its_entity(names: KnowledgeBase, text: str) -> None:
    for link in link_strictly(names, Question.read(text)):
        assert 0 <= link.start < link.end <= len(text)
        assert text[link.start] == text[link.start : link.end].lstrip()[:1]
        assert link.rung in set(Rung) - {Rung.FUZZY}
        assert link.rung is not Rung.EXACT or compare(text[link.start : link.end], link.name) is Rung.EXACT


def test_a_mention_rewritten_on_both_sides_stands_on_the_looser_rung() -> None:
    kb = MemoryKB([("a", "r", "o"), ("b", "r", "o")], [("a", "Nadirs II"), ("b", "Kites")])

    rungs = {link.name: link.rung for link in link_strictly(kb, Question.read("is nadir's 2 by kite's"))}

    assert rungs == {"Nadirs II": Rung.VARIANT, "Kites": Rung.APOSTROPHE}
