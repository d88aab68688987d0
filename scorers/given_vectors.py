"""Vectors of entities that were trained elsewhere: a NumPy array and the list of ids that its rows belong to."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from kbtools.errors import BadVectors, SourceMissing
from kbtools.ids import canonical_id
from kbtools.knowledge import KnowledgeBase
from kbtools.models import ENTITIES, model_folder
from kbtools.scorers.checkpoint import Checkpoint, write_checkpoint
from kbtools.scorers.transe import KIND, entity_count


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Where vectors were written, how many were given, and how many of them belong to entities."""

    folder: Path
    given: int
    known: int


def take_over_vectors(kb: KnowledgeBase, vectors: Path, ids: Path, *, models: Path) -> TakenOver:
    """Write given vectors as those that the subject scorer `transe` starts from; an entity without one has zeros.

    Raises BadVectors for another shape, a value that is no number, or none of the knowledge base's entities.
    """
    for path in (vectors, ids):
        if not path.is_file():
            raise SourceMissing(f"{path}: no such file", path=str(path))
    try:
        table = np.load(vectors, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise BadVectors(f"{vectors}: found no NumPy array ({error}), expected a .npy file") from error
    names = ids.read_text(encoding="utf-8").split("\n")
    names = names[:-1] if names[-1] == "" else names
    if table.ndim != 2 or len(table) != len(names):
        raise BadVectors(f"{vectors}: found shape {table.shape}, expected a row for each of the {len(names):,} ids")
    if not np.isfinite(table).all():
        raise BadVectors(f"{vectors}: a vector holds a value that is no number")
    rows = kb.rows([canonical_id(name.strip()) for name in names])
    known = [(row, place) for place, row in enumerate(rows) if row is not None]
    if not known:
        raise BadVectors(f"{ids}: none of the {len(names):,} ids is an entity of the knowledge base")
    own, places = np.array(known).T
    entities = np.zeros((entity_count(kb), table.shape[1]), dtype=np.float32)
    entities[own] = table[places]
    folder = model_folder(models, ENTITIES, "transe")
    made_of = hashlib.sha256(vectors.read_bytes() + ids.read_bytes()).hexdigest()
    weights = {"entities.weight": torch.from_numpy(entities)}
    write_checkpoint(
        folder, Checkpoint(KIND, {"dim": table.shape[1]}, (), (kb.manifest.digest,), weights, made_of=made_of)
    )
    return TakenOver(folder, len(names), len(known))
