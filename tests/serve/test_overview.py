"""The overview of a knowledge base: its questions are answered by the facts which they were made from."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from kbtools.answering.answerer import Answerer
from kbtools.errors import BadArgument
from kbtools.serve.overview import make_overview, question_about
from kbtools.serve.settings import ServeSettings
from kbtools.serve.vocabulary import Vocabulary


def test_every_question_of_the_overview_has_a_likely_answer(client: TestClient) -> None:
    questions = client.get("/api/overview").json()["questions"]

    answers = [client.get("/api/query", params={"question": question}).json() for question in questions]
    assert len(questions) == 6
    assert len({answer["candidates"][0]["relation"] for answer in answers}) == 6
    assert [answer["doubtful"] for answer in answers] == [False] * 6


def test_the_overview_counts_types_and_languages(sample_memory: Answerer) -> None:
    overview = make_overview(sample_memory, Vocabulary(sample_memory.kb))

    shares = [type["share"] for type in overview["types"]]
    assert overview["types"][0]["id"] == "location.location"
    assert len(shares) == 8
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("relation", "question"),
    [
        ("people.person.place_of_birth", "what is the place of birth of It?"),
        ("film.film.directed_by", "who was It directed by?"),
        ("author", "what is the author of It?"),
        ("location.country.official_languages", "what are the official languages of It?"),
        ("location.location.contains", None),
        ("film.actor.performed_in", None),
    ],
)
def test_a_relation_is_asked_for_in_plain_words(relation: str, question: str | None) -> None:
    assert question_about("It", relation) == question


def test_a_link_without_a_place_for_the_id_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"wikidata.org/wiki/\{id\}, found 'javascript:\{id\}'"):
        ServeSettings(kbs=("sample",), link="javascript:{id}")


def overview_of(make_kb: Callable[..., Any], world: Any) -> dict[str, Any]:
    answerer = Answerer(make_kb("embedded", world))
    return make_overview(answerer, Vocabulary(answerer.kb))


LONG = "The Long Name of a Kite That Nobody Reads"


def test_each_relation_is_asked_about_once_those_of_entities_with_most_facts_first(
    make_kb: Callable[..., Any], new_world: Any
) -> None:
    facts = (
        *(("m.1", relation, f"m.{place}") for place, relation in enumerate(("writer", "owner", "colour"), 90)),
        ("m.2", "writer", "m.7"),
        ("m.3", "writer", "m.7"),
        ("m.3", "maker", "m.8"),
        *(("m.4", "reader", f"m.6{place}") for place in range(4)),
        ("m.5", "pilot", "m.8"),
        ("m.6", "captain", "m.8"),
    )
    kites = [(f"m.{place}", f"{colour} Kite") for place, colour in enumerate(("Amber", "Blue", "Coral", "Dusk"), 1)]
    names = (*kites, ("m.5", LONG), ("m.6", LONG[1:]))

    overview = overview_of(make_kb, new_world(facts, names))

    assert (len(LONG), overview["types"], overview["languages"]) == (41, [], [])
    assert sorted(overview["questions"]) == [
        f"what is the captain of {LONG[1:]}?",
        "what is the colour of Amber Kite?",
        "what is the maker of Coral Kite?",
        "what is the owner of Amber Kite?",
        "what is the writer of Blue Kite?",
    ]
    assert overview["questions"][0].endswith("of Amber Kite?")


def test_a_question_of_the_overview_has_the_name_of_its_relation(make_kb: Callable[..., Any], new_world: Any) -> None:
    world = new_world((("Q1", "P50", "Q2"),), (("Q1", "Amber Kite"), ("P50", "author")))
    kb = make_kb("embedded", world)
    answerer = Answerer(kb)

    questions = make_overview(answerer, Vocabulary(kb))["questions"]

    assert questions == [question_about("Amber Kite", kb.relation_names[0] or kb.relations[0])]


def test_shares_are_of_the_sampled_entities(
    make_kb: Callable[..., Any], new_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tuple((f"m.{number}", "writer", f"m.{number + 1}") for number in range(9))
    types = tuple((f"m.{number}", "kite") for number in range(4))
    kb = make_kb("embedded", new_world(facts, (("m.1", "Kite"),), types))
    monkeypatch.setattr("kbtools.serve.vocabulary._SAMPLED", 3)

    overview = make_overview(Answerer(kb), Vocabulary(kb))

    sample = Vocabulary(kb).sample
    typed = int(np.isin(sample, kb.rows([f"m.{number}" for number in range(4)])).sum())
    assert [(kind["id"], kind["share"]) for kind in overview["types"]] == [("kite", round(typed / 3, 6))]


def test_languages_come_by_their_names_ties_by_tag(make_kb: Callable[..., Any], new_world: Any) -> None:
    spoken = (("m.1", "Kite A", "fr"), ("m.1", "Kite B", "de"), ("m.2", "Kite C", "es"), ("m.1", "Kite D", "es"))
    world = new_world((("m.1", "writer", "m.2"),), (("m.1", "Kite"),), spoken=spoken, language="en,fr,de,es")

    tags = [language["language"] for language in overview_of(make_kb, world)["languages"]]

    counts = Answerer(make_kb("embedded", world)).kb.manifest.languages
    assert tags == sorted((tag for tag in counts if tag != "und"), key=lambda tag: (-counts[tag], tag))
    assert len(tags) >= 3


def test_at_most_sixty_questions_are_tried(
    make_kb: Callable[..., Any], new_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    relations = [f"{one}{other} value" for one in "bcdfghkl" for other in "aeiouvwxz"]
    facts = tuple((entity, relation, f"{entity}5") for entity in ("m.1", "m.2") for relation in relations)
    answerer = Answerer(make_kb("embedded", new_world(facts, (("m.1", "Kite"), ("m.2", "Kite")))))
    asked: list[str] = []
    query = answerer.query

    def noted(text: str, **options: Any) -> Any:
        asked.append(text)
        return query(text, **options)

    monkeypatch.setattr(answerer, "query", noted)

    overview = make_overview(answerer, Vocabulary(answerer.kb))

    assert (overview["questions"], len(asked), len(relations)) == ([], 60, 72)
