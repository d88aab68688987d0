"""The server over a knowledge base on a cluster: what the folder answers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kbtools.serve import live_kb
from kbtools.serve.app import create_app
from kbtools.serve.live_kb import ClusterIdentity
from kbtools.serve.settings import ServeSettings
from tests.indexers.elastic.conftest import SmallServer

AUTHOR = "book.written_work.author"
pytestmark = pytest.mark.real_cluster


@pytest.fixture
def on_cluster(load_sample: Callable[..., Any], kb_name: str, url: str) -> Iterator[TestClient]:
    """Serve the sample from the cluster."""
    load_sample()
    with TestClient(create_app(ServeSettings(kbs=(kb_name,), elasticsearch=url))) as client:
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
        "/api/facts?id=m.042xh&reverse=true",
        "/reconcile/suggest/type?prefix=book",
        "/reconcile/suggest/property?prefix=author",
    ],
)
def test_names_text_and_entities_are_the_same(on_cluster: TestClient, in_folder: TestClient, path: str) -> None:
    there, here = (client.get(path).json() for client in (on_cluster, in_folder))

    assert there == here


def test_an_entity_is_the_same(on_cluster: TestClient, in_folder: TestClient) -> None:
    there, here = (client.get("/api/entity/m.042xh").json() for client in (on_cluster, in_folder))

    assert there == here


def test_it_reconciles_and_extends(on_cluster: TestClient) -> None:
    queries = {"q0": {"query": "Harry Potter", "properties": [{"pid": AUTHOR, "v": "J. K. Rowling"}]}}
    rows = {"ids": ["m.0kba086"], "properties": [{"id": AUTHOR}]}

    answer = on_cluster.post("/reconcile", data={"queries": json.dumps(queries)}).json()
    extended = on_cluster.post("/reconcile", data={"extend": json.dumps(rows)}).json()

    assert answer["q0"]["result"][0]["id"] == "m.0kba084"
    assert extended["rows"]["m.0kba086"][AUTHOR] == [{"id": "m.0jt90f5", "name": "Stephen King"}]


def test_it_finds_subjects_by_their_values(on_cluster: TestClient, in_folder: TestClient) -> None:
    by_value = {"q": {"properties": [{"pid": AUTHOR, "v": {"id": "m.042xh"}}]}}

    there, here = (client.post("/reconcile", json=by_value).json() for client in (on_cluster, in_folder))

    assert there == here
    assert there["q"]["result"]


def test_the_page_and_the_description_are_there(on_cluster: TestClient, kb_name: str) -> None:
    info = on_cluster.get("/api/info").json()

    assert info["name"] == kb_name
    assert info["counts"]["entities"]["unique"] == 506
    assert "<title>" in on_cluster.get("/").text
    assert on_cluster.get("/ready").json()["status"] == "ready"


ALIAS: dict[str, Any] = {"kb-2-names": {}, "kb-2-entities": {}}


@pytest.mark.parametrize(
    ("answer", "identity"),
    [
        ((200, ALIAS), ("kb-2-entities", "kb-2-names")),
        ((200, {}), None),
        ((404, {"error": "no alias"}), None),
        ((503, {"error": "busy"}), None),
    ],
)
def test_a_version_on_a_cluster_is_told_by_its_indexes(
    small_server: Callable[..., SmallServer], answer: tuple[int, object], identity: object
) -> None:
    server = small_server(lambda *_: answer)
    asked = ClusterIdentity("kb", ServeSettings(kbs=("kb",), elasticsearch=server.url))

    assert (asked(), asked()) == (identity, identity)
    assert server.paths() == ["/_alias/kb"]


def test_a_cluster_is_asked_again_after_a_moment(
    small_server: Callable[..., SmallServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[tuple[int, object]] = [(200, ALIAS), (503, {}), (200, {"kb-3-names": {}})]
    server = small_server(lambda *_: answers.pop(0))
    monkeypatch.setattr(live_kb, "ASKED_AGAIN", 0.0)
    asked = ClusterIdentity("kb", ServeSettings(kbs=("kb",), elasticsearch=server.url))

    assert [asked() for _ in range(3)] == [("kb-2-entities", "kb-2-names"), None, ("kb-3-names",)]
    with asked.lock:
        assert asked() == ("kb-3-names",)
    assert len(server.requests) == 3
