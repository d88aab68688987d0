"""JSON Lines: an object a line, its fields found by their names.

A block is parsed at once, as one array of its lines, and laid out in columns; odd lines are read one by one. Both
give the same rows.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from kbtools.indexers.readers.batches import RecordBatch, Rows
from kbtools.indexers.readers.column_batches import read_columns
from kbtools.indexers.readers.lines import BOM, Block, read_lines
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.table_columns import TableColumns, plain_text


class JSONLinesReader:
    """The reader `jsonl`: JSON objects, a line each; a value may be a list."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    sample: ClassVar[bytes] = (
        b'{"subject": "Q1", "relation": "capital", "object": ["Q2", "Q3"]}\nbroken\n'
        b'{"subject": "Q2", "relation": "country", "object": "Q1", "source": "x"}\n'
    )

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.table = TableColumns(source, options, skips)
        self.options = options
        self.skips = skips
        self.fields: dict[str, None] = {}

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read each block; at the end name the fields that were not used, or refuse where a named one never came."""
        for block in blocks:
            yield from self.read_block(block)
        heads = self.table.heads(self.fields)
        absent = [name for name in self.table.names if name in self.options.columns and not heads[name]]
        if absent and self.fields:
            raise self.table.unfit(1, absent, f"a file of objects with the fields {list(self.fields)[:20]!r}")
        used = {head for heads_of in heads.values() for head in heads_of}
        self.table.note_unused([field for field in self.fields if field not in used], 1)

    def read_block(self, block: Block) -> list[RecordBatch]:
        """Read the objects of a block in columns, and those that are odd one by one."""
        records = parse_block(block.text)
        columns = None if records is None else self.columns(records)
        if records is None or columns is None:
            return list(read_lines(block, self.read_line, self.skips).batches())
        self.skips.lines += len(records)
        batches, odd = read_columns(self.table, columns, block.first_line)
        if odd:
            lines, rows = block.text.split(b"\n"), Rows()
            for place in odd:
                self.keep(records[place], block.first_line + place, lines[place].decode(), rows)
            batches += rows.batches()
        return batches

    def columns(self, records: list[dict[str, Any]]) -> dict[str, pa.Array] | None:
        """Lay records out as columns of text, without a value where one is neither text nor number.

        Nothing where a column stands under several heads, or text is none.
        """
        fields = dict.fromkeys(field for record in records for field in record) if mixed(records) else records[0]
        self.fields.update(dict.fromkeys(fields))
        columns = {}
        for name, heads in self.table.heads(fields).items():
            if len(heads) > 1:
                return None
            if heads:
                column = [record.get(heads[0], "") for record in records]
                if set(map(type, column)) != {str}:
                    column = ["" if value is None else plain_text(value) for value in column]
                try:
                    columns[name] = pa.array(column, pa.string())
                except UnicodeEncodeError:
                    return None
        return columns or None

    def read_line(self, number: int, line: str, rows: Rows, skips: Skips) -> None:
        """Read one line."""
        record = parse_object(number, line, skips)
        if record is not None:
            self.fields.update(dict.fromkeys(record))
            self.keep(record, number, line, rows)

    def keep(self, record: dict[str, Any], number: int, line: str, rows: Rows) -> None:
        """Turn an object into rows."""
        heads = self.table.heads(record)
        self.table.keep({name: record[fields[0]] for name, fields in heads.items() if fields}, number, line, rows)
        rows.mark(number)


def parse_block(text: bytes) -> list[dict[str, Any]] | None:
    """Parse a block at once; nothing unless every line of it is one object, as far as can be told."""
    lines = text.count(b"\n")
    # Each line begins with a brace, and nothing in it would be text of another kind once it is parsed.
    if text.count(b"\n{") + text.startswith(b"{") != lines or b"\\u0000" in text or b"\r" in text or BOM in text:
        return None
    try:
        # One array of all lines: one call of the parser, which is what a line each would cost most.
        records = DECODER.decode("[" + text.decode().rstrip("\n").replace("\n", ",") + "]")
    except (ValueError, RecursionError):
        return None
    return records if len(records) == lines and all(type(record) is dict for record in records) else None


def parse_object(number: int, line: str, skips: Skips) -> dict[str, Any] | None:
    """Parse a line; count it where it is no object."""
    try:
        record = DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        skips.add("no JSON", line=number, text=line, reason=error)
        return None
    if not isinstance(record, dict):
        skips.add("no JSON object", line=number, text=line)
        return None
    return record


def mixed(records: list[dict[str, Any]]) -> bool:
    """Tell whether some records have other fields than the first."""
    first = records[0].keys()
    return any(record.keys() != first for record in records)


def refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its fields; raise ValueError where two have one name."""
    record = dict(pairs)
    if len(record) != len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"two fields {twice!r}")
    return record


DECODER = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=unrepeated)
