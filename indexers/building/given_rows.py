"""Sources passed in Python: rows and data frames are written in batches to temporary Arrow files for the build."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from kbtools.errors import BadArgument
from kbtools.indexers.building.build import BuildProgress, Built, build
from kbtools.indexers.readers.json_lines import value_column
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES
from kbtools.indexers.readers.reading import ReadOptions, Source, wide_of
from kbtools.indexers.readers.table_files import ROWS
from kbtools.indexers.readers.table_rows import StrangeCell
from kbtools.processes import default_jobs
from kbtools.storage import temporary_folder

_HEADS = {
    "facts": ("subject", "relation", "object"),
    "names": ("id", "name"),
    "aliases": ("id", "alias"),
    "types": ("id", "type"),
    "descriptions": ("id", "description"),
    "relations": ("relation", "name"),
    "redirects": ("old", "new"),
    "counts": ("name", "id", "count"),
}
"""The columns of the values of a tuple."""

_NAMED = ("names", "aliases", "descriptions", "relations")
"""The kinds whose tuples may include a language."""

_CALLED = {"id": "entity"}
"""The option `columns` has another name for the column of entities."""


def index_given(
    sources_by_kind: Mapping[str, Any],
    out: Path,
    *,
    columns: Mapping[str, str],
    memory: str,
    force: bool,
    **reading: Any,
) -> Built:
    """Build a knowledge base from the paths, data frames or rows of each kind."""
    options = read_options(columns=columns, **reading)
    with temporary_folder() as folder:
        sources = [
            source
            for kind, rows in sources_by_kind.items()
            for source in sources_of(kind, rows, folder / f"{kind}.jsonl", columns)
        ]
        if not any(source.kind in ("facts", "names", "any") for source in sources):
            raise BadArgument("give at least one of facts, names, table and rdf", name="facts")
        return build(sources, out, options=options, watch=BuildProgress(), force=force, memory=memory)


def read_options(
    *,
    language: str | None,
    columns: Mapping[str, str],
    list_separator: str | None,
    max_bad: float,
    encoding: str = "",
    sheet: str = "",
    query: str = "",
    jobs: int | None = None,
) -> ReadOptions:
    """Return the read options for Python arguments; `language` None means the default languages."""
    return ReadOptions(
        language=DEFAULT_LANGUAGES if language is None else language,
        columns=columns,
        list_separator=list_separator,
        max_bad=max_bad,
        wide=wide_of(columns, sheet=sheet, query=query),
        encoding=encoding,
        jobs=jobs or default_jobs(),
    )


def sources_of(kind: str, rows: Any, path: Path, columns: Mapping[str, str]) -> Iterator[Source]:
    """Yield the files of a kind, or the file that its rows are written to."""
    if isinstance(rows, str | os.PathLike):
        rows = [rows]
    batches = _frame_batches(kind, rows)
    if batches is None:
        if not isinstance(rows, Iterable):
            raise BadArgument(f"{kind}: expected paths, a data frame or rows, found {rows!r}", name=kind)
        remaining = iter(rows)
        first = next(remaining, None)
        if first is None:
            return
        if isinstance(first, str | os.PathLike):
            yield from (Source.given(kind, Path(name)) for name in chain([first], remaining))
            return
        batches = _row_batches(kind, chain([first], remaining), columns)
    if kind in ("rdf", "wikidata"):
        raise BadArgument(f"{kind}: expected paths, found rows", name=kind)
    path = path.with_suffix(".txt" if kind == "counts" else ".arrow")
    if _write_counts(batches, path) if kind == "counts" else _write_batches(batches, path):
        yield Source.given(kind, path, f"{kind} given in Python")


def _frame_batches(kind: str, frame: Any) -> Iterator[pa.RecordBatch] | None:
    """Return the rows of a pandas data frame or an Arrow stream (polars, DuckDB), else None."""
    # The class is checked, since a relation of DuckDB takes any attribute for a column.
    if hasattr(type(frame), "itertuples"):
        parts = (frame.iloc[start : start + ROWS] for start in range(0, len(frame), ROWS))
        return (
            pa.RecordBatch.from_arrays(
                [_series_column(kind, part.iloc[:, place], str(name)) for place, name in enumerate(frame.columns)],
                names=list(map(str, frame.columns)),
            )
            for part in parts
        )
    return iter(pa.RecordBatchReader.from_stream(frame)) if hasattr(type(frame), "__arrow_c_stream__") else None


def _series_column(kind: str, series: Any, name: str) -> pa.Array:
    """Return a column of a data frame; it is converted value by value if it holds several types."""
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return _given_column(kind, list(series), name, 0)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _row_batches(kind: str, rows: Iterable[Any], columns: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield rows by column; dictionaries bring their own columns."""
    heads = _HEADS.get(kind, ())
    named = [columns.get(_CALLED.get(head, head), head) for head in heads]
    layouts = {len(heads): named}
    if kind in _NAMED:
        layouts[3] = [*named, columns.get("language", "language")]
    if kind == "counts":
        layouts[2] = named[1:]
    remaining, before = iter(rows), 0
    while part := list(islice(remaining, ROWS)):
        records: list[dict[str, Any]] = []
        for number, row in enumerate(part, before + 1):
            if isinstance(row, dict):
                records.append(row)
            elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) in layouts:
                records.append(dict(zip(layouts[len(row)], row, strict=True)))
            else:
                raise BadArgument(f"{kind}: row {number} is {row!r}, expected {', '.join(heads)}", name=kind)
        names = list(dict.fromkeys(name for record in records for name in record))
        arrays = [_given_column(kind, [record.get(name) for record in records], str(name), before) for name in names]
        yield pa.RecordBatch.from_arrays(arrays, names=list(map(str, names)))
        before += len(part)


def _given_column(kind: str, values: list[Any], name: str, before: int) -> pa.Array:
    """Return Python values as a column of text or lists of text; raise BadArgument for other values."""
    values, strange = list(map(_plain, values)), list[StrangeCell]()
    column = value_column(values, name, strange, strict=False)
    if strange:
        cell = strange[0]
        problem = f"row {before + cell.row + 1} is {values[cell.row]!r} under {name} ({cell.fault})"
        raise BadArgument(f"{kind}: {problem}", name=kind)
    return column


def _write_batches(batches: Iterable[pa.RecordBatch], path: Path) -> bool:
    """Write tables to a file, starting a new stream when the columns change; return whether there was a row."""
    rows = 0
    with path.open("wb") as file:
        for schema, group in groupby(batches, key=lambda batch: batch.schema):
            with ipc.new_stream(file, schema) as stream:
                for batch in group:
                    rows += batch.num_rows
                    stream.write_batch(batch)
    return rows > 0


def _write_counts(batches: Iterable[pa.RecordBatch], path: Path) -> bool:
    """Write counts in the format of files of counts; return whether there was any."""
    records = (record for batch in batches for record in batch.to_pylist())
    heads = _HEADS["counts"]
    cells = ([str(record[head]) for head in heads if record.get(head) is not None] for record in records)
    return write_lines(("\t".join(" ".join(cell.split()) for cell in row) for row in cells), path)


def json_lines(kind: str, records: Iterable[dict[str, Any]]) -> Iterator[str]:
    for number, record in enumerate(records, 1):
        try:
            yield json.dumps({str(name): _plain(value) for name, value in record.items()})
        except TypeError as error:
            raise BadArgument(f"{kind}: row {number} is {record!r} ({error})", name=kind) from error


def write_lines(lines: Iterable[str], path: Path) -> bool:
    """Write lines to a file; return whether there was any."""
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(f"{line}\n" for line in lines)
        return file.tell() > 0


def _plain(value: Any) -> Any:
    """Return a NumPy value as a Python one, a date or Decimal as text, and None for a missing value such as NaN."""
    value = value.item() if hasattr(value, "item") else value.tolist() if hasattr(value, "tolist") else value
    if hasattr(value, "isoformat"):
        value = value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, Decimal) and value.is_finite():
        value = f"{value:f}"
    return None if value is None or bool(value != value) else value
