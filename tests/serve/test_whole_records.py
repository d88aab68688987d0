"""Whole records of the reconciliation service, the agent's tools and the overview, over a few entities with all that
an entity may have: namesakes, descriptions, aliases, many types, values of every kind."""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from starlette.testclient import TestClient

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.serve.agent_tools import make_server
from kbtools.serve.app import create_app
from kbtools.serve.overview import make_overview
from kbtools.serve.responses import json_bytes
from kbtools.serve.settings import ServeSettings
from kbtools.serve.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def path(kites: Callable[..., Path]) -> Path:
    return kites(
        facts=(("m.3", "book.author", "m.7"), ("m.8", "person.born", '"1950-02-03"')),
        names=(("m.3", "Kiter"), ("book.series", "series of books")),
        aliases=(("m.1", "Kite I"), ("m.8", "A. Venn")),
        types=(
            ("m.2", "book.book"),
            *(("m.8", f"person.kind{number}") for number in range(10)),
            ("m.9", "person.kind0"),
        ),
        spoken=tuple(
            (f"m.{number % 3 + 1}", f"Nom {tag}", tag)
            for number, tag in enumerate("fr de es it nl pl pt sv da".split())
        ),
        language="en,fr,de,es,it,nl,pl,pt,sv,da",
    )


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(ServeSettings(kbs=(str(path),)))) as session:
        yield session


def reconciled(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.post("/reconcile", data={"queries": json.dumps({"q": query})})
    assert answer.status_code == 200, answer.text
    return answer.json()["q"]["result"]


def ids(results: list[dict[str, Any]]) -> list[str]:
    return [result["id"] for result in results]


def test_a_candidate_has_its_description_and_named_types(client: TestClient) -> None:
    first, second = reconciled(client, query="Kite")

    assert (first["id"], first["description"], first["type"]) == (
        "m.1",
        "a novel",
        [{"id": "book.book", "name": "book.book"}],
    )
    assert "description" not in second
    assert second["type"] == [
        {"id": "book.book", "name": "book.book"},
        {"id": "book.series", "name": "series of books"},
    ]


@pytest.mark.parametrize("types", [["no.such", "book.series"], ["book.series", "no.such"]])
@pytest.mark.parametrize("strictness", ["any", "should"])
def test_an_unknown_type_takes_nothing_from_a_known_one(client: TestClient, types: list[str], strictness: str) -> None:
    results = reconciled(client, query="Kite", type=types, type_strict=strictness)

    assert ids(results) == (["m.2"] if strictness == "any" else ["m.2", "m.1"])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ([("book.author", {"id": "m.9"})], ["m.1", "m.2"]),
        ([("book.author", "m.9")], []),
        ([("book.author", "Ada Venn")], ["m.1"]),
        ([("book.author", "A. Venn")], ["m.1"]),
        ([("book.pages", {"id": "m.8"})], []),
        ([("no.such", {"id": "m.8"})], []),
        ([("book.author", {"id": "m.99"})], []),
        ([("book.author", "Nobody Known"), ("book.author", {"id": "m.7"})], ["m.3"]),
    ],
)
def test_values_alone_find_the_subjects_of_their_facts(
    client: TestClient, properties: list[tuple[str, Any]], expected: list[str]
) -> None:
    results = reconciled(client, properties=[{"pid": pid, "v": value} for pid, value in properties])

    assert ids(results) == expected
    assert all({"id": "name_score", "value": 0.0} in result["features"] for result in results)


@pytest.mark.parametrize(
    ("value", "agreement"),
    [
        ({"id": "m.9"}, 1.0),
        ("m.9", 1.0),
        ({"id": "m.9", "name": "Somebody"}, 1.0),
        ({"id": "m.7", "name": "Ada Venn"}, 1.0),
        (["Ada Venn", {"id": "m.7"}], 0.5),
        ("", 0.0),
        ({"id": ""}, 0.0),
    ],
)
def test_a_value_agrees_by_its_id_or_its_name(client: TestClient, value: Any, agreement: float) -> None:
    (first, *_) = reconciled(client, query="Kite", properties=[{"pid": "book.author", "v": value}])

    assert first["id"] == "m.1"
    assert {"id": "property:book.author", "value": agreement} in first["features"]


def test_an_object_without_a_name_agrees_by_its_id_alone(client: TestClient) -> None:
    results = [
        reconciled(client, query="Kiter", properties=[{"pid": "book.author", "v": value}]) for value in ("m.7", "m 7")
    ]

    agreed = [result["features"][-1]["value"] for own in results for result in own if result["id"] == "m.3"]
    assert agreed == [1.0, 0.0]


def test_a_suggestion_has_its_description_or_its_id_and_types(client: TestClient) -> None:
    suggested = client.get("/reconcile/suggest/entity", params={"prefix": "Kite"}).json()["result"]

    assert [(entity["id"], entity["name"], entity["description"]) for entity in suggested[:2]] == [
        ("m.1", "Kite", "a novel"),
        ("m.2", "Kite", "m.2, book.book, series of books"),
    ]
    assert suggested[1]["notable"] == ["book.book", "book.series"]


@pytest.mark.parametrize("cursor", [0, 1, 2, 3])
def test_suggestions_go_on_behind_the_cursor(client: TestClient, cursor: int) -> None:
    def suggest(**more: int) -> list[str]:
        answer = client.get("/reconcile/suggest/entity", params={"prefix": "Kite", **more})
        return ids(answer.json()["result"])

    assert suggest() == ["m.1", "m.2", "m.3"]
    assert suggest(cursor=cursor) == ["m.1", "m.2", "m.3"][cursor:]


@pytest.mark.parametrize("limit", [1, 2, 5_000])
def test_proposed_properties_are_limited(client: TestClient, limit: int) -> None:
    answer = client.get("/reconcile/properties", params={"type": "book.book", "limit": limit}).json()

    assert ids(answer["properties"]) == ["book.author", "book.pages"][:limit]
    assert (answer["type"], answer["limit"]) == ("book.book", limit)


RELATIONS = [f"r.{number:04}" for number in range(1_001)]


@pytest.fixture(scope="module")
def many_relations(make_kb: Callable[..., Any], new_world: Any) -> Iterator[TestClient]:
    """Serve an entity with a thousand relations and one more."""
    facts = tuple(("m.1", relation, "m.2") for relation in RELATIONS)
    kb = make_kb("embedded", new_world(facts, (("m.1", "Kite"),), types=(("m.1", "t.kite"),)))
    with TestClient(create_app(ServeSettings(kbs=(str(kb.path),)))) as session:
        yield session


@pytest.mark.parametrize(("limit", "count"), [("", 1_000), ("&limit=999", 999), ("&limit=5000", 1_000)])
def test_at_most_a_thousand_properties_are_proposed(many_relations: TestClient, limit: str, count: int) -> None:
    answer = many_relations.get(f"/reconcile/properties?type=t.kite{limit}").json()

    assert ids(answer["properties"]) == RELATIONS[:count]


@pytest.mark.parametrize(
    ("ids", "properties", "status"),
    [(1, 100, 200), (1, 101, 413), (1_001, 1, 413)],
)
def test_an_extension_has_limits(client: TestClient, ids: int, properties: int, status: int) -> None:
    extend = {"ids": ["m.1"] * ids, "properties": [{"id": "book.author"}] * properties}

    assert client.post("/reconcile", data={"extend": json.dumps(extend)}).status_code == status


def test_the_preview_shows_names_types_and_facts(client: TestClient) -> None:
    html = client.get("/reconcile/preview", params={"id": "m.1"}).text

    places = [html.index(text) for text in ("Kite", "m.1", "a novel", "The Iron Kite", "book.book", "Ada Venn")]
    assert places == sorted(places)
    assert client.get("/reconcile/preview", params={"id": "m.99"}).status_code == 404


@pytest.fixture
def call(path: Path) -> Iterator[Callable[..., Any]]:
    with open_kb(path) as kb:

        async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
            return job(kb)

        async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
            async with Client(make_server(ask, name="small")) as client:
                return (await client.call_tool(name, arguments)).structured_content

        yield lambda tool, /, **arguments: asyncio.run(call_tool(tool, arguments))


def test_an_agent_gets_an_entity_with_all_it_has(call: Callable[..., Any]) -> None:
    assert call("show", id="m.1") == {
        "id": "m.1",
        "name": "Kite",
        "aliases": ["Nom fr", "Nom it", "Nom pt", "Kite I", "The Iron Kite"],
        "types": ["book.book"],
        "facts": 3,
        "facts_as_object": 0,
        "description": "a novel",
    }
    assert len(call("show", id="m.8")["types"]) == 5


def test_an_agent_turns_the_pages_of_facts(call: Callable[..., Any]) -> None:
    pages = [call("facts", id="m.1", limit=2, offset=offset) for offset in (0, 2)]
    backwards = call("facts", id="m.9", reverse=True)

    assert [page["note"] for page in pages] == ["2 of 3 facts; offset=2 gives the next", "1 of 3 facts"]
    assert [fact["value"] for page in pages for fact in page["facts"]] == ["Ada Venn", "Orla Quinn", "312"]
    assert [(fact["id"], fact["value"], fact["relation"]) for fact in backwards["facts"]] == [
        ("m.1", "Kite", "book.author"),
        ("m.2", "Kite", "book.author"),
    ]


@pytest.mark.parametrize(("limit", "shown"), [(1, 1), (2, 2), (10, 2)])
def test_an_agent_gets_no_more_mentions_than_it_asks_for(call: Callable[..., Any], limit: int, shown: int) -> None:
    linked = call("link", text="Ada Venn met Orla Quinn", limit=limit)

    assert [mention["id"] for mention in linked["mentions"]] == ["m.8", "m.9"][:shown]
    assert linked["note"] == f"{shown} of 2 mentions"


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("zzzz", "no entity has the name 'zzzz' or a similar one"),
        ("Kite", "best match first"),
        ("Nom da", "best match first"),
    ],
)
def test_an_agent_is_told_what_the_matches_are(call: Callable[..., Any], name: str, note: str) -> None:
    assert call("lookup", name=name)["note"] == note


def test_a_server_without_the_library_of_agents_answers_the_rest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtools.serve.app.find_spec", lambda name: None)

    with TestClient(create_app(ServeSettings(kbs=(str(path),)))) as client:
        assert client.post("/mcp", json={}).status_code == 404
        assert client.get("/api/lookup", params={"name": "kite"}).status_code == 200


def test_a_line_of_the_log_says_when_who_and_what(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kbtools.serve.access"):
        client.get("/api/lookup", params={"name": "kite"})

    (line,) = [record.getMessage() for record in caplog.records if record.name == "kbtools.serve.access"]
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ testclient GET /api/lookup\?name=kite 200 \d+B \d+\.\dms", line
    )


def test_half_a_character_is_a_question_mark_in_json() -> None:
    assert json_bytes({"name": "a\udcffé"}) == '{"name":"a?é"}'.encode()


def test_every_parameter_is_described_with_its_place(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"]

    places = {
        path: {
            parameter["name"]: (parameter["in"], parameter["required"]) for parameter in methods["get"]["parameters"]
        }
        for path, methods in described.items()
        if "get" in methods
    }
    assert places["/api/entity/{id}"]["id"] == ("path", True)
    assert places["/api/lookup"]["name"] == ("query", True)
    assert places["/api/lookup"]["limit"] == ("query", False)


def test_the_overview_lists_the_eight_most_frequent(path: Path) -> None:
    with open_kb(path) as answerer:
        overview = make_overview(answerer, Vocabulary(answerer.kb))

    assert [kind["id"] for kind in overview["types"][:2]] == ["book.book", "person.kind0"]
    assert {kind["id"]: kind["name"] for kind in overview["types"]}.get("book.book") is None
    assert (len(overview["types"]), len(overview["languages"])) == (8, 8)
    shares = {round(kind["share"] / overview["types"][-1]["share"]) for kind in overview["types"]}
    assert shares == {1, 2}
