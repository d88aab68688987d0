"""The server over a knowledge base on a cluster: what the folder answers, but for what a cluster does not hold."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings

AUTHOR = "book.written_work.author"


@pytest.fixture
def on_cluster(load_sample: Callable[..., Any], kb_name: str, url: str) -> Iterator[TestClient]:
    """Serve the sample from the cluster."""
    load_sample()
    with TestClient(create_app(ServeSettings(kbs=(kb_name,), elasticsearch={"url": url}))) as client:
        yield client


@pytest.fixture
def in_folder(sample_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(ServeSettings(kbs=(str(sample_path),)))) as client:
        yield client


def test_it_answers_as_a_folder_does(on_cluster: TestClient, in_folder: TestClient) -> None:
    questions = ["who created the character harry potter", "who wrote it", "where is nowhere at all"]

    answers = [
        [json.loads(line) for line in client.post("/api/query", json={"questions": questions}).text.splitlines()]
        for client in (on_cluster, in_folder)
    ]

    unlike = ("milliseconds",)
    there, here = ([{key: one[key] for key in one if key not in unlike} for one in lines] for lines in answers)
    assert there == here


@pytest.mark.parametrize(
    "path",
    [
        "/api/lookup?name=It&limit=3",
        "/api/lookup?name=Stephen+Kingg",
        "/api/link?text=Stephen+King+wrote+It+in+Maine.",
        "/api/facts?id=m.042xh",
        "/api/entity/m.042xh",
        "/reconcile/suggest/type?prefix=book",
        "/reconcile/suggest/property?prefix=author",
    ],
)
def test_names_text_and_entities_are_the_same_but_for_priors(
    on_cluster: TestClient, in_folder: TestClient, path: str
) -> None:
    there, here = (without_priors(client.get(path).json()) for client in (on_cluster, in_folder))

    assert there == here


def without_priors(record: Any) -> Any:
    """Leave out what counts incoming facts."""
    if isinstance(record, dict):
        priors = ("prior", "score", "reasons", "facts_in")
        return {name: without_priors(value) for name, value in record.items() if name not in priors}
    return [without_priors(value) for value in record] if isinstance(record, list) else record


def test_it_reconciles_and_extends(on_cluster: TestClient) -> None:
    queries = {"q0": {"query": "Harry Potter", "properties": [{"pid": AUTHOR, "v": "J. K. Rowling"}]}}
    rows = {"ids": ["m.0kba086"], "properties": [{"id": AUTHOR}]}

    answer = on_cluster.post("/reconcile", data={"queries": json.dumps(queries)}).json()
    extended = on_cluster.post("/reconcile", data={"extend": json.dumps(rows)}).json()

    assert answer["q0"]["result"][0]["id"] == "m.0kba084"
    assert extended["rows"]["m.0kba086"][AUTHOR] == [{"id": "m.0jt90f5", "name": "Stephen King"}]


def test_what_a_cluster_lacks_is_one_sentence(on_cluster: TestClient) -> None:
    entity = on_cluster.get("/api/entity/m.042xh").json()
    incoming = on_cluster.get("/api/facts?id=m.042xh&reverse=true")
    by_value = {"q": {"properties": [{"pid": AUTHOR, "v": {"id": "m.042xh"}}]}}

    assert entity["facts_in"] is None
    assert incoming.status_code == 501
    assert "\n" not in incoming.json()["error"]["message"]
    assert on_cluster.post("/reconcile", json=by_value).json() == {"q": {"result": []}}
    assert "out" in on_cluster.get("/api/lookup?name=It").json()["matches"][0]["reasons"][-1]
    assert "and" not in on_cluster.get("/api/lookup?name=It").json()["matches"][0]["reasons"][-1]


def test_the_page_and_the_description_are_there(on_cluster: TestClient, kb_name: str) -> None:
    info = on_cluster.get("/api/info").json()

    assert info["name"] == kb_name
    assert info["counts"]["entities"]["unique"] == 506
    assert "<title>" in on_cluster.get("/").text
    assert on_cluster.get("/ready").json()["status"] == "ready"
