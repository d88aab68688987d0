"""The work of a request is bounded, ends when its time is up, and leaves threads free: counted in look-ups."""

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

from kbtools import deadline as deadline_module
from kbtools.answering.answerer import Answerer
from kbtools.errors import AnswerTooSlow, ServerBusy
from kbtools.serve import workers as workers_module
from kbtools.serve.app import create_app
from kbtools.serve.reconciliation_queries import LOOK_UPS, read_batch
from kbtools.serve.settings import ServeSettings
from kbtools.serve.workers import LONG, LONG_WAITING, Workers

AUTHOR = "book.written_work.author"


@pytest.fixture
def look_ups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names that are looked up."""
    names: list[str] = []
    lookup = Answerer.lookup

    def counted(answerer: Answerer, name: str, **options: Any) -> Any:
        names.append(name)
        return lookup(answerer, name, **options)

    monkeypatch.setattr(Answerer, "lookup", counted)
    return names


def batch(query: dict[str, Any], *, queries: int = 100) -> dict[str, str]:
    return {"queries": json.dumps({f"q{number}": query for number in range(queries)})}


def test_a_type_that_is_repeated_is_looked_up_once(client: TestClient, look_ups: list[str]) -> None:
    answer = client.post("/reconcile", data=batch({"query": "Harry Potter", "type": ["book.book"] * 100}))

    assert (answer.status_code, len(answer.json())) == (200, 100)
    assert len(look_ups) == 200


def test_a_value_that_is_repeated_is_looked_up_once(client: TestClient, look_ups: list[str]) -> None:
    answer = client.post("/reconcile", data=batch({"properties": [{"pid": AUTHOR, "v": ["J. K. Rowling"] * 100}] * 3}))

    assert (answer.status_code, len(answer.json())) == (200, 100)
    assert len(look_ups) == 300


@pytest.mark.parametrize(
    "query",
    [
        {"query": "Harry Potter", "type": [f"type.{number}" for number in range(100)]},
        {"properties": [{"pid": AUTHOR, "v": [f"{place} {number}" for number in range(100)]} for place in "abc"]},
        {"query": "a " * 5_000},
        {"query": "a", "properties": [{"pid": AUTHOR, "v": []}] * 50},
        {"query": "a " * 2_000, "type": ["a", "b"]},
    ],
    ids=["types", "values", "long names", "properties without values", "long names by types"],
)
def test_a_batch_of_too_many_look_ups_is_refused_before_the_first(
    client: TestClient, look_ups: list[str], query: dict[str, Any]
) -> None:
    answer = client.post("/reconcile", data=batch(query))

    assert answer.status_code == 413
    assert "look-ups" in answer.json()["error"]["message"]
    assert f"at most {LOOK_UPS:,}" in answer.json()["error"]["message"]
    assert look_ups == []


def test_a_full_batch_of_a_client_is_within_the_bounds() -> None:
    query = {"query": "It", "type": ["a", "b"], "properties": [{"pid": str(pid), "v": "a"} for pid in range(10)]}

    assert len(read_batch({str(number): query for number in range(100)})) == 100


@pytest.mark.parametrize(
    "query",
    [
        {"query": "Harry Potter", "type": ["book.book", "a", "b", "c"]},
        {"properties": [{"pid": AUTHOR, "v": ["a", "b", "c"]}]},
        {"query": "It"},
    ],
    ids=["types", "values", "names"],
)
def test_work_ends_when_its_time_is_up(
    client: TestClient, look_ups: list[str], query: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = ticking(monkeypatch, each=10.0)

    answer = client.post("/reconcile", data=batch(query))

    assert (answer.status_code, answer.json()["error"]["kind"]) == (504, "AnswerTooSlow")
    assert len(look_ups) < 8
    assert next(seconds) < 10


def test_an_extension_ends_when_its_time_is_up(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = ticking(monkeypatch, each=10.0)
    extension = {"ids": [f"m.0{number}" for number in range(1_000)], "properties": [{"id": AUTHOR}]}

    answer = client.post("/reconcile", data={"extend": json.dumps(extension)})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (504, "AnswerTooSlow")
    assert next(seconds) < 10


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/api/query", {"question": "who's " * 1_500, "scorer": "lexical"}),
        ("/api/query", {"question": "誰書" * 4_000, "scorer": "lexical"}),
        ("/api/link", {"text": "Solaris is a film. " * 1_000}),
        ("/api/link", {"text": "誰書" * 1_000}),
    ],
    ids=["question", "question without spaces", "text", "text without spaces"],
)
def test_a_long_text_ends_when_its_time_is_up(
    client: TestClient, path: str, parameters: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = ticking(monkeypatch, each=10.0)

    answer = client.post(path, json=parameters)

    assert (answer.status_code, answer.json()["error"]["kind"]) == (504, "AnswerTooSlow")
    assert next(seconds) < 10


def ticking(monkeypatch: pytest.MonkeyPatch, *, each: float) -> Iterator[int]:
    """Make every look at the clock of the workers take some seconds; return the count of the looks."""
    looks = count()
    for module in (workers_module, deadline_module):
        monkeypatch.setattr(module, "monotonic", lambda: each * next(looks))
    return looks


def test_a_job_whose_time_is_up_does_not_begin() -> None:
    workers, begun = Workers(seconds=0), []

    with pytest.raises(AnswerTooSlow):
        asyncio.run(workers.run(lambda: begun.append("job")))
    workers.pool.shutdown()

    assert begun == []


def test_many_look_ups_leave_the_threads_of_short_questions_free(sample_path: Path) -> None:
    workers = Workers()
    weights = []
    run = workers.run

    async def weighed(job: Any, *, characters: float = 0) -> Any:
        weights.append(characters > LONG)
        return await run(job, characters=characters)

    workers.run = weighed  # type: ignore[method-assign]  # the weight is what is observed
    with TestClient(create_app(ServeSettings(kbs=(str(sample_path),)), workers=workers)) as client:
        client.post("/reconcile", data=batch({"query": "It", "type": "book.book"}, queries=10))
        client.post("/reconcile", data=batch({"query": "It"}, queries=100))
        client.post("/reconcile", data={"extend": json.dumps({"ids": ["m.1"] * 10, "properties": [{"id": AUTHOR}]})})
        client.get("/api/lookup", params={"name": "a" * 9_000})
        client.get("/reconcile/suggest/entity", params={"prefix": "a", "cursor": 900})

    assert weights == [False, True, False, True, True]


def test_long_answers_that_wait_never_fill_the_queue_of_short_ones() -> None:
    workers, done = Workers(), Event()

    async def ask() -> tuple[str, int]:
        long = [asyncio.create_task(workers.run(done.wait, characters=LONG + 1)) for _ in range(300)]
        await asyncio.sleep(0)
        answer = await workers.run(lambda: "answer")
        done.set()
        outcomes = await asyncio.gather(*long, return_exceptions=True)
        return answer, sum(isinstance(outcome, ServerBusy) for outcome in outcomes)

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == ("answer", 300 - LONG_WAITING)


def test_an_extension_of_too_many_cells_is_refused(client: TestClient) -> None:
    extension = {"ids": [f"m.{number}" for number in range(1_000)], "properties": [{"id": str(n)} for n in range(100)]}

    answer = client.post("/reconcile", data={"extend": json.dumps(extension)})

    assert (answer.status_code, "10,000 of both multiplied" in answer.text) == (413, True)


def test_an_extension_of_too_many_values_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtools.serve.extension.ALL_VALUES", 0)
    extension = {"ids": ["m.042xh"], "properties": [{"id": "people.person.place_of_birth"}]}

    answer = client.post("/reconcile", data={"extend": json.dumps(extension)})

    assert (answer.status_code, "1 values, at most 0 in an answer" in answer.text) == (413, True)


def test_a_cursor_beyond_the_last_suggestion_computes_nothing(client: TestClient, look_ups: list[str]) -> None:
    answer = client.get("/reconcile/suggest/entity", params={"prefix": "a", "cursor": "999999999"})

    assert (answer.json(), look_ups) == ({"result": []}, [])
