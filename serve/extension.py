"""Data extension: the objects of chosen relations, for the rows that a client has reconciled."""

from typing import Any

import numpy as np

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id, is_literal, literal_text
from kbtools.kb.rows import EntityRows
from kbtools.serve.live_kb import Edition
from kbtools.serve.reconciliation_queries import ExtensionProperty, ExtensionQuery
from kbtools.serve.suggestions import property_record

NOBODY = np.empty(0, dtype=np.uint32)

VALUES = 1_000
"""Values of one cell where the client sets no limit."""

SETTINGS = [
    {
        "name": "limit",
        "label": "Limit",
        "type": "number",
        "default": 0,
        "help_text": "Values of each row, 0 for all",
    },
    {
        "name": "content",
        "label": "Content",
        "type": "select",
        "default": "entity",
        "help_text": "Entities, or their ids as text",
        "choices": [{"value": "entity", "name": "Entity"}, {"value": "id", "name": "Id"}],
    },
]
"""The settings of a property that the manifest offers."""


def extend(edition: Edition, query: ExtensionQuery) -> dict[str, Any]:
    """Give the values of each property of each entity; what there is not has none."""
    kb = edition.answerer.kb
    rows = kb.rows([canonical_id(entity_id) for entity_id in query.ids])
    known = edition.vocabulary.relation_rows
    pairs = {
        (entity_id, column.relation): (row, known[column.relation])
        for entity_id, row in zip(query.ids, rows, strict=True)
        for column in query.properties
        if row is not None and column.relation in known
    }
    objects = dict(zip(pairs, kb.objects_of(list(pairs.values())), strict=True))
    cells = {
        entity_id: {
            column.relation: values(kb, objects.get((entity_id, column.relation), NOBODY), column)
            for column in query.properties
        }
        for entity_id in query.ids
    }
    return {"meta": [property_record(edition, column.relation) for column in query.properties], "rows": cells}


def values(kb: KnowledgeBase, objects: EntityRows, column: ExtensionProperty) -> list[dict[str, str]]:
    """Return the values of a cell, by row of the object."""
    first = objects[: column.count or VALUES]
    return [
        value(object_id, name, column.settings.content)
        for object_id, name in zip(kb.ids(first), kb.names(first), strict=True)
    ]


def value(object_id: str, name: str | None, content: str) -> dict[str, str]:
    if is_literal(object_id):
        return {"str": literal_text(object_id)}
    return {"str": object_id} if content == "id" else {"id": object_id, "name": name or object_id}
