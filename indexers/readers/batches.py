"""Arrow tables that readers yield, and the lists that fill them row by row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from kbtools.indexers.readers.labels import ALIAS as ALIAS
from kbtools.indexers.readers.labels import LAST_RANK as LAST_RANK
from kbtools.indexers.readers.skips import Skips

Kind = Literal["facts", "names", "types", "relations", "redirects", "labels", "subclasses", "counts", "descriptions"]

SourceKind = Kind | Literal["any"]
"""The kind of rows in a file, or `any` for facts, names and types alike."""

SCHEMAS: dict[Kind, pa.Schema] = {
    "facts": pa.schema({"subject": pa.string(), "relation": pa.string(), "object": pa.string()}),
    "names": pa.schema({"entity": pa.string(), "rank": pa.uint8(), "text": pa.string(), "language": pa.string()}),
    "types": pa.schema({"entity": pa.string(), "type": pa.string()}),
    "relations": pa.schema({"relation": pa.string(), "text": pa.string()}),
    "redirects": pa.schema({"old": pa.string(), "new": pa.string()}),
    "labels": pa.schema({"entity": pa.string(), "rank": pa.uint8(), "text": pa.string(), "language": pa.string()}),
    "subclasses": pa.schema({"type": pa.string(), "parent": pa.string()}),
    "counts": pa.schema({"entity": pa.string(), "key": pa.uint64(), "count": pa.uint64()}),
    "descriptions": pa.schema({"entity": pa.string(), "rank": pa.uint8(), "text": pa.string()}),
}
"""The columns of each kind; labels are names that count only where a fact speaks of what they name.

The language of a name is its tag in lower case, empty where it has none. The key of a count is the hash of a name, 0
for an entity whatever it is called.
"""

NameRow = tuple[str, int, str] | tuple[str, int, str, str]
"""A name as it is read: entity, rank, text, and the tag of its language if it has one."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Rows of one kind in the columns of its schema, with canonical ids and unescaped names.

    `line` is where the first of them was read.
    """

    kind: Kind
    table: pa.Table
    line: int


@dataclass(slots=True)
class Rows:
    """Rows of every kind as they are read one by one; `lines` holds where the first of each kind was."""

    facts: list[tuple[str, str, str]] = field(default_factory=list)
    names: list[NameRow] = field(default_factory=list)
    types: list[tuple[str, str]] = field(default_factory=list)
    relations: list[tuple[str, str]] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)
    labels: list[NameRow] = field(default_factory=list)
    subclasses: list[tuple[str, str]] = field(default_factory=list)
    counts: list[tuple[str, int, int]] = field(default_factory=list)
    descriptions: list[tuple[str, int, str]] = field(default_factory=list)
    lines: dict[Kind, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(self.of(kind)) for kind in SCHEMAS)

    def of(self, kind: Kind) -> Sequence[tuple[object, ...]]:
        """Return the rows of a kind."""
        rows: Sequence[tuple[object, ...]] = getattr(self, kind)
        return rows

    def mark(self, line: int) -> None:
        """Note the line that rows were read from, if they are the first of their kind."""
        for kind in SCHEMAS:
            if self.of(kind):
                self.lines.setdefault(kind, line)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the rows as tables."""
        for kind, schema in SCHEMAS.items():
            if rows := self.of(kind):
                if kind in ("names", "labels"):
                    rows = [row if len(row) == len(schema) else (*row, "") for row in rows]
                columns = [
                    pa.array(column, type) for column, type in zip(zip(*rows, strict=True), schema.types, strict=True)
                ]
                yield RecordBatch(kind, pa.Table.from_arrays(columns, schema=schema), self.lines[kind])


def with_languages(batch: RecordBatch) -> RecordBatch:
    """Return names with a column of languages, empty where their reader has none."""
    if batch.kind not in ("names", "labels") or batch.table.column_names != SCHEMAS[batch.kind].names[:-1]:
        return batch
    languages = repeated("", batch.table.num_rows)
    return replace(batch, table=batch.table.append_column(SCHEMAS[batch.kind].field("language"), languages))


def gathered(batches: Iterable[RecordBatch], rows: int) -> Iterator[RecordBatch]:
    """Join the batches of each kind until they have so many rows together; the last ones have fewer."""
    waiting: dict[Kind, list[RecordBatch]] = {}
    for batch in batches:
        own = waiting.setdefault(batch.kind, [])
        own.append(batch)
        if sum(one.table.num_rows for one in own) >= rows:
            yield joined(waiting.pop(batch.kind))
    yield from map(joined, waiting.values())


def joined(batches: Sequence[RecordBatch]) -> RecordBatch:
    """Join batches of a kind."""
    return replace(batches[0], table=pa.concat_tables([batch.table for batch in batches]))


def repeated(text: str, count: int) -> pa.StringArray:
    """Make a column of one text so many times."""
    return pa.repeat(pa.scalar(text, pa.string()), count)


def flaw(*values: str) -> str:
    """Return what keeps strings from being stored; empty if all are sound."""
    if any("\0" in value for value in values):
        return "NUL byte"
    return "" if all(map(is_text, values)) else "half a surrogate pair"


def is_text(value: str) -> bool:
    """Return whether a string can be written as UTF-8."""
    return value.isascii() or not any("\ud800" <= character < "\ue000" for character in value)


def keep_description(entity: str, rank: int, text: str, number: int, rows: Rows, skips: Skips) -> None:
    """Keep a description."""
    if fault := flaw(entity, text):
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.descriptions.append((entity, rank, text))


def keep_name(entity: str, rank: int, text: str, language: str | None, number: int, rows: Rows, skips: Skips) -> None:
    """Keep a name that has something to say."""
    fault = flaw(entity, text) or ("" if text.strip() else "an empty name")
    if fault:
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.names.append((entity, rank, text, (language or "").lower()))
