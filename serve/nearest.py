"""The entities near another by the vectors beside a knowledge base, with their names."""

from typing import Any

import numpy as np

from kbtools.bearers import find_entity
from kbtools.errors import VectorsMissing
from kbtools.kb.contract import KnowledgeBase


def nearest_entities(kb: KnowledgeBase, spelling: str, *, limit: int) -> dict[str, Any]:
    """List the entities nearest to one, itself left out, by falling cosine.

    Raises UnknownEntity, and VectorsMissing where the knowledge base or the entity has none.
    """
    entity = find_entity(kb, spelling)
    index = kb.vectors()
    vector = index.vector(entity)
    if vector is None:
        raise VectorsMissing(f"entity {spelling!r} has no vector")
    neighbours = index.nearest(vector[None], limit=limit + 1)
    others = neighbours.rows[0] != entity
    rows, cosines = neighbours.rows[0][others][:limit], neighbours.cosines[0][others][:limit]
    return {
        "id": kb.ids(np.array([entity], dtype=np.uint32))[0],
        "neighbours": [
            {"id": entity_id, "name": name, "cosine": round(cosine, 6)}
            for entity_id, name, cosine in zip(kb.ids(rows), kb.names(rows), cosines.tolist(), strict=True)
        ],
    }
