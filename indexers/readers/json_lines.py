"""JSON Lines and Python values laid out in columns, one object per row."""

import json
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from kbtools.indexers.readers.batches import BOM, Block, RecordBatch, Rows, Skips, flaw, read_lines
from kbtools.indexers.readers.delimited import layout_of
from kbtools.indexers.readers.json_documents import as_json_lines, fields_of
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.table_rows import NO_TEXT, Layout, StrangeCell, TableRows, laid_out


class JSONLinesReader:
    """The reader `jsonl`: one JSON object per line; a value may be a list.

    A block is parsed at once as an array of its lines; if that fails, line by line.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    sample: ClassVar[bytes] = (
        b'{"subject": "Q1", "relation": "capital", "object": ["Q2", "Q3"]}\nbroken\n'
        b'{"subject": "Q2", "relation": "country", "object": "Q1", "source": "x"}\n'
    )

    def __init__(self, source: Source, options: ReadOptions, skips: Skips, layout: Layout | None = None) -> None:
        self.layout = layout or layout_of(source, options, skips)
        self.path = source.path
        self.skips = skips

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        return laid_out(self.layout, self.rows(blocks))

    def rows(self, blocks: Iterable[Block]) -> Iterator[TableRows]:
        decoder = DECODER if self.layout.strict else _AS_WRITTEN
        for block in as_json_lines(blocks, self.path):
            records = _parse_block(block.text, decoder)
            if records is None:
                records_by_line = _parse_lines(block, self.skips, decoder)
            else:
                self.skips.lines += len(records)
                records_by_line = dict(enumerate(records, block.first_line))
            if not self.layout.strict and block.text.count(b"{") > len(records_by_line):
                records_by_line = {line: dict(fields_of(record)) for line, record in records_by_line.items()}
            if records_by_line:
                columns, strange = _object_columns(list(records_by_line.values()), self.layout)
                yield TableRows(columns, list(records_by_line), strange, block.text, block.first_line)


def _parse_block(text: bytes, decoder: json.JSONDecoder) -> list[dict[str, Any]] | None:
    """Parse a block at once; return None unless every line appears to be exactly one object."""
    lines = text.count(b"\n")
    # Every line must begin with a brace and contain nothing that would differ after parsing.
    if text.count(b"\n{") + text.startswith(b"{") != lines or b"\\u0000" in text or b"\r" in text or BOM in text:
        return None
    try:
        # One array of all lines costs one call of the parser instead of one per line.
        records = decoder.decode("[" + text.decode().rstrip("\n").replace("\n", ",") + "]")
    except (ValueError, RecursionError):
        return None
    return records if len(records) == lines and all(type(record) is dict for record in records) else None


def _parse_lines(block: Block, skips: Skips, decoder: json.JSONDecoder) -> dict[int, dict[str, Any]]:
    """Parse a block line by line; return the object of each line that holds one and count the other lines."""
    records: dict[int, dict[str, Any]] = {}

    def keep(number: int, line: str, rows: Rows, skips: Skips) -> None:
        try:
            record = decoder.decode(line)
        except (ValueError, RecursionError) as error:
            skips.add("invalid JSON", line=number, text=line, reason=error)
            return
        if isinstance(record, dict):
            records[number] = record
        else:
            skips.add("not a JSON object", line=number, text=line)

    read_lines(block, keep, skips)
    return records


def _object_columns(records: list[dict[str, Any]], layout: Layout) -> tuple[pa.RecordBatch, list[StrangeCell]]:
    """Lay out the fields that the table needs, null if an object lacks one."""
    first = records[0].keys()
    mixed = any(record.keys() != first for record in records)
    fields = dict.fromkeys(field for record in records for field in record) if mixed else records[0]
    names = layout.needs(fields)
    strange: list[StrangeCell] = []
    arrays = [
        value_column([record.get(name) for record in records], name, strange, strict=layout.strict) for name in names
    ]
    if not names:
        # Objects without any needed field still count.
        return pa.record_batch({"": pa.nulls(len(records), pa.string())}), []
    return pa.RecordBatch.from_arrays(arrays, names=names), strange


def value_column(values: Sequence[object], name: str, strange: list[StrangeCell], *, strict: bool) -> pa.Array:
    """Lay out Python values as text, or as lists of text if any is a list; other values become strange cells."""
    kinds = {type(value) for value in values} - {type(None)}
    # A shortcut for the usual columns, with the same result as the code below.
    if kinds <= {int}:
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if kinds <= {str}:
        try:
            column = pa.array(values, pa.string())
        except UnicodeEncodeError:
            pass
        else:
            return column
    lists: list[list[str]] = []
    for row, value in enumerate(values):
        lists.append([])
        for part in _innermost(value, strict=strict):
            text = plain_text(part, strict=strict)
            fault = NO_TEXT if text is None else flaw(text)
            if text is None or fault:
                strange.append(StrangeCell(row, name, fault))
            else:
                lists[-1].append(text)
    if list in kinds:
        return pa.array(lists, pa.list_(pa.string()))
    return pa.array([texts[0] if texts else None for texts in lists], pa.string())


def _innermost(value: object, *, strict: bool) -> Iterator[object]:
    """Yield a value or the parts of a list, nested lists included unless `strict`; nothing for null."""
    if isinstance(value, list):
        for part in value:
            yield from _innermost(part, strict=strict) if not (strict and isinstance(part, list)) else [part]
    elif value is not None:
        yield value


def plain_text(value: object, *, strict: bool = True) -> str | None:
    """Return a value as text; None for an object, a number that is not finite, and, if `strict`, a truth value."""
    if isinstance(value, str):
        return value
    # Python counts True as an int, so it would become "True".
    if isinstance(value, bool):
        return None if strict else str(value).lower()
    if isinstance(value, float):
        # A whole number has no empty fraction.
        return repr(value).removesuffix(".0") if isfinite(value) else None
    return str(value) if isinstance(value, int) else None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its fields; raise ValueError if two have the same name."""
    record = dict(pairs)
    if len(record) != len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"two fields {twice!r}")
    return record


def _as_written(number: str) -> float | str:
    """Return a number as its text, unless it is not finite."""
    return number if isfinite(float(number)) else float(number)


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unrepeated)
_AS_WRITTEN = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unrepeated, parse_float=_as_written)
"""The parser for tables of entities, in which numbers stay as written."""
