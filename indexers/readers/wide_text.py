"""Tables of an entity a row in text, CSV, TSV and JSON Lines: their rows in columns, with the line of each.

Rows are read as those of other tables are: what cannot be read is a bad line, and costs no other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kbtools.indexers.readers.batches import Rows, flaw
from kbtools.indexers.readers.delimited import SEPARATORS, DelimitedReader, carry_rests
from kbtools.indexers.readers.json_lines import parse_block, parse_object
from kbtools.indexers.readers.lines import Block, lines_of, read_lines
from kbtools.indexers.readers.quoted_rows import LONGEST_CELL, fault_of, read_row, split_cells
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.table_columns import plain_text


@dataclass(frozen=True, slots=True)
class WideRows:
    """Rows in columns of text or of lists of it, and the line of each."""

    columns: pa.RecordBatch
    lines: Sequence[int]


class DelimitedRows(DelimitedReader):
    """The rows of a table with a header; its separator is the usual one, or another that gives the column of ids."""

    def __init__(self, separator: str, subject: str, skips: Skips) -> None:
        self.skips = skips
        self.subject = subject
        self.divider = separator
        self.header = []

    def rows(self, blocks: Iterable[Block]) -> Iterator[WideRows]:
        return carry_rests(blocks, self.rows_of)

    def choose_header(self, line: str, number: int) -> None:
        """Divide the header by the usual separator, or by another if only that one gives the column of ids."""
        headers = {mark: [head.strip() for head in split_cells(line, mark)] for mark in (self.divider, *SEPARATORS)}
        fitting = [mark for mark, header in headers.items() if self.subject in header]
        if fitting and fitting[0] != self.divider:
            self.divider = fitting[0]
            self.skips.note(f"columns divided by {SEPARATORS[self.divider]}", line=number)
        self.header = headers[self.divider]

    def rows_of(self, block: Block, *, last: bool) -> tuple[list[WideRows], Block]:
        """Read the rows of a block; give what is left of it, a row without its end."""
        if not self.header:
            block = self.read_header(block)
        if not block.text:
            return [], block
        text = block.text.replace(b"\r\n", b"\n")
        end = self.end_of_rows(text, last=last)
        parsed = self.in_columns(text[:end]) if end else None
        if parsed is None or parsed.spanning or parsed.ragged:
            return self.rows_by_line(block, last=last)
        columns = [column.combine_chunks() for column in parsed.columns.columns]
        lines = range(block.first_line, block.first_line + len(parsed.columns))
        self.skips.lines += len(lines)
        return [WideRows(pa.RecordBatch.from_arrays(columns, names=self.header), lines)], Block(text[end:], lines.stop)

    def rows_by_line(self, block: Block, *, last: bool) -> tuple[list[WideRows], Block]:
        """Read row by row, whatever the block holds; give what is left of it, a row without its end."""
        lines, place, rest = list(lines_of(block)), 0, Block(b"", 0)
        rows: dict[int, list[str]] = {}
        while place < len(lines):
            number, raw = lines[place]
            row = read_row(lines, place, separator=self.divider, width=len(self.header))
            if row.open and not last and len(lines) - place < LONGEST_CELL:
                rest = Block(b"".join(line + b"\n" for _, line in lines[place:]), number)
                break
            self.skips.lines += row.lines
            place += row.lines
            if not raw.strip():
                self.skips.add("blank line", line=number, text="", bad=False)
            elif fault := fault_of(row, len(self.header)) or flaw(*row.cells):
                kind, _, reason = fault.partition(": ")
                self.skips.add(kind, line=number, text=raw.decode(errors="backslashreplace"), reason=reason)
            else:
                rows[number] = row.cells
        if not rows:
            return [], rest
        columns = [pa.array(column, pa.string()) for column in zip(*rows.values(), strict=True)]
        return [WideRows(pa.RecordBatch.from_arrays(columns, names=self.header), list(rows))], rest


def read_objects(blocks: Iterable[Block], skips: Skips) -> Iterator[WideRows]:
    """Read an object a line; a field that only some have is empty in the others."""
    for block in blocks:
        records = parse_block(block.text)
        if records is None:
            numbered = parse_lines(block, skips)
            records, numbers = list(numbered.values()), list(numbered)
        else:
            skips.lines += len(records)
            numbers = list(range(block.first_line, block.first_line + len(records)))
        fields = list(dict.fromkeys(field for record in records for field in record))
        arrays = [object_column(field, [record.get(field) for record in records], numbers, skips) for field in fields]
        if arrays:
            yield WideRows(pa.RecordBatch.from_arrays(arrays, names=fields), numbers)


def parse_lines(block: Block, skips: Skips) -> dict[int, dict[str, Any]]:
    """Parse a block line by line: the object of each line that holds one."""
    records: dict[int, dict[str, Any]] = {}

    def keep(number: int, line: str, rows: Rows, skips: Skips) -> None:
        record = parse_object(number, line, skips)
        if record is not None:
            records[number] = record

    read_lines(block, keep, skips)
    return records


def object_column(field: str, values: Sequence[object], numbers: Sequence[int], skips: Skips) -> pa.Array:
    """Lay the values of a field out as text, or as lists of it where one is a list; what is neither is counted."""
    kinds = {type(value) for value in values} - {type(None)}
    # The usual columns at once; what follows would give the same.
    if kinds <= {int}:
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if kinds <= {str} and not flaw(*filter(None, map(str, values))):
        return pa.array(values, pa.string())
    texts: list[list[str]] = []
    for value, number in zip(values, numbers, strict=True):
        texts.append([])
        for part in innermost(value):
            text = str(part).lower() if isinstance(part, bool) else plain_text(part)
            if text is None or flaw(text):
                kind = flaw(text) if text else "neither text nor number"
                skips.add(f"{kind} under {field}, left out", line=number, text=str(value), bad=False)
            else:
                texts[-1].append(text)
    if any(isinstance(value, list) for value in values):
        return pa.array(texts, pa.list_(pa.string()))
    return pa.array([text[0] if text else None for text in texts], pa.string())


def innermost(value: object) -> Iterator[object]:
    """Yield a value, or those of a list, of lists inside it too; nothing for null."""
    if isinstance(value, list):
        for part in value:
            yield from innermost(part)
    elif value is not None:
        yield value
