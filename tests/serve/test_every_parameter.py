"""Every parameter of every endpoint changes the answer, and changes it as the library's argument does."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.kb.vector_index import EntityVectors, VectorOrigin
from kbtools.serve.api import nearest_entities
from kbtools.serve.app import create_app
from kbtools.serve.endpoints import ENDPOINTS
from kbtools.serve.overview import make_overview
from kbtools.serve.settings import ServeSettings
from kbtools.serve.vocabulary import Vocabulary

WHO = "who is the author of Kite"
TEXT = "Orla Quinn, not Orla Quin, wrote Kite. Nom fr met her."
ASKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "query": (
        {"question": WHO},
        {
            "pruning": "n-gram",
            "scorer": "static",
            "subject": "type-count",
            "type": "book.series",
            "lang": "fr",
            "inverse": True,
            "top": 1,
            "answers": 1,
            "abstain": 1.0,
        },
    ),
    "lookup": ({"name": "Kite"}, {"type": "book.series", "lang": "fr", "limit": 1}),
    "link": ({"text": TEXT}, {"threshold": 0.9, "context": True, "lang": "fr", "limit": 1}),
    "entity": ({"id": "m.1"}, {"lang": "fr"}),
    "facts": ({"id": "m.1"}, {"reverse": True, "offset": 1, "lang": "fr", "limit": 1}),
    "similar": ({"id": "m.1"}, {"lang": "fr", "limit": 1}),
    "overview": ({}, {"lang": "fr"}),
}
CASES = [(endpoint, name) for endpoint, (_, optional) in ASKED.items() for name in optional]


@pytest.fixture(scope="module")
def path(kites: Callable[..., Path]) -> Path:
    folder = kites(
        facts=(("m.2", "book.author", "m.8"), ("m.3", "book.author", "m.1"), ("m.3", "book.cover", "m.2")),
        names=(("m.3", "Kiter"), ("book.book", "book")),
        types=(("m.3", "book.book"), ("m.8", "person.writer")),
        spoken=(("m.1", "Cerf-volant", "fr"), ("m.8", "Nom fr", "fr"), ("book.book", "livre", "fr")),
        language="en,fr",
    )
    with open_kb(folder) as answerer:
        rows = np.arange(4, dtype=np.uint32)
        table = np.array([[1, 0], [1, 1], [0, 1], [-1, 1]], dtype=np.float32)
        origin = VectorOrigin("words")
        write_vectors(folder, answerer.kb, EntityVectors(rows, 2, lambda at: table[at], origin))
    return folder


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(ServeSettings(kbs=(str(path),)))) as session:
        yield session


@pytest.fixture(scope="module")
def opened(path: Path) -> Iterator[Answerer]:
    with open_kb(path) as answerer:
        yield answerer


def answer_of(kb: Answerer, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what the library answers, as a record of JSON without timings."""
    if name == "overview":
        view = kb.in_languages(arguments.get("lang"))
        return plain(make_overview(view, Vocabulary(view.kb)))
    if name == "similar":
        limit, view = arguments.get("limit", 10), kb.in_languages(arguments.get("lang"))
        return plain(nearest_entities(view.kb, arguments["id"], limit=limit))
    return plain(getattr(kb, name)(*list(arguments.values())[:1], **dict(list(arguments.items())[1:])).to_json())


def plain(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps({name: value for name, value in record.items() if name != "milliseconds"}))


def get(client: TestClient, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    path = f"/api/entity/{arguments['id']}" if name == "entity" else f"/api/{name}"
    texts = {key: json.dumps(value).strip('"') for key, value in arguments.items() if (name, key) != ("entity", "id")}
    answer = client.get(path, params=texts)
    assert answer.status_code == 200, answer.text
    return plain(answer.json())


@pytest.mark.parametrize(("endpoint", "parameter"), CASES, ids=["-".join(case) for case in CASES])
def test_a_parameter_is_an_argument_of_the_library(
    client: TestClient, opened: Answerer, endpoint: str, parameter: str
) -> None:
    required, optional = ASKED[endpoint]

    answers = [get(client, endpoint, required), get(client, endpoint, required | {parameter: optional[parameter]})]

    assert answers[0] == answer_of(opened, endpoint, required)
    assert answers[1] == answer_of(opened, endpoint, required | {parameter: optional[parameter]})
    assert answers[0] != answers[1]


@pytest.mark.parametrize(("endpoint", "parameter"), [case for case in CASES if case[0] in ("query", "lookup", "link")])
def test_a_parameter_of_a_post_is_that_of_a_get(client: TestClient, endpoint: str, parameter: str) -> None:
    required, optional = ASKED[endpoint]
    arguments = required | {parameter: optional[parameter]}

    posted = plain(client.post(f"/api/{endpoint}", json=arguments).json())

    assert posted == get(client, endpoint, arguments)


@pytest.mark.parametrize(("endpoint", "parameter"), [case for case in CASES if case[0] in ("query", "lookup")])
def test_a_parameter_holds_for_each_of_many(client: TestClient, endpoint: str, parameter: str) -> None:
    required, optional = ASKED[endpoint]
    ((name, text),) = required.items()
    more = {parameter: optional[parameter]}

    lines = client.post(f"/api/{endpoint}", json={f"{name}s": [text, "Orla Quinn"], **more}).text.splitlines()

    assert [plain(json.loads(line)) for line in lines] == [
        get(client, endpoint, {name: each, **more}) for each in (text, "Orla Quinn")
    ]


def test_every_parameter_of_an_endpoint_is_tried() -> None:
    named = {
        endpoint.name: {*endpoint.get.__struct_fields__} - {*ASKED[endpoint.name][0]} - {"ranker"}
        for endpoint in ENDPOINTS
        if endpoint.get and endpoint.name in ASKED
    }

    assert named == {endpoint: {*optional} for endpoint, (_, optional) in ASKED.items()}


def test_a_ranker_is_looked_for_among_the_models(client: TestClient) -> None:
    answers = [client.get("/api/query", params={"question": WHO, "ranker": name}) for name in ("weighted-sum", "nope")]

    assert [answer.status_code for answer in answers] == [200, 400]
    assert "nope" in answers[1].json()["error"]["message"]


@pytest.mark.parametrize(
    ("endpoint", "name", "least", "most"),
    [
        ("query", "top", 0, 100_000),
        ("query", "answers", 0, 1_000_000),
        ("query", "abstain", 0, 1),
        ("lookup", "limit", 1, 1_000),
        ("link", "limit", 1, 100),
        ("link", "threshold", 0, 1),
        ("facts", "limit", 1, 1_000),
        ("facts", "offset", 0, 1 << 31),
        ("similar", "limit", 1, 1_000),
    ],
)
def test_a_number_is_accepted_up_to_its_bounds(
    client: TestClient, endpoint: str, name: str, least: int, most: int
) -> None:
    asked = ASKED[endpoint][0]

    statuses = [
        client.get(f"/api/{endpoint}", params=asked | {name: number}).status_code
        for number in (least - 1, least, most, most + 1)
    ]

    assert statuses == [400, 200, 200, 400]


@pytest.mark.parametrize(
    ("endpoint", "name", "most"),
    [
        ("query", "question", 10_000),
        ("query", "pruning", 100),
        ("query", "scorer", 300),
        ("query", "subject", 100),
        ("query", "ranker", 100),
        ("query", "type", 10_000),
        ("query", "lang", 200),
        ("lookup", "name", 10_000),
        ("facts", "id", 10_000),
        ("similar", "id", 10_000),
    ],
)
def test_a_text_has_at_most_so_many_characters(client: TestClient, endpoint: str, name: str, most: int) -> None:
    asked = ASKED[endpoint][0]

    statuses = [
        client.get(f"/api/{endpoint}", params=asked | {name: "z" * length}).status_code for length in (most, most + 1)
    ]

    assert (statuses[0] != 413, statuses[1]) == (True, 413)
