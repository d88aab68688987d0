"""Read any source: find its format, stream its rows, account for what was left out."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.ntriples import Predicates, read_ntriples
from kbtools.indexers.readers.records import Batch, Kind
from kbtools.indexers.readers.release import (
    facts_in_columns,
    read_fact,
    read_lines,
    statement_reader,
    statements_in_columns,
)
from kbtools.indexers.readers.skips import Skips, shorten
from kbtools.indexers.readers.sources import BLOCK, Block, lines_of, read_blocks
from kbtools.indexers.readers.tables import TableReader

Format = Literal["release", "n-triples", "tsv", "csv", "jsonl"]
SUFFIXES: dict[str, Format] = {
    ".nt": "n-triples",
    ".ntriples": "n-triples",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
OPENING = 100
"""Lines that are looked at to find a format."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file and the rows that are wanted from it; kind `any` takes facts, names and types alike."""

    path: Path
    kind: Kind | Literal["any"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How sources are read: the language of names, the meaning of predicates, columns, the share of bad lines."""

    language: str = "en"
    predicates: Predicates = field(default_factory=Predicates)
    columns: Mapping[str, str] = field(default_factory=dict)
    max_bad: float = 0.001


class Meter:
    """Hash what is read of a file and count its bytes."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.size = 0

    def update(self, data: bytes, /) -> None:
        self.sha256.update(data)
        self.size += len(data)

    def hexdigest(self) -> str:
        return self.sha256.hexdigest()


@dataclass(slots=True)
class Reading:
    """One pass over a source: iterate over `batches`, then `digest` and `skips` tell what was read.

    `progress` is told the bytes of the file that were read so far.
    """

    source: Source
    options: ReadOptions
    block: int = BLOCK
    digest: str = ""
    progress: Callable[[int], None] = lambda size: None
    skips: Skips = field(init=False)

    def __post_init__(self) -> None:
        self.skips = Skips(str(self.source.path), self.options.max_bad)

    def batches(self) -> Iterator[Batch]:
        """Yield the rows of the wanted kind; raise TooManyBadLines at the end of a source with too many."""
        meter = Meter()
        blocks = read_blocks(self.source.path, digest=meter, block=self.block)
        first = next(blocks)
        read = self.reader(find_format(self.source, first))
        for block in chain([first], blocks):
            for batch in read(block):
                if self.source.kind in ("any", batch.kind):
                    yield batch
                else:
                    kind = f"{batch.kind} in a file of {self.source.kind}"
                    example = str(batch.table.slice(0, 1).to_pylist()[0])
                    self.skips.add(kind, line=batch.line, text=example, bad=False, count=batch.table.num_rows)
            self.progress(meter.size)
        self.skips.check()
        self.digest = meter.hexdigest()

    def reader(self, found: Format) -> Callable[[Block], Iterator[Batch]]:
        """Choose the reader of blocks for a format."""
        options, skips, source = self.options, self.skips, self.source
        if found == "n-triples":
            return lambda block: read_ntriples(
                block, predicates=options.predicates, language=options.language, skips=skips
            ).batches()
        if found == "release":
            return self.read_facts if source.kind == "facts" else self.read_statements
        if source.kind == "any":
            raise WrongFormat(f"{source.path}: --rdf takes N-Triples, found {found}", path=str(source.path))
        table = TableReader(str(source.path), source.kind, f".{found}", options.columns)
        return lambda block: table.read(block, skips).batches()

    def read_facts(self, block: Block) -> Iterator[Batch]:
        batch = facts_in_columns(block)
        if batch is None:
            yield from read_lines(block, read_fact, self.skips).batches()
        else:
            self.skips.lines += block.text.count(b"\n")
            yield batch

    def read_statements(self, block: Block) -> Iterator[Batch]:
        found = statements_in_columns(block, self.options.language)
        if found is None:
            yield from read_lines(block, statement_reader(self.options.language), self.skips).batches()
        else:
            self.skips.lines += block.text.count(b"\n")
            yield from found


def find_format(source: Source, first: Block) -> Format:
    """Tell a file's format by its suffix, else by the first of its opening lines that tells it."""
    path = source.path
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSIONS]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    content = ((number, line) for number, line in lines_of(first) if line.strip() and not line.startswith(b"#"))
    opening = list(islice(content, OPENING))
    for number, line in opening:
        found = line_format(line, source.kind)
        if found == "release" and source.kind == "facts" and line.startswith(b"<fb:"):
            raise WrongFormat(
                f"{path}:{number}: found {shorten(line.decode(errors='replace'))}, which names or types an entity, "
                "expected facts; give the file to --names or --types",
                path=str(path),
                line=number,
            )
        if found:
            return found
    number, line = opening[0] if opening else (1, b"")
    shown = shorten(line.decode(errors="replace")) if opening else "nothing but blank lines"
    expected = {
        "facts": "subject TAB relation TAB objects, N-Triples, or a table named .tsv, .csv or .jsonl",
        "any": "N-Triples",
    }.get(source.kind, "<fb:m.id> TAB <fb:predicate> TAB value TAB ., N-Triples, or a table named .tsv, .csv or .jsonl")
    raise WrongFormat(
        f"{path}:{number}: found {shown}, expected {expected}; check which file the option names",
        path=str(path),
        line=number,
    )


def line_format(line: bytes, kind: str) -> Format | None:
    """Tell the format that one line is in, if it is like any."""
    fields = line.split(b"\t")
    if len(fields) == 4 and line.startswith(b"<fb:") and kind != "any":
        return "release"
    if line.lstrip().startswith((b"<", b"_:")):
        return "n-triples"
    return "release" if len(fields) == 3 and kind == "facts" else None
