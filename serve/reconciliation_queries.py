"""Queries of reconciliation clients, read from JSON: every error names its query."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import fields

from kbtools.errors import BadArgument, RequestTooLarge
from kbtools.serve.parameters import TEXT_CHARACTERS, parse_json, shortened

BATCH = 100
"""Most queries, or entities to extend, of a batch: a tenth of a second at a millisecond each. OpenRefine sends ten."""

_EXTENDED = 1_000
"""Most entities of a data extension query; OpenRefine sends ten as well."""

LOOK_UPS = 2_000
"""Most look-ups of a batch: names, once for each type, and values of properties; six seconds at three milliseconds."""

LOOKED_UP = 500
"""Characters of a text that count as one look-up."""

_CELLS = 10_000
"""Most entities times properties of a data extension query."""

_LIMIT, _MOST = 10, 100
"""Default and maximum number of candidates of a query."""

_Record = TypeVar("_Record", bound=Struct)

_OneOrMore = Annotated[float, Meta(ge=1, multiple_of=1)]
"""A whole number; 5.0 is accepted."""


class EntityValue(Struct):
    """An entity as the value of a property: its id, and optionally its name."""

    id: str
    name: Any = ""


_Raw = str | bool | int | float | EntityValue


class Value(Struct, frozen=True):
    """A value of a property: a text, or an entity by its id with an optional name as text."""

    text: str
    entity_id: str | None = None


class PropertyValue(Struct, dict=True):
    """A relation that a candidate should have to one of some values."""

    relation: str = field(name="pid")
    raw: _Raw | list[_Raw] = field(name="v")

    @cached_property
    def values(self) -> list[Value]:
        """The distinct values, at most MOST."""
        raw = self.raw if isinstance(self.raw, list) else [self.raw]
        return list(dict.fromkeys(map(_read_value, raw)))[:_MOST]


class ReconciliationQuery(Struct, forbid_unknown_fields=True):
    """A name, possibly empty, with the types and values that its entity should have."""

    text: str = field(name="query", default="")
    types: str | list[str] = field(name="type", default_factory=list)
    limit: _OneOrMore = _LIMIT
    properties: list[PropertyValue] = field(default_factory=list)
    strictness: Literal["any", "should", "all"] = field(name="type_strict", default="should")

    def __post_init__(self) -> None:
        self.text = self.text[:TEXT_CHARACTERS]  # A longer text is cut, so that the other queries are answered.
        self.types = [self.types] if isinstance(self.types, str) else list(dict.fromkeys(self.types))[:_MOST]

    @property
    def look_ups(self) -> int:
        """The work of the query: its name, once for each type, and each value of its properties."""
        values = [max(1, sum(map(_look_ups_of, prop.values))) for prop in self.properties]
        return _look_ups_of(self) * (1 + len(self.types)) + sum(values)

    @property
    def count(self) -> int:
        """The number of candidates to return."""
        return int(min(self.limit, _MOST))


class ExtensionSettings(Struct):
    """The number of objects of each entity, 0 for all, and whether to return them as ids or as text."""

    limit: Annotated[float, Meta(ge=0, multiple_of=1)] | str = 0
    content: Any = "entity"

    def __post_init__(self) -> None:
        if isinstance(self.limit, str):  # OpenRefine sends the text typed by the user, even if it is empty.
            self.limit = int(self.limit.strip() or "0")
            if self.limit < 0:
                raise ValueError


class ExtensionProperty(Struct):
    """A relation whose objects are requested."""

    relation: str = field(name="id")
    settings: ExtensionSettings = field(default_factory=ExtensionSettings)

    @property
    def count(self) -> int:
        return int(self.settings.limit or 0)


class ExtensionQuery(Struct):
    """Entities and the relations whose objects are requested."""

    ids: list[str]
    properties: list[ExtensionProperty]

    @property
    def cells(self) -> int:
        return len(set(self.ids)) * len({column.relation for column in self.properties})


_VALUE = "a value must be a text, a number, true, false or an object with an id"
_EXPECTED: dict[type[Struct], dict[str, str]] = {
    ReconciliationQuery: {
        "query": "query must be a text",
        "type": "type must be an id or a list of ids",
        "limit": "limit must be a whole number from 1 on",
        "type_strict": "type_strict must be any, should or all",
        "properties": "properties must be a list",
        "properties[]": "a property needs a pid, which is a text, and a v",
        "pid": "a property needs a pid, which is a text, and a v",
        "v": _VALUE,
        "v[]": _VALUE,
        "id": _VALUE,
    },
    ExtensionQuery: {
        "ids": "ids must be a list of texts",
        "properties": "properties must be a list",
        "properties[]": "a property needs an id, which is a text",
        "id": "a property needs an id, which is a text",
        "settings": "settings must be an object, in which limit is a whole number from 0 on",
        "limit": "limit must be a whole number from 0 on",
    },
}
"""What each part of a query must be, for error messages."""


def read_batch(text: str | bytes | Mapping[str, Any]) -> dict[str, ReconciliationQuery]:
    """Read a batch of queries; raise BadArgument that describes a fault, RequestTooLarge for a long batch."""
    batch = parse_json(text, "queries") if isinstance(text, str | bytes) else text
    if not isinstance(batch, Mapping):
        raise BadArgument(f"queries must be an object of queries by key, found {shortened(batch)}")
    if len(batch) > BATCH:
        raise RequestTooLarge(f"{len(batch):,} queries in a batch, at most {BATCH} (batchSize of the manifest)")
    queries = {key: _read_record(f"query {key!r}", raw, ReconciliationQuery) for key, raw in batch.items()}
    for key, query in queries.items():
        if "query" not in batch[key] and not query.properties:
            raise BadArgument(f"query {key!r} needs a query or at least one of properties")
    look_ups = sum(query.look_ups for query in queries.values())
    if look_ups > LOOK_UPS:
        raise RequestTooLarge(
            f"the queries need {look_ups:,} look-ups (each name once for each type, and each value of a property), "
            f"at most {LOOK_UPS:,} in a batch; send fewer queries at a time"
        )
    return queries


def read_single(text: str | Mapping[str, Any]) -> ReconciliationQuery:
    """Read one query of the older form of the protocol, in which a limit may be a text; raises as `read_batch` does."""
    raw = parse_json(text, "query") if isinstance(text, str) else text
    limit = raw.get("limit") if isinstance(raw, Mapping) else None
    if isinstance(limit, str) and limit.isdecimal():
        raw = {**raw, "limit": int(limit[:9])}
    return read_batch({"query": raw})["query"]


def _look_ups_of(text: "ReconciliationQuery | Value") -> int:
    """Return the number of look-ups that a text counts as."""
    return 1 + len(text.text) // LOOKED_UP


def read_extension(text: str | bytes | Mapping[str, Any]) -> ExtensionQuery:
    """Read a data extension query; raises as `read_batch` does."""
    raw = parse_json(text, "extend") if isinstance(text, str | bytes) else text
    query = _read_record("extend", raw, ExtensionQuery)
    if len(query.ids) > _EXTENDED or len(query.properties) > BATCH or query.cells > _CELLS:
        raise RequestTooLarge(
            f"extend: at most {_EXTENDED:,} ids, {BATCH} properties, and {_CELLS:,} of both multiplied in a request"
        )
    return query


def _read_record(where: str, raw: Any, kind: type[_Record]) -> _Record:
    """Convert JSON to a record; raise BadArgument that names the wrong part."""
    if not isinstance(raw, Mapping):
        raise BadArgument(f"{where} is an object, found {shortened(raw)}")
    known = [part.encode_name for part in fields(kind)]
    unknown = [name for name in raw if name not in known]
    if unknown and kind.__struct_config__.forbid_unknown_fields:
        raise BadArgument(f"{where} has no key {unknown[0]!r}; known: {', '.join(known)}")
    try:
        return convert(raw, kind)
    except ValidationError as error:
        # The message ends with the path to the part, such as `$.properties[0].v`, or the name of a missing one.
        path = re.sub(r"\[\d+\]", "[]", str(error).split("`")[-2].removeprefix("$."))
        part, sentence = path.partition(".")[0].removesuffix("[]"), ""
        for name in path.split("."):
            sentence = _EXPECTED[kind].get(name) or _EXPECTED[kind].get(name.removesuffix("[]"), sentence)
        raise BadArgument(f"{where}: {sentence}, found {shortened(raw.get(part))}") from error


def _read_value(raw: _Raw) -> Value:
    """Read a value of a property."""
    match raw:
        case EntityValue():
            return Value(raw.name if isinstance(raw.name, str) else "", raw.id)
        case str():
            return Value(raw[:TEXT_CHARACTERS])
        case bool():
            return Value(str(raw).lower())
    return Value(f"{raw:g}" if isinstance(raw, float) else str(raw))
