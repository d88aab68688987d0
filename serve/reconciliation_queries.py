"""Queries of reconciliation clients, read from JSON: every fault is named with the query that has it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kbtools.errors import BadArgument, RequestTooLarge
from kbtools.serve.parameters import TEXT_CHARACTERS, parse_json, shortened

BATCH = 100
"""Queries, or entities to extend, of one batch: a tenth of a second at a millisecond each. OpenRefine sends ten."""

EXTENDED = 1_000
"""Entities of a data extension query; OpenRefine sends ten as well."""

LIMIT, MOST = 10, 100
"""Candidates of a query that names no limit, and the most that one gets."""

KEYS = ("query", "type", "limit", "properties", "type_strict")

Strictness = Literal["any", "should", "all"]


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a property: a text, or an entity by its id with perhaps its name as text."""

    text: str
    entity_id: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """A relation that a candidate should have to one of some values."""

    relation: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ReconciliationQuery:
    """A name, which may be empty, with the types and the values that its bearer should have."""

    text: str
    types: tuple[str, ...] = ()
    strictness: Strictness = "should"
    limit: int = LIMIT
    properties: tuple[PropertyValue, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtensionProperty:
    """A relation whose objects are asked for: how many of each entity, and whether as ids or as text."""

    relation: str
    limit: int = 0
    content: str = "entity"


@dataclass(frozen=True, slots=True)
class ExtensionQuery:
    """Entities and the relations whose objects are asked for."""

    ids: tuple[str, ...]
    properties: tuple[ExtensionProperty, ...]


def read_batch(text: str | bytes | Mapping[str, Any]) -> dict[str, ReconciliationQuery]:
    """Read a batch of queries; raise BadArgument that names a fault, RequestTooLarge for a long batch."""
    batch = parse_json(text, "queries") if isinstance(text, str | bytes) else text
    if not isinstance(batch, Mapping):
        raise BadArgument(f"queries are an object of queries by key, found {shortened(batch)}")
    if len(batch) > BATCH:
        raise RequestTooLarge(f"{len(batch):,} queries in a batch, at most {BATCH} (batchSize of the manifest)")
    return {key: read_query(f"query {key!r}", raw) for key, raw in batch.items()}


def read_query(where: str, raw: Any) -> ReconciliationQuery:
    """Read one query."""
    if not isinstance(raw, Mapping):
        raise BadArgument(f"{where} is an object, found {shortened(raw)}")
    unknown = [name for name in raw if name not in KEYS]
    if unknown:
        raise BadArgument(f"{where} has no key {unknown[0]!r}; known: {', '.join(KEYS)}")
    if "query" not in raw and not raw.get("properties"):
        raise BadArgument(f"{where} needs a query or at least one of properties")
    text = expect_text(where, "query", raw.get("query", ""))
    types = raw.get("type", [])
    types = [types] if isinstance(types, str) else types
    if not isinstance(types, list) or not all(isinstance(kind, str) for kind in types):
        raise BadArgument(f"{where}: type is an id or a list of ids, found {shortened(types)}")
    strictness = raw.get("type_strict", "should")
    if strictness not in ("any", "should", "all"):
        raise BadArgument(f"{where}: type_strict is any, should or all, found {shortened(strictness)}")
    properties = raw.get("properties", [])
    if not isinstance(properties, list):
        raise BadArgument(f"{where}: properties are a list, found {shortened(properties)}")
    limit = LIMIT if "limit" not in raw else expect_limit(where, raw["limit"], least=1)
    return ReconciliationQuery(
        text, tuple(types[:MOST]), strictness, min(limit, MOST), tuple(read_property(where, one) for one in properties)
    )


def read_property(where: str, raw: Any) -> PropertyValue:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("pid"), str) or "v" not in raw:
        raise BadArgument(f"{where}: a property has a pid, which is a text, and a v, found {shortened(raw)}")
    values = raw["v"] if isinstance(raw["v"], list) else [raw["v"]]
    return PropertyValue(raw["pid"], tuple(read_value(where, value) for value in values[:MOST]))


def read_value(where: str, raw: Any) -> Value:
    match raw:
        case str():
            return Value(expect_text(where, "v", raw))
        case bool():
            return Value(str(raw).lower())
        case int() | float():
            return Value(f"{raw:g}" if isinstance(raw, float) else str(raw))
        case {"id": str(entity_id)}:
            name = raw.get("name", "")
            return Value(name if isinstance(name, str) else "", entity_id)
    raise BadArgument(
        f"{where}: a value is a text, a number, true, false or an object with an id, found {shortened(raw)}"
    )


def read_extension(text: str | bytes | Mapping[str, Any]) -> ExtensionQuery:
    """Read a data extension query; raise as `read_batch` does."""
    raw = parse_json(text, "extend") if isinstance(text, str | bytes) else text
    if not isinstance(raw, Mapping):
        raise BadArgument(f"extend is an object with ids and properties, found {shortened(raw)}")
    ids, properties = raw.get("ids"), raw.get("properties")
    if not isinstance(ids, list) or not all(isinstance(entity_id, str) for entity_id in ids):
        raise BadArgument(f"extend: ids are a list of texts, found {shortened(ids)}")
    if not isinstance(properties, list):
        raise BadArgument(f"extend: properties are a list, found {shortened(properties)}")
    if len(ids) > EXTENDED or len(properties) > BATCH:
        raise RequestTooLarge(f"extend: at most {EXTENDED:,} ids and {BATCH} properties in a request")
    return ExtensionQuery(tuple(ids), tuple(map(read_extension_property, properties)))


def read_extension_property(raw: Any) -> ExtensionProperty:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("id"), str):
        raise BadArgument(f"extend: a property has an id, which is a text, found {shortened(raw)}")
    settings = raw.get("settings", {})
    if not isinstance(settings, Mapping):
        raise BadArgument(f"extend: settings are an object, found {shortened(settings)}")
    limit = settings.get("limit", 0)
    if isinstance(limit, str) and (limit.strip() or "0").isdigit() and len(limit) < 10:
        limit = int(limit.strip() or "0")  # OpenRefine sends what was typed, also where nothing was
    return ExtensionProperty(
        raw["id"], expect_limit("extend", limit, least=0), "id" if settings.get("content") == "id" else "entity"
    )


def expect_limit(where: str, limit: Any, *, least: int) -> int:
    """Read a limit, which may be written as 5.0; raise BadArgument for what is none."""
    number = isinstance(limit, int | float) and not isinstance(limit, bool) and math.isfinite(limit)
    if not number or limit != int(limit) or limit < least:
        raise BadArgument(f"{where}: limit is a whole number from {least} on, found {shortened(limit)}")
    return int(limit)


def expect_text(where: str, name: str, text: Any) -> str:
    """Read a text; of one longer than names are, the beginning, so that its batch is answered for all the others."""
    if not isinstance(text, str):
        raise BadArgument(f"{where}: {name} is a text, found {shortened(text)}")
    return text[:TEXT_CHARACTERS].encode(errors="replace").decode()
