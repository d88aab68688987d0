"""Blocks of lines for the readers, the tables of rows they return, and the account of lines left out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Literal

import numpy as np
import pyarrow as pa

from kbtools.errors import TooManyBadLines
from kbtools.indexers.readers.labels import ALIAS as ALIAS
from kbtools.indexers.readers.labels import LAST_RANK as LAST_RANK

Kind = Literal["facts", "names", "types", "relations", "redirects", "labels", "subclasses", "counts", "descriptions"]

SourceKind = Kind | Literal["any"]
"""The kind of rows in a file, or `any` for facts, names and types alike."""

SCHEMAS: dict[Kind, pa.Schema] = {
    "facts": pa.schema({"subject": pa.string(), "relation": pa.string(), "object": pa.string()}),
    "names": pa.schema({"entity": pa.string(), "rank": pa.uint8(), "text": pa.string(), "language": pa.string()}),
    "types": pa.schema({"entity": pa.string(), "type": pa.string()}),
    "relations": pa.schema({"relation": pa.string(), "rank": pa.uint8(), "text": pa.string(), "language": pa.string()}),
    "redirects": pa.schema({"old": pa.string(), "new": pa.string()}),
    "labels": pa.schema({"entity": pa.string(), "rank": pa.uint8(), "text": pa.string(), "language": pa.string()}),
    "subclasses": pa.schema({"type": pa.string(), "parent": pa.string()}),
    "counts": pa.schema({"entity": pa.string(), "key": pa.uint64(), "count": pa.uint64()}),
    "descriptions": pa.schema(
        {"entity": pa.string(), "rank": pa.uint8(), "text": pa.string(), "language": pa.string()}
    ),
}
"""The columns of each kind; labels are names used only if a fact mentions their entity.

The language of a text is its tag in lower case, empty if it has none. The key of a count is the hash of a name, or 0
for the count of an entity under all its names.
"""

_NameRow = tuple[str, int, str] | tuple[str, int, str, str]
"""A name as read: entity, rank, text, and its language tag if it has one."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Rows of one kind in the columns of its schema, with canonical ids and unescaped names.

    `line` is the line of the first row.
    """

    kind: Kind
    table: pa.Table
    line: int


@dataclass(slots=True)
class Rows:
    """Rows of every kind, read one by one; `lines` maps each kind to the line of its first row."""

    facts: list[tuple[str, str, str]] = field(default_factory=list)
    names: list[_NameRow] = field(default_factory=list)
    types: list[tuple[str, str]] = field(default_factory=list)
    relations: list[tuple[str, str] | _NameRow] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)
    labels: list[_NameRow] = field(default_factory=list)
    subclasses: list[tuple[str, str]] = field(default_factory=list)
    counts: list[tuple[str, int, int]] = field(default_factory=list)
    descriptions: list[_NameRow] = field(default_factory=list)
    lines: dict[Kind, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(self.of(kind)) for kind in SCHEMAS)

    def of(self, kind: Kind) -> Sequence[tuple[object, ...]]:
        rows: Sequence[tuple[object, ...]] = getattr(self, kind)
        return rows

    def mark(self, line: int) -> None:
        """Record a line as the first of each kind that has rows and no line yet."""
        for kind in SCHEMAS:
            if self.of(kind):
                self.lines.setdefault(kind, line)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the rows as tables."""
        for kind, schema in SCHEMAS.items():
            if rows := self.of(kind):
                if "language" in schema.names:
                    rows = [_completed(row) for row in rows]
                by_type = zip(zip(*rows, strict=True), schema.types, strict=True)
                yield batch_of(kind, [pa.array(column, type) for column, type in by_type], self.lines[kind])


def _completed(row: Sequence[object]) -> tuple[object, ...]:
    """Return a name with its rank (0 if its reader gives none) and its language (empty if it gives none)."""
    row = (row[0], 0, row[1]) if len(row) == 2 else tuple(row)
    return row if len(row) > 3 else (*row, "")


BOM = b"\xef\xbb\xbf"
"""The byte order mark that Windows puts before UTF-8."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file and the number of the first one, from 1."""

    text: bytes
    first_line: int


def count_byte(text: bytes, letter: str) -> int:
    """Count an ASCII letter, in half the time of `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == ord(letter)))


def lines_of(block: Block) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a block with its number, without line end or byte order mark."""
    for number, line in enumerate(block.text.split(b"\n")[:-1], block.first_line):
        yield number, line.rstrip(b"\r").removeprefix(BOM)


SHOWN = 120
"""Characters of a line shown in an error: one line of a terminal."""

_FEW = 0.25
"""Share of bad lines up to which an error suggests leaving them out; with more, the file has another format."""


@dataclass(slots=True)
class _Skip:
    """A kind of line that was left out, with its count and first example."""

    kind: str
    bad: bool
    count: int
    line: int
    example: str


@dataclass(slots=True)
class Skips:
    """The account of one source: only `bad` kinds count against the allowed share.

    `notes` tell the user what was read differently than its name suggests, or not used.
    """

    path: str
    max_bad: float
    lines: int = 0
    kinds: dict[str, _Skip] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, *, line: int, text: str, reason: object = "", bad: bool = True, count: int = 1) -> None:
        """Count lines that were left out; the first example of a kind includes the reason."""
        skip = self.kinds.get(kind)
        if skip and skip.line <= line:
            skip.count += count
        else:
            because = f" ({shorten(str(reason))})" if reason else ""
            example = f"{self.path}:{line}: {shorten(text)}{because}"
            self.kinds[kind] = _Skip(kind, bad, count + (skip.count if skip else 0), line, example)

    def absorb(self, other: "Skips") -> None:
        """Add the account of the lines that follow."""
        self.lines += other.lines
        for kind, skip in other.kinds.items():
            if kind in self.kinds:
                self.kinds[kind].count += skip.count
            else:
                self.kinds[kind] = skip

    def note(self, note: str, *, line: int) -> None:
        """Add a note about what was first seen at a line."""
        self.notes.append(f"{self.path}:{line}: {note}")

    @property
    def bad(self) -> int:
        """The number of lines that should have been readable."""
        return sum(skip.count for skip in self.kinds.values() if skip.bad)

    def check(self) -> None:
        """Raise TooManyBadLines if a source has more bad lines than allowed, naming the most frequent kind."""
        if self.bad <= self.max_bad * self.lines:
            return
        worst = max((skip for skip in self.kinds.values() if skip.bad), key=lambda skip: skip.count)
        advice = "fix the file, or check that it is passed to the right option"
        if self.bad <= _FEW * self.lines:
            advice = (
                f"fix the file, or leave the lines out with --max-bad {ceil(1_000 * self.bad / self.lines) / 1_000:g}"
            )
        raise TooManyBadLines(
            f"{self.path}: {self.bad:,} of {self.lines:,} lines cannot be read, more than --max-bad {self.max_bad:g} "
            f"allows; most frequent: {worst.kind}, first at {worst.example}; {advice}",
            path=self.path,
            bad=self.bad,
            lines=self.lines,
        )


def shorten(text: str) -> str:
    """Return a line for an error message, cut to `SHOWN` characters and with control characters escaped."""
    return repr(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")


LineReader = Callable[[int, str, Rows, Skips], None]
"""A function that adds a numbered line to rows, or counts it as left out."""


def read_lines(block: Block, read_line: LineReader, skips: Skips) -> Rows:
    """Read a block line by line, leaving out lines that are not valid text."""
    rows = Rows()
    for number, raw in lines_of(block):
        skips.lines += 1
        if not raw.strip():
            skips.add("blank line", line=number, text="", bad=False)
        elif b"\0" in raw:
            skips.add("NUL byte", line=number, text=raw.decode(errors="replace"))
        else:
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                skips.add("invalid UTF-8", line=number, text=raw.decode(errors="backslashreplace"))
                continue
            read_line(number, line, rows, skips)
            rows.mark(number)
    return rows


def batch_of(kind: Kind, columns: Iterable[pa.Array], line: int) -> RecordBatch:
    """Build a batch from the columns of its kind."""
    return RecordBatch(kind, pa.Table.from_arrays(list(columns), schema=SCHEMAS[kind]), line)


def with_languages(batch: RecordBatch) -> RecordBatch:
    """Return names with a column of ranks (all 0) and one of languages (all empty) if their reader has none."""
    schema, table = SCHEMAS[batch.kind], batch.table
    if "language" not in schema.names or table.schema == schema or table.num_columns == len(schema):
        return batch
    if "rank" not in table.column_names:
        table = table.add_column(1, schema.field("rank"), pa.array([0] * table.num_rows, pa.uint8()))
    languages = repeated("", table.num_rows)
    return replace(batch, table=table.append_column(schema.field("language"), languages))


def gathered(batches: Iterable[RecordBatch], rows: int) -> Iterator[RecordBatch]:
    """Join the batches of each kind until they have at least `rows` rows; the last ones may have fewer."""
    waiting: dict[Kind, list[RecordBatch]] = {}
    for batch in batches:
        same_kind = waiting.setdefault(batch.kind, [])
        same_kind.append(batch)
        if sum(part.table.num_rows for part in same_kind) >= rows:
            yield _joined(waiting.pop(batch.kind))
    yield from map(_joined, waiting.values())


def _joined(batches: Sequence[RecordBatch]) -> RecordBatch:
    return replace(batches[0], table=pa.concat_tables([batch.table for batch in batches]))


def repeated(text: str, count: int) -> pa.StringArray:
    """Build a column of `count` equal texts."""
    return pa.repeat(pa.scalar(text, pa.string()), count)


def flaw(*values: str) -> str:
    """Return the reason why strings cannot be stored; empty if they can."""
    if any("\0" in value for value in values):
        return "NUL byte"
    halved = any("\ud800" <= letter < "\ue000" for value in values if not value.isascii() for letter in value)
    return "half a surrogate pair" if halved else ""


def keep_description(
    entity: str, rank: int, text: str, language: str | None, number: int, rows: Rows, skips: Skips
) -> None:
    if fault := flaw(entity, text):
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.descriptions.append((entity, rank, text, (language or "").lower()))


def keep_name(entity: str, rank: int, text: str, language: str | None, number: int, rows: Rows, skips: Skips) -> None:
    """Keep a name, or count it as left out if it is empty or cannot be stored."""
    fault = flaw(entity, text) or ("" if text.strip() else "an empty name")
    if fault:
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.names.append((entity, rank, text, (language or "").lower()))
