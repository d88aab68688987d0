"""Sources given in Python: rows and data frames become files for the time of a build, a row at a time."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from kbtools.errors import BadArgument
from kbtools.indexers.building.build import BuildProgress, Built, build
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.storage import temporary_folder

HEADS = {
    "facts": ("subject", "relation", "object"),
    "names": ("id", "name"),
    "aliases": ("id", "alias"),
    "types": ("id", "type"),
    "descriptions": ("id", "description"),
    "relations": ("relation", "name"),
    "redirects": ("old", "new"),
    "counts": ("name", "id", "count"),
}
"""The columns that the values of a tuple stand for."""

SOURCE_KINDS: dict[str, SourceKind] = {
    "facts": "facts",
    "names": "names",
    "aliases": "names",
    "types": "types",
    "descriptions": "names",
    "relations": "relations",
    "redirects": "redirects",
    "counts": "counts",
    "any": "any",
}

NAMED = ("names", "aliases")
"""The kinds whose tuples may say the language too."""

CALLED = {"id": "entity"}
"""The option `columns` calls an entity by its own name."""


def index_given(
    sources_by_kind: Mapping[str, Any],
    out: Path,
    *,
    language: str | None,
    columns: Mapping[str, str],
    list_separator: str | None,
    max_bad: float,
    memory: str,
    force: bool,
) -> Built:
    """Build a knowledge base from what is given for each kind: paths, data frames or rows."""
    options = read_options(language, columns, list_separator, max_bad)
    with temporary_folder() as folder:
        sources = [
            source
            for kind, rows in sources_by_kind.items()
            for source in sources_of(kind, rows, folder / f"{kind}.jsonl", columns)
        ]
        if not any(source.kind in ("facts", "names", "any") for source in sources):
            raise BadArgument("give at least one of facts, names and rdf", name="facts")
        return build(sources, out, options=options, watch=BuildProgress(), force=force, memory=memory)


def read_options(
    language: str | None, columns: Mapping[str, str], list_separator: str | None, max_bad: float
) -> ReadOptions:
    """Give the options of reading that Python's arguments stand for; no language is the usual ones."""
    return ReadOptions(
        language=DEFAULT_LANGUAGES if language is None else language,
        columns=columns,
        list_separator=list_separator,
        max_bad=max_bad,
    )


def sources_of(kind: str, rows: Any, path: Path, columns: Mapping[str, str]) -> Iterator[Source]:
    """Yield the files of a kind, or the one that its rows are written to."""
    source_kind = SOURCE_KINDS[kind]
    if isinstance(rows, str | os.PathLike):
        rows = [rows]
    records = records_of_frame(rows)
    if records is None:
        if not isinstance(rows, Iterable):
            raise BadArgument(f"{kind}: expected paths, a data frame or rows, found {rows!r}", name=kind)
        remaining = iter(rows)
        first = next(remaining, None)
        if first is None:
            return
        if isinstance(first, str | os.PathLike):
            yield from (Source(Path(name), source_kind) for name in chain([first], remaining))
            return
        records = records_of_rows(kind, chain([first], remaining), columns)
    if kind == "any":
        raise BadArgument("rdf: expected paths of N-Triples, found rows", name="rdf")
    if write_lines(count_lines(records) if kind == "counts" else json_lines(kind, records), path):
        yield Source(path, source_kind, label=f"{kind} given in Python")


def records_of_frame(frame: Any) -> Iterator[dict[str, Any]] | None:
    """Yield the rows of a data frame of pandas, or of what streams Arrow, as polars and DuckDB do; else nothing."""
    # Asked of the class: a relation of DuckDB takes any attribute for a column.
    kind = type(frame)
    if hasattr(kind, "itertuples"):
        return (dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False, name=None))
    if hasattr(kind, "__arrow_c_stream__"):
        return (record for batch in pa.RecordBatchReader.from_stream(frame) for record in batch.to_pylist())
    return None


def records_of_rows(kind: str, rows: Iterable[Any], columns: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield rows by column; dictionaries have their own columns."""
    heads = HEADS.get(kind, ())
    named = [columns.get(CALLED.get(head, head), head) for head in heads]
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict):
            yield row
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == len(heads):
            yield dict(zip(named, row, strict=True))
        elif kind in NAMED and isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == 3:
            yield dict(zip((*named, columns.get("language", "language")), row, strict=True))
        elif kind == "counts" and isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == 2:
            yield dict(zip(named[1:], row, strict=True))
        else:
            raise BadArgument(f"{kind}: row {number} is {row!r}, expected {', '.join(heads)}", name=kind)


def json_lines(kind: str, records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield records as JSON."""
    for number, record in enumerate(records, 1):
        try:
            yield json.dumps({str(name): plain(value) for name, value in record.items()})
        except TypeError as error:
            raise BadArgument(f"{kind}: row {number} is {record!r} ({error})", name=kind) from error


def count_lines(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield counts as a file of them has them."""
    for record in records:
        yield "\t".join(" ".join(str(plain(record[head])).split()) for head in HEADS["counts"] if head in record)


def write_lines(lines: Iterable[str], path: Path) -> bool:
    """Write lines to a file; tell whether there was any."""
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(f"{line}\n" for line in lines)
        return file.tell() > 0


def plain(value: Any) -> Any:
    """Take a value out of NumPy, and read a missing one of a data frame, which is not equal to itself, as none."""
    value = value.item() if hasattr(value, "item") else value.tolist() if hasattr(value, "tolist") else value
    return None if value is None or bool(value != value) else value
