"""The entities near another by the vectors beside a knowledge base, with their names."""

from typing import Any

import numpy as np

from kbtools.answering.bearers import find_entity
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_neighbours import indexed_nearest


def nearest_entities(kb: KnowledgeBase, spelling: str, *, limit: int) -> dict[str, Any]:
    """List the entities nearest to one, itself left out, by falling cosine.

    Raises UnknownEntity, and VectorsMissing where the knowledge base or the entity has none.
    """
    entity = find_entity(kb, spelling)
    neighbours = indexed_nearest(kb, entity, top=limit)
    rows = np.array([entity, *(near.entity_row for near in neighbours)], dtype=np.uint32)
    (own_id, *ids), (_, *names) = kb.ids(rows), kb.names(rows)
    return {
        "id": own_id,
        "neighbours": [
            {"id": entity_id, "name": name, "cosine": round(near.cosine, 6)}
            for entity_id, name, near in zip(ids, names, neighbours, strict=True)
        ],
    }
