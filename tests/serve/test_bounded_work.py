"""The work of a request is bounded, ends when its time is up, and leaves threads free: counted in look-ups."""

import asyncio
import gc
import json
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from kbtools import deadline as deadline_module
from kbtools.answering.answerer import Answerer
from kbtools.errors import AnswerTooSlow, RequestTooLarge, ServerBusy
from kbtools.serve import workers as workers_module
from kbtools.serve.app import create_app
from kbtools.serve.parameters import read_body
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


QUESTIONS = {"questions": ["who wrote it", "who wrote the shining", "who"]}
EXTENDED = {"ids": ["m.1", "m.2", "m.1"] * 10, "properties": [{"id": f"p{n}"} for n in range(10)] * 2}
VALUED = {"query": "It", "properties": [{"pid": AUTHOR, "v": ["a", "b"]}, {"pid": AUTHOR, "v": []}]}


def call_of(tool: str, **arguments: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}}


@pytest.mark.parametrize(
    ("path", "sent", "characters"),
    [
        ("/api/query", {"params": {"question": "w" * 700}}, [700]),
        ("/api/query", {"json": {"question": "who wrote it"}}, [12]),
        ("/api/query", {"json": QUESTIONS}, [0, 21, 0]),
        ("/api/lookup", {"params": {"name": "a" * 9_000}}, [9_000]),
        ("/api/lookup", {"json": {"names": ["It", "a" * 700]}}, [0, 700, 0]),
        ("/api/link", {"json": {"text": "it " * 1_000}}, [120]),
        ("/api/teach", {"json": {"question": "who", "answer": "It"}}, [LONG + 1]),
        ("/api/overview", {}, [LONG + 1]),
        ("/api/info", {}, [0]),
        ("/api/facts", {"params": {"id": "m.042xh"}}, [0]),
        ("/reconcile", {"data": batch({"query": "It", "type": "book.book"}, queries=10)}, [400]),
        ("/reconcile", {"data": batch({"query": "It"}, queries=100)}, [2_000]),
        ("/reconcile", {"data": batch({"query": "a" * 1_000, "type": ["a", "b"]}, queries=1)}, [20 * 3 * 3]),
        ("/reconcile", {"data": batch(VALUED, queries=1)}, [20 * (1 + 2 + 1)]),
        ("/reconcile", {"params": {"query": "It", "type": "book.book"}}, [40]),
        ("/reconcile", {"data": {"extend": json.dumps(EXTENDED)}}, [20 * 2]),
        ("/reconcile", {}, [20]),
        ("/reconcile/suggest/entity", {"params": {"prefix": "a" * 1_000, "cursor": 40}}, [20 * 4]),
        ("/reconcile/suggest/entity", {"params": {"prefix": "a", "cursor": 9_000}}, [20 * 50]),
        ("/reconcile/flyout/entity", {"params": {"id": "m.042xh"}}, [20]),
        ("/reconcile/preview", {"params": {"id": "m.042xh"}}, [20]),
        ("/reconcile/properties", {}, [20]),
        ("/mcp", call_of("query", question="who wrote it"), [12]),
        ("/mcp", call_of("link", text="it " * 1_000), [120]),
        ("/mcp", call_of("show", id="m.042xh"), [0]),
    ],
)
def test_the_work_of_a_request_is_counted_in_characters(
    weighed: tuple[TestClient, list[float]], path: str, sent: dict[str, Any], characters: list[float]
) -> None:
    client, weights = weighed
    weights.clear()

    client.request(
        "POST" if {"json", "data"} & {*sent} else "GET", path, headers={"accept": "application/json"}, **sent
    )

    assert weights == characters


@pytest.fixture(scope="module")
def weighed(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, list[float]]]:
    """Speak to an application, and collect the characters that the work of its requests counts as."""
    workers, weights = Workers(), []
    run = workers.run

    async def weigh(job: Any, *, characters: float = 0) -> Any:
        weights.append(characters)
        return await run(job, characters=characters)

    workers.run = weigh  # type: ignore[method-assign]  # the weight is what is observed
    folder = shutil.copytree(sample_path, tmp_path_factory.mktemp("weighed") / "sample.kb")
    with TestClient(create_app(ServeSettings(kbs=(str(folder),), teach=True), workers=workers)) as client:
        yield client, weights


@pytest.mark.parametrize(("characters", "thread"), [(LONG, "answer"), (LONG + 1, "long")])
def test_long_work_has_a_thread_of_its_own(characters: int, thread: str) -> None:
    name = asyncio.run(Workers().run(lambda: current_thread().name, characters=characters))

    assert name.startswith(thread)


@pytest.mark.parametrize(("characters", "accepted"), [(0, 3), (LONG + 1, 3)])
def test_a_queue_takes_as_many_as_it_holds_and_is_emptied(characters: int, accepted: int) -> None:
    workers, done = Workers(threads=1, waiting=3), Event()

    async def ask() -> list[Any]:
        asked = [asyncio.create_task(workers.run(done.wait, characters=characters)) for _ in range(5)]
        await asyncio.sleep(0)
        done.set()
        return [*await asyncio.gather(*asked, return_exceptions=True), await workers.run(lambda: "later")]

    outcomes = asyncio.run(asyncio.wait_for(ask(), 20))

    assert outcomes[:accepted] == [True] * accepted
    assert [type(outcome) for outcome in outcomes[accepted:-1]] == [ServerBusy] * 2
    assert outcomes[-1] == "later"
    assert set(workers.pending.values()) == {0}


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


MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("megabytes", "length", "chunks"),
    [(1, None, 1), (2, None, 2), (32, None, 32), (40, None, 33), (40, 40 * MEGABYTE, 0), (2, 2 * MEGABYTE, 2)],
)
def test_a_long_body_is_drained_to_a_limit(megabytes: int, length: int | None, chunks: int) -> None:
    left = iter(range(megabytes - 1, -1, -1))
    sent: list[int] = []

    async def receive() -> dict[str, Any]:
        sent.append(next(left))
        return {"type": "http.request", "body": b"a" * MEGABYTE, "more_body": sent[-1] > 0}

    headers = [(b"content-length", str(length).encode())] if length else []
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)
    try:
        read = len(asyncio.run(read_body(request)))
    except RequestTooLarge:
        read = 0

    assert (len(sent), read) == (chunks, MEGABYTE if megabytes == 1 else 0)


def test_a_job_that_fails_after_its_client_is_gone_is_no_unretrieved_error() -> None:
    workers, begun, done, told = Workers(), Event(), Event(), []

    def fail() -> None:
        begun.set()
        done.wait(20)
        raise ServerBusy("too late")

    async def ask_and_leave() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
        asked = asyncio.create_task(workers.run(fail))
        await loop.run_in_executor(None, begun.wait)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        done.set()
        while workers.pending[workers.pool]:
            await asyncio.sleep(0)
        gc.collect()

    asyncio.run(asyncio.wait_for(ask_and_leave(), 20))

    assert told == []
