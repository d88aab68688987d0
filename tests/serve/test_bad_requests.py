"""Requests that are wrong: each gets a clear status and the sentence of the command line, never a traceback."""

import json
import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings
from kbtools.serve.workers import Workers


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the body is not JSON"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"[" * 100_000, "the body is JSON that is nested too deeply"),
        (b"9" * 10_000, "the body is not JSON"),
        (b"[]", "the body must be a JSON object, found []"),
        (b"{}", "question is missing"),
        (b'{"question": 7}', "question must be a text, found 7"),
        (b'{"question": "  "}', "the question is empty"),
        (b'{"questions": "who"}', "questions must be a list of texts"),
        (b'{"question": "a", "questions": ["b"]}', "not both"),
        (b'{"question": "a", "pruner": "n-gram"}', "no parameter 'pruner'"),
        (b'{"question": "a", "pruning": "nope"}', "no pruner 'nope'"),
        (b'{"question": "a", "pruning": ["n-gram"]}', "pruning must be a text"),
        (b'{"question": "a", "pruning": "os:system"}', "pruning must be the name of a plugin"),
        (b'{"question": "a", "scorer": "lexical,lexical"}', "each once"),
        (b'{"question": "a", "scorer": "bigru"}', "'bigru'"),
        (b'{"question": "a", "top": -1}', "top must be a whole number from 0"),
        (b'{"question": "a", "top": true}', "top must be a whole number"),
        (b'{"question": "a", "top": 1e400}', "top must be a whole number"),
        (b'{"question": "a", "abstain": 2}', "abstain must be a number from 0 to 1"),
        (b'{"question": "a", "abstain": NaN}', "abstain must be a number from 0 to 1"),
    ],
)
def test_a_wrong_body_is_named(client: TestClient, body: bytes, sentence: str) -> None:
    answer = client.post("/api/query", content=body)

    assert answer.status_code == 400, answer.text
    assert sentence in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/api/query", 400, "question is missing"),
        ("/api/query?question=a&top=many", 400, "top must be a whole number"),
        ("/api/query?question=" + "a" * 10_001, 413, "at most 10,000"),
        ("/api/lookup?name=it&type=no.type", 400, "no.type"),
        ("/api/lookup?name=it&limit=0", 400, "limit must be a whole number from 1"),
        ("/api/entity/m.0nobody", 404, "m.0nobody"),
        ("/api/entity/..%2F..%2Fetc%2Fpasswd", 404, "etc/passwd"),
        ("/api/facts?id=m.042xh&reverse=perhaps", 400, "reverse must be true or false"),
        ("/api/similar?id=m.042xh", 404, "no entity vectors"),
        ("/api/similar?id=nobody+at+all", 404, "nobody at all"),
        ("/api/nothing", 404, "not found"),
        ("/page.html", 404, "not found"),
        ("/%2e%2e/%2e%2e/etc/passwd", 404, "not found"),
        ("/reconcile/suggest/planet?prefix=a", 400, "no suggestions of 'planet'"),
        ("/reconcile/suggest/entity?prefix=a&cursor=-1", 400, "cursor must be a whole number"),
        ("/reconcile/preview", 400, "id is missing"),
    ],
)
def test_a_wrong_address_is_named(client: TestClient, path: str, status: int, sentence: str) -> None:
    answer = client.get(path)

    assert answer.status_code == status, answer.text
    assert sentence in answer.json()["error"]["message"]


def test_another_method_is_named(client: TestClient) -> None:
    answer = client.delete("/api/query")

    assert (answer.status_code, answer.json()["error"]["message"]) == (405, "method not allowed")


@pytest.mark.parametrize("path", ["/api/query?question=a", "/api/info", "/reconcile", "/", "/api/entity/m.042xh"])
def test_the_head_of_an_answer_can_be_asked(client: TestClient, path: str) -> None:
    answer = client.head(path)

    assert (answer.status_code, answer.content) == (200, b"")


def test_ten_megabytes_are_too_many(client: TestClient) -> None:
    answer = client.post("/api/query", content=b'{"question": "' + b"a" * 10_000_000 + b'"}')

    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "the body has more than 1,048,576 bytes"


def test_too_many_questions_are_too_many(client: TestClient) -> None:
    answer = client.post("/api/query", json={"questions": ["a"] * 10_001})

    assert answer.status_code == 413


def test_markup_stays_text(client: TestClient) -> None:
    question = "<script>alert(1)</script> who wrote it"

    answer = client.get("/api/query", params={"question": question})

    assert answer.json()["question"] == question
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_an_error_may_be_read_where_answers_may(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, other = {"origin": "https://page.example"}, {"origin": "https://other.example"}
    settings = ServeSettings(kbs=(str(sample_path),), cors=(page["origin"],), hosts=("localhost",))
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        monkeypatch.setattr("kbtools.serve.api.kb_info", fail_with("secret"))
        requests = [
            (200, "/health", {}),
            (400, "/api/query", {}),
            (400, "/reconcile/suggest/planet", {}),
            (403, "/health", {"host": "kb.example.org"}),
            (404, "/api/nothing", {}),
            (404, "/api/entity/m.0nobody", {}),
            (500, "/api/info", {}),
        ]
        answers = [client.get(path, headers=page | headers) for _, path, headers in requests]
        hidden = [client.get(path, headers=other | headers) for _, path, headers in requests]
        asked = client.options("/api/query", headers=page | {"access-control-request-method": "POST"})

    assert [answer.status_code for answer in answers] == [status for status, _, _ in requests]
    assert {answer.headers.get("access-control-allow-origin") for answer in answers} == {page["origin"]}
    assert {answer.headers.get("access-control-allow-origin") for answer in hidden} == {None}
    assert {answer.headers["x-content-type-options"] for answer in (*answers, *hidden, asked)} == {"nosniff"}
    assert asked.headers["access-control-allow-origin"] == page["origin"]


def test_half_a_character_becomes_a_question_mark(client: TestClient) -> None:
    answer = client.post("/api/query", content=b'{"question": "who wrote it \\ud800"}')

    assert answer.json()["question"] == "who wrote it ?"


def test_what_nobody_foresaw_is_told_without_its_text(
    sample_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(ServeSettings(kbs=(str(sample_path),)))
    with TestClient(app) as client:
        monkeypatch.setattr("kbtools.serve.api.kb_info", fail_with("secret\nforged line"))
        answer = client.get("/api/info")

    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the server failed; its log says why"
    assert "secret\\nforged line" in caplog.text
    assert "Traceback" not in answer.text + caplog.text


def fail_with(text: str) -> object:
    def fail(*_: object) -> None:
        raise RuntimeError(text)

    return fail


def test_no_request_forges_a_line_of_the_log(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kbtools.serve.access"):
        client.get('/api/nothing?a=%0AGET /forged "x"\\')

    (line,) = [record.getMessage() for record in caplog.records if record.name == "kbtools.serve.access"]
    assert "\n" not in line
    assert len(line.split(" ")) == 7
    assert " 404 " in line


def test_an_answer_that_takes_too_long_is_given_up(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(ServeSettings(kbs=(str(sample_path),)), workers=Workers(seconds=0))
    with TestClient(app) as client:
        answer = client.get("/api/info")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (504, "AnswerTooSlow")


def test_a_full_queue_says_when_to_come_again(sample_path: Path) -> None:
    app = create_app(ServeSettings(kbs=(str(sample_path),)), workers=Workers(waiting=0))
    with TestClient(app) as client:
        answer = client.get("/api/info")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_an_error_in_the_midst_of_a_stream_is_its_last_line(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServeSettings(kbs=(str(sample_path),))
    workers = Workers()
    run, calls = workers.run, iter([True, True, False])

    async def run_twice(job: object, *, characters: int = 0) -> object:
        return await run(job) if next(calls) else await Workers(waiting=0).run(job)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "run", run_twice)
    with TestClient(create_app(settings, workers=workers)) as client:
        lines = client.post("/api/query", json={"questions": ["who wrote it"] * 40, "top": 1}).text.splitlines()

    assert len(lines) == 17
    assert json.loads(lines[-1])["error"]["kind"] == "ServerBusy"
