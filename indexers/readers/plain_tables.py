"""Tables of any supported format with every cell as text, for code that works row by row."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.entity_layout import EntityLayout
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source
from kbtools.indexers.readers.table_files import TableReading
from kbtools.indexers.readers.table_rows import as_text, is_list, trimmed
from kbtools.text.printable import plural

BETWEEN = ";"
"""The separator of several values in a cell."""


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table of text in memory, with the notes made while reading it."""

    table: pa.Table
    notes: list[str]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def header(self) -> list[str]:
        return list(self.table.column_names)

    def batches(self, size: int) -> Iterator[list[tuple[str, ...]]]:
        """Yield the rows in order, at most `size` at a time."""
        for batch in self.table.to_batches(max_chunksize=size):
            yield [tuple(row.values()) for row in batch.to_pylist()]


def read_plain_table(path: Path, options: ReadOptions) -> PlainTable:
    """Read a table; raise WrongFormat if it has no row, TooManyBadLines if a row cannot be read."""
    source = Source(path, "any", format=WIDE)
    reading = TableReading(source, options)
    layout = EntityLayout(source, options, reading.skips)
    batches, lines = [], list[int]()
    for rows in reading.rows(layout):
        columns = [_cells_as_text(column) for column in rows.columns.columns]
        batches.append(pa.Table.from_arrays(columns, names=layout.header or rows.columns.schema.names))
        lines += rows.lines
    reading.skips.check()
    if not batches:
        raise WrongFormat.at(path, "no row under the header")
    table = pa.concat_tables(batches, promote_options="default")
    if lines != sorted(lines):  # Rows of another width come after the others of their block.
        table = table.take(pc.array_sort_indices(pa.array(lines)))
    filled = [pc.fill_null(column, "") for column in table.columns]
    left_out = [
        f"left out {plural(skip.count, 'line')}: {skip.kind}, first at {skip.example}"
        for skip in reading.skips.kinds.values()
    ]
    return PlainTable(pa.table(filled, names=table.column_names), [*reading.skips.notes, *left_out])


def _cells_as_text(column: pa.Array) -> pa.Array:
    """Return the cells of a column as text; several values are joined by semicolons."""
    if is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), BETWEEN)
    return trimmed(as_text(column))
