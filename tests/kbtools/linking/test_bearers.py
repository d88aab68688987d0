"""A name that very many entities bear leads to those with the most facts, and the result counts the others."""

from collections.abc import Callable
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import closing_lines
from kbtools.linking import links
from tests.conftest import World

PRUNERS = ["n-gram", "n-gram+", "n-gram-idf"]


@pytest.fixture
def towns(make_kb: Callable[[str, World], Any], new_world: type[World], monkeypatch: pytest.MonkeyPatch) -> Answerer:
    """Give a knowledge base of five Springfields, the third and fifth of which have two facts, and a bound of three."""
    monkeypatch.setattr(links, "MOST_LINKED", 3)
    facts = [(entity, "location.location.containedby", "x") for entity in "abcde"]
    facts += [(entity, "location.location.area", "y") for entity in "ce"]
    names = [*((entity, "Springfield") for entity in "abcde"), ("f", "Shelby"), ("g", "Shelby")]
    facts += [(entity, "location.location.area", "z") for entity in "fg"]
    return Answerer(make_kb("memory", new_world(facts=tuple(facts), names=tuple(names))))


@pytest.mark.parametrize("pruning", PRUNERS)
@pytest.mark.parametrize("text", ["area of springfield", "area of sprinfield"])
def test_the_bearers_with_the_most_facts_are_candidates_of_equal_ones_the_first(
    towns: Answerer, text: str, pruning: str
) -> None:
    result = towns.query(text, pruning=pruning, scorer="lexical", top=None)

    assert {candidate.subject for candidate in result.candidates} == {"a", "c", "e"}
    assert result.bearers_left_out == 2
    assert "bearers of a name with the most facts are candidates" in closing_lines(result)[0]
    assert closing_lines(result)[0].endswith("2 are left out")


@pytest.mark.parametrize("pruning", PRUNERS)
def test_a_name_of_few_bearers_leads_to_all_of_them(towns: Answerer, pruning: str) -> None:
    result = towns.query("area of shelby", pruning=pruning, scorer="lexical", top=None)

    assert {candidate.subject for candidate in result.candidates} == {"f", "g"}
    assert result.bearers_left_out == 0
    assert not any("left out" in line for line in closing_lines(result))


def test_facts_are_counted_of_the_first_bearers_alone(towns: Answerer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_COUNTED", 4)

    result = towns.query("area of springfield", pruning="n-gram", scorer="lexical", top=None)

    assert {candidate.subject for candidate in result.candidates} == {"a", "b", "c"}
    assert result.bearers_left_out == 2
