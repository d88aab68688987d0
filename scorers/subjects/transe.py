"""TransE: vectors of entities and relations with E(s) + E(r) near E(o) for every fact (Bordes et al. 2013)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kbtools.free_memory import require_memory
from kbtools.kb.contract import KnowledgeBase, NearEntity
from kbtools.kb.vector_index import EntityVectors
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.scorers.networks.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from kbtools.scorers.networks.devices import arrays, build_network
from kbtools.scorers.networks.training_settings import TransESettings
from kbtools.scorers.subjects.vector_files import check_digest, entity_count

_ENTITIES_AT_ONCE = 65_536
"""Entities read, or compared with, at once."""

_TESTED, _NEAR = 200, 10
"""Facts tested after each epoch, a sample that takes seconds with millions of entities, and the rank up to which an
object counts: hits@10 of Bordes et al. 2013.
"""

_FACT = 3 * 8
"""Bytes of a fact as rows."""


def read_triples(kb: KnowledgeBase) -> NDArray[np.int64]:
    """Read every fact of a knowledge base as rows: (facts, 3), subject, relation, object.

    Raises MemoryExhausted if they do not fit.
    """
    rows, facts = kb.entity_rows(), kb.manifest.counts["facts"].unique
    require_memory(
        _FACT * facts,
        f"{facts:,} facts",
        instead="train on a knowledge base with fewer, or import vectors made elsewhere with --vectors and --ids",
    )
    triples, place = np.empty((facts, 3), dtype=np.int64), 0
    for first in range(0, len(rows), _ENTITIES_AT_ONCE):
        piece = kb.facts_of(rows[first : first + _ENTITIES_AT_ONCE])
        triples[place : place + len(piece)] = piece
        place += len(piece)
    return triples[:place]


class TransE(nn.Module):
    """Vectors of entities, of length 1, and of relations."""

    def __init__(self, entities: int, relations: int, *, dim: int) -> None:
        super().__init__()
        self.entities = nn.Embedding(entities, dim, sparse=True)
        self.relations = nn.Embedding(relations, dim, sparse=True)
        for table in (self.entities, self.relations):
            nn.init.uniform_(table.weight, -6 / dim**0.5, 6 / dim**0.5)

    @classmethod
    def task(cls, kb: KnowledgeBase, splits: object, settings: TransESettings, *, models: Path) -> "TranslatingTask":
        """Build the task of untrained vectors, which learn from the facts only."""
        triples = read_triples(kb)
        torch.manual_seed(settings.fit.seed)
        network = build_network(lambda: cls(entity_count(kb), len(kb.relations), dim=settings.vectors.dim))
        return TranslatingTask(network, triples, margin=settings.vectors.margin, digest=kb.manifest.digest)

    def pieces(self) -> Iterator[tuple[int, Tensor]]:
        """Yield E(s) of the entities from a row on, of length 1, in pieces: (at most ENTITIES_AT_ONCE, dim)."""
        for first in range(0, self.entities.num_embeddings, _ENTITIES_AT_ONCE):
            yield first, F.normalize(self.entities.weight.detach()[first : first + _ENTITIES_AT_ONCE], dim=1)


class TranslatingTask:
    """The task of bringing facts nearer than triples with another subject or object."""

    def __init__(self, network: TransE, triples: NDArray[np.int64], *, margin: float, digest: str = "") -> None:
        self.network = network
        self.digest = digest
        self.triples = torch.from_numpy(triples)
        self.margin = margin
        self.lengths = np.zeros(len(triples), dtype=np.int64)
        self.tested = np.random.default_rng(0).permutation(len(triples))[:_TESTED]

    def loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Return max(0, margin + d(fact) - d(corrupted)) of each fact, d = |E(s) + E(r) - E(o)|: (batch,)."""
        network, device = self.network, self.network.entities.weight.device
        facts = self.triples[torch.from_numpy(rows)]
        # Drawn on the CPU, so that a GPU gets the same ones.
        tails = torch.randint(0, 2, (len(facts),)).bool().to(device)[:, None]
        others = torch.randint(network.entities.num_embeddings, (len(facts),))
        # One gather for the three entities of each fact, since reading rows dominates the cost.
        entities = torch.cat([facts[:, 0], facts[:, 2], others]).to(device)
        subjects, objects, replaced = F.normalize(network.entities(entities), dim=1).chunk(3)
        moved = network.relations(facts[:, 1].to(device))
        true = subjects + moved - objects
        false = torch.where(tails, subjects - replaced, replaced - objects) + moved
        return torch.relu(self.margin + true.norm(dim=1) - false.norm(dim=1))

    def measure(self) -> dict[str, float]:
        """Return the share of some facts whose object is among the ten nearest to E(s) + E(r)."""
        facts = self.triples[torch.from_numpy(self.tested)].to(self.network.entities.weight.device)
        with torch.inference_mode():
            targets = F.normalize(self.network.entities(facts[:, 0]), dim=1) + self.network.relations(facts[:, 1])
            near = nearest_rows(targets, self.network.pieces(), count=_NEAR)
        return {"of objects among the ten nearest": float((near == facts[:, 2:]).any(dim=1).float().mean())}

    def save(self, folder: Path, stamp: Stamp) -> None:
        """Write the vectors with the digest of their knowledge base, whose rows they use."""
        config = {"dim": self.network.entities.embedding_dim}
        write_checkpoint(folder, Checkpoint(config, (), (self.digest,), arrays(self.network)), stamp)


def nearest_rows(targets: Tensor, pieces: Iterable[tuple[int, Tensor]], *, count: int) -> Tensor:
    """Return the rows nearest to each of some vectors, nearest first, comparing piece by piece.

    targets (batch, dim) -> (batch, count), or fewer if there are fewer rows
    """
    distances = targets.new_empty(len(targets), 0)
    rows = torch.empty(len(targets), 0, dtype=torch.int64, device=targets.device)
    for first, piece in pieces:
        # The nearest so far compete with those of this piece.
        distances = torch.cat([distances, torch.cdist(targets, piece)], dim=1)
        piece_rows = torch.arange(first, first + len(piece), device=targets.device).expand(len(targets), -1)
        distances, nearest = distances.topk(min(count, distances.shape[1]), largest=False)
        rows = torch.cat([rows, piece_rows], dim=1).gather(1, nearest)
    return rows


def load_vectors(folder: Path, kb: KnowledgeBase) -> Tensor:
    """Read E(s) of every entity; raise CheckpointMismatch for vectors of another knowledge base."""
    saved = read_checkpoint(folder)
    check_digest(folder, saved.rows, kb)
    return F.normalize(torch.from_numpy(saved.weights["entities.weight"]), dim=1)


def trained_vectors(kb: KnowledgeBase, models: Path) -> EntityVectors:
    """Return E(s) of every entity as vectors to index."""
    table = load_vectors(model_folder(models, ENTITIES, "transe"), kb)
    return EntityVectors(
        kb.entity_rows(), table.shape[1], lambda rows_read: table[torch.from_numpy(rows_read.astype(np.int64))].numpy()
    )


def nearest(kb: KnowledgeBase, entity_row: int, *, models: Path, top: int) -> list[NearEntity]:
    """Return the entities nearest to one, nearest first, ties by row, without itself."""
    vectors = load_vectors(model_folder(models, ENTITIES, "transe"), kb)
    cosines = vectors @ vectors[entity_row]
    cosines[entity_row] = -torch.inf
    order = torch.sort(cosines, descending=True, stable=True).indices[: min(top, len(cosines) - 1)]
    return [NearEntity(int(row), float(cosines[row])) for row in order]
