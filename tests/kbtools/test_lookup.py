"""Looking names up: every bearer, by rung and prior, with reasons; the same in every backend."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.name_candidates import find_entity
from kbtools.answering.records import EntityMatch
from kbtools.errors import BadArgument, UnknownEntity, UnknownType
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.kb.contract import KnowledgeBase
from kbtools.text.normaliser import normal_form
from kbtools.text.readings import rewrite, variant_table
from kbtools.text.rungs import Rung
from tests.conftest import World, write_world


@pytest.fixture(scope="module")
def tiny_answerer(tiny: KnowledgeBase) -> Answerer:
    return Answerer(tiny)


def test_a_name_gives_its_bearers_by_how_often_facts_speak_of_them(sample: Answerer) -> None:
    matches = sample.lookup("Paris").matches
    assert matches[0].id == "m.05qtj"
    assert {match.rung for match in matches} == {"exact"}
    assert sum(match.prior for match in matches) == pytest.approx(1, abs=1e-5)
    assert [match.prior for match in matches] == sorted((match.prior for match in matches), reverse=True)


def test_incoming_facts_count_as_well_as_outgoing_ones(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    facts = (("a", "r", "x"), ("a", "r", "y"), ("p", "r", "b"), ("q", "r", "b"), ("s", "r", "b"))
    kb = make_kb("embedded", new_world(facts, (("a", "Elm"), ("b", "Elm"))))
    first, second = Answerer(kb).lookup("Elm").matches
    assert (first.id, second.id) == ("b", "a")
    assert first.reasons[-1].endswith("from 0 facts out and 3 in")


def test_a_stricter_rung_stands_before_a_higher_prior(tiny_answerer: Answerer) -> None:
    matches = tiny_answerer.lookup("Who").matches
    assert [(match.id, match.rung) for match in matches] == [("m.13who", "exact"), ("m.12who", "variant")]
    assert matches[0].score == 100
    assert matches[0].score > matches[1].score


def test_scores_fall_from_match_to_match_and_stay_within_bounds(sample: Answerer) -> None:
    for name in ("paris", "It", "the who", "C++", "pirates of the carribean", "harry poter"):
        scores = [match.score for match in sample.lookup(name, limit=None).matches]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 100 for score in scores)


@pytest.mark.parametrize("of_type", [None, "location.location"])
def test_bearers_are_ranked_and_scored_as_a_plain_loop_would(sample_memory: Answerer, of_type: str | None) -> None:
    names = ["It", "springfield", "the springfield", "Harry Potter", "harry poter", "dune", "Paris", "stephen king"]
    for result in sample_memory.lookup_many(names, type=of_type, limit=None):
        matches = result.matches
        facts = {match.id: sample_memory.entity(match.id) for match in matches}
        weights = {entity: (1 + own.facts_out + own.facts_in) ** 0.6 for entity, own in facts.items()}
        shared = defaultdict(float)
        for match in matches:
            shared[group_of(match)] += weights[match.id]
        for match in matches:
            prior = weights[match.id] / shared[group_of(match)]
            rung = list(Rung)[[own.label for own in Rung].index(match.rung)]
            score = (
                100 - 5 * (rung - 1) - 5 * (1 - prior)
                if rung < Rung.FUZZY
                else (100 - 5 * (Rung.FUZZY - 1)) * match.similarity / 100 - (1 - prior) / 100
            )
            assert match.prior == pytest.approx(prior, abs=1e-6)
            assert match.score == pytest.approx(score, abs=1e-3)
            assert match.id == facts[match.id].id
            assert match.types == facts[match.id].types
        assert len({match.id for match in matches}) == len(matches)
        assert [match.score for match in matches] == sorted([match.score for match in matches], reverse=True)


def group_of(match: EntityMatch) -> tuple[str, str]:
    """Return a key that namesakes share: the rung, and the form if the link is fuzzy."""
    return match.rung, normal_form(match.matched_name) if match.rung == Rung.FUZZY.label else ""


def test_a_misspelt_name_is_found_fuzzily_and_says_so(sample: Answerer) -> None:
    match = sample.lookup("pirates of the carribean", type="film.film").matches[0]
    assert (match.id, match.rung, match.matched_name) == ("m.01vksx", "fuzzy", "Pirates of the Caribbean")
    assert match.similarity == pytest.approx(95.8333, abs=1e-3)
    assert match.reasons[:2] == (
        "'pirates of the carribean' resembles the name 'Pirates of the Caribbean'",
        "similarity 95.8 of 100",
    )
    assert match.score < 70


def test_a_type_leaves_its_entities_alone_to_share_the_prior(sample: Answerer) -> None:
    (match,) = sample.lookup("Paris", type="fictional_universe.fictional_character").matches
    assert match.id == "m.0kba173"
    assert match.prior == 1
    assert "fictional_universe.fictional_character" in {kind.id for kind in match.types}


def test_a_type_is_taken_in_any_of_its_spellings(sample: Answerer) -> None:
    spelt = sample.lookup("It", type="http://rdf.freebase.com/ns/film.film")
    assert spelt.matches == sample.lookup("It", type="film.film").matches != ()


def test_a_type_that_no_entity_has_is_named(sample: Answerer) -> None:
    with pytest.raises(UnknownType, match="has the type"):
        sample.lookup("It", type="film.flim")


@pytest.mark.parametrize("name", ["", " ", "zqxjkv zqxjkv"])
def test_what_is_no_name_has_no_bearers(tiny_answerer: Answerer, name: str) -> None:
    assert tiny_answerer.lookup(name).matches == ()


def test_an_article_or_a_bracket_too_many_is_a_variant(tiny_answerer: Answerer) -> None:
    matches = tiny_answerer.lookup("Paris (the city)").matches
    assert {match.id for match in matches} == {"m.01paris", "m.02paris"}
    assert {match.rung for match in matches} == {"variant"}


def test_the_limit_cuts_the_end_off(sample: Answerer) -> None:
    every = sample.lookup("Paris", limit=0).matches
    assert len(every) == 3
    assert sample.lookup("Paris", limit=2).matches == every[:2]


def test_many_names_are_looked_up_as_they_come(tiny_answerer: Answerer) -> None:
    read = []

    def names() -> Iterator[str]:
        for name in ("Texas", "France"):
            read.append(name)
            yield name

    results = tiny_answerer.lookup_many(names())
    assert read == []
    assert next(results).matches[0].id == "m.02texas"
    assert read == ["Texas"]


def test_records_have_a_hash_and_become_json(tiny_answerer: Answerer) -> None:
    result = tiny_answerer.lookup("Paris")
    assert len({result, tiny_answerer.lookup("Paris")}) == 1
    record = json.loads(json.dumps(result.to_json()))
    assert list(record) == ["json_version", "text", "type", "matches", "languages", "other_languages"]
    assert list(record["matches"][0]) == [
        "id", "name", "matched_name", "rung", "similarity", "prior", "score", "types", "reasons",
        "description",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [{"name": 7}, {"name": "It", "limit": -1}, {"name": "It", "type": 3}])
def test_what_is_no_name_limit_or_type_is_refused(tiny_answerer: Answerer, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        tiny_answerer.lookup(**arguments)
    with pytest.raises(BadArgument):
        tiny_answerer.lookup_many("Paris")


NAMES = {
    "tal": "University of Tal", "two": "World Strife II", "games": "Summer Games (1996)",
    "ermak": "Valer Nikolev Ermak",
    "konstan": "Valer Konstan Ermak", "dacion": "Dacion S.R.L.", "orr": "Orr Corporation", "road": "Route 66",
    "way": "The Red Way : a story", "twall": "Twall, Mark, 1835-1910", "group": "Guanz Communication Group",
}  # fmt: skip


@pytest.fixture
def look_up(make_kb: Callable[[str, World], Any], new_world: type[World]) -> Callable[[str], dict[str, float]]:
    """Look a name up in some names: the score of each entity, best first."""
    answerer = Answerer(make_kb("memory", new_world((("tal", "r", "x"),), tuple(NAMES.items()))))
    return lambda name: {match.id: match.score for match in answerer.lookup(name).matches}


@pytest.mark.parametrize(
    ("name", "entity"),
    [("University of Mer", "tal"), ("World Strife III", "two"), ("Summer Games (1992)", "games"),
     ("Twall, Mark, 1902-1999", "twall"), ("Orr Inc.", "orr")],
)  # fmt: skip
def test_names_that_differ_in_the_word_that_counts_score_below_fifty(
    look_up: Callable[[str], dict[str, float]], name: str, entity: str
) -> None:
    assert 0 < look_up(name)[entity] < 50


@pytest.mark.parametrize(
    ("name", "entities"),
    [("Valer Ermak", {"ermak", "konstan"}), ("Dacion", {"dacion"}), ("Orr Corp.", {"orr"}), ("orr", {"orr"}),
     ("The Red Way", {"way"}),
     ("route66", {"road"}), ("Mark Twall", {"twall"})],
)  # fmt: skip
def test_a_middle_name_a_legal_form_and_a_space_may_be_left_out(
    look_up: Callable[[str], dict[str, float]], name: str, entities: set[str]
) -> None:
    assert set(look_up(name)) == entities


def test_several_words_of_a_table_are_rewritten_at_once() -> None:
    table = variant_table([("COMMUNICATION", "COMM"), ("GROUP", "GRP"), ("LIMITED LIABILITY COMPANY", "LLC")])
    assert "guanz communication group" in rewrite(["guanz", "comm", "grp"], table)
    assert "foton limited liability company" in rewrite(["foton", "llc"], table)
    assert rewrite(["guanz"], table) == []


def test_words_written_together_or_by_a_table_are_looked_up(tmp_path: Path) -> None:
    world = World((("1", "near", "2"),), (("1", "Star Trek 2"), ("2", "Zorvath Quill Peak"), ("3", "Peak")))
    options = ReadOptions(variants=(("zorvath", "zth"), ("quill", "ql")))
    build(write_world(world, tmp_path), tmp_path / "x.kb", options=options, watch=BuildProgress())
    kb = kbtools.open(tmp_path / "x.kb")

    found = {name: [match.id for match in kb.lookup(name).matches] for name in ("StarTrek2", "zth ql peak", "peak")}

    assert found == {"StarTrek2": ["1"], "zth ql peak": ["2"], "peak": ["3"]}
    assert {kb.lookup(name).matches[0].rung for name in ("zth ql peak", "StarTrek2")} == {"variant"}


def test_longer_names_are_no_matches_beside_a_name_with_a_slip(tmp_path: Path) -> None:
    names = [("1", "Harriet Portman"), ("2", "Harriet Wilhelmina Portmann"), ("3", "Louis Mayer Quirke")]
    kb = kbtools.index(names=names, out=tmp_path / "x.kb")

    assert [match.id for match in kb.lookup("Harriet Portmann").matches] == ["1"]
    assert [match.id for match in kb.lookup("Louis Quirke").matches] == ["3"]


def test_an_entity_is_found_by_its_id_or_else_by_its_name_and_facts(tiny: KnowledgeBase) -> None:
    (first, second) = (row for row in tiny.rows(["m.01paris", "m.02paris"]) if row is not None)

    assert find_entity(tiny, "/m/02paris") == second
    assert find_entity(tiny, "paris") == first
    with pytest.raises(UnknownEntity, match="'mordor'"):
        find_entity(tiny, "mordor")


def test_a_type_bounds_misspelt_and_inverted_names_too(make_kb: Callable[[str, World], Any]) -> None:
    names = (("a", "Ana Rio"), ("b", "Ana Rio"), ("c", "Solaris"), ("d", "Solaris"))
    types = (("a", "t.x"), ("b", "t.y"), ("c", "t.x"), ("d", "t.y"))
    kb = Answerer(make_kb("memory", World((("a", "r", "b"), ("c", "r", "d")), names, types)))

    for name in ("Rio, Ana", "Solariss"):
        every, some = kb.lookup(name).matches, kb.lookup(name, type="t.y").matches
        assert len(every) == 2 * len(some) == 2
        assert some[0].id == every[1].id in "bd"


def test_the_prior_of_an_entity_is_that_of_its_look_up(sample_memory: Answerer) -> None:
    matches = sample_memory.lookup("Paris", limit=None).matches

    assert len({match.prior for match in matches}) > 1
    assert [sample_memory.entity(match.id).prior for match in matches] == [match.prior for match in matches]
    assert [match.score for match in matches] == pytest.approx(
        [100 - 5 * (1 - match.prior) for match in matches], abs=1e-3
    )
