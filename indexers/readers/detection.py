"""The kind of a file (facts, names, RDF, a table), detected from its suffix, first bytes and opening lines."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kbtools.indexers.readers.batches import SourceKind, lines_of
from kbtools.indexers.readers.delimited import SEPARATORS
from kbtools.indexers.readers.delimited_rows import split_cells
from kbtools.indexers.readers.formats import (
    DATABASES,
    OPENING,
    PAGE,
    SPREADSHEETS,
    find_syntax,
    suffix_of,
    unknown_format,
)
from kbtools.indexers.readers.json_documents import as_json_lines, may_be_document
from kbtools.indexers.readers.reading import WIDE, WIKIDATA, Source
from kbtools.indexers.readers.release import NAME_PREDICATES, TYPE_PREDICATE
from kbtools.indexers.readers.sources import check_source, encoding_of, read_blocks
from kbtools.indexers.readers.table_files import MAGIC, open_columnar
from kbtools.kb.ids import canonical_id
from kbtools.kb.table_heads import SUFFIX, USUAL, entity_role, is_header

_TITLES = 10
"""Lines searched for a header below titles, in a file whose suffix is not that of a table."""
_DUMP = re.compile(rb"<http://wikiba\.se/ontology#Dump>|<http://www\.wikidata\.org/prop/direct/")
_ENTITY = re.compile(rb'\s*[\[{].*"(?:labels|claims)"\s*:\s*(?:\{|\[\s*\])', re.DOTALL)
_NUMBER = re.compile(rb'"id"\s*:\s*"[QPL][1-9]')
_TABLES: dict[SourceKind, str] = {
    "facts": "a table of facts, one per row",
    "names": "a table of names, one per row",
    "relations": "a table of names of relations",
    "redirects": "a table of merged ids",
    "any": "a table of entities, one per row",
}
_NEEDED: dict[SourceKind, tuple[str, ...]] = {
    "facts": ("subject", "relation", "object"),
    "names": ("entity", "language", "name"),
    "relations": ("relation", "name"),
}
"""The columns that distinguish other kinds of tables from a table of entities."""

_TEXTS = ("language", "alias", "description")
"""Columns that tables of names may have too."""


@dataclass(frozen=True, slots=True)
class _Detected:
    """A file, the way to read it, and its name in a sentence."""

    source: Source
    called: str

    def __str__(self) -> str:
        return f"{self.source.name}: {self.called}"


def detect(path: Path) -> _Detected:
    """Return how to read a file; raise InputError if its kind cannot be detected."""
    if path.suffix.lower() in MAGIC:
        batch = next(iter(open_columnar(path)), None)
        return _table(path, [] if batch is None else batch.schema.names)
    if suffix_of(path) in DATABASES:
        return _Detected(Source(path, "any", format=WIDE), "a database, from which --query selects a table")
    if suffix_of(path) in SPREADSHEETS:
        check_source(path)
        return _Detected(Source(path, "any", format=WIDE), "a spreadsheet of entities, one per row")
    first = next(iter(read_blocks(path, encoding=encoding_of(path))))
    opening = list(islice(((number, line) for number, line in lines_of(first) if line.strip()), OPENING))
    number, statement = next(((number, line) for number, line in opening if not line.startswith(b"#")), (1, b""))
    if any(_DUMP.search(line) for _, line in opening) or (
        _ENTITY.match(first.text[:PAGE]) and _NUMBER.search(first.text[:PAGE])
    ):
        return _Detected(Source(path, "any", format=WIKIDATA), "a dump of Wikidata")
    if statement.startswith(b"<fb:"):
        return _release(path, [line for _, line in opening])
    if statement.startswith(b"<") and statement.count(b"\t") == 2 and not statement.rstrip().endswith(b"."):
        return _Detected(Source(path, "facts", format="release"), "facts without a header, one per line")
    syntax = find_syntax(path, first, number, statement, "")
    if syntax or statement.lstrip().startswith((b"<", b"_:")):
        name = syntax or "n-triples"
        return _Detected(Source(path, "any", format=name), f"RDF ({name})")
    if may_be_document(first.text):
        records = next(as_json_lines(read_blocks(path, encoding=encoding_of(path)), path)).text
        statement = records.partition(b"\n")[0]
    if statement.startswith(b"{"):
        return _table(path, _fields_of(statement), format="jsonl")
    line = statement.decode(errors="replace")
    header = max((split_cells(line, separator) for separator in SEPARATORS), key=len)
    if len(header) == 1:
        header, line = _header_below(opening) or (header, line)
    table = suffix_of(path) in (".csv", ".tsv", ".tab") and not _begins_with_fact([line for _, line in opening])
    if not table and statement.count(b"\t") == 2 and not _is_heads(header):
        return _Detected(Source(path, "facts", format="release"), "facts without a header, one per line")
    if len(header) == 1 and suffix_of(path) not in (".csv", ".tsv", ".tab"):
        # No reader takes it: the error suggests what it may be.
        raise unknown_format(path, "facts", number, statement)
    return _table(path, header, format="tsv" if "\t" in line else "csv")


def _header_below(opening: Sequence[tuple[int, bytes]]) -> tuple[list[str], str] | None:
    """Return the header of a table below a title, and its line: the first of two lines with as many cells."""
    lines = [line.decode(errors="replace") for _, line in opening[:_TITLES]]
    for separator in SEPARATORS:
        rows = [split_cells(line, separator) for line in lines]
        widths = [len(row) for row in rows if len(row) > 2]
        for line, row in zip(lines, rows, strict=True):
            # Prose has commas too, but no usual head.
            usual = separator != "," or any(entity_role(cell) in ("id", "name") for cell in row)
            if usual and len(row) > 2 and widths.count(len(row)) > 1:
                return row, line
    return None


def _release(path: Path, lines: Iterable[bytes]) -> _Detected:
    """Return how to read a file of the release, from the predicates of its opening lines."""
    cells = [line.split(b"\t") for line in lines]
    predicates = {canonical_id(row[1].strip().decode(errors="replace")) for row in cells if len(row) > 1}
    kinds = {"names": predicates & NAME_PREDICATES.keys(), "types": predicates & {TYPE_PREDICATE}}
    kind_names = " and ".join(kind for kind, present in kinds.items() if present)
    return _Detected(
        Source(path, "any", format="release"), f"{kind_names or 'names or types'} in the format of the release"
    )


def _table(path: Path, header: Sequence[str], *, format: str | None = None) -> _Detected:
    """Return how to read a table with these columns."""
    kind = _table_kind(header)
    return _Detected(Source(path, kind, format=WIDE if kind == "any" else format), _TABLES[kind])


def _table_kind(header: Sequence[str]) -> SourceKind:
    folded = {head.strip().removeprefix("?").casefold() for head in header}
    if folded == {"old", "new"}:
        return "redirects"
    stems = folded | {SUFFIX.sub("", head) for head in folded}
    known = {head for column in _TEXTS for head in USUAL[column]}
    for kind, columns in _NEEDED.items():
        known_to_kind = known.union(*(USUAL[column] for column in columns))
        others = [head for head in folded if not known_to_kind & {head, SUFFIX.sub("", head)}]
        # `language` beside a year is that of a film, not that of its title.
        if all(stems.intersection(USUAL[column]) for column in columns) and (kind == "facts" or not others):
            return kind
    return "any"


def _is_heads(header: Sequence[str]) -> bool:
    """Return whether a line is the header of a table of facts, or of entities with an id and a name."""
    return is_header(header) or {"id", "name"} <= {entity_role(head) for head in header}


def _begins_with_fact(lines: Sequence[bytes]) -> bool:
    """Return whether the first line has the subject of another fact below, and all have a relation of words."""
    rows = [line.decode(errors="replace").rstrip("\r\n").split("\t") for line in lines]
    triples = all(len(row) == 3 and all(row) and not re.search(r"\d", row[1]) for row in rows)
    return triples and any(row[0] == rows[0][0] and row != rows[0] for row in rows[1:])


def _fields_of(line: bytes) -> list[str]:
    """Return the fields of the JSON object in a line; empty if it is not an object."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(record) if isinstance(record, dict) else []
