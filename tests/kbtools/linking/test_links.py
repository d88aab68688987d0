"""Links stand in one order, are weighed less as aliases of another's name, and lead to subjects of facts."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from kbtools.kb.contract import KnowledgeBase
from kbtools.linking import strict
from kbtools.linking.links import Link, keep_type
from kbtools.linking.strict import ALIAS_WEIGHT, link_strictly, with_facts
from kbtools.text.ngrams import Ngram
from kbtools.text.question import Question
from kbtools.text.rungs import Rung
from tests.conftest import World

MakeKB = Callable[[str, World], Any]


def link(
    *,
    weight: float = 0.0,
    rung: Rung = Rung.CASE,
    similarity: float = 100.0,
    start: int = 0,
    end: int = 4,
    rows: Any = (),
) -> Link:
    ngram = Ngram("name", 0, 0, start, end)
    return Link(ngram, start, end, "Name", rung, np.array(rows, dtype=np.uint32), weight, similarity)


def test_the_better_link_has_the_greater_weight_then_the_stricter_rung_the_similarity_the_length_the_place() -> None:
    ordered = [
        link(weight=0.5, rung=Rung.FUZZY, similarity=80.0),
        link(rung=Rung.EXACT, start=5, end=7),
        link(rung=Rung.CASE, start=5, end=9),
        link(rung=Rung.CASE, start=2, end=5),
        link(rung=Rung.CASE, start=3, end=6),
        link(rung=Rung.FUZZY, similarity=95.0),
        link(rung=Rung.FUZZY, similarity=90.0),
        link(weight=-0.5, rung=Rung.EXACT),
    ]

    assert sorted(Random(3).sample(ordered, len(ordered)), key=lambda one: one.order) == ordered


@pytest.mark.parametrize("most", [0, 1_000])
def test_an_alias_weighs_less_where_another_entity_has_it_as_its_name(
    make_kb: MakeKB, new_world: type[World], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(strict, "MOST_LINKED", most)
    facts = tuple((entity, "r", "o") for entity in ("house cat", "big cat", "lynx", "caterpillar"))
    names = (("house cat", "Cat"), ("big cat", "Panthera"), ("lynx", "Lynx"), ("caterpillar", "CAT"))
    aliases = (("big cat", "cat"), ("lynx", "Bobcat"), ("caterpillar", "cat"))
    kb: KnowledgeBase = make_kb("memory", new_world(facts=facts, names=names, aliases=aliases))

    weights = {
        (entity, one.name): one.weight
        for text in ("cat", "bobcat")
        for one in link_strictly(kb, Question.read(text))
        for entity in kb.ids(one.entities)
    }

    assert weights == {
        ("house cat", "Cat"): 0.0,
        ("caterpillar", "CAT"): 0.0,
        ("big cat", "cat"): ALIAS_WEIGHT,
        ("caterpillar", "cat"): ALIAS_WEIGHT,  # of two bearers of one spelling, one has it as no name
        ("lynx", "Bobcat"): 0.0,
    }
    assert ALIAS_WEIGHT == -0.1


def test_an_alias_that_is_the_entitys_own_name_in_another_spelling_weighs_in_full(
    make_kb: MakeKB, new_world: type[World]
) -> None:
    world = new_world(facts=(("a", "r", "o"),), names=(("a", "Titin"),), aliases=(("a", "TITIN"),))
    kb: KnowledgeBase = make_kb("memory", world)

    assert {one.name: one.weight for one in link_strictly(kb, Question.read("titin"))} == {"Titin": 0.0, "TITIN": 0.0}


def test_a_link_is_kept_where_any_of_its_entities_is_the_subject_of_a_fact(
    make_kb: MakeKB, new_world: type[World]
) -> None:
    world = new_world(facts=(("b", "r", "a"), ("d", "r", "c")), names=tuple((one, one) for one in "abcd"))
    kb: KnowledgeBase = make_kb("memory", world)
    links = [link(rows=[0]), link(rows=[0, 1]), link(rows=[2, 3]), link(rows=[0, 2]), link(rows=[3, 0])]

    assert with_facts(kb, links) == [*links[1:3], links[4]]
    assert with_facts(kb, []) == []
    assert len(with_facts(kb, [link(rows=[0, 2, 1]), link(rows=[0, 2, 0])])) == 1


def test_of_each_link_the_entities_of_a_type_are_kept(tiny_memory: KnowledgeBase) -> None:
    (first, second) = map(int, tiny_memory.rows(["m.01paris", "m.02paris"]))
    (other,) = map(int, tiny_memory.rows(["m.04lodz"]))
    topic = list(tiny_memory.types).index("common.topic")

    kept = keep_type(tiny_memory, [link(rows=[first, second]), link(rows=[other])], topic)

    assert [one.entities.tolist() for one in kept] == [[first]]


@pytest.mark.parametrize(("bearers", "left_out"), [(1_000, 0), (1_001, 1), (1_500, 500)])
def test_a_link_leads_to_the_thousand_bearers_with_most_facts(
    make_kb: MakeKB, new_world: type[World], bearers: int, left_out: int
) -> None:
    ids = [f"e{number:04}" for number in range(bearers)]
    more = tuple((entity, "s", "o") for entity in ids[::-1][:10])
    world = new_world(facts=(*((entity, "r", "o") for entity in ids), *more), names=tuple((one, "Elm") for one in ids))
    kb: KnowledgeBase = make_kb("memory", world)

    (one,) = link_strictly(kb, Question.read("elm"))

    assert (len(one.entities), one.left_out) == (1_000, left_out)
    assert set(kb.ids(one.entities)) == {*ids[: 1_000 - 10 * bool(left_out)], *ids[-10:]}
