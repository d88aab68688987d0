"""Questions that no name is in: ids in their words, and names that have some of the words."""

import pytest

from kbtools.indexers.folder.memory import MemoryKB
from kbtools.linking.partial_names import entities_with_words, link_ids
from kbtools.text.question import Question
from kbtools.text.rungs import Rung

NAMES = [
    ("S-02", "Iron Kite"),
    ("T-7", "Iron Lamp Kite"),
    ("lamp", "Lamps of the Iron Hill"),
    ("Q3", "Kite"),
    ("Q4", "Hill Kite"),
]


@pytest.fixture
def kb() -> MemoryKB:
    counts = {"S-02": 1, "T-7": 3, "lamp": 2, "Q3": 5, "Q4": 4}
    facts = [(entity, f"r{number}", "o") for entity, count in counts.items() for number in range(count)]
    return MemoryKB(facts, NAMES)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("who is in S-02?", [("S-02", 3, 5)]),
        ("is (T-7), or S-02, larger than Q3", [("T-7", 2, 4), ("S-02", 7, 9), ("Q3", 13, 13)]),
        ("is X-1 like T-7", [("T-7", 5, 7)]),
        ("the lamp", []),
        ("s-02", []),
        ("", []),
    ],
)
def test_ids_with_a_digit_are_linked(kb: MemoryKB, text: str, spans: list[tuple[str, int, int]]) -> None:
    links = link_ids(kb, Question.read(text))

    assert [(kb.ids(link.entities), text[link.start : link.end], link.rung) for link in links] == [
        ([name], name, Rung.EXACT) for name, _, _ in spans
    ]
    tokens = Question.read(text).tokens
    assert [(text[tokens[link.ngram.first].start :].startswith(link.name.split("-")[0]), link.ngram.form, link.name)
            for link in links] == [(True, name, name) for name, _, _ in spans]  # fmt: skip
    assert [tokens[link.ngram.last].end for link in links] == [link.end for link in links]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("extent of GB 12 A/1, or GB 12", ["GB 12 A/1", "GB 12"]),
        ("GB 12 A of A 5 B C D", ["GB 12", "A 5 B C"]),
        ("12 A", []),
    ],
)
def test_the_longest_ids_of_up_to_four_words_are_linked(text: str, ids: list[str]) -> None:
    kb = MemoryKB([(entity, "r", "o") for entity in ("GB 12", "GB 12 A/1", "A 5 B C", "A 5 B", "A 5 B C D")], NAMES)
    links = link_ids(kb, Question.read(text))
    assert [(link.name, text[link.start : link.end]) for link in links] == [(found, found) for found in ids]


@pytest.mark.parametrize(
    ("text", "limit", "found"),
    [
        ("where is the kite", 9, ["Q3", "Q4", "T-7", "S-02"]),
        ("where is the kite", 2, ["Q3", "Q4"]),
        ("iron kites", 9, ["T-7", "S-02"]),
        ("an iron lamp", 9, ["T-7"]),
        ("iron lamps", 9, ["T-7", "lamp"]),
        ("where is it", 9, []),
        ("zebra", 9, []),
    ],
)
def test_names_with_most_of_the_words_come_by_their_facts(
    kb: MemoryKB, text: str, limit: int, found: list[str]
) -> None:
    content = {"kite", "kites", "iron", "lamp", "lamps", "zebra"}

    rows = entities_with_words(kb, Question.read(text), is_content=content.__contains__, limit=limit)

    assert kb.ids(rows) == found
