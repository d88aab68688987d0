"""The JSON API: the records of the library, described by OpenAPI, streamed where there are many."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from starlette.testclient import TestClient

import kbtools
from kbtools.kb.vector_index import ExactVectors
from kbtools.serve.api import nearest_entities
from kbtools.serve.app import create_app
from kbtools.serve.kb_description import choices
from kbtools.serve.settings import ServeSettings

QUESTION = "who created the character harry potter"


def test_a_question_gives_the_record_of_the_library(client: TestClient, sample_path: Path) -> None:
    expected = kbtools.open(sample_path).query(QUESTION, top=3).to_json()

    answer = client.get("/api/query", params={"question": QUESTION, "top": "3"})

    assert answer.headers["content-type"] == "application/json"
    assert answer.json() | {"milliseconds": None} == json.loads(json.dumps(expected)) | {"milliseconds": None}


def test_a_posted_question_chooses_its_parts(client: TestClient) -> None:
    body = {"question": QUESTION, "pruning": "n-gram+", "subject": "type-count", "abstain": 0.1}

    result = client.post("/api/query", json=body).json()

    assert (result["pruning"], result["subject_scorer"], result["answered"]) == ("n-gram+", "type-count", True)


def test_a_type_bounds_the_subjects(client: TestClient) -> None:
    result = client.get("/api/query", params={"question": "who wrote it", "type": "film.film"}).json()

    assert {candidate["subject"] for candidate in result["candidates"]} == {"m.0kba107", "m.032xky"}


def test_facts_are_read_backwards_where_that_is_asked_for(client: TestClient) -> None:
    asked = {"question": "what films did stanley kubrick direct"}

    result = client.get("/api/query", params=asked | {"inverse": "true"}).json()

    assert (result["inverse"], result["candidates"][0]["inverse"], result["answers_total"]) == (True, True, 3)
    assert client.post("/api/query", json=asked | {"inverse": True}).json()["answers"] == result["answers"]
    assert client.get("/api/query", params=asked | {"inverse": "maybe"}).status_code == 400
    assert client.get("/api/info").json()["incoming"]


def test_many_questions_come_as_a_line_each(client: TestClient) -> None:
    questions = [QUESTION, "who wrote it", "no name here"] * 20

    answer = client.post("/api/query", json={"questions": questions, "top": 1})

    results = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == "application/jsonl"
    assert [result["question"] for result in results] == questions
    assert results[1]["answers"] == [{"id": "m.0jt90f5", "name": "Stephen King"}]


def test_no_questions_give_no_lines(client: TestClient) -> None:
    answer = client.post("/api/query", json={"questions": []})

    assert (answer.status_code, answer.text) == (200, "")


@pytest.mark.parametrize(
    ("path", "record"),
    [
        ("/api/lookup?name=harry+poter&limit=3", lambda kb: kb.lookup("harry poter", limit=3)),
        ("/api/lookup?name=it&type=book.book", lambda kb: kb.lookup("it", type="book.book")),
        ("/api/link?text=Stephen+King+wrote+It", lambda kb: kb.link("Stephen King wrote It")),
        ("/api/entity/m.042xh", lambda kb: kb.entity("m.042xh")),
        ("/api/entity/%2Fm%2F042xh", lambda kb: kb.entity("m.042xh")),
        (
            "/api/facts?id=m.042xh&reverse=true&limit=2&offset=1",
            lambda kb: kb.facts("m.042xh", reverse=True, limit=2, offset=1),
        ),
    ],
)
def test_the_other_endpoints_give_records_of_the_library(
    client: TestClient, sample_path: Path, path: str, record: object
) -> None:
    expected = record(kbtools.open(sample_path)).to_json()  # type: ignore[operator]

    assert client.get(path).json() == json.loads(json.dumps(expected))


def test_many_names_come_as_a_line_each(client: TestClient) -> None:
    lines = client.post("/api/lookup", json={"names": ["It", "Yate"], "limit": 1}).text.splitlines()

    assert [json.loads(line)["text"] for line in lines] == ["It", "Yate"]


def test_info_names_what_can_be_chosen_without_models(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_ENCODER", "no-encoder")
    record = client.get("/api/info").json()

    assert record["pruners"] == ["n-gram", "n-gram+", "n-gram-idf"]
    assert record["scorers"] == ["lexical", "static"]
    assert {"type-count", "fact-count"} <= set(record["subjects"])
    assert record["counts"]["entities"]["unique"] == 506
    assert [source["name"] for source in record["sources"]] == [
        f"sample.{kind}.txt" for kind in ("facts", "names", "types")
    ]


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/api/query?question=who+wrote+it", "Result"),
        ("/api/query?question=who+wrote+it&abstain=0.5", "Result"),
        ("/api/lookup?name=it", "LookupResult"),
        ("/api/link?text=Stephen+King", "LinkedText"),
        ("/api/entity/m.042xh", "Entity"),
        ("/api/facts?id=m.042xh", "Facts"),
        ("/api/overview", "Overview"),
        ("/api/info", "Info"),
        ("/api/query", "Error"),
    ],
)
def test_answers_are_as_the_description_says(client: TestClient, path: str, schema: str) -> None:
    described = client.get("/openapi.json").json()

    jsonschema.validate(
        client.get(path).json(), {"$ref": f"#/components/schemas/{schema}", "components": described["components"]}
    )


def test_every_endpoint_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()

    assert described["openapi"] == "3.1.0"
    assert {path: sorted(methods) for path, methods in described["paths"].items()} == {
        "/api/query": ["get", "post"],
        "/api/lookup": ["get", "post"],
        "/api/link": ["get", "post"],
        "/api/entity/{id}": ["get"],
        "/api/facts": ["get"],
        "/api/similar": ["get"],
        "/api/teach": ["post"],
        "/api/overview": ["get"],
        "/api/info": ["get"],
    }


def test_several_knowledge_bases_answer_under_their_names(sample_path: Path, scripted_path: Path) -> None:
    settings = ServeSettings(kbs=(str(sample_path), str(scripted_path)))
    with TestClient(create_app(settings)) as client:
        assert client.get("/api/info").json()["kbs"] == ["sample", "world"]
        assert client.get("/sample/api/entity/m.042xh").json()["name"] == "J. K. Rowling"
        assert client.get("/world/api/entity/m.02arabic").json()["name"] == "يوسف شاهين"
        assert client.get("/world/api/entity/m.042xh").status_code == 404
        assert client.get("/world", follow_redirects=False).headers["location"].endswith("/world/")
        assert set(client.get("/ready").json()["kbs"]) == {"sample", "world"}


@pytest.mark.parametrize(
    "kbs", [("a/sample.kb", "b/sample.kb"), ("build/api.kb",)], ids=["twice the same", "a path of the server's own"]
)
def test_names_of_knowledge_bases_are_theirs_alone(kbs: tuple[str, ...]) -> None:
    with pytest.raises(kbtools.BadArgument, match="rename"):
        create_app(ServeSettings(kbs=kbs))


def test_metrics_name_endpoints_by_what_they_answer(client: TestClient) -> None:
    for path in ("/health", "/ready", "/", "/openapi.json"):
        client.get(path)

    metrics = client.get("/metrics").text

    endpoints = set(re.findall(r'kbtools_requests_total\{endpoint="(\w+)"', metrics))
    assert endpoints >= {"health", "ready", "page", "openapi"}
    assert not any(endpoint.startswith("_") for endpoint in endpoints)


def test_health_readiness_and_metrics(client: TestClient) -> None:
    client.get("/api/query", params={"question": "who wrote it"})

    metrics = client.get("/metrics").text

    assert client.get("/health").json() == {"status": "up"}
    assert client.get("/ready").json()["status"] == "ready"
    assert 'kbtools_requests_total{endpoint="query",status="200"}' in metrics
    assert 'kbtools_request_seconds_bucket{endpoint="query",le="0.005"}' in metrics


def test_no_other_origin_reads_answers_unless_asked(client: TestClient, sample_path: Path) -> None:
    settings = ServeSettings(kbs=(str(sample_path),), cors=("https://refine.example",))
    origin = {"origin": "https://refine.example"}

    with TestClient(create_app(settings)) as permitting:
        allowed = permitting.get("/api/info", headers=origin).headers.get("access-control-allow-origin")

    assert "access-control-allow-origin" not in client.get("/api/info", headers=origin).headers
    assert allowed == "https://refine.example"


@pytest.mark.parametrize("path", ["/tools/kb/api/info", "/api/info"], ids=["prefix kept", "prefix taken away"])
def test_it_answers_behind_a_path_prefix(sample_path: Path, path: str) -> None:
    with TestClient(create_app(ServeSettings(kbs=(str(sample_path),), root_path="/tools/kb/"))) as client:
        info = client.get(path).json()
        manifest = client.get("/reconcile").json()

    assert info["root"] == "/tools/kb"
    assert manifest["preview"]["url"] == "http://testserver/tools/kb/reconcile/preview?id={{id}}"


def test_the_nearest_entities_have_names_and_cosines(make_kb: Callable[..., Any], tiny_world: Any) -> None:
    kb = make_kb("memory", tiny_world)
    rows = np.array(kb.rows(["m.01paris", "m.02paris", "m.02texas"]), dtype=np.uint32)
    kb.vector_index = ExactVectors(rows, np.array([[1, 0], [1, 1], [0, 1]], dtype=np.float32))

    near = nearest_entities(kb, "m.01paris", limit=5)

    assert near["id"] == "m.01paris"
    assert [(one["id"], one["name"]) for one in near["neighbours"]] == [("m.02paris", "Paris"), ("m.02texas", "Texas")]
    assert [one["cosine"] for one in near["neighbours"]] == pytest.approx([0.707107, 0], abs=1e-6)
    assert nearest_entities(kb, "texas", limit=1)["neighbours"][0]["id"] == "m.02paris"
    with pytest.raises(kbtools.VectorsMissing, match=r"m\.03france"):
        nearest_entities(kb, "m.03france", limit=1)


def test_models_bring_their_parts_into_the_choice(sample_path: Path, tmp_path: Path) -> None:
    for folder in ("relation/bigru", "subject/type-vector", "tagger/bigru-crf+"):
        (tmp_path / folder).mkdir(parents=True)

    with kbtools.open(sample_path, models=tmp_path) as answerer:
        offered = choices(answerer)

    assert set(offered["pruners"]) == {
        "focused",
        "focused-idf",
        "focused-k",
        "focused-kb",
        "n-gram",
        "n-gram+",
        "n-gram-idf",
    }
    assert [name for name in offered["scorers"] if name != "encoder"] == ["bigru", "lexical", "static"]
    assert "type-vector" in offered["subjects"]


def test_a_pretrained_scorer_that_answers_untrained_is_a_choice(
    sample_path: Path, small_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kbtools.open(sample_path) as answerer:
        monkeypatch.setenv("KBTOOLS_ENCODER", str(small_encoder))
        assert choices(answerer)["scorers"] == ["encoder", "lexical", "static"]

        monkeypatch.setenv("KBTOOLS_ENCODER", str(tmp_path / "none"))
        assert choices(answerer)["scorers"] == ["lexical", "static"]


PAIR = {"question": "what jingles in France", "subject": "France", "relation": "official language"}


@pytest.fixture
def taught(sample_path: Path, tmp_path: Path) -> Iterator[TestClient]:
    """Speak to an application that may be taught."""
    folder = shutil.copytree(sample_path, tmp_path / "sample.kb")
    with TestClient(create_app(ServeSettings(kbs=(str(folder),), teach=True))) as client:
        yield client


def test_a_server_is_taught_and_answers_by_it(taught: TestClient) -> None:
    posted = taught.post("/api/teach", json=PAIR)

    assert posted.json() == {
        "question": PAIR["question"],
        "subject": "m.0f8l9c",
        "relation": "location.country.official_language",
        "taught": 1,
    }
    record = taught.get("/api/query", params={"question": PAIR["question"]}).json()
    assert record["candidates"][0]["relation"] == "location.country.official_language"
    assert record["taught"] == 1
    assert taught.get("/api/info").json()["taught"] == 1


def test_a_server_is_taught_by_the_answer_alone_and_counts_its_questions(taught: TestClient) -> None:
    by_answer = {"question": "what do they use to pay in France", "answer": "Euro"}

    before, posted = (taught.post("/api/teach", json=lesson).json() for lesson in (PAIR, by_answer))

    assert posted["relation"] == "location.country.currency_used"
    assert (before["taught"], posted["taught"]) == (1, 2)


def test_what_cannot_be_taught_is_a_fault_of_the_request(taught: TestClient) -> None:
    posted = taught.post("/api/teach", json={**PAIR, "subject": "Narnia"})

    assert posted.status_code == 400
    assert "Narnia" in posted.json()["error"]["message"]


def test_a_form_of_another_site_teaches_nothing(taught: TestClient) -> None:
    posted = taught.post("/api/teach", content=json.dumps(PAIR), headers={"content-type": "text/plain"})

    assert posted.status_code == 400
    assert taught.get("/api/info").json()["taught"] == 0


def test_a_server_that_was_not_started_for_it_is_not_taught(client: TestClient) -> None:
    posted = client.post("/api/teach", json=PAIR)

    assert posted.status_code == 403
    assert "--teach" in posted.json()["error"]["message"]
    assert client.get("/api/info").json()["teach"] is False
