"""The endpoints of the JSON API: a struct with the parameters of each, and the OpenAPI description."""

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.json import schema_components

from kbtools.answering import records, results
from kbtools.answering.limits import ANSWERS, TOP
from kbtools.answering.teaching import MOST_LETTERS
from kbtools.serve.parameters import BODY_BYTES, TEXT_CHARACTERS, parameter_schemas
from kbtools.version import __version__

_QUESTIONS = 10_000
"""Most questions or names of one request."""


def _text(help: str, most: int = TEXT_CHARACTERS) -> Any:
    return Annotated[str, Meta(pattern=r"\S", max_length=most, description=help)]


def _texts(help: str) -> Any:
    return Annotated[
        list[Annotated[str, Meta(pattern=r"\S", max_length=TEXT_CHARACTERS)]],
        Meta(max_length=_QUESTIONS, description=help),
    ]


def _count(help: str, least: int = 0, most: int = 1_000) -> Any:
    return Annotated[int, Meta(ge=least, le=most, description=help)]


def _share(help: str) -> Any:
    return Annotated[float, Meta(ge=0, le=1, description=help)]


def _flag(help: str) -> Any:
    return Annotated[bool, Meta(description=help)]


def _struct(name: str, required: dict[str, Any], /, **optional: Any) -> type[Struct]:
    """Build the struct of an endpoint's parameters; missing optional ones are UNSET."""
    parts: list[Any] = [*required.items(), *((part, kind | UnsetType, UNSET) for part, kind in optional.items())]
    return defstruct(name, parts, kw_only=True)


_LANG = {"lang": _text("Languages of names, the preferred first, such as de,en.", 200)}
_LIMIT = {"limit": _count("How many to return.", 1)} | _LANG
_SYSTEM = {
    "pruning": _text("The pruner.", 100),
    "scorer": _text(
        "The relation scorer; several, after commas, are averaged; those after a slash rank doubtful questions.",
        300,
    ),
    "subject": _text("The subject scorer; popularity counts facts instead.", 100),
    "ranker": _text("The ranker: weighted-sum, or one fitted for these parts.", 100),
    "type": _text("The id of a type; only subjects of it are returned."),
    **_LANG,
    "inverse": _flag("Also read facts backwards, or never; by default, if nothing else is likely."),
    "top": _count(f"Candidates to return, {TOP} if not given; 0 returns all.", most=100_000),
    "answers": _count(f"Answers to return, {ANSWERS} if not given; 0 returns all.", most=1_000_000),
    "abstain": _share("Withhold answers whose confidence is below this."),
}
_QUESTION, _NAME = {"question": _text("The question.")}, {"name": _text("The name.")}
_OF_TYPE = {"type": _text("The id of a type; only entities of it are returned.")} | _LIMIT
_ID = {"id": _text("The id of an entity, in any spelling of it.")}
_LINK = _struct(
    "Link",
    {"text": _text("Running text.", BODY_BYTES)},
    threshold=_share("Leave out mentions with a lower score, 0 to 1."),
    context=_flag("Use the surrounding text to choose between entities with the same name."),
    **_LIMIT | {"limit": _count("Candidates of each mention.", 1, 100)},
)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """A path of the API: its summary, the record it returns, and its parameters for each method.

    A POST with the parameter `many` returns a record for each value in the list, as JSON Lines.
    """

    name: str
    path: str
    summary: str
    record: str
    get: type[Struct] | None
    post: type[Struct] | None = None
    many: str = ""

    @property
    def methods(self) -> dict[str, type[Struct]]:
        return {method: kind for method, kind in (("GET", self.get), ("POST", self.post)) if kind}


ENDPOINTS = (
    _Endpoint(
        "query", "/api/query", "Answer a question, or many.", "Result",
        _struct("Question", _QUESTION, **_SYSTEM),
        _struct("Questions", {}, **_QUESTION, questions=_texts("Many questions, answered in order."), **_SYSTEM),
        many="questions",
    ),
    _Endpoint(
        "lookup", "/api/lookup", "Find the entities with a name, or a similar one.", "LookupResult",
        _struct("Lookup", _NAME, **_OF_TYPE),
        _struct("Lookups", {}, **_NAME, names=_texts("Many names, looked up in order."), **_OF_TYPE),
        many="names",
    ),
    _Endpoint("link", "/api/link", "Link the entities that a text mentions.", "LinkedText", _LINK, _LINK),
    _Endpoint(
        "entity", "/api/entity/{id}", "Show an entity: names, types, counts of facts.", "Entity",
        _struct("EntityById", {}, **_LANG),
    ),
    _Endpoint(
        "facts", "/api/facts", "List facts of an entity.", "Facts",
        _struct(
            "FactsById", _ID, reverse=_flag("List the facts with the entity as object."),
            offset=_count("How many to skip.", most=1 << 31), **_LIMIT,
        ),
    ),
    _Endpoint(
        "similar", "/api/similar", "List the entities whose vectors are nearest to that of another.", "Neighbours",
        _struct("Similar", {"id": _text("An id or a name.")}, **_LIMIT),
    ),
    _Endpoint(
        "teach", "/api/teach", "Teach the meaning of a question (only with kbtools serve --teach).", "TaughtPair",
        None,
        _struct(
            "Lesson", {"question": _text("The question.", MOST_LETTERS)}, subject=_text("An id or a name."),
            relation=_text("An id or a label."), answer=_text("An answer, if subject and relation are left out."),
        ),
    ),
    _Endpoint(
        "overview", "/api/overview", "Show frequent types, languages, and questions that it can answer.", "Overview",
        _struct("OverviewIn", {}, **_LANG),
    ),
    _Endpoint(
        "info", "/api/info", "Show the contents of the knowledge base, and the available parts.", "Info",
        _struct("Nothing", {}),
    ),
)  # fmt: skip
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class Neighbour(Struct):
    id: str
    name: str | None
    cosine: float


class Neighbours(Struct):
    """The entities nearest to another."""

    id: str
    neighbours: list[Neighbour]


class TaughtPair(Struct):
    """A taught question with the ids of its subject and relation, and the number of questions taught so far."""

    question: str
    subject: str
    relation: str
    taught: int


class FrequentType(Struct):
    id: str
    name: str | None
    share: float


class LanguageCount(Struct):
    language: str
    names: int


class Overview(Struct):
    """Frequent types with the share of entities that have them, names by language, and sample questions."""

    types: list[FrequentType]
    languages: list[LanguageCount]
    questions: list[str]


class Info(Struct):
    """A knowledge base and the available parts; only the fields that every one has."""

    name: str
    taught: int
    teach: bool
    counts: dict[str, Any]
    pruners: list[str]
    scorers: list[str]
    subjects: list[str]


class Fault(Struct):
    kind: str
    message: str


class Error(Struct):
    """An error: its kind and its message."""

    error: Fault


_RECORDS = (
    results.Result, records.LookupResult, records.LinkedText, records.Entity, records.Facts, Neighbours, TaughtPair,
    Overview, Info, Error,
)  # fmt: skip


def describe(server: str) -> dict[str, Any]:
    """Return the OpenAPI description of the API; `server` is its path prefix."""
    _, schemas = schema_components(_RECORDS, ref_template="#/components/schemas/{name}")
    schemas["Result"]["properties"]["json_version"] = {"type": "integer"}
    for described in schemas.values():  # These fields are omitted unless requested.
        described["required"] = [name for name in described.get("required", ()) if name not in results.UNLESS_ASKED]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kbtools",
            "version": __version__,
            "description": "Questions, names, text and entities over a knowledge base.",
        },
        "servers": [{"url": server or "/"}],
        "paths": {
            endpoint.path: {method.lower(): _operation(endpoint, method) for method in endpoint.methods}
            for endpoint in ENDPOINTS
        },
        "components": {"schemas": schemas},
    }


def _operation(endpoint: _Endpoint, method: str) -> dict[str, Any]:
    """Describe one method of an endpoint."""
    schemas, required = parameter_schemas(endpoint.methods[method])
    record = {"schema": {"$ref": f"#/components/schemas/{endpoint.record}"}}
    content = {"application/json": record}
    described: dict[str, Any] = {
        "operationId": endpoint.name if method == "GET" else f"{endpoint.name}_post",
        "summary": endpoint.summary,
    }
    if method == "GET":
        described["parameters"] = [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in schemas.items()
        ]
        if "{id}" in endpoint.path:
            described["parameters"].append({"name": "id", "in": "path", "required": True, "schema": {"type": "string"}})
    else:
        body = {"type": "object", "additionalProperties": False, "required": required, "properties": schemas}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        if endpoint.many:
            content["application/jsonl"] = record
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    described["responses"] = {
        "200": {"description": endpoint.summary, "content": content},
        "default": {"description": "What is wrong.", "content": error},
    }
    return described
