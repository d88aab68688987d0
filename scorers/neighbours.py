"""The entities near another, by the cosine of their vectors."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from kbtools.errors import VectorsMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.transe import load_vectors


@dataclass(frozen=True, slots=True)
class Near:
    """An entity near another, and the cosine: at most 1, higher is nearer."""

    entity: int
    cosine: float


def indexed_nearest(kb: KnowledgeBase, entity: int, *, top: int) -> list[Near]:
    """List the entities nearest to one by the vectors beside its knowledge base; itself is left out.

    Raises VectorsMissing where there are none, or the entity has none.
    """
    index = kb.vectors()
    vector = index.vector(entity)
    if vector is None:
        raise VectorsMissing(f"entity {kb.ids(np.array([entity], dtype=np.uint32))[0]!r} has no vector")
    neighbours = index.nearest(vector[None], limit=top + 1)
    pairs = zip(neighbours.rows[0].tolist(), neighbours.cosines[0].tolist(), strict=True)
    return [Near(row, cosine) for row, cosine in pairs if row != entity][:top]


def nearest(kb: KnowledgeBase, entity: int, *, models: Path, top: int) -> list[Near]:
    """List the entities nearest to one, nearest first, those of equal cosine by row; itself is left out."""
    vectors = load_vectors(model_folder(models, ENTITIES, "transe"), kb)
    cosines = vectors @ vectors[entity]
    cosines[entity] = -torch.inf
    order = torch.sort(cosines, descending=True, stable=True).indices[: min(top, len(cosines) - 1)]
    return [Near(int(row), float(cosines[row])) for row in order]
