"""Inverted names, the last name first: found where nothing else explains the words, and nowhere else."""

from collections.abc import Callable
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.linking.fuzzy import Misspelling
from kbtools.linking.strict import invert, link_inverted, link_strictly
from kbtools.text.ngrams import ngrams
from kbtools.text.question import Question
from tests.conftest import World

NAMES = (
    ("a", "J. K. Rowling"),
    ("b", "Orla Venn"),
    ("c", "Vincent van Gogh"),
    ("d", "Iron Kite"),
    ("e", "Kite Iron"),
    ("f", "Ana María Ruiz"),
    ("g", "Ola Venn"),
    ("h", "Ólafur Sól"),
)


@pytest.fixture(scope="session")
def people(backend: str, make_kb: Callable[[str, World], Any], new_world: type[World]) -> Answerer:
    facts = tuple((entity, "people.person.birthplace", "o") for entity, _ in NAMES)
    return Answerer(make_kb(backend, new_world(facts=facts, names=NAMES)))


def first(answerer: Answerer, text: str, pruning: str) -> tuple[str, str, str]:
    best = answerer.query(text, pruning=pruning, scorer="lexical").candidates[0]
    return best.subject, best.rung, best.mention.text


@pytest.mark.parametrize("pruning", ["n-gram", "n-gram+", "n-gram-idf"])
@pytest.mark.parametrize(
    ("text", "subject", "mention"),
    [
        ("birthplace of rowling j k", "a", "rowling j k"),
        ("birthplace of Rowling JK", "a", "Rowling JK"),
        ("birthplace of rowling j.k.", "a", "rowling j.k"),
        ("what is the birthplace of venn orla", "b", "venn orla"),
        ("where was Venn Orla born?", "b", "Venn Orla"),
        ("birthplace of van gogh vincent", "c", "van gogh vincent"),
        ("birthplace of gogh vincent van", "c", "gogh vincent van"),
        ("birthplace of ruiz ana maria", "f", "ruiz ana maria"),
        ("birthplace of sól ólafur", "h", "sól ólafur"),
        ("birthplace of VENN OLA", "g", "VENN OLA"),
    ],
)
def test_a_name_is_found_with_the_last_name_first(
    people: Answerer, text: str, subject: str, mention: str, pruning: str
) -> None:
    assert first(people, text, pruning) == (subject, "variant", mention)


@pytest.mark.parametrize(
    ("text", "subject", "rung"),
    [
        ("birthplace of Iron Kite", "d", "exact"),
        ("birthplace of Kite Iron", "e", "exact"),
        ("birthplace of orla venn", "b", "case"),
        ("birthplace of orla ven", "b", "fuzzy"),
        ("birthplace of Rowling, J. K.", "a", "variant"),
    ],
)
def test_what_stands_as_it_is_written_is_not_inverted(people: Answerer, text: str, subject: str, rung: str) -> None:
    assert first(people, text, "n-gram-idf")[:2] == (subject, rung)


def test_a_name_alone_is_looked_up_inverted_before_it_is_looked_up_fuzzily(people: Answerer) -> None:
    matches = [(match.id, match.rung) for match in people.lookup("Venn Orla").matches]
    assert matches == [("b", "variant")]


@pytest.mark.parametrize(
    ("form", "inverted"),
    [
        ("venn", []),
        ("venn orla", ["orla venn"]),
        ("a b c", ["b c a", "c a b"]),
        ("a b c d e", []),
    ],
)
def test_of_two_to_four_words_the_first_goes_last_or_the_last_first(form: str, inverted: list[str]) -> None:
    assert list(invert(form)) == inverted


def test_of_inverted_names_the_longest_are_linked_and_no_name_without_its_article() -> None:
    facts = [(entity, "r", "o") for entity in "abc"]
    kb = MemoryKB(facts, [("a", "Orla Venn"), ("b", "Vincent van Gogh"), ("c", "The Wind Rose")])
    texts = ["venn orla gogh vincent van", "rose wind"]

    links = link_inverted(kb, [ngrams(Question.read(text), lengths=[2, 3]) for text in texts])

    assert [[(link.name, link.weight) for link in own] for own in links] == [[("Vincent van Gogh", 0.0)], []]


def test_an_inverted_name_is_left_out_where_all_of_its_bearers_are_linked_already() -> None:
    facts = [(entity, "r", "o") for entity in "ab"]
    question = Question.read("rune venn orla")
    links = {}
    for bearers, names in {"both": ("a", "b"), "one": ("a",)}.items():
        kb = MemoryKB(facts, [("a", "Orla Venn"), ("b", "Orla Venn"), *((entity, "Rune") for entity in names)])
        links[bearers] = Misspelling(kb).links([question], strict=[link_strictly(kb, question)])[0]

    assert [(link.name, len(link.entities)) for link in links["one"]] == [("Orla Venn", 2)]
    assert links["both"] == []
