"""The JSON API over one knowledge base: each endpoint reads its parameters, calls one function, and writes JSON."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from kbtools.answering.answerer import Answerer
from kbtools.answering.name_candidates import find_entity
from kbtools.answering.records import LookupResult
from kbtools.answering.results import Record, Result
from kbtools.errors import BadArgument, KBToolsError, RequestForbidden
from kbtools.kb.contract import KnowledgeBase, indexed_nearest
from kbtools.serve.endpoints import BY_NAME
from kbtools.serve.kb_description import check_choice, kb_info
from kbtools.serve.live_kb import Edition, LiveKB
from kbtools.serve.parameters import read_parameters
from kbtools.serve.responses import (
    JSON_LINES,
    error_record,
    json_bytes,
    json_bytes_response,
    json_response,
    record_bytes,
)
from kbtools.serve.workers import LINKED, LONG, Workers

_T = TypeVar("_T")

AT_ONCE, AT_ONCE_CHARACTERS = 16, 2_000
"""Most questions of a stream, and characters, per batch: few enough that other requests get their turn."""


class KBAPI:
    """The endpoints over one knowledge base."""

    def __init__(self, kb: LiveKB, workers: Workers, *, teach: bool = False, link: str = "") -> None:
        self.kb, self.workers, self.may_teach, self.link_to_source = kb, workers, teach, link

    def routes(self) -> list[Route]:
        """Return the routes; ids in `entity` may contain slashes."""
        routes = []
        for name, endpoint in BY_NAME.items():
            path = endpoint.path.replace("{id}", "{id:path}")
            routes.append(Route(path, getattr(self, name), methods=[*endpoint.methods]))
        return routes

    async def run(self, job: Callable[[Edition], _T]) -> _T:
        return await self.workers.run_on(self.kb, job)

    async def record(self, ask: Callable[[Answerer], Result | Record], *, characters: float = 0) -> Response:
        """Answer with a library record; the work counts as that of a question with `characters` characters."""

        def written(edition: Edition) -> bytes:
            return record_bytes(ask(edition.answerer))

        return json_bytes_response(await self.workers.run_on(self.kb, written, characters=characters))

    async def query(self, request: Request) -> Response:
        arguments = await _parameters_of("query", request)
        check_choice(arguments)
        if "questions" in arguments:
            texts = _one_of(arguments, "questions", "question")
            return await self.stream(texts, lambda answerer, batch: answerer.query_many(batch, **arguments))
        text = _one_of(arguments, "question", "questions")
        return await self.record(lambda answerer: answerer.query(text, **arguments), characters=len(text))

    async def lookup(self, request: Request) -> Response:
        arguments = await _parameters_of("lookup", request)
        if "names" in arguments:
            names = _one_of(arguments, "names", "name")
            return await self.stream(names, lambda answerer, batch: answerer.lookup_many(batch, **arguments))
        name = _one_of(arguments, "name", "names")
        return await self.record(lambda answerer: answerer.lookup(name, **arguments), characters=len(name))

    async def link(self, request: Request) -> Response:
        arguments = await _parameters_of("link", request)
        text = arguments.pop("text")
        return await self.record(lambda answerer: answerer.link(text, **arguments), characters=len(text) / LINKED)

    async def entity(self, request: Request) -> Response:
        entity_id = request.path_params["id"]
        arguments = await _parameters_of("entity", request)
        return await self.record(lambda answerer: answerer.entity(entity_id, **arguments))

    async def facts(self, request: Request) -> Response:
        arguments = await _parameters_of("facts", request)
        entity_id = arguments.pop("id")
        return await self.record(lambda answerer: answerer.facts(entity_id, **arguments))

    async def similar(self, request: Request) -> Response:
        arguments = await _parameters_of("similar", request)
        spelling, limit, lang = arguments["id"], arguments.get("limit", 10), arguments.get("lang")
        return json_response(
            await self.run(
                lambda edition: nearest_entities(edition.in_languages(lang).answerer.kb, spelling, limit=limit)
            )
        )

    async def teach(self, request: Request) -> Response:
        if not self.may_teach:
            raise RequestForbidden("this server does not accept teaching; start it with --teach")
        # Browsers send this type to another site only after a preflight request.
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise BadArgument("the body must be sent as application/json", name="content-type")
        arguments = await _parameters_of("teach", request)

        def taught(edition: Edition) -> dict[str, Any]:
            pair = edition.answerer.teach(**arguments)
            return {**pair._asdict(), "taught": len(edition.answerer.teaching.newest())}

        return json_response(await self.workers.run_on(self.kb, taught, characters=LONG + 1))

    async def overview(self, request: Request) -> Response:
        lang = (await _parameters_of("overview", request)).get("lang")
        return json_response(
            await self.workers.run_on(self.kb, lambda edition: edition.in_languages(lang).overview, characters=LONG + 1)
        )

    async def info(self, request: Request) -> Response:
        await _parameters_of("info", request)
        record = await self.run(lambda edition: kb_info(self.kb.name, edition.answerer))
        return json_response(
            record
            | {
                "teach": self.may_teach,
                "link": self.link_to_source,
                "root": request.scope.get("app_root_path", ""),
                "kbs": request.app.state.kb_names,
            }
        )

    async def stream(
        self, texts: Sequence[str], ask: Callable[[Answerer, Sequence[str]], Iterable[Result | LookupResult]]
    ) -> Response:
        """Answer many questions from one edition, one line each; an error before the first line fails the request."""
        stack = ExitStack()
        batches = together(texts)
        edition = await self.workers.run(lambda: stack.enter_context(self.kb.newest()))

        def answer(batch: Sequence[str]) -> bytes:
            with self.kb.held(edition):  # The stream may end before this batch if its client disconnects.
                return b"".join(record_bytes(record) + b"\n" for record in ask(edition.answerer, batch))

        async def next_lines() -> bytes:
            batch = next(batches, [])
            longest = max(map(len, batch), default=0)
            return await self.workers.run(lambda: answer(batch), characters=longest)

        try:
            first = await next_lines()
        except BaseException:
            stack.close()
            raise
        return StreamingResponse(self.lines(first, next_lines, stack), media_type=JSON_LINES)

    async def lines(
        self, first: bytes, next_lines: Callable[[], Awaitable[bytes]], stack: ExitStack
    ) -> AsyncIterator[bytes]:
        """Yield batches of lines until one is empty; a later error becomes the last line."""
        with stack:
            lines = first
            while lines:
                yield lines
                try:
                    lines = await next_lines()
                except KBToolsError as error:
                    yield json_bytes(error_record(error)) + b"\n"
                    return


def together(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in batches."""
    batch: list[str] = []
    for text in texts:
        if len(batch) == AT_ONCE or (batch and sum(map(len, batch)) + len(text) > AT_ONCE_CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


async def _parameters_of(name: str, request: Request) -> dict[str, Any]:
    """Read the parameters of an endpoint by its struct."""
    return await read_parameters(request, BY_NAME[name].methods["POST" if request.method == "POST" else "GET"])


def _one_of(arguments: dict[str, Any], name: str, other: str) -> Any:
    """Remove one of two mutually exclusive parameters from the arguments and return its value."""
    if name not in arguments:
        raise BadArgument(f"{name} is missing; give {name}, or {other} for many", name=name)
    if other in arguments:
        raise BadArgument(f"give {name} or {other}, not both", name=other)
    return arguments.pop(name)


def nearest_entities(kb: KnowledgeBase, spelling: str, *, limit: int) -> dict[str, Any]:
    """Return the entities nearest to one, without itself, by descending cosine.

    Raises UnknownEntity, or VectorsMissing if the knowledge base or the entity has no vectors.
    """
    entity = find_entity(kb, spelling)
    neighbours = indexed_nearest(kb, entity, top=limit)
    rows = np.array([entity, *(near.entity_row for near in neighbours)], dtype=np.uint32)
    (own_id, *ids), (_, *names) = kb.ids(rows), kb.names(rows)
    return {
        "id": own_id,
        "neighbours": [
            {"id": entity_id, "name": name, "cosine": round(near.cosine, 6)}
            for entity_id, name, near in zip(ids, names, neighbours, strict=True)
        ],
    }
