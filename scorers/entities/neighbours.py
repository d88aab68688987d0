"""The entities near another, by the cosine of vectors that kbtools train transe made."""

from pathlib import Path

import torch

from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_neighbours import NearEntity
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.entities.transe import load_vectors


def nearest(kb: KnowledgeBase, entity_row: int, *, models: Path, top: int) -> list[NearEntity]:
    """List the entities nearest to one, nearest first, those of equal cosine by row; itself is left out."""
    vectors = load_vectors(model_folder(models, ENTITIES, "transe"), kb)
    cosines = vectors @ vectors[entity_row]
    cosines[entity_row] = -torch.inf
    order = torch.sort(cosines, descending=True, stable=True).indices[: min(top, len(cosines) - 1)]
    return [NearEntity(int(row), float(cosines[row])) for row in order]
