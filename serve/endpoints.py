"""The endpoints of the JSON API as a table: what requests are checked by, and what /openapi.json describes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kbtools.answering.limits import ANSWERS, TOP
from kbtools.serve.parameters import BODY_BYTES, Parameter

QUESTIONS = 10_000
"""Questions, or names, of one request."""

Method = Literal["GET", "POST"]

ID = Parameter("id", "text", "The id of an entity, in any spelling of it.", required=True)
LIMIT = Parameter("limit", "count", "How many to give.", least=1)
LANG = Parameter("lang", "text", "Languages of names, the preferred first, such as de,en.", longest=200)
SYSTEM = (
    Parameter("pruning", "text", "The pruner.", longest=100),
    Parameter("scorer", "text", "The relation scorer; several, with commas between, are averaged.", longest=300),
    Parameter("subject", "text", "The subject scorer; popularity takes one away.", longest=100),
    Parameter("ranker", "text", "What ranks: weighted-sum, or a ranker that was fitted for these.", longest=100),
    Parameter("type", "text", "The id of a type that the subjects have."),
    LANG,
    Parameter("inverse", "flag", "Read facts backwards too: what the question names may be their object."),
    Parameter("top", "count", f"Candidates to give, {TOP} if not given; 0 gives all.", most=100_000),
    Parameter("answers", "count", f"Answers to give, {ANSWERS} if not given; 0 gives all.", most=1_000_000),
    Parameter("abstain", "share", "Withhold answers whose confidence is below this."),
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path of the API: what it does, what it takes by each method, and the record that it gives.

    A POST that has the parameter `many` gives a record for each of a list, as JSON Lines.
    """

    name: str
    path: str
    summary: str
    record: str
    parameters: Mapping[Method, tuple[Parameter, ...]]
    many: str = ""


def both(*parameters: Parameter) -> dict[Method, tuple[Parameter, ...]]:
    return {"GET": parameters, "POST": parameters}


ENDPOINTS = (
    Endpoint(
        "query",
        "/api/query",
        "Answer a question, or many.",
        "Result",
        {
            "GET": (Parameter("question", "text", "The question.", required=True), *SYSTEM),
            "POST": (
                Parameter("question", "text", "The question."),
                Parameter("questions", "texts", "Many questions, answered in order.", most=QUESTIONS),
                *SYSTEM,
            ),
        },
        many="questions",
    ),
    Endpoint(
        "lookup",
        "/api/lookup",
        "Find the entities that bear a name, or one that resembles it.",
        "LookupResult",
        {
            "GET": (
                Parameter("name", "text", "The name.", required=True),
                Parameter("type", "text", "The id of a type that the entities bear."),
                LANG,
                LIMIT,
            ),
            "POST": (
                Parameter("name", "text", "The name."),
                Parameter("names", "texts", "Many names, looked up in order.", most=QUESTIONS),
                Parameter("type", "text", "The id of a type that the entities bear."),
                LANG,
                LIMIT,
            ),
        },
        many="names",
    ),
    Endpoint(
        "link",
        "/api/link",
        "Link the entities that a text mentions.",
        "LinkedText",
        both(
            Parameter("text", "text", "Running text.", required=True, longest=BODY_BYTES),
            Parameter("threshold", "share", "How likely a mention must mean its first candidate."),
            Parameter("limit", "count", "Candidates of each mention.", least=1, most=100),
            LANG,
        ),
    ),
    Endpoint(
        "entity", "/api/entity/{id}", "Show an entity: names, types, counts of facts.", "Entity", {"GET": (ID, LANG)}
    ),
    Endpoint(
        "facts",
        "/api/facts",
        "List facts of an entity.",
        "Facts",
        {
            "GET": (
                ID,
                Parameter("reverse", "flag", "List the facts that the entity is the object of."),
                LIMIT,
                Parameter("offset", "count", "How many to skip.", most=1 << 31),
                LANG,
            )
        },
    ),
    Endpoint(
        "similar",
        "/api/similar",
        "List the entities whose vectors are nearest to that of another.",
        "Neighbours",
        {"GET": (Parameter("id", "text", "An id or a name.", required=True), LIMIT, LANG)},
    ),
    Endpoint(
        "info", "/api/info", "Say what the knowledge base holds and what can be asked of it.", "Info", {"GET": ()}
    ),
)
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
