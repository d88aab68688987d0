"""Entities and their facts, in both directions, as records with names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.records import Fact
from kbtools.answering.results import Named
from kbtools.errors import BadArgument, IncomingMissing, UnknownEntity
from kbtools.kb.contract import BackendDefaults
from tests.conftest import World

every_home = pytest.mark.parametrize("home", ["memory", "embedded", "elasticsearch"])


@pytest.fixture
def tiny_in(make_kb: Callable[[str, World], Any], tiny_world: World) -> Callable[[str], Answerer]:
    return lambda home: Answerer(make_kb(home, tiny_world))


def test_an_entity_has_its_names_types_and_numbers_of_facts(sample_memory: Answerer) -> None:
    entity = sample_memory.entity("m.078ffw")
    assert (entity.name, entity.names, entity.aliases) == ("Harry Potter", ("Harry Potter",), ("The Boy Who Lived",))
    assert entity.types == (Named("fictional_universe.fictional_character", None),)
    assert (entity.facts_out, entity.facts_in) == (2, 0)
    assert entity.prior == sample_memory.lookup("Harry Potter").matches[0].prior


@every_home
def test_an_entity_without_a_name_has_no_prior(tiny_in: Callable[[str], Answerer], home: str) -> None:
    entity = tiny_in(home).entity("m.09unnamed")
    assert (entity.name, entity.names, entity.aliases, entity.prior) == (None, (), (), None)
    assert (entity.facts_out, entity.facts_in) == (0, 1)


@pytest.mark.parametrize("spelling", ["m.078ffw", "/m/078ffw", "www.freebase.com/m/078ffw", "<fb:m.078ffw>"])
def test_an_id_is_taken_in_any_of_its_spellings(sample_memory: Answerer, spelling: str) -> None:
    assert sample_memory.entity(spelling).id == sample_memory.facts(spelling).id == "m.078ffw"


@pytest.mark.parametrize("method", ["entity", "facts"])
def test_an_unknown_id_is_named_with_what_to_do(sample_memory: Answerer, method: str) -> None:
    with pytest.raises(UnknownEntity, match="kbtools lookup finds ids"):
        getattr(sample_memory, method)("m.0none")


def test_a_type_that_is_an_entity_has_its_name(make_kb: Callable[[str, World], Any], new_world: type[World]) -> None:
    world = new_world((("Q64", "P31", "Q515"),), (("Q64", "Berlin"), ("Q515", "city")), (("Q64", "Q515"),))
    assert Answerer(make_kb("embedded", world)).entity("wd:Q64").types == (Named("Q515", "city"),)


@every_home
def test_facts_come_in_both_directions_with_names(tiny_in: Callable[[str], Answerer], home: str) -> None:
    answerer = tiny_in(home)
    texas, paris = Named("m.02texas", "Texas"), Named("m.02paris", "Paris")
    assert answerer.facts("m.02texas").facts == (Fact(texas, Named("location.contains", None), paris),)
    assert answerer.facts("m.02texas", reverse=True).facts == (Fact(paris, Named("location.containedby", None), texas),)


@every_home
def test_a_fact_is_incoming_once_however_often_it_was_read(tiny_in: Callable[[str], Answerer], home: str) -> None:
    facts = tiny_in(home).facts("m.03france", reverse=True)
    assert (facts.total, [fact.subject.id for fact in facts.facts]) == (1, ["m.01paris"])


@every_home
def test_a_literal_is_its_own_name_and_can_be_asked_about(tiny_in: Callable[[str], Answerer], home: str) -> None:
    answerer = tiny_in(home)
    assert answerer.facts("m.11titin").facts[0].object == Named('"2"@en', "2")
    assert answerer.facts('"2"@en', reverse=True).facts[0].subject.id == "m.11titin"


@every_home
def test_facts_are_paged_and_the_total_is_told(tiny_in: Callable[[str], Answerer], home: str) -> None:
    answerer = tiny_in(home)
    every = answerer.facts("m.08acdc")
    pages = [answerer.facts("m.08acdc", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [fact for page in pages for fact in page.facts] == list(every.facts)
    assert [page.total for page in pages] == [3, 3, 3]
    assert [len(page.facts) for page in pages] == [2, 1, 0]


def test_every_fact_of_the_sample_is_found_from_both_ends(sample_path: Path) -> None:
    answerer = kbtools.open(sample_path)
    ids = answerer.kb.ids(np.arange(answerer.kb.manifest.counts["entities"].unique, dtype=np.uint32))
    outgoing = {fact for entity_id in ids for fact in answerer.facts(entity_id, limit=None).facts}
    incoming = {fact for entity_id in ids for fact in answerer.facts(entity_id, limit=None, reverse=True).facts}
    assert outgoing == incoming
    assert len(outgoing) == answerer.kb.manifest.counts["facts"].unique


def test_a_backend_without_incoming_facts_says_so() -> None:
    class Outgoing(BackendDefaults):
        """A backend with the defaults alone."""

    defaults = Outgoing()
    assert defaults.incoming_counts(np.zeros(1, dtype=np.uint32)) is None
    with pytest.raises(IncomingMissing, match="no index from objects to facts"):
        defaults.subjects_of(np.zeros(1, dtype=np.uint32))


def test_a_closed_knowledge_base_is_asked_nothing(sample_path: Path) -> None:
    answerer = kbtools.open(sample_path)
    answerer.close()
    for ask in (answerer.entity, answerer.facts, answerer.lookup, answerer.link):
        with pytest.raises(kbtools.KBUnusable, match="is closed"):
            ask("m.078ffw")


def test_records_become_json(sample_memory: Answerer) -> None:
    entity = json.loads(json.dumps(sample_memory.entity("m.078ffw").to_json()))
    assert list(entity) == [
        "json_version", "id", "name", "names", "aliases", "types", "facts_out", "facts_in", "prior", "description",
        "languages",
    ]  # fmt: skip
    facts = json.loads(json.dumps(sample_memory.facts("m.078ffw", limit=1).to_json()))
    assert list(facts) == ["json_version", "id", "reverse", "total", "offset", "facts"]
    assert facts["facts"][0]["object"] == {"id": "m.042xh", "name": "J. K. Rowling"}


@pytest.mark.parametrize("arguments", [{"limit": -1}, {"offset": -1}, {"limit": "2"}, {"id": None}])
def test_what_is_no_id_limit_or_offset_is_refused(sample_memory: Answerer, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        sample_memory.facts(**{"id": "m.078ffw", **arguments})
