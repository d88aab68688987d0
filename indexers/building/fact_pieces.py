"""Facts while they wait for their rows: pieces of them as numbers of ids, in a file of the work folder.

A piece spells each of its ids once, so that some 17 million spellings are interned where 23 million facts have 46.
Numbers go on from piece to piece; what they become is taken in their order, which needs no memory for all of them.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FACT_ROWS = pa.schema({name: pa.uint32() for name in ("subject", "relation", "object")})

Numbers = NDArray[np.int64]


class FactPieces:
    """A writer and reader of facts as numbers; of each piece it is remembered how many facts and ids it has."""

    def __init__(self, folder: Path) -> None:
        self.file = (folder / "facts.numbers").open("w+b")
        self.sizes: list[tuple[int, int, int]] = []
        self.facts = self.ids = self.relations = 0

    def add(self, facts: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Take a piece; give its ids, each with its number and whether it is a subject, and its relations likewise."""
        subjects = facts["subject"].chunks
        ends = pa.chunked_array([*subjects, *facts["object"].chunks], pa.string())
        ids, numbers = encoded(ends)
        relations, relation_numbers = encoded(facts["relation"])
        subject, target = np.split(numbers, 2)
        columns = np.stack([subject, relation_numbers, target]).astype("<u4")
        self.file.write(columns.tobytes())
        # The ids of subjects come first, since those of objects were looked at after them.
        is_subject = np.arange(len(ids)) <= subject.max(initial=-1)
        spelt = pa.table(
            {"number": numbered(self.ids, len(ids)), "id": ids, "is_subject": pa.array(is_subject)},
        )
        predicates = pa.table({"number": numbered(self.relations, len(relations)), "relation": relations})
        self.sizes.append((len(facts), len(ids), len(relations)))
        self.facts, self.ids = self.facts + len(facts), self.ids + len(ids)
        self.relations += len(relations)
        return spelt, predicates

    def rows(self, entities: Iterable[pa.RecordBatch], relations: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the facts as rows, given those of all numbers of entities and of relations in their order."""
        entity_rows, relation_rows = InOrder(entities), InOrder(relations)
        self.file.seek(0)
        for facts, ids, predicates in self.sizes:
            columns = np.frombuffer(self.file.read(12 * facts), dtype="<u4").reshape(3, facts)
            of_ids, of_relations = entity_rows.take(ids), relation_rows.take(predicates)
            subject, relation, target = of_ids[columns[0]], of_relations[columns[1]], of_ids[columns[2]]
            yield pa.table([subject, relation, target], schema=FACT_ROWS)

    def close(self) -> None:
        self.file.close()


class InOrder:
    """A reader of a column of numbers, so many at a time, whatever the batches that it comes in."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.batches = iter(batches)
        self.rest = np.empty(0, dtype=np.uint32)

    def take(self, count: int) -> NDArray[np.uint32]:
        pieces, missing = [self.rest], count - len(self.rest)
        while missing > 0:
            pieces.append(next(self.batches).column(0).to_numpy())
            missing -= len(pieces[-1])
        whole = np.concatenate(pieces)
        self.rest = whole[count:]
        return whole[:count]


def encoded(texts: pa.ChunkedArray) -> tuple[pa.StringArray, Numbers]:
    """Number texts from 0: give each distinct one, by the order in which they come, and the number of every one."""
    chunks = texts.dictionary_encode().chunks
    numbers = [np.asarray(chunk.indices, dtype=np.int64) for chunk in chunks]
    distinct = chunks[-1].dictionary if chunks else pa.array([], pa.string())
    return distinct, np.concatenate([*numbers, np.empty(0, dtype=np.int64)])


def numbered(first: int, count: int) -> pa.UInt32Array:
    """Return the numbers from the first on; Arrow refuses those that are too large."""
    return pa.array(np.arange(first, first + count), pa.int64()).cast(pa.uint32())
