"""The overview of a knowledge base: its questions are answered by the facts which they were made from."""

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
