"""JSON documents as programs and services export them, made JSON Lines: the objects of the largest list in one."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import BOM, Block
from kbtools.kb.table_heads import NAME_HEADS, entity_role, plain_head

_LARGEST = 1 << 28
"""The most bytes of a document, which is read as a whole and then takes some five times as much memory."""

_DEPTH = 4
"""The most levels of objects above the list."""

_INSIDE = 20
"""Objects inside each other whose fields are columns of a row; deeper ones are left out."""

_WRAPPERS = frozenset({"attributes", "properties", "fields", "_source", "node"})
"""Keys below which services such as JSON:API, GeoJSON and GraphQL keep the fields of an object."""

_TERM = frozenset({"type", "value", "xml:lang", "datatype"})
"""The fields of a value in the results of a SPARQL query."""

_SPACE = re.compile(r"\s*")

_NAMING = ("name", "label", "title", "value", "id")
"""The fields that name an object in a list."""


def may_be_document(text: bytes) -> bool:
    """Return whether a text with this beginning may be one JSON document, rather than an object per line."""
    text = text.removeprefix(BOM).lstrip()
    first, _, rest = text.partition(b"\n")
    unclosed = not first.rstrip().endswith(b"}")
    return bool(re.match(rb"\[\s*[\[{]", text)) or (text.startswith(b"{") and (unclosed or not rest.strip()))


def as_json_lines(blocks: Iterable[Block], path: Path) -> Iterator[Block]:
    """Yield blocks of JSON Lines as they are, and a document as one block of its objects, a line each."""
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None or not may_be_document(first.text):
        yield from (chain([first], blocks) if first else ())
        return
    read, size = [first], len(first.text)
    for block in blocks:
        size += len(block.text)
        if size > _LARGEST:
            cure = "write one object per line: jq -c '.[]' FILE > FILE.jsonl"
            raise WrongFormat.at(path, f"a JSON document of over {_LARGEST >> 20} MiB; {cure}")
        read.append(block)
    try:
        document = _parsed(b"".join(block.text for block in read).removeprefix(BOM).decode(errors="surrogatepass"))
    except (ValueError, RecursionError) as error:
        if first.text.lstrip().startswith(b"["):
            raise WrongFormat.at(path, f"found JSON that cannot be read ({error}); fix the file") from error
        yield from read
        return
    if isinstance(document, dict) and _are_columns(document):
        rows = zip(*(column.values() for column in document.values()), strict=True)
        document = [dict(zip(document, row, strict=True)) for row in rows]
    single = isinstance(document, dict) and any(entity_role(key) in ("id", "name") for key in document)
    records = [document] if single else _records(document, _DEPTH)
    if isinstance(document, dict) and (single or not records) and b"\n" not in first.text.strip():
        yield from read
        return
    if not records:
        raise WrongFormat.at(path, "found JSON without a list of objects; write one object per line, with its fields")
    lines = (json.dumps(dict(fields_of(record)), ensure_ascii=False) for record in records)
    yield Block("".join(f"{line}\n" for line in lines).encode(errors="surrogatepass"), 1)


def _parsed(text: str) -> Any:
    """Return the document in a text; documents one after another, as `jq` prints them, are a list."""
    documents: list[Any] = []
    decoder = json.JSONDecoder()
    start = len(text) - len(text.lstrip())
    while start < len(text) or not documents:
        document, end = decoder.raw_decode(text, start)
        documents.append(document)
        space = _SPACE.match(text, end)
        start = space.end() if space else end
    return documents if len(documents) > 1 else documents[0]


def _records(document: Any, depth: int) -> list[dict[str, Any]]:
    """Return the largest list of objects in a document; rows below a header are one too.

    So are objects by their ids, which are names if they are words and the objects have none.
    """
    if isinstance(document, list):
        rows = [row for row in document if isinstance(row, list)]
        if len(rows) > 1 and all(isinstance(head, str) for head in rows[0]):
            return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]
        return [row for row in document if isinstance(row, dict)]
    if not isinstance(document, dict) or not depth:
        return []
    parts = list(document.values())
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list):
        return _records([columns, *data], depth)
    if len(parts) > 1 and all(isinstance(part, dict) and part.keys() == parts[0].keys() for part in parts):
        named = any(entity_role(key) == "name" or re.fullmatch(NAME_HEADS[0], plain_head(key)) for key in parts[0])
        heads = ("id",) if named or any(re.search(r"\d", key) for key in document) else ("id", "name")
        return [dict.fromkeys(heads, key) | part for key, part in document.items()]
    return max((_records(part, depth - 1) for part in parts), key=len)


def _are_columns(document: dict[str, Any]) -> bool:
    """Return whether a document holds columns, each with its rows by number, as pandas writes a frame by default."""
    columns = list(document.values())
    numbers = list(columns[0]) if columns and isinstance(columns[0], dict) else []
    plain = numbers[:1] == ["0"] and all(map(str.isdecimal, numbers))
    return plain and all(isinstance(column, dict) and list(column) == numbers for column in columns)


def _value_of(value: Any) -> Any:
    """Return a value without its wrapping by MongoDB, `{"$oid": "5f1"}`, or in the results of a SPARQL query."""
    while isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith("$"):
        (value,) = value.values()
    is_term = isinstance(value, dict) and {"type", "value"} <= value.keys() <= _TERM
    if is_term and value["type"] in ("uri", "literal", "typed-literal", "bnode"):
        return value["value"]
    return value


def fields_of(record: dict[str, Any], outer: str = "", depth: int = _INSIDE) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object and of the objects inside it, each named by all its keys."""
    for key, wrapped in record.items():
        value = _value_of(wrapped)
        if isinstance(value, dict) and depth:
            yield from fields_of(value, outer if key in _WRAPPERS else f"{outer}{key} ", depth - 1)
        elif isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
            naming = (next((part[key] for key in _NAMING if part.get(key) is not None), None) for part in value)
            yield f"{outer}{key}", [name for name in naming if name is not None] or value
        else:
            # `{"height": {"value": 12, "unit": "m"}}` has the fields `height` and `height unit`.
            yield outer.rstrip() if outer and key == "value" else f"{outer}{key}", value
