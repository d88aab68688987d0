"""What readers yield: tables of facts, names and types, and the lists that fill them row by row."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

Kind = Literal["facts", "names", "types"]

SCHEMAS: dict[Kind, pa.Schema] = {
    "facts": pa.schema({"subject": pa.string(), "relation": pa.string(), "object": pa.string()}),
    "names": pa.schema({"entity": pa.string(), "alias": pa.bool_(), "text": pa.string()}),
    "types": pa.schema({"entity": pa.string(), "type": pa.string()}),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one kind in the columns of its schema, with canonical ids and unescaped names.

    `line` is where the first of them was read.
    """

    kind: Kind
    table: pa.Table
    line: int


@dataclass(slots=True)
class Rows:
    """Rows of every kind as they are read one by one; `lines` tells where the first of each kind was."""

    facts: list[tuple[str, str, str]] = field(default_factory=list)
    names: list[tuple[str, bool, str]] = field(default_factory=list)
    types: list[tuple[str, str]] = field(default_factory=list)
    lines: dict[Kind, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.facts) + len(self.names) + len(self.types)

    def mark(self, line: int) -> None:
        """Note the line that rows were read from, if they are the first of their kind."""
        if self.facts:
            self.lines.setdefault("facts", line)
        if self.names:
            self.lines.setdefault("names", line)
        if self.types:
            self.lines.setdefault("types", line)

    def batches(self) -> Iterator[Batch]:
        """Yield the rows as tables."""
        filled: tuple[tuple[Kind, list[tuple[object, ...]]], ...] = (
            ("facts", list(self.facts)),
            ("names", list(self.names)),
            ("types", list(self.types)),
        )
        for kind, rows in filled:
            if rows:
                schema = SCHEMAS[kind]
                columns = [
                    pa.array(column, type) for column, type in zip(zip(*rows, strict=True), schema.types, strict=True)
                ]
                yield Batch(kind, pa.Table.from_arrays(columns, schema=schema), self.lines[kind])


def flaw(*values: str) -> str:
    """Name what keeps strings from being stored, whatever escape brought it; nothing if all are sound."""
    if any("\0" in value for value in values):
        return "NUL byte"
    return "" if all(map(is_text, values)) else "half a surrogate pair"


def is_text(value: str) -> bool:
    """Tell whether a string can be written as UTF-8."""
    return value.isascii() or not any("\ud800" <= character < "\ue000" for character in value)
