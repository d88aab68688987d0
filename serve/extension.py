"""Data extension: the objects of chosen relations for a client's reconciled rows."""

from typing import Any

import numpy as np

from kbtools.deadline import check_time
from kbtools.errors import BadArgument, RequestTooLarge
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id, is_literal, literal_text
from kbtools.kb.rows import EntityRows
from kbtools.serve.live_kb import Edition
from kbtools.serve.reconciliation_queries import ExtensionQuery
from kbtools.serve.suggestions import property_record

_NOBODY = np.empty(0, dtype=np.uint32)

_VALUES = 1_000
"""Values of one cell if the client sets no limit."""

ALL_VALUES = 100_000
"""Most values in one answer: some megabytes."""

SETTINGS = [
    {"name": "limit", "label": "Limit", "type": "number", "default": 0, "help_text": "Values of each row, 0 for all"},
    {
        "name": "content",
        "label": "Content",
        "type": "select",
        "default": "entity",
        "help_text": "Entities, or their ids as text",
        "choices": [{"value": "entity", "name": "Entity"}, {"value": "id", "name": "Id"}],
    },
]
"""The settings of a property offered in the manifest."""


def extend(edition: Edition, query: ExtensionQuery) -> dict[str, Any]:
    """Return the values of each property of each entity.

    Raises BadArgument for an unknown property, RequestTooLarge for too many values.
    """
    kb, known = edition.answerer.kb, edition.vocabulary.relation_rows
    if unknown := [column.relation for column in query.properties if column.relation not in known]:
        raise BadArgument(
            f"extend: no property has the id {unknown[0]!r}; /reconcile/suggest/property finds ids by names"
        )
    rows = kb.rows([canonical_id(entity_id) for entity_id in query.ids])
    pairs = {
        (entity_id, column.relation): (row, known[column.relation])
        for entity_id, row in zip(query.ids, rows, strict=True)
        for column in query.properties
        if row is not None
    }
    objects = dict(zip(pairs, kb.objects_of(list(pairs.values())), strict=True))
    columns = {column.relation: column for column in query.properties}
    shown = {
        (entity_id, name): values_of_cell[: columns[name].count or _VALUES]
        for (entity_id, name), values_of_cell in objects.items()
    }
    total = sum(map(len, shown.values()))
    if total > ALL_VALUES:
        raise RequestTooLarge(
            f"extend: {total:,} values, at most {ALL_VALUES:,} in an answer; ask for fewer ids, or set a limit"
        )
    cells = {
        entity_id: {
            name: values(kb, shown.get((entity_id, name), _NOBODY), column.settings.content)
            for name, column in columns.items()
        }
        for entity_id in dict.fromkeys(query.ids)
    }
    return {"meta": [property_record(edition, column.relation) for column in query.properties], "rows": cells}


def values(kb: KnowledgeBase, objects: EntityRows, content: str) -> list[dict[str, str]]:
    """Return the values of a cell, by row of the object."""
    check_time()
    return [
        _value(object_id, name, content) for object_id, name in zip(kb.ids(objects), kb.names(objects), strict=True)
    ]


def _value(object_id: str, name: str | None, content: str) -> dict[str, str]:
    if is_literal(object_id):
        return {"str": literal_text(object_id)}
    return {"str": object_id} if content == "id" else {"id": object_id, "name": name or object_id}
