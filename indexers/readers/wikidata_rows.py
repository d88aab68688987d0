"""Rows that a block of Wikidata's JSON dump gives, as columns, and the account of its lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.indexers.readers.batches import SCHEMAS, Kind, RecordBatch
from kbtools.indexers.readers.skips import Skips

Columns = tuple[list[Any], ...]


@dataclass(slots=True)
class ParsedBlock:
    """The content of a block: tables, the account of its lines, and the numbers of its entities with their lines.

    `opened` and `closed` count the ends of arrays. A property's number is negative.
    """

    batches: list[RecordBatch]
    skips: Skips
    numbers: NDArray[np.int64]
    lines: NDArray[np.int64]
    redirects: list[tuple[int, str, str]]
    opened: int
    closed: int


class EntityRows:
    """Rows as columns of lists, which fill faster than tuples do."""

    def __init__(self) -> None:
        self.columns: dict[Kind, Columns] = {kind: tuple([] for _ in SCHEMAS[kind]) for kind in SCHEMAS}

    def batches(self, line: int) -> list[RecordBatch]:
        """Lay the rows out as tables."""
        return [
            RecordBatch(kind, pa.Table.from_arrays(list(map(pa.array, columns, schema.types)), schema=schema), line)
            for kind, schema in SCHEMAS.items()
            if any(columns := self.columns[kind])
        ]

    def texts(self) -> Iterable[str]:
        """Yield every id and text."""
        for columns in self.columns.values():
            for column in columns:
                yield from (value for value in column if isinstance(value, str))

    def clear(self, *kinds: Kind) -> None:
        """Drop the rows of kinds."""
        for kind in kinds:
            for column in self.columns[kind]:
                column.clear()

    def extend(self, other: "EntityRows") -> None:
        """Append other rows."""
        for kind, columns in other.columns.items():
            for column, values in zip(self.columns[kind], columns, strict=True):
                column += values


def append(columns: Columns, *values: object) -> None:
    """Append a row."""
    for column, value in zip(columns, values, strict=True):
        column.append(value)


def contains_nul(batch: RecordBatch) -> bool:
    """Tell whether a text of a table has a NUL byte."""
    texts = (chunk for column in batch.table.columns if column.type == pa.string() for chunk in column.chunks)
    return not all(np.frombuffer(chunk.buffers()[2] or b"", np.uint8).all() for chunk in texts)
