"""Entity vectors trained elsewhere, as a NumPy array with a list of ids; and the knowledge base of stored vectors."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import BadVectors, CheckpointMismatch, SourceMissing
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import canonical_id
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import EntityVectors
from kbtools.ranking.model_store import Stamp
from kbtools.ranking.models import ENTITIES, model_folder
from kbtools.record_files import file_digest
from kbtools.scorers.networks.checkpoint import Checkpoint, write_checkpoint

logger = logging.getLogger(__name__)

_NUMBERED = re.compile(r"(.*\S)\s+(\d+)\s*")
"""A line of OpenKE: an id, which may contain spaces, and its number."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenVectors:
    """Given vectors matched to entities: `table[places[k]]` is that of `rows[k]`; rows ascend."""

    rows: EntityRows
    places: NDArray[np.int64]
    table: NDArray[np.float32]
    digest: str

    def entity_vectors(self) -> EntityVectors:
        """Return them as vectors to index."""
        return EntityVectors(self.rows, self.table.shape[1], lambda rows: self.table[self.places_of(rows)])

    def places_of(self, rows: EntityRows) -> NDArray[np.int64]:
        return self.places[np.searchsorted(self.rows, rows)]


@dataclass(frozen=True, slots=True)
class _TakenOver:
    """The folder of the written vectors, their number, and the number matched to entities."""

    folder: Path
    vectors: int
    known: int


def read_array(kb: KnowledgeBase, vectors: Path, ids: Path) -> GivenVectors:
    """Read a .npy file of vectors and the ids of its rows; raises as `_match_vectors` and `_read_ids` do."""
    for path in (vectors, ids):
        if not path.is_file():
            raise SourceMissing.at(path, "no such file")
    try:
        # Mapped, since millions of vectors need not be read to count them.
        table = np.lib.format.open_memmap(vectors, mode="r")
    except (ValueError, EOFError) as error:
        raise BadVectors(f"{vectors}: found no NumPy array ({error}), expected a .npy file with one array") from error
    return _match_vectors(kb, table, _read_ids(ids), vectors=vectors, ids=ids)


def _read_ids(path: Path) -> list[str]:
    """Read ids, one per line, or OpenKE's `entity2id.txt`: their count, then each id with its number.

    Raises BadVectors for invalid UTF-8, and for numbers other than 0, 1 and so on.
    """
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadVectors.at(path, "found invalid UTF-8, expected an id", line=line) from error
    lines = lines[:-1] if lines[-1] == "" else lines
    numbered = [_NUMBERED.fullmatch(line) for line in lines[1:]]
    if not lines or lines[0].strip() != str(len(numbered)) or not all(numbered):
        return lines
    ids = {int(match[2]): match[1] for match in numbered if match}
    if sorted(ids) != list(range(len(numbered))):
        raise BadVectors(f"{path}: found numbers up to {max(ids):,} of {len(numbered):,} ids, expected 0, 1 and so on")
    logger.warning("%s: read as a count and numbered ids, as OpenKE writes them", path)
    return [ids[number] for number in range(len(numbered))]


def _match_vectors(
    kb: KnowledgeBase, table: NDArray[np.float32], names: Sequence[str], *, vectors: Path, ids: Path
) -> GivenVectors:
    """Match vectors to the entities with their ids.

    Raises BadVectors for another shape, a value that is not a number, a repeated id, or if no id is an entity of the
    knowledge base.
    """
    if table.ndim != 2 or len(table) != len(names):
        raise BadVectors(
            f"{vectors}: found shape {table.shape}, expected a row for each of the {len(names):,} ids of {ids}"
        )
    if table.dtype.kind not in "fiu":
        raise BadVectors(f"{vectors}: found values of type {table.dtype}, expected numbers")
    if not np.isfinite(table).all():
        raise BadVectors(f"{vectors}: a vector contains a value that is not a number")
    rows = kb.rows([canonical_id(name.strip()) for name in names])
    known = sorted((row, place) for place, row in enumerate(rows) if row is not None)
    if not known:
        raise BadVectors(f"{ids}: none of the {len(names):,} ids is an entity of the knowledge base")
    if len(known) < len(names):
        strange = next(name for name, row in zip(names, rows, strict=True) if row is None)
        logger.warning(
            "%s: %d of %d ids are not in the knowledge base and left out, the first %r",
            *(ids, len(names) - len(known), len(names), strange),
        )
    entity_rows, places = np.array(known, dtype=np.int64).T
    # Rows ascend, so that repeated entities are adjacent.
    twice = np.flatnonzero(entity_rows[1:] == entity_rows[:-1])
    if len(twice):
        raise BadVectors(f"{ids}: {names[places[twice[0]]]!r} occurs twice, expected each id once")
    return GivenVectors(entity_rows.astype(np.uint32), places, table, "-".join(map(file_digest, (vectors, ids))))


def take_over_vectors(kb: KnowledgeBase, vectors: GivenVectors, *, models: Path) -> _TakenOver:
    """Write given vectors as the model that the subject scorer `transe` starts from; entities without one get zeros."""
    entities = np.zeros((entity_count(kb), vectors.table.shape[1]), dtype=np.float32)
    entities[vectors.rows] = vectors.table[vectors.places]
    folder = model_folder(models, ENTITIES, "transe")
    weights = {"entities.weight": entities}
    config = {"dim": entities.shape[1]}
    write_checkpoint(
        folder, Checkpoint(config, (), (kb.manifest.digest,), weights), Stamp("transe", made_of=vectors.digest)
    )
    return _TakenOver(folder, len(vectors.table), len(vectors.rows))


def entity_count(kb: KnowledgeBase) -> int:
    """Return the number of rows of a table of entities, including unused ones of deleted entities."""
    rows = kb.entity_rows()
    return int(rows[-1]) + 1 if len(rows) else 0


def check_digest(folder: Path, rows: tuple[str, ...], kb: KnowledgeBase) -> None:
    """Raise CheckpointMismatch if vectors of entities belong to another knowledge base."""
    if rows != (kb.manifest.digest,):
        raise CheckpointMismatch.at(
            folder,
            f"its entities are those of a knowledge base with digest {rows[0][:12]}, this one has "
            f"{kb.manifest.digest[:12]}; train it again on this knowledge base",
        )
