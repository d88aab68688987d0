"""Reading of a source: detects its format, streams its rows and accounts for what was left out."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.entry_points import READERS, ask_plugin, construct, load_class
from kbtools.errors import BrokenPlugin, WrongFormat
from kbtools.indexers.readers.batches import SCHEMAS, Block, RecordBatch, Skips, SourceKind, lines_of, with_languages
from kbtools.indexers.readers.formats import find_format
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES
from kbtools.indexers.readers.sources import BLOCK, Meter, encoding_of, read_blocks
from kbtools.kb.ids import FREEBASE_NAMESPACE
from kbtools.processes import default_jobs

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"

WIDE = "wide"
"""The format of tables with one entity per row, which are read by columns rather than by blocks of lines."""

TEXT_TABLES = (WIDE, "csv", "tsv", ".csv", ".tsv", ".tab")
"""Formats and suffixes of tables, which office programs write in many encodings."""

WIKIDATA = "wikidata"
"""The reader of Wikidata's dumps, which name merged entities and their targets."""

_GIVEN: dict[str, tuple[SourceKind, str | None]] = {
    "aliases": ("names", None), "descriptions": ("names", None), "rdf": ("any", None), "table": ("any", WIDE),
    "wikidata": ("any", WIKIDATA),
}  # fmt: skip
"""The kind of rows and the reader of files that commands and Python functions take under other names."""

_ALWAYS = ("redirects", "labels", "subclasses", "descriptions")
"""Kinds read from every source; they add no row by themselves."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file and the kind of rows wanted from it; `any` takes facts, names and types alike.

    `label` is its name in reports if the file is gone after the build; `format` is the reader of this file if it
    differs from that of the others. `stem` begins the ids of rows without one; it is the name of the file up to the
    first dot if empty.
    """

    path: Path
    kind: SourceKind
    label: str = ""
    format: str | None = None
    stem: str = ""

    @property
    def rows(self) -> str:
        """The beginning of the ids of rows without one."""
        return f"{self.stem or self.path.name.partition('.')[0]}/"

    @property
    def name(self) -> str:
        """The name of the source in reports."""
        return self.label or str(self.path)

    @classmethod
    def given(cls, name: str, path: Path, label: str = "") -> "Source":
        """Return the source for a file of a kind or of rdf, a table, wikidata, aliases or descriptions."""
        kind, format = _GIVEN.get(name, (cast(SourceKind, name), None))
        return cls(path, kind, label, format)

    @property
    def directed(self) -> bool:
        """Whether its redirects work one way; those from statements of identity in a graph work both ways."""
        return self.kind == "redirects" or self.format == WIKIDATA


def with_own_rows(sources: Sequence[Source]) -> list[Source]:
    """Return sources whose rows without ids have different ones: tables of one name include more of their paths."""
    stems = {source.path: source.path.name.partition(".")[0] for source in sources if source.format == WIDE}
    for longer in (lambda path: path.name, lambda path: "/".join(path.parts[-2:]), str):
        counts = Counter(stems.values())
        stems = {path: longer(path) if counts[stem] > 1 else stem for path, stem in stems.items()}
    return [replace(source, stem=stems.get(source.path, "")) for source in sources]


@dataclass(frozen=True, slots=True)
class Predicates:
    """Predicates of names, aliases, descriptions, types and merged entities in RDF; all others are relations."""

    name: frozenset[str] = frozenset(
        {
            f"{_RDFS}label",
            f"{FREEBASE_NAMESPACE}type.object.name",
            f"{_SKOS}prefLabel",
            "http://schema.org/name",
            "https://schema.org/name",
        }
    )
    alias: frozenset[str] = frozenset(
        {
            f"{FREEBASE_NAMESPACE}common.topic.alias",
            f"{_SKOS}altLabel",
            "http://schema.org/alternateName",
            "https://schema.org/alternateName",
            "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym",
            # An entity without a name is shown with an alias: these are the only names in many files.
            "http://xmlns.com/foaf/0.1/name",
            "http://purl.org/dc/terms/title",
            "http://purl.org/dc/elements/1.1/title",
        }
    )
    description: frozenset[str] = frozenset(
        {
            "http://schema.org/description",
            "https://schema.org/description",
            "http://purl.org/dc/terms/description",
            f"{_RDFS}comment",
            f"{_SKOS}definition",
        }
    )
    type: frozenset[str] = frozenset(
        {f"{_RDF}type", f"{FREEBASE_NAMESPACE}type.object.type", "http://www.wikidata.org/prop/direct/P31"}
    )
    same: frozenset[str] = frozenset(
        {"http://www.w3.org/2002/07/owl#sameAs", f"{FREEBASE_NAMESPACE}dataworld.gardening_hint.replaced_by"}
    )
    subclass: frozenset[str] = frozenset({f"{_RDFS}subClassOf", "http://www.wikidata.org/prop/direct/P279"})


@dataclass(frozen=True, slots=True)
class Keep:
    """The entities of Wikidata whose facts are read; other entities only provide labels for the objects of facts.

    An empty set keeps all. `types` are direct types, without superclasses.
    """

    sitelinks: int = 0
    types: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()

    def refuses(self, entity_id: str, types: Iterable[str], sitelinks: int) -> str:
        """Return why an entity is left out; empty if it is kept."""
        if sitelinks < self.sitelinks:
            return f"entity with fewer than {self.sitelinks:,} sitelinks"
        if self.ids and entity_id not in self.ids:
            return "entity that is not listed in --keep-ids"
        return "entity of another type than --keep-type" if self.types and self.types.isdisjoint(types) else ""


@dataclass(frozen=True, slots=True)
class Wide:
    """Columns of a table with one entity per row; unnamed ones are guessed, and all others are relations.

    Cells under `link` are names of entities of the knowledge base.
    """

    subject: str = ""
    name: tuple[str, ...] = ()
    alias: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    description: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    query: str = ""
    sheet: str = ""

    @property
    def others(self) -> set[str]:
        """The columns named for anything but ids and names."""
        return {*self.alias, *self.type, *self.description, *self.link}


def wide_of(columns: Mapping[str, str | Sequence[str]], *, sheet: str = "", query: str = "") -> Wide:
    """Return the columns of a table of entities from their roles: `{"id": "company", "name": "title"}`."""
    parts: dict[str, Any] = {
        part: (named,) if isinstance(named := columns[part], str) else tuple(named)
        for part in ("name", "alias", "type", "description", "link")
        if part in columns
    }
    subject = columns.get("id") or columns.get("entity", "")
    return Wide(subject=str(subject), **parts, sheet=sheet, query=query)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading: languages of names, predicates, columns, lists in cells, share of bad lines, format.

    `format` is the name of a reader or `module:Class`; if empty, it is detected from the suffix or the opening lines.
    `keep` is for Wikidata, `wide` for tables of entities; `closure` also gives an entity the superclasses of its types;
    `encoding` is detected if empty.
    """

    language: str = DEFAULT_LANGUAGES
    predicates: Predicates = field(default_factory=Predicates)
    columns: Mapping[str, str] = field(default_factory=dict)
    max_bad: float = 0.001
    list_separator: str | None = None
    format: str | None = None
    keep: Keep = field(default_factory=Keep)
    wide: Wide = field(default_factory=Wide)
    closure: bool = False
    encoding: str = ""
    variants: Sequence[tuple[str, str]] = ()
    """Equivalent spellings, with which questions are read."""
    jobs: int = field(default_factory=default_jobs)
    """Processes and threads of a build; the result does not depend on the number."""

    @property
    def divides_words(self) -> bool:
        """Whether the separator of lists is white space, which also separates the words of a name."""
        return self.list_separator is not None and not self.list_separator.strip()


class _Reader(Protocol):
    """A reader of a file format, an entry point in the group `kbtools.readers`.

    `suffixes` are the accepted file suffixes, without those of compression. A class may also have `sniff(line: bytes,
    kind: SourceKind) -> bool`, which returns whether an opening line has its format, for files with other suffixes.
    """

    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None: ...

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Yield the rows of a file's blocks in order; count every line and everything left out in `skips`."""
        ...


@dataclass(slots=True)
class Reading:
    """A pass over a source: iterate over `batches`; then `digest` and `skips` describe what was read.

    `progress` gets the number of bytes read so far; `redirects` are those of the sources before it.
    """

    source: Source
    options: ReadOptions
    block: int = BLOCK
    progress: Callable[[int], None] = lambda size: None
    redirects: pa.Table | None = None
    skips: Skips = field(init=False)
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        self.skips = Skips(self.source.name, self.options.max_bad)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the rows of the wanted kind; raise TooManyBadLines at the end of a source with too many."""
        blocks = self.blocks()
        # The first block decides the format; it is read once and passed to the reader with the rest.
        first = next(blocks)
        name = self.source.format or self.options.format or find_format(self.source.path, self.source.kind, first)
        make = load_class(READERS, name)
        reader: _Reader = construct(name, lambda: make(self.source, self.options, self.skips))
        yield from self.wanted(_ask_reader(reader, chain([first], blocks)))

    def wanted(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield the rows of the wanted kind and count the others; check the share of bad lines at the end."""
        redirects: list[RecordBatch] = []
        for batch in batches:
            if batch.kind == "redirects" and self.source.directed:
                redirects.append(batch)
            elif self.source.kind in ("any", batch.kind) or batch.kind in _ALWAYS:
                yield batch
            else:
                kind = f"{batch.kind} in a file of {self.source.kind}"
                example = str(batch.table.slice(0, 1).to_pylist()[0])
                self.skips.add(kind, line=batch.line, text=example, bad=False, count=batch.table.num_rows)
        yield from _without_loops(redirects, self.source.path, self.skips, earlier=self.redirects)
        # Only at the end, since the share of bad lines is that of the whole file.
        self.skips.check()

    def blocks(self) -> Iterator[Block]:
        """Yield the text of the file, a table's in any encoding, and report progress after each block."""
        path, encoding = self.source.path, self.options.encoding
        table = self.source.format in TEXT_TABLES or path.suffix.lower() in TEXT_TABLES
        if not encoding and table and self.source.kind != "counts" and (encoding := encoding_of(path)):
            self.skips.note(f"read as {encoding}; use --encoding to change it", line=1)
        for block in read_blocks(path, meter=self.meter, block=self.block, encoding=encoding):
            yield block
            self.progress(self.meter.size)

    @property
    def digest(self) -> str:
        """The hash of what was read from the file."""
        return self.meter.sha256.hexdigest()


def _ask_reader(reader: _Reader, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
    """Yield what a reader reads; raise BrokenPlugin if it fails or yields anything but tables of a kind."""
    end = object()
    batches = ask_plugin("reader", reader, lambda: iter(reader.read(blocks)))
    while (batch := ask_plugin("reader", reader, lambda: next(batches, end))) is not end:
        batch = with_languages(batch) if isinstance(batch, RecordBatch) else batch
        if not isinstance(batch, RecordBatch) or not batch.table.schema.equals(SCHEMAS.get(batch.kind)):
            name, columns = type(reader).__name__, getattr(batch, "table", None)
            content = repr(batch)[:80] if columns is None else f"columns {columns.column_names}"
            raise BrokenPlugin(
                f"reader {name} gave {content}, expected a RecordBatch with the columns of its kind", name=name
            )
        yield batch


def _without_loops(
    batches: Sequence[RecordBatch], path: Path, skips: Skips, *, earlier: pa.Table | None = None
) -> list[RecordBatch]:
    """Return the redirects of a source without the last one of each loop.

    A loop may pass through redirects of earlier sources, which are free of loops among themselves.
    """
    if not batches:
        return []
    table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
    before = [] if earlier is None else [earlier]
    closing = _closing_rows(pa.concat_tables([*before, table]).combine_chunks()) - sum(map(len, before))
    ends = np.cumsum([batch.table.num_rows for batch in batches])
    for row in closing.tolist():
        old, new = (str(table.column(name)[row]) for name in ("old", "new"))
        batch = batches[int(np.searchsorted(ends, row, side="right"))]
        line = batch.line if batch.table.num_rows == 1 else _line_of(path, old, new, first=batch.line)
        skips.add("redirect loop", line=line, text=f"{old} -> {new}")
    kept = np.ones(table.num_rows, dtype=bool)
    kept[closing] = False
    return [RecordBatch("redirects", table.filter(pa.array(kept)), batches[0].line)] if kept.any() else []


def _closing_rows(table: pa.Table) -> NDArray[np.int64]:
    """List the last row of each loop; if an id is redirected twice, the first row counts."""
    ids = pa.chunked_array([*table.column("old").chunks, *table.column("new").chunks]).combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy()
    old, new = np.split(codes, 2)
    olds, row_of_old = np.unique(old, return_index=True)
    end = int(codes.max()) + 1
    follow: NDArray[Any] = np.full(end + 1, end, dtype=np.int64)
    follow[olds] = new[row_of_old]
    # Each step doubles the distance; ids that have not reached the end of a chain after the last step are in a loop.
    far = follow
    for _ in range(end.bit_length()):
        far = far[far]
    rows: NDArray[Any] = np.full(end + 1, -1, dtype=np.int64)
    rows[olds] = row_of_old
    looping = set(far[far < end].tolist())
    closing = []
    while looping:
        start = at = looping.pop()
        loop = [int(rows[start])]
        while (at := int(follow[at])) != start:
            looping.remove(at)
            loop.append(int(rows[at]))
        closing.append(max(loop))
    return np.array(sorted(closing), dtype=np.int64)


def _line_of(path: Path, old: str, new: str, *, first: int) -> int:
    """Return the first line, from `first` on, that contains an id followed by its target; `first` if there is none."""
    first_id, second_id = (rb"(?<!\w)" + re.escape(entity_id.encode()) + rb"(?!\w)" for entity_id in (old, new))
    pair = re.compile(first_id + b".*" + second_id)
    with suppress(WrongFormat):  # A columnar file has no lines.
        for block in read_blocks(path):
            for number, line in lines_of(block):
                if number >= first and pair.search(line):
                    return number
    return first
