"""The contract of readers, checked on a small file."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kbtools.entry_points import READERS, load_class
from kbtools.errors import InputError, SourceMissing
from kbtools.indexers.readers.batches import SCHEMAS, Block, Kind, RecordBatch, Skips, SourceKind, flaw
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source
from kbtools.indexers.readers.sources import read_blocks
from kbtools.kb.ids import canonical_id, is_literal
from kbtools.suites.claims import Claim, check_claims

_KINDS: tuple[SourceKind, ...] = ("any", *SCHEMAS)

_DAMAGED = b"\0\xff\n"
"""A line that is invalid in every format."""

_IDS = {"subject", "relation", "object", "entity", "type", "old", "new"}
"""Columns of ids."""


def check_reader(name: str, sample: Path | None = None) -> Iterator[str]:
    """Read a small file, or the reader's own `sample`, and yield each claim that holds."""
    reader = load_class(READERS, name)
    with tempfile.TemporaryDirectory() as folder:
        if sample is None:
            if not hasattr(reader, "sample"):
                raise SourceMissing(f"reader {name!r} is checked on a small file that it reads; name one with --sample")
            sample = Path(folder, "own")
            sample.write_bytes(reader.sample)
        yield from check_claims(name, _Contract(name, sample, _find_kind(name, sample), Path(folder)).claims(reader))


def _find_kind(name: str, sample: Path) -> SourceKind:
    """Return the first kind of rows that can be read from a file."""
    for kind in _KINDS:
        try:
            if any(Reading(Source(sample, kind), ReadOptions(format=name, max_bad=1.0)).batches()):
                return kind
        except InputError as error:
            refusal = error
        else:
            refusal = SourceMissing(f"{sample}: reader {name!r} finds no row in it")
    raise refusal


@dataclass(frozen=True, slots=True)
class _Contract:
    """A reader and its file; `folder` is for a damaged copy."""

    reader: str
    sample: Path
    kind: SourceKind
    folder: Path

    @property
    def options(self) -> ReadOptions:
        return ReadOptions(format=self.reader, max_bad=1.0)

    def claims(self, reader: object) -> list[Claim]:
        return [
            ("suffixes begin with a dot, in lower case", lambda: _has_suffixes(reader)),
            ("a batch has the columns of its kind, and no cell is empty", lambda: all(map(_is_whole, self.read()[0]))),
            ("ids are canonical, and texts can be stored", lambda: all(map(_is_storable, self.read()[0]))),
            ("batches give the lines on which they begin, in ascending order", self.lines_ascend),
            ("read again, the rows are the same", lambda: _rows(self.read()[0]) == _rows(self.read()[0])),
            ("the size of blocks changes no row", self.ignores_blocks),
            ("lines are counted", lambda: self.read()[1].lines > 0),
            ("a damaged line is counted, and no other row is lost; a damaged document is refused", self.survives),
        ]

    def read(self, path: Path | None = None) -> tuple[list[RecordBatch], Skips]:
        """Return the batches and skipped lines of the file, or of another one, as `kbtools index` reads it."""
        reading = Reading(Source(path or self.sample, self.kind), self.options)
        return list(reading.batches()), reading.skips

    def read_line_by_line(self) -> tuple[list[RecordBatch], Skips]:
        """Return the same, read in blocks of one line."""
        text = b"".join(block.text for block in read_blocks(self.sample))
        blocks = [Block(line + b"\n", number) for number, line in enumerate(text.split(b"\n")[:-1], 1)]
        source, skips = Source(self.sample, self.kind), Skips(str(self.sample), self.options.max_bad)
        return list(load_class(READERS, self.reader)(source, self.options, skips).read(blocks)), skips

    def lines_ascend(self) -> bool:
        batches, skips = self.read_line_by_line()
        lines = [[batch.line for batch in batches if batch.kind == kind] for kind in SCHEMAS]
        return all(some == sorted(some) and all(1 <= line <= skips.lines for line in some) for some in lines)

    def survives(self) -> bool:
        copy = self.folder / f"damaged-{self.sample.name}"
        whole = self.sample.read_bytes()
        copy.write_bytes(whole + (b"" if whole.endswith(b"\n") else b"\n") + _DAMAGED)
        if getattr(load_class(READERS, self.reader), "whole", False):
            return self.refuses(copy)
        batches, skips = self.read(copy)
        before, skipped = self.read()
        return _rows(batches) == _rows(before) and skips.bad == skipped.bad + 1

    def refuses(self, copy: Path) -> bool:
        """Return whether a damaged document is refused."""
        try:
            self.read(copy)
        except InputError:
            return True
        return False

    def ignores_blocks(self) -> bool:
        """Compare rows of the requested kind; `kbtools index` drops other kinds."""
        whole, pieces = _rows(self.read()[0]), _rows(self.read_line_by_line()[0])
        return all(pieces[kind] == whole[kind] for kind in whole)


def _rows(batches: list[RecordBatch]) -> dict[Kind, list[object]]:
    """Return the rows of every kind, in order."""
    collected: dict[Kind, list[object]] = {}
    for batch in batches:
        collected.setdefault(batch.kind, []).extend(batch.table.to_pylist())
    return collected


def _has_suffixes(reader: object) -> bool:
    suffixes: tuple[str, ...] = reader.suffixes  # type: ignore[attr-defined]
    return isinstance(suffixes, tuple) and all(suffix.startswith(".") and suffix.islower() for suffix in suffixes)


def _is_whole(batch: RecordBatch) -> bool:
    columns = batch.table.columns
    return batch.table.schema == SCHEMAS[batch.kind] and len(batch.table) > 0 and not any(c.null_count for c in columns)


def _is_storable(batch: RecordBatch) -> bool:
    """Return whether every id is canonical and every text is valid UTF-8."""
    for column, values in batch.table.to_pydict().items():
        texts = [value for value in values if isinstance(value, str)]
        if flaw(*texts) or not (column == "language" or all(text.strip() for text in texts)):
            return False
        if column in _IDS and any(canonical_id(text) != text and not is_literal(text) for text in texts):
            return False
    return True
