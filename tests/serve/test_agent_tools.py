"""The tools of an agent, by the client of the official package: in this process, over a pipe, and over HTTP."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from kbtools.answering.answerer import Answerer, open_kb
from kbtools.cli.main import main
from kbtools.serve.agent_tools import make_server
from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings

TOOLS = ["lookup", "show", "facts", "link", "query"]


@pytest.fixture(scope="module")
def opened(sample_path: Path) -> Iterator[Answerer]:
    with open_kb(sample_path) as kb:
        yield kb


@pytest.fixture
def call(opened: Answerer) -> Callable[..., Any]:
    """Return a function that calls a tool and returns its structured answer, or the text of its error."""

    async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
        return job(opened)

    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        async with Client(make_server(ask, name="sample")) as client:
            result = await client.call_tool(name, arguments)
            assert len(json.dumps(result.structured_content)) < 1_000
            return result.content[0].model_dump()["text"] if result.is_error else result.structured_content

    return lambda tool, /, **arguments: asyncio.run(call_tool(tool, arguments))


def test_a_name_leads_to_an_id_and_the_id_to_facts(call: Callable[..., Any]) -> None:
    (match,) = call("lookup", name="harry poter", type="fictional_universe.fictional_character")["matches"]
    card = call("show", id=match["id"])
    facts = call("facts", id=match["id"], limit=1)

    assert match["id"] == card["id"] == "m.078ffw"
    assert card["name"] == "Harry Potter"
    assert len(facts["facts"]) == 1
    assert facts["note"] == f"1 of {card['facts']} facts; offset=1 gives the next"


def test_a_question_is_answered_with_its_reading(call: Callable[..., Any]) -> None:
    reply = call("query", question="who created the character harry potter")

    assert reply["sure"]
    assert reply["answers"] == ["J. K. Rowling"]
    assert reply["reading"]["subject_id"] == "m.078ffw"


def test_a_tie_is_said_in_words_and_gives_no_answer(call: Callable[..., Any]) -> None:
    reply = call("query", question="harry potter")

    assert not reply["sure"]
    assert reply["answers"] == []
    assert reply["note"].startswith("not sure: ")


def test_a_question_without_a_known_name_is_not_answered(call: Callable[..., Any]) -> None:
    assert call("query", question="zzzz") == {
        "sure": False,
        "answers": [],
        "reading": None,
        "note": "no name in the question is one of the knowledge base",
    }


def test_mentions_have_their_places(call: Callable[..., Any]) -> None:
    text = "J. K. Rowling lives in Edinburgh"

    (mention, *_) = call("link", text=text)["mentions"]

    assert text[mention["start"] : mention["end"]] == mention["text"] == "J. K. Rowling"


def test_an_unknown_id_is_an_error_with_a_sentence(call: Callable[..., Any]) -> None:
    assert "m.nothing" in call("show", id="m.nothing")


@pytest.mark.parametrize("limit", [-1, 0, 10**9])
def test_limits_are_kept_in_bounds(call: Callable[..., Any], limit: int) -> None:
    assert len(call("lookup", name="harry potter", limit=limit)["matches"]) >= 1


def test_every_tool_is_described_and_only_reads(opened: Answerer) -> None:
    async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
        return job(opened)

    tools = asyncio.run(make_server(ask, name="sample").list_tools())

    assert [tool.name for tool in tools] == TOOLS
    assert all(tool.annotations.read_only_hint and len(tool.description) > 40 for tool in tools)


def test_an_agent_starts_the_command_and_calls_it(sample_path: Path) -> None:
    command = ["-c", "from kbtools.cli.start import main; main()", "mcp", "--kb", str(sample_path)]

    async def call_over_pipe() -> Any:
        async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
            return (await client.call_tool("lookup", {"name": "harry potter", "limit": 1})).structured_content

    assert len(asyncio.run(call_over_pipe())["matches"]) == 1


def test_the_server_offers_the_same_tools(sample_path: Path) -> None:
    app = create_app(ServeSettings(kbs=(str(sample_path),)))

    async def names_over_http() -> tuple[list[str], Any]:
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as http,
            Client(streamable_http_client("http://localhost/mcp", http_client=http)) as client,
        ):
            tools = await client.list_tools()
            result = await client.call_tool("query", {"question": "who created the character harry potter"})
            return [tool.name for tool in tools.tools], result.structured_content

    names, reply = asyncio.run(names_over_http())

    assert names == TOOLS
    assert reply["answers"] == ["J. K. Rowling"]


def test_schemas_are_those_of_the_tools(opened: Answerer, sample_path: Path) -> None:
    result = CliRunner().invoke(main, ["mcp", "--kb", str(sample_path), "--schema"])

    schemas = json.loads(result.stdout)
    assert [schema["function"]["name"] for schema in schemas] == TOOLS
    assert schemas[0]["function"]["parameters"]["required"] == ["name"]


@pytest.mark.parametrize(("length", "shown"), [(160, "d" * 160), (161, "d" * 159 + "…"), (999, "d" * 159 + "…")])
def test_an_agent_gets_at_most_160_characters_of_a_text(kites: Callable[..., Path], length: int, shown: str) -> None:
    with open_kb(kites(descriptions=(("m.2", "d" * length),), language="en")) as kb:

        async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
            return job(kb)

        async def call_tools() -> list[Any]:
            async with Client(make_server(ask, name="kites")) as client:
                card = await client.call_tool("show", {"id": "m.2"})
                found = await client.call_tool("lookup", {"name": "Kite"})
                return [card.structured_content["description"], found.structured_content["matches"][1]["description"]]

        assert asyncio.run(call_tools()) == [shown, shown]


@pytest.mark.parametrize(("limit", "count"), [(0, 1), (3, 3), (50, 50), (51, 50), (None, 5)])
def test_an_agent_gets_at_most_fifty_rows_and_five_unless_it_asks(
    make_kb: Callable[..., Any], new_world: Any, limit: int | None, count: int
) -> None:
    names = tuple((f"m.{number:02}", "Kite") for number in range(60))
    facts = tuple(("m.00", f"r.{number:02}", "m.01") for number in range(60))
    with open_kb(make_kb("embedded", new_world(facts, names)).path) as kb:

        async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
            return job(kb)

        async def call_tools() -> list[int]:
            more = {} if limit is None else {"limit": limit}
            async with Client(make_server(ask, name="kites")) as client:
                found = await client.call_tool("lookup", {"name": "Kite", **more})
                facts = await client.call_tool("facts", {"id": "m.00", **more})
                return [len(found.structured_content["matches"]), len(facts.structured_content["facts"])]

        assert asyncio.run(call_tools()) == [count, 10 if limit is None else count]


def test_readings_that_are_not_listed_are_counted(make_kb: Callable[..., Any], new_world: Any) -> None:
    names = tuple((f"m.{number}", "Kite") for number in range(9))
    facts = tuple((f"m.{number}", "author", f"m.{number}") for number in range(9))
    with open_kb(make_kb("embedded", new_world(facts, names)).path) as kb:
        result = kb.query("who is the author of kite", top=5, answers=5)

        async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
            return job(kb)

        async def call_query() -> Any:
            async with Client(make_server(ask, name="kites")) as client:
                return (await client.call_tool("query", {"question": "who is the author of kite"})).structured_content

        reply = asyncio.run(call_query())

    assert (reply["sure"], reply["answers"], reply["reading"]) == (False, [], None)
    assert all(reading.text in reply["note"] for reading in result.readings)
    assert reply["note"].endswith(f"; and {result.readings_total - len(result.readings)} more")


@pytest.mark.parametrize(
    "question", ["harry potter", "who wrote it", "zzzz", "where was stephan king born", "who created harry potter"]
)
def test_an_agent_is_told_how_sure_an_answer_is(call: Callable[..., Any], opened: Answerer, question: str) -> None:
    result = opened.query(question, top=5, answers=5)

    reply = call("query", question=question)

    assert reply["sure"] == (bool(result.candidates) and not result.readings and not result.doubtful)
    assert reply["answers"] == ([] if result.readings else [answer.name for answer in result.answers])


@pytest.mark.parametrize(("text", "count"), [("J. K. Rowling and Harry Potter", 10), ("It is The Shining", 1)])
def test_a_mention_has_the_score_of_the_library(
    call: Callable[..., Any], opened: Answerer, text: str, count: int
) -> None:
    linked = opened.link(text, limit=1)

    mentions = call("link", text=text, limit=count)["mentions"]

    assert [(mention["text"], mention["score"], mention["id"]) for mention in mentions] == [
        (mention.text, round(mention.score, 2), mention.candidates[0].id) for mention in linked.mentions[:count]
    ]


def test_an_agent_gets_five_answers_and_their_number(make_kb: Callable[..., Any], new_world: Any) -> None:
    facts = tuple(("m.0", "part", f"m.{number:02}") for number in range(10, 22))
    with open_kb(make_kb("embedded", new_world(facts, (("m.0", "Lantern"),))).path) as kb:

        async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
            return job(kb)

        async def call_query() -> Any:
            async with Client(make_server(ask, name="lantern")) as client:
                return (await client.call_tool("query", {"question": "what part has lantern"})).structured_content

        reply = asyncio.run(call_query())

    assert reply["answers"] == [f"m.{number}" for number in range(10, 15)]
    assert reply["note"].endswith("5 of 12 answers")


@pytest.mark.parametrize("doubtful", [False, True])
def test_an_agent_is_not_sure_of_a_doubtful_answer(opened: Answerer, doubtful: bool) -> None:
    async def ask(job: Callable[[Answerer], Any], /, *, characters: float) -> Any:
        return replace(job(opened), doubtful=doubtful)

    async def call_query() -> Any:
        async with Client(make_server(ask, name="sample")) as client:
            question = {"question": "who created the character harry potter"}
            return (await client.call_tool("query", question)).structured_content

    reply = asyncio.run(call_query())

    assert (reply["sure"], reply["answers"]) == (not doubtful, ["J. K. Rowling"])
