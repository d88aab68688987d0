"""The entities near another, by the cosine of the vectors beside a knowledge base."""

from dataclasses import dataclass

import numpy as np

from kbtools.errors import VectorsMissing
from kbtools.kb.contract import KnowledgeBase


@dataclass(frozen=True, slots=True)
class NearEntity:
    """An entity near another, and the cosine: at most 1, higher is nearer."""

    entity_row: int
    cosine: float


def indexed_nearest(kb: KnowledgeBase, entity_row: int, *, top: int) -> list[NearEntity]:
    """List the entities nearest to one, itself left out, by falling cosine.

    Raises VectorsMissing where the knowledge base or the entity has none.
    """
    index = kb.vectors()
    vector = index.vector(entity_row)
    if vector is None:
        raise VectorsMissing(f"entity {kb.ids(np.array([entity_row], dtype=np.uint32))[0]!r} has no vector")
    neighbours = index.nearest(vector[None], limit=top + 1)
    pairs = zip(neighbours.rows[0].tolist(), neighbours.cosines[0].tolist(), strict=True)
    return [NearEntity(row, cosine) for row, cosine in pairs if row != entity_row][:top]
