"""Tools for agents over a knowledge base, by the Model Context Protocol (MCP): short answers, with doubts in words."""

from collections.abc import Awaitable, Callable
from inspect import cleandoc
from typing import Any, Protocol, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel

from kbtools.answering.answerer import Answerer
from kbtools.answering.explaining import reading_text, verdict
from kbtools.answering.records import EntityMatch
from kbtools.answering.results import Result
from kbtools.errors import KBToolsError
from kbtools.serve.workers import LINKED
from kbtools.version import __version__

_T = TypeVar("_T")

_LIMIT, _MOST = 5, 50
"""Default and maximum number of rows in an answer."""

_SHORT = 160
"""Most characters of a text; five rows with such texts stay below a kilobyte."""

_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

_INSTRUCTIONS = (
    "A knowledge base of entities and facts. Use `lookup` to find the id of a name, `facts` to read what is known of "
    "an id, `query` for a question about one fact of one entity, and `link` to find the entities that a text mentions. "
    "Names are not unique: compare descriptions and types before you choose an id."
)


class _Match(BaseModel):
    """An entity with a given or similar name."""

    id: str
    name: str
    types: list[str]
    score: float
    description: str | None = None


class _Matches(BaseModel):
    """The entities of a look-up, best first."""

    matches: list[_Match]
    note: str


class _EntityCard(BaseModel):
    """An entity, with the number of facts about it."""

    id: str
    name: str
    aliases: list[str]
    types: list[str]
    facts: int
    facts_as_object: int | None
    description: str | None = None


class _FactRow(BaseModel):
    """A fact: the relation, and the value with its id."""

    relation: str
    value: str
    id: str


class _FactPage(BaseModel):
    """A page of facts about an entity."""

    facts: list[_FactRow]
    total: int
    note: str


class _MentionRow(BaseModel):
    """Words of a text and the entity that they most likely mean."""

    text: str
    start: int
    end: int
    id: str
    name: str
    score: float


class _Mentions(BaseModel):
    """The mentions of a text, in order."""

    mentions: list[_MentionRow]
    note: str


class _Reading(BaseModel):
    """The subject and relation as which a question was read."""

    subject: str
    subject_id: str
    relation: str


class _Reply(BaseModel):
    """The answers to a question; empty unless it has one likely reading."""

    sure: bool
    answers: list[str]
    reading: _Reading | None
    note: str


class _Ask(Protocol):
    """A way to run a function over the knowledge base."""

    def __call__(self, job: Callable[[Answerer], _T], /, *, characters: float) -> Awaitable[_T]: ...


def make_server(ask: _Ask, *, name: str) -> MCPServer[Any]:
    """Build a server with the tools `lookup`, `show`, `facts`, `link` and `query`."""
    server: MCPServer[Any] = MCPServer(
        f"kbtools: {name}", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )

    async def run(job: Callable[[Answerer], _T], *, characters: float = 0) -> _T:
        try:
            return await ask(job, characters=characters)
        except KBToolsError as error:
            raise ToolError(str(error)) from error

    @server.tool(annotations=_READ_ONLY, structured_output=True)
    async def lookup(name: str, type: str | None = None, limit: int = _LIMIT) -> _Matches:
        """Find the entities that have a name, or one like it: misspellings are found too. Use this first, to get ids.

        `type` keeps entities of one type, by its id. The score is 0 to 100, higher is closer.
        """
        result = await run(lambda kb: kb.lookup(name, type=type, limit=_bounded(limit)))
        matches = [_match_of(match) for match in result.matches]
        return _Matches(matches=matches, note=_describe_matches(name, matches))

    @server.tool(annotations=_READ_ONLY, structured_output=True)
    async def show(id: str) -> _EntityCard:
        """Return the names, types and description of an entity by its id, and how many facts there are about it."""
        entity = await run(lambda kb: kb.entity(id))
        return _EntityCard(
            id=entity.id,
            name=_shorten(entity.name or entity.id),
            aliases=[_shorten(alias) for alias in entity.aliases[:_LIMIT]],
            types=[type.name or type.id for type in entity.types[:_LIMIT]],
            facts=entity.facts_out,
            facts_as_object=entity.facts_in,
            description=entity.description and _shorten(entity.description),
        )

    @server.tool(annotations=_READ_ONLY, structured_output=True)
    async def facts(id: str, reverse: bool = False, limit: int = 2 * _LIMIT, offset: int = 0) -> _FactPage:
        """List facts about an entity by its id: relation and value. With `reverse`, facts that have it as their value.

        `total` counts all facts; ask again with a higher `offset` for the next ones.
        """
        page = await run(lambda kb: kb.facts(id, reverse=reverse, limit=_bounded(limit), offset=offset))
        ends = [fact.subject if reverse else fact.object for fact in page.facts]
        rows = [
            _FactRow(relation=fact.relation.name or fact.relation.id, value=_shorten(end.name or end.id), id=end.id)
            for fact, end in zip(page.facts, ends, strict=True)
        ]
        last = page.offset + len(rows)
        rest = "" if last >= page.total else f"; offset={last} gives the next"
        return _FactPage(facts=rows, total=page.total, note=f"{len(rows)} of {page.total} facts{rest}")

    @server.tool(annotations=_READ_ONLY, structured_output=True)
    async def link(text: str, limit: int = 2 * _LIMIT) -> _Mentions:
        """Find the entities that a text mentions, each with its place in the text and its most likely id.

        The score is 0 to 1: how likely the words mean that entity.
        """
        linked = await run(lambda kb: kb.link(text, limit=1), characters=len(text) / LINKED)
        mentions = [mention for mention in linked.mentions if mention.candidates]
        rows = [
            _MentionRow(
                text=_shorten(mention.text),
                start=mention.start,
                end=mention.end,
                id=mention.candidates[0].id,
                name=_shorten(mention.candidates[0].name or mention.candidates[0].id),
                score=round(mention.score, 2),
            )
            for mention in mentions[: _bounded(limit)]
        ]
        return _Mentions(mentions=rows, note=f"{len(rows)} of {len(mentions)} mentions")

    @server.tool(annotations=_READ_ONLY, structured_output=True)
    async def query(question: str) -> _Reply:
        """Answer a question about one fact of one entity, such as "who wrote The Hobbit"; not for several facts.

        When `sure` is false there is no single answer: `note` says why and lists the likely readings.
        """
        result = await run(lambda kb: kb.query(question, top=_LIMIT, answers=_LIMIT), characters=len(question))
        return _reply_to(result)

    return server


def _bounded(limit: int) -> int:
    return max(1, min(limit, _MOST))


def _shorten(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _match_of(match: EntityMatch) -> _Match:
    return _Match(
        id=match.id,
        name=_shorten(match.name or match.id),
        types=[type.name or type.id for type in match.types[:3]],
        score=round(match.score, 1),
        description=match.description and _shorten(match.description),
    )


def _describe_matches(name: str, matches: list[_Match]) -> str:
    if not matches:
        return f"no entity has the name {_shorten(name)!r} or a similar one"
    best = [match for match in matches if match.score == matches[0].score]
    if len(best) > 1:
        return f"not sure: {len(best)} entities fit equally well; compare their types"
    return "best match first"


def _reply_to(result: Result) -> _Reply:
    """Return the answers of a result, or an explanation if there is no single one."""
    if not result.candidates:
        return _Reply(sure=False, answers=[], reading=None, note="no name in the question is one of the knowledge base")
    first = result.candidates[0]
    if result.readings:
        more = result.readings_total - len(result.readings)
        readings = "; ".join(reading.text for reading in result.readings) + (f"; and {more:,} more" if more else "")
        return _Reply(sure=False, answers=[], reading=None, note=f"{verdict(result)} {readings}")
    answers = [_shorten(answer.name or answer.id) for answer in result.answers]
    reading = _Reading(
        subject=first.subject_name or first.subject,
        subject_id=first.subject,
        relation=first.relation_name or first.relation,
    )
    note = f"{verdict(result)}; read as {reading_text(first)}; {len(answers)} of {result.answers_total} answers"
    return _Reply(sure=not result.doubtful, answers=answers, reading=reading, note=note)


async def function_schemas(server: MCPServer[Any]) -> list[dict[str, Any]]:
    """Return the tools of a server as function schemas of OpenAI's API."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": cleandoc(tool.description or ""),
                "parameters": tool.input_schema,
            },
        }
        for tool in await server.list_tools()
    ]
