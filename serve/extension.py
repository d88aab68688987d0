"""Data extension: the objects of chosen relations, for the rows that a client has reconciled."""

from typing import Any

import numpy as np

from kbtools.kb.ids import canonical_id, is_literal, literal_text
from kbtools.serve.live_kb import Edition
from kbtools.serve.reconciliation_queries import ExtensionProperty, ExtensionQuery
from kbtools.serve.suggestions import property_record

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
    kb.expect_objects(
        [
            (row, known[column.relation])
            for row in rows
            for column in query.properties
            if row is not None and column.relation in known
        ]
    )
    cells = {
        entity_id: {column.relation: values(edition, row, column) for column in query.properties}
        for entity_id, row in zip(query.ids, rows, strict=True)
    }
    return {"meta": [property_record(edition, column.relation) for column in query.properties], "rows": cells}


def values(edition: Edition, entity: int | None, column: ExtensionProperty) -> list[dict[str, str]]:
    """List the values of a cell, by row of the object."""
    kb = edition.answerer.kb
    relation = edition.vocabulary.relation_rows.get(column.relation)
    if entity is None or relation is None:
        return []
    objects = np.asarray(kb.objects_of(entity, relation)[: column.limit or VALUES])
    return [
        value(object_id, name, column.content)
        for object_id, name in zip(kb.ids(objects), kb.names(objects), strict=True)
    ]


def value(object_id: str, name: str | None, content: str) -> dict[str, str]:
    if is_literal(object_id):
        return {"str": literal_text(object_id)}
    return {"str": object_id} if content == "id" else {"id": object_id, "name": name or object_id}
