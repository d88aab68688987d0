"""Tables of an entity a row, as `--table` gives them: names, types, descriptions in columns, relations in all others.

Parquet, Arrow and Feather files, CSV, TSV and JSON Lines, and what a query takes from an SQLite or DuckDB file.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS, SCHEMAS, Kind, RecordBatch, repeated
from kbtools.indexers.readers.column_batches import canonical_column
from kbtools.indexers.readers.columnar import ROWS, open_columnar
from kbtools.indexers.readers.formats import DATABASES, suffix_of
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import ReadOptions, Source, Wide
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import check_source, file_digest, read_blocks
from kbtools.indexers.readers.wide_text import DelimitedRows, WideRows, read_objects

SAYING = ("name", "alias", "description")
"""The options that name columns of texts."""

SUFFIXES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson", *DATABASES)


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of names, aliases or descriptions, as an option names it, and the language of all of them."""

    kind: str
    wanted: str
    language: str


def find_text_column(header: str, wide: Wide) -> TextColumn | None:
    """Find what a column says of entities; its language stands behind an @ in its header or in the option."""
    stem, at, tag = header.rpartition("@")
    kinds = {wanted: kind for kind in SAYING for wanted in getattr(wide, kind)}
    if header in kinds:
        return TextColumn(kinds[header], header, tag if at else "")
    for wanted, kind in kinds.items():
        column, said, language = wanted.rpartition("@")
        if said and column == header:
            return TextColumn(kind, wanted, language)
    return TextColumn(kinds[stem], stem, tag) if at and stem in kinds else None


@dataclass(slots=True)
class WideReading:
    """One pass over a table of an entity a row, with the account that a `Reading` keeps."""

    source: Source
    options: ReadOptions
    progress: Callable[[int], None] = lambda size: None
    digest: str = ""
    skips: Skips = field(init=False)
    languages: Languages = field(init=False)
    texts: dict[str, TextColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.skips = Skips(self.source.name, self.options.max_bad)
        self.languages = Languages.read(self.options.language)

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the rows of a file by columns; raise TooManyBadLines at its end where too many have no subject."""
        path, names = self.source.path, dict[str, None]()
        check_source(path)
        self.digest = file_digest(path)
        try:
            for rows in self.rows():
                if not names:
                    self.check(rows.columns.schema.names)
                for name in rows.columns.schema.names:
                    if name not in names and (column := find_text_column(name, self.options.wide)):
                        self.texts[name] = column
                names.update(dict.fromkeys(rows.columns.schema.names))
                yield from self.lay_out(rows)
        except (pa.ArrowException, OSError, sqlite3.Error) as error:
            raise self.unfit(f"cannot be read ({error})") from error
        self.note_absent(names)
        self.progress(path.stat().st_size)
        self.skips.check()

    def rows(self) -> Iterator[WideRows]:
        """Read a file by its suffix."""
        path, wide = self.source.path, self.options.wide
        suffix = suffix_of(path)
        if suffix not in SUFFIXES:
            raise WrongFormat(f"{path}: --table takes {', '.join(SUFFIXES)}; rename the file", path=str(path))
        if (suffix in DATABASES) != bool(wide.query):
            advice = (
                "give --query 'SELECT ...' with it" if suffix in DATABASES else "--query is for .sqlite and .duckdb"
            )
            raise WrongFormat(f"{path}: {advice}", path=str(path))
        match suffix:
            case ".csv" | ".tsv":
                table = DelimitedRows("," if suffix == ".csv" else "\t", wide.subject, self.skips)
                return table.rows(read_blocks(path))
            case ".jsonl" | ".ndjson":
                return read_objects(read_blocks(path), self.skips)
            case ".parquet" | ".arrow" | ".feather":
                return self.numbered(open_columnar(path))
            case ".duckdb":
                return self.numbered(query_duckdb(path, wide.query))
        return self.numbered(query_sqlite(path, wide.query))

    def numbered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WideRows]:
        """Number rows that stand in no lines; columns of objects are left out."""
        noted: set[str] = set()
        for batch in batches:
            plain = [place for place, field in enumerate(batch.schema) if not holds_objects(field.type)]
            if not noted and len(plain) < len(batch.schema):
                noted = {field.name for field in batch.schema if holds_objects(field.type)}
                self.skips.note(f"columns of objects, left out: {', '.join(map(repr, sorted(noted)))}", line=1)
            for start in range(0, batch.num_rows, ROWS):
                columns, first = batch.select(plain).slice(start, ROWS), self.skips.lines + 1
                self.skips.lines += columns.num_rows
                yield WideRows(columns, range(first, first + columns.num_rows))

    def check(self, names: list[str]) -> None:
        """Refuse a table without its subjects or with two columns of one name."""
        if self.options.wide.subject not in names:
            subject = self.options.wide.subject
            raise self.unfit(f"found the columns {names[:20]!r}, none of them {subject!r}; name it with --subject")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise self.unfit(f"found two columns {twice[0]!r}; rename one")

    def note_absent(self, names: Iterable[str]) -> None:
        """Name the columns that options name and the table lacks."""
        # A note, since another table of the same build may have it.
        wide, usual = self.options.wide, Wide()
        there = {*names, *(column.wanted for column in self.texts.values())}
        for option in (*SAYING, "type"):
            for absent in set(getattr(wide, option)) - set(getattr(usual, option)) - there:
                self.skips.note(f"no column {absent!r}, which --{option} names", line=1)
        if self.language and self.language not in names:
            self.skips.note(f"no column {self.language!r}, which --column language names", line=1)

    @property
    def language(self) -> str | None:
        """Name the column that says the language of a row's names."""
        return self.options.columns.get("language")

    def unfit(self, reason: str) -> WrongFormat:
        return WrongFormat(f"{self.source.name}: {reason}", path=str(self.source.path))

    def lay_out(self, rows: WideRows) -> Iterator[RecordBatch]:
        """Turn rows into tables of names, types, descriptions and facts."""
        batch, line, wide = rows.columns, rows.lines[0], self.options.wide
        # Of objects, those of a block may all lack it.
        held = wide.subject in batch.schema.names
        ids = batch.column(wide.subject) if held else pa.nulls(batch.num_rows, pa.string())
        if is_list(ids.type):
            raise self.unfit(f"the column {wide.subject!r} holds lists, expected an id; name another with --subject")
        subjects = canonical_column(pc.utf8_trim_whitespace(as_text(ids)), None)
        for row in pc.indices_nonzero(pc.equal(pc.fill_null(subjects, ""), "")).to_pylist():
            text = str(batch.slice(row, 1).to_pylist())
            self.skips.add(f"nothing under {wide.subject}", line=rows.lines[row], text=text)
        for name in batch.schema.names:
            if name in (wide.subject, self.language):
                continue
            saying = self.texts.get(name)
            # Spaces stand between the words of a name, whatever else they divide.
            whole = saying is not None and (saying.kind == "description" or self.options.divides_words)
            separator = None if whole else self.options.list_separator
            places, values = self.values(batch.column(name), subjects, separator)
            entities = subjects.take(places)
            if not len(values):
                continue
            if saying is not None:
                tags = repeated(saying.language, len(values))
                if not saying.language and self.language in batch.schema.names:
                    tags = pc.utf8_trim_whitespace(pc.fill_null(as_text(batch.column(self.language)), "")).take(places)
                yield from self.lay_out_texts(saying, entities, values, pc.ascii_lower(tags), line)
            elif name in wide.type:
                yield table("types", [entities, canonical_column(values, None)], line)
            else:
                relation = pa.array([name]).take(pa.array([0] * len(values), pa.int64()))
                yield table("facts", [entities, relation, canonical_column(values, None)], line)

    def lay_out_texts(
        self, column: TextColumn, entities: pa.Array, values: pa.Array, tags: pa.Array, line: int
    ) -> Iterator[RecordBatch]:
        """Yield the names, aliases or descriptions of a column in the languages that are wanted."""
        distinct = tags.dictionary_encode()
        ranks = pa.array([self.languages.rank(tag) for tag in distinct.dictionary.to_pylist()], pa.uint8())
        ranks = ranks.take(distinct.indices)
        if ranks.null_count:
            others = pc.is_null(ranks)
            self.skips.add(
                f"name in another language than {self.options.language!r}",
                line=line, text=values.filter(others)[0].as_py(), bad=False, count=ranks.null_count,
            )  # fmt: skip
            entities, values, tags, ranks = (part.filter(pc.invert(others)) for part in (entities, values, tags, ranks))
        if column.kind == "description":
            yield table("descriptions", [entities, ranks, values], line)
            return
        if column.kind == "alias":
            ranks = pa.repeat(pa.scalar(ALIAS, pa.uint8()), len(values))
        yield table("names", [entities, ranks, values, tags], line)

    def values(self, column: pa.Array, subjects: pa.Array, separator: str | None) -> tuple[pa.Array, pa.Array]:
        """Give the values of a column and the row of each; lists are taken apart, empty values left out."""
        rows = pa.array(range(len(subjects)), pa.int64())
        if not is_list(column.type):
            column = as_text(column)
            if separator is not None:
                column = pc.split_pattern(column, separator)
        while is_list(column.type):
            rows = rows.take(pc.list_parent_indices(column))
            column = pc.list_flatten(column)
        column = as_text(column)
        subjects = subjects.take(rows)
        values = pc.utf8_trim_whitespace(column)
        present = pc.and_(pc.not_equal(pc.fill_null(values, ""), ""), pc.not_equal(pc.fill_null(subjects, ""), ""))
        present = pc.and_(present, pc.invert(pc.match_substring(pc.fill_null(values, ""), "\0")))
        return rows.filter(present), values.filter(present)


def table(kind: Kind, columns: list[pa.Array], line: int) -> RecordBatch:
    schema = SCHEMAS[kind]
    return RecordBatch(kind, pa.Table.from_arrays(columns, schema=schema), line)


def as_text(column: pa.Array) -> pa.Array:
    """Write numbers, dates and categories as text; what is no number, and too large to be one, is empty."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def holds_objects(kind: pa.DataType) -> bool:
    """Tell whether the values of a column, or of the lists in it, have parts of their own."""
    while is_list(kind):
        kind = kind.value_type
    return bool(pa.types.is_nested(kind))


def query_duckdb(path: Path, query: str) -> Iterator[pa.RecordBatch]:
    """Ask a DuckDB file, which is only read."""
    import duckdb

    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            statements = connection.extract_statements(query)
            # COPY writes files though the database is read alone; a PIVOT is several statements in one.
            reading = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
            if len(statements) != 1 or statements[0].type not in reading:
                raise WrongFormat(f"{path}: --query is one SELECT, found {query!r:.60}", path=str(path))
            relation: Any = connection.sql(query)
            yield from relation.to_arrow_reader(ROWS)
    except duckdb.Error as error:
        raise WrongFormat(f"{path}: {error}", path=str(path)) from error


def query_sqlite(path: Path, query: str) -> Iterator[pa.RecordBatch]:
    """Ask an SQLite file, which is only read; each value comes as text."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        # VACUUM INTO writes another file, which it attaches.
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
        )
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(ROWS):
            texts = [[None if value is None else str(value) for value in column] for column in zip(*rows, strict=True)]
            yield pa.record_batch([pa.array(column, pa.string()) for column in texts], names=names)
