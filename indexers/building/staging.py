"""The work tables of a build, in DuckDB: rows as read, ids interned to rows, everything sorted.

A row is the rank of an id, so equal content gives equal rows in any order of the sources. Facts wait for their rows in
a file, in pieces that contain each id once: 23 million facts with 46 million ids need only some 17 million spellings
interned. Numbers continue from piece to piece and are converted in order, which avoids holding the rows of all of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.errors import BadArgument, MemoryExhausted
from kbtools.free_memory import free_memory, require_memory
from kbtools.indexers.readers.batches import ALIAS, Kind
from kbtools.storage import is_disk_full

MEMORY = "1GB"
"""Default memory of the work tables; beyond it DuckDB writes to disk."""

_SHARE = 0.5
"""Share of free memory for the work tables: the writers of the indexes need some 0.4 GB besides."""

BATCH = 250_000
"""Rows per batch: two of DuckDB's row groups; smaller batches would be copied into groups through its log."""

_FORMS_AT_ONCE = 32_768
"""Forms per batch, grouped by one process."""

_TABLES = """
CREATE TABLE fact_ids (number UINTEGER, id VARCHAR, is_subject BOOLEAN);
CREATE TABLE predicates (number UINTEGER, relation VARCHAR);
CREATE TABLE fact_rows (subject UINTEGER, relation UINTEGER, object UINTEGER);
CREATE TABLE names (entity VARCHAR, rank UTINYINT, text VARCHAR, language USMALLINT);
CREATE TABLE types (entity VARCHAR, type VARCHAR);
CREATE TABLE relation_names (relation VARCHAR, rank UTINYINT, text VARCHAR, language USMALLINT);
CREATE TABLE labels (entity VARCHAR, rank UTINYINT, text VARCHAR, language USMALLINT);
CREATE TABLE subclasses (type VARCHAR, parent VARCHAR);
CREATE TABLE redirects (old VARCHAR, new VARCHAR);
CREATE TABLE same (old VARCHAR, new VARCHAR);
CREATE TABLE merged (old VARCHAR, new VARCHAR);
CREATE TABLE counts (entity VARCHAR, key UBIGINT, count UBIGINT);
CREATE TABLE descriptions (entity VARCHAR, rank UTINYINT, text VARCHAR, language USMALLINT);
CREATE TABLE forms (form VARCHAR, kind UTINYINT, text VARCHAR, entity UINTEGER, alias UINTEGER);
CREATE TABLE words (word VARCHAR, names UINTEGER);
"""

_PASSES = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of parts into which ids are divided, each made distinct separately, if memory does not allow fewer."""

_DISTINCT = "INSERT INTO distinct_ids SELECT DISTINCT id FROM ({ids})"

_INTERN = """
CREATE TABLE {table} AS SELECT id, (row_number() OVER (ORDER BY id) - 1)::UINTEGER AS row FROM distinct_ids
"""

ENTITY_IDS = "SELECT id FROM fact_ids UNION ALL SELECT entity FROM names"

_ENTITY_ROWS = "SELECT row FROM fact_ids JOIN entities USING (id) ORDER BY number"

_RELATION_ROWS = "SELECT row FROM predicates JOIN relations ON relations.id = relation ORDER BY number"

_NAMES = f"""
SELECT entity, rank = {ALIAS} OR rank > min(rank) OVER (PARTITION BY entity) AS alias, text, roles FROM
(SELECT e.row AS entity, min(names.rank) AS rank, names.text AS text, {{roles}} AS roles FROM names
JOIN entities e ON e.id = names.entity GROUP BY e.row, names.text) ORDER BY entity, rank, text
"""
"""Names in an entity's first language are its names; those in later ones are aliases."""

_ROLES = f"array_to_string(list_sort(list_distinct(list(2 * language + (names.rank = {ALIAS})::UTINYINT))), ' ')"
"""The languages of a text, as a name or as an alias: twice the number of the language, plus 1 for an alias. Not needed
in a knowledge base of one language.
"""

_UNKNOWN_TYPES = "SELECT DISTINCT entity, type FROM types ANTI JOIN entities ON entities.id = types.entity"

ONE_LINE = r"trim(regexp_replace(text, '[\s\p{Z}\x1e\x1f]+', ' ', 'g'))"
"""A text without line breaks or the separators of `SpokenText`."""

IN_LANGUAGES = """
CASE WHEN max(tag) <> '' AND (SELECT count(*) FROM tags WHERE tag <> '') > 1
THEN string_agg(tag || chr(31) || {text}, chr(30) ORDER BY {order})
ELSE first({text} ORDER BY {order}) END"""
"""The texts of a group in its languages, as `stored_text` writes them; plain text if there is only one language."""

_QUERIES = {
    "facts": "SELECT subject, relation, object FROM fact_rows ORDER BY ALL",
    "incoming": "SELECT object, relation, subject FROM fact_rows ORDER BY ALL",
    "types": """
SELECT DISTINCT e.row AS entity, k.row AS type FROM types
JOIN entities e ON e.id = types.entity JOIN kinds k ON k.id = types.type ORDER BY ALL
""",
    "relation_names": """
SELECT coalesce(text, '') AS text FROM relations LEFT JOIN relation_labels ON relation_labels.relation = relations.id
ORDER BY row
""",
    # One description per entity and language, the first, without line breaks.
    "descriptions": f"""
SELECT row, {IN_LANGUAGES.format(order="rank, line", text="line")} AS text FROM (
  SELECT e.row AS row, rank, line, tag, row_number() OVER (PARTITION BY e.row, tag ORDER BY rank, line) AS place
  FROM (SELECT entity, rank, {ONE_LINE} AS line, language FROM descriptions)
  JOIN entities e ON e.id = entity JOIN tags USING (language) WHERE line <> '')
WHERE place = 1 GROUP BY row ORDER BY row
""",
    "redirects": "SELECT old, row FROM merged JOIN entities ON entities.id = merged.new ORDER BY old",
    "counts": """
SELECT key, row AS entity, sum(count)::UBIGINT AS count FROM counts JOIN entities ON entities.id = counts.entity
GROUP BY ALL ORDER BY ALL
""",
    # In the order that `group_forms` needs: by form, then kind, then spelling.
    "forms": "SELECT form, kind, text, entity, alias FROM forms ORDER BY form, kind, text, entity",
    "words": "SELECT word, sum(names)::UINTEGER AS names FROM words GROUP BY word ORDER BY word",
}
"""The tables of `SortedTables`, except names."""

_SOURCES = {"redirects": "merged", "descriptions": "descriptions", "counts": "counts", "types": "types"}
"""The work tables that are often empty, by the table of `SortedTables` made from each."""

_FACT_ROWS = pa.schema({name: pa.uint32() for name in ("subject", "relation", "object")})

_Numbers = NDArray[np.int64]


class Staging:
    """A temporary database in the folder of a build; what does not fit in memory is written to that folder."""

    def __init__(self, folder: Path, *, threads: int, memory: str = MEMORY) -> None:
        self.folder = folder
        self.memory = memory
        try:
            self.connection = duckdb.connect(
                # In memory, with overflow to the folder: a database file would be written whole, with its log.
                ":memory:",
                config={
                    "memory_limit": memory,
                    "threads": threads,
                    "temp_directory": str(folder / "spill"),
                    "preserve_insertion_order": False,  # Every query states its order, so none need be kept.
                },
            )
        except duckdb.ParserException as error:
            raise BadArgument(f"memory is an amount such as 2GB, found {memory!r}", name="memory") from error
        self.pieces = FactPieces(folder)
        self.cursors: list[duckdb.DuckDBPyConnection] = []
        self.languages: dict[str, int] = {}
        """The numbers of the languages of names, in order of appearance."""
        self.connection.execute(_TABLES)

    def __enter__(self) -> "Staging":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close every connection; raise the original error in place of DuckDB's wrapper."""
        for cursor in self.cursors:
            cursor.close()
        self.connection.close()
        self.pieces.close()
        if isinstance(error, RuntimeError | duckdb.InterruptException) and "interrupt" in str(error).lower():
            raise KeyboardInterrupt from error
        if isinstance(error, duckdb.OutOfMemoryException) and not is_disk_full(error):
            raise MemoryExhausted(
                f"the work tables of the build do not fit in {self.memory} of memory; raise the limit with --memory",
                memory=self.memory,
            ) from error

    def limit(self) -> float:
        """Return the memory limit in bytes, which DuckDB reports in binary units: `953.6 MiB`."""
        [(setting,)] = self.connection.execute("SELECT current_setting('memory_limit')").fetchall()
        amount, unit = str(setting).split()
        return float(amount) * 1024.0 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)

    def require_memory(self, sources: int) -> None:
        """Raise MemoryExhausted if the tables for `sources` bytes of sources may need more memory than is free."""
        free = free_memory() or 0
        require_memory(
            round(min(self.limit(), sources)),
            "the work tables of the build",
            instead=f"--memory {max(1, round(_SHARE * free / 1e6))}MB fits, the rest goes to disk",
        )

    def run(self, statement: str) -> None:
        self.connection.execute(statement)

    def rewrite(self, table: str, query: str) -> None:
        """Replace a work table by the result of a query."""
        self.run(f"CREATE TABLE rewritten AS {query}; DROP TABLE {table}; ALTER TABLE rewritten RENAME TO {table}")

    def add(self, table: Kind | str, rows: pa.Table) -> None:
        """Append rows to a work table; languages are stored as numbers, and facts by the numbers of their ids."""
        if table == "facts":
            self.add_piece(FactPiece.of(rows))
            return
        if "language" in rows.column_names:
            rows = rows.set_column(rows.column_names.index("language"), "language", self.number(rows["language"]))
        self.connection.register("incoming", rows)
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")
        self.connection.unregister("incoming")

    def add_piece(self, piece: "FactPiece") -> None:
        """Append facts that are already numbered."""
        spelt, predicates = self.pieces.add(piece)
        self.add("fact_ids", spelt)
        self.add("predicates", predicates)

    def number(self, languages: pa.ChunkedArray) -> pa.Array:
        tags = languages.combine_chunks().dictionary_encode()
        numbers = [self.languages.setdefault(tag, len(self.languages)) for tag in tags.dictionary.to_pylist()]
        return pa.array(numbers, pa.uint16()).take(tags.indices)

    # The protocol `SortedTables`.

    def ids(self, table: str) -> Iterator[pa.StringArray]:
        for batch in self.stream(f"SELECT id FROM {table} ORDER BY row"):
            yield batch.column(0)

    def rows(self, table: str) -> Iterator[pa.RecordBatch]:
        # A query over an empty table takes 3 ms, which is much of the build of a small knowledge base.
        if table in _SOURCES and not self.count(_SOURCES[table]):
            return iter(())
        if table == "names":
            return self.stream(_NAMES.format(roles=_ROLES if len(self.languages) > 1 else "''"))
        if table == "forms":
            # The writer of the fuzzy index needs memory of its own.
            self.connection.execute(f"SET memory_limit = '{round(self.limit() / 2048)}KiB'")
            return self.stream(_QUERIES[table], rows=_FORMS_AT_ONCE)
        if table == "descriptions":
            self.write_tags()
        return self.stream(_QUERIES[table])

    def write_tags(self) -> None:
        """Write a table of language tags by number."""
        self.run("CREATE OR REPLACE TABLE tags (language USMALLINT, tag VARCHAR)")
        for tag, number in self.languages.items():
            self.connection.execute("INSERT INTO tags VALUES (?, ?)", [number, tag])

    def unknown_types(self) -> int:
        return self.count(f"({_UNKNOWN_TYPES})") if self.count("types") else 0

    def searchable(self, forms: pa.StringArray, names: NDArray[np.uint32]) -> tuple[list[str], NDArray[np.uint32]]:
        return forms.to_pylist(), names

    def count(self, query: str) -> int:
        """Count the rows of a table or of a query in parentheses."""
        counted = self.connection.execute(f"SELECT count(*) FROM {query}").fetchone()
        return int(counted[0]) if counted else 0

    def first(self, table: str, column: str) -> str | None:
        """Return the first value of a column; None if the table is empty."""
        row = self.connection.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()
        return str(row[0]) if row else None

    def intern(self) -> None:
        """Number every entity, relation and type, and write the facts as rows."""
        self.number_ids("entities", ENTITY_IDS)
        self.number_ids("relations", "SELECT relation AS id FROM predicates")
        self.number_ids("kinds", "SELECT type AS id FROM types")
        for rows in self.pieces.rows(self.stream(_ENTITY_ROWS), self.stream(_RELATION_ROWS)):
            self.add("fact_rows", rows)
        for table in ("fact_ids", "predicates"):
            self.drop(table)

    def number_ids(self, table: str, ids: str) -> None:
        """Create a table of the distinct ids of a query and their ranks, in several passes if memory requires it.

        DuckDB spills joins and sorts to disk, but not the hash table of DISTINCT.
        """
        for parts in _PASSES:
            self.connection.execute("CREATE OR REPLACE TABLE distinct_ids (id VARCHAR)")
            try:
                for part in range(parts):
                    condition = f" WHERE hash(id) % {parts} = {part}" if parts > 1 else ""
                    self.connection.execute(_DISTINCT.format(ids=ids) + condition)
                break
            except duckdb.OutOfMemoryException as error:
                if parts == _PASSES[-1] or is_disk_full(error):
                    raise
        self.connection.execute(_INTERN.format(table=table))
        self.drop("distinct_ids")

    def drop(self, table: str) -> None:
        """Free a work table that is no longer needed."""
        self.connection.execute(f"DROP TABLE {table}")

    def stream(self, query: str, *, rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query in batches of `rows` rows, by default BATCH."""
        cursor = self.connection.cursor()
        self.cursors.append(cursor)
        relation: Any = cursor.sql(query)
        yield from relation.to_arrow_reader(rows or BATCH)
        cursor.close()


@dataclass(frozen=True, slots=True, eq=False)
class FactPiece:
    """Facts by the numbers of their ids within this piece; its first `subjects` ids are those of subjects."""

    facts: int
    numbers: bytes
    ids: pa.StringArray
    subjects: int
    relations: pa.StringArray

    @classmethod
    def of(cls, facts: pa.Table) -> "FactPiece":
        ids, numbers = _encoded(pa.chunked_array([*facts["subject"].chunks, *facts["object"].chunks], pa.string()))
        relations, relation_numbers = _encoded(facts["relation"])
        subject, target = np.split(numbers, 2)
        columns = np.stack([subject, relation_numbers, target]).astype("<u4")
        return cls(len(facts), columns.tobytes(), ids, int(subject.max(initial=-1)) + 1, relations)


class FactPieces:
    """A writer and reader of facts as numbers; keeps the numbers of facts and ids of each piece."""

    def __init__(self, folder: Path) -> None:
        self.file = (folder / "facts.numbers").open("w+b")
        self.sizes: list[tuple[int, int, int]] = []
        self.facts = self.ids = self.relations = 0

    def add(self, piece: FactPiece) -> tuple[pa.Table, pa.Table]:
        """Add a piece; return its ids with number and whether each is a subject, and its relations with numbers."""
        self.file.write(piece.numbers)
        # The ids of subjects come first, since those of objects were numbered after them.
        is_subject = np.arange(len(piece.ids)) < piece.subjects
        spelt = pa.table(
            {"number": _numbered(self.ids, len(piece.ids)), "id": piece.ids, "is_subject": pa.array(is_subject)}
        )
        relations = piece.relations
        predicates = pa.table({"number": _numbered(self.relations, len(relations)), "relation": relations})
        self.sizes.append((piece.facts, len(piece.ids), len(relations)))
        self.facts, self.ids = self.facts + piece.facts, self.ids + len(piece.ids)
        self.relations += len(relations)
        return spelt, predicates

    def rows(self, entities: Iterable[pa.RecordBatch], relations: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the facts as rows, given the rows of all numbers of entities and relations in order."""
        entity_rows, relation_rows = _InOrder(entities), _InOrder(relations)
        self.file.seek(0)
        for facts, ids, predicates in self.sizes:
            columns = np.frombuffer(self.file.read(12 * facts), dtype="<u4").reshape(3, facts)
            of_ids, of_relations = entity_rows.take(ids), relation_rows.take(predicates)
            subject, relation, target = of_ids[columns[0]], of_relations[columns[1]], of_ids[columns[2]]
            yield pa.table([subject, relation, target], schema=_FACT_ROWS)

    def close(self) -> None:
        self.file.close()


class _InOrder:
    """A reader of a column of numbers in pieces of any size."""

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


def _encoded(texts: pa.ChunkedArray) -> tuple[pa.StringArray, _Numbers]:
    """Number texts from 0; return the distinct ones in order of appearance, and the number of each text."""
    chunks = texts.dictionary_encode().chunks
    numbers = [np.asarray(chunk.indices, dtype=np.int64) for chunk in chunks]
    distinct = chunks[-1].dictionary if chunks else pa.array([], pa.string())
    return distinct, np.concatenate([*numbers, np.empty(0, dtype=np.int64)])


def _numbered(first: int, count: int) -> pa.UInt32Array:
    """Return consecutive numbers; Arrow raises an error for too large ones."""
    return pa.array(np.arange(first, first + count), pa.int64()).cast(pa.uint32())
