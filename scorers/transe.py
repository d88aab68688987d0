"""TransE: vectors of entities and relations with E(s) + E(r) near E(o) for every fact (Bordes et al. 2013)."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.errors import CheckpointMismatch
from kbtools.knowledge import KnowledgeBase
from kbtools.models import ENTITIES, model_folder
from kbtools.scorers.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from kbtools.vectors import EntityVectors

KIND = "kbtools.scorers.transe:TransE"
AT_ONCE = 65_536
"""Entities whose facts are read in one piece."""

TESTED, NEAR = 200, 10


def entity_count(kb: KnowledgeBase) -> int:
    return kb.manifest.counts["entities"].unique


def read_triples(kb: KnowledgeBase) -> NDArray[np.int64]:
    """Read every fact of a knowledge base as rows: (facts, 3), subject, relation, object."""
    pieces = []
    for first in range(0, entity_count(kb), AT_ONCE):
        subjects = np.arange(first, min(first + AT_ONCE, entity_count(kb)), dtype=np.uint32)
        pairs = kb.relations_of(subjects)
        owners = np.repeat(subjects, np.diff(pairs.starts))
        objects = [kb.objects_of(int(s), int(r)) for s, r in zip(owners, pairs.values, strict=True)]
        counts = [len(found) for found in objects]
        if objects:
            columns = (np.repeat(owners, counts), np.repeat(pairs.values, counts), np.concatenate(objects))
            pieces.append(np.stack(columns, axis=1).astype(np.int64))
    return np.concatenate(pieces) if pieces else np.empty((0, 3), dtype=np.int64)


class TransE(nn.Module):
    """Vectors of entities, of length 1, and of relations."""

    def __init__(self, entities: int, relations: int, *, dim: int) -> None:
        super().__init__()
        self.entities = nn.Embedding(entities, dim, sparse=True)
        self.relations = nn.Embedding(relations, dim, sparse=True)
        for table in (self.entities, self.relations):
            nn.init.uniform_(table.weight, -6 / dim**0.5, 6 / dim**0.5)

    def forward(self, triples: Tensor) -> Tensor:
        """Give |E(s) + E(r) - E(o)| of triples (batch, 3): (batch,), lower is better."""
        subjects, targets = (F.normalize(self.entities(triples[:, column]), dim=1) for column in (0, 2))
        distances: Tensor = (subjects + self.relations(triples[:, 1]) - targets).norm(dim=1)
        return distances

    def vectors(self) -> Tensor:
        """Give E(s) of every entity, of length 1: (entities, dim)."""
        return F.normalize(self.entities.weight.detach(), dim=1)


class TranslatingTask:
    """Bring the facts nearer than triples in which another entity stands for the subject or the object."""

    def __init__(self, network: TransE, triples: NDArray[np.int64], *, margin: float) -> None:
        self.network = network
        self.triples = torch.from_numpy(triples)
        self.margin = margin
        self.lengths = np.zeros(len(triples), dtype=np.int64)
        self.tested = np.random.default_rng(0).permutation(len(triples))[:TESTED]

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Give max(0, margin + d(fact) - d(corrupted)) of each fact: (batch,)."""
        facts = self.triples[torch.from_numpy(rows)]
        corrupted = facts.clone()
        column = 2 * torch.randint(0, 2, (len(facts),))
        corrupted[torch.arange(len(facts)), column] = torch.randint(self.network.entities.num_embeddings, (len(facts),))
        device = self.network.entities.weight.device
        return torch.relu(self.margin + self.network(facts.to(device)) - self.network(corrupted.to(device)))

    def measure(self) -> dict[str, float]:
        """Give the share of some facts whose object is among the ten nearest to E(s) + E(r)."""
        facts = self.triples[torch.from_numpy(self.tested)].to(self.network.entities.weight.device)
        with torch.inference_mode():
            vectors = self.network.vectors()
            wanted = vectors[facts[:, 0]] + self.network.relations(facts[:, 1])
            near = torch.cdist(wanted, vectors).topk(min(NEAR, len(vectors)), largest=False).indices
        return {"of objects among the ten nearest": float((near == facts[:, 2:]).any(dim=1).float().mean())}


def save_vectors(folder: Path, kb: KnowledgeBase, network: TransE, **told: object) -> None:
    """Write the vectors with the digest of their knowledge base, whose rows they belong to."""
    dim = network.entities.embedding_dim
    write_checkpoint(
        folder,
        Checkpoint(KIND, {"dim": dim}, (), (kb.manifest.digest,), network.state_dict(), **told),  # type: ignore[arg-type]
    )


def load_vectors(folder: Path, kb: KnowledgeBase) -> Tensor:
    """Read E(s) of every entity; raise CheckpointMismatch for vectors of another knowledge base."""
    saved = read_checkpoint(folder)
    check_digest(folder, saved.rows, kb)
    return F.normalize(saved.weights["entities.weight"], dim=1)


def trained_vectors(kb: KnowledgeBase, models: Path) -> EntityVectors:
    """Give E(s) of every entity as vectors to index."""
    table = load_vectors(model_folder(models, ENTITIES, "transe"), kb)
    rows = np.arange(len(table), dtype=np.uint32)
    return EntityVectors(rows, table.shape[1], lambda some: table[torch.from_numpy(some.astype(np.int64))].numpy())


def check_digest(folder: Path, rows: tuple[str, ...], kb: KnowledgeBase) -> None:
    """Refuse vectors of entities that belong to another knowledge base; both are named."""
    if rows != (kb.manifest.digest,):
        raise CheckpointMismatch(
            f"{folder}: its entities are those of a knowledge base with digest {rows[0][:12]}, this one has "
            f"{kb.manifest.digest[:12]}; train it again on this knowledge base",
            path=str(folder),
        )
