"""Plain tables of a person's own knowledge base: TSV and CSV with a header, JSON Lines with named fields."""

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, product

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.records import Kind, Rows, flaw
from kbtools.indexers.readers.release import read_lines
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import Block
from kbtools.kb.ids import canonical_id, canonical_property

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "facts": ("subject", "relation", "object"),
    "names": ("entity", "name", "alias"),
    "types": ("entity", "type"),
}
OPTIONAL = {"name", "alias"}
USUAL = {
    "subject": ("subject", "head", "s"),
    "relation": ("relation", "predicate", "property", "p"),
    "object": ("object", "tail", "o"),
    "entity": ("entity", "id", "subject"),
    "name": ("name", "label", "title"),
    "alias": ("alias", "aliases"),
    "type": ("type", "types", "class"),
}


@dataclass(slots=True)
class TableReader:
    """Read one table: its header gives the columns, by their usual names or by those the caller gives."""

    path: str
    kind: Kind
    suffix: str
    columns: Mapping[str, str] = field(default_factory=dict)
    header: list[str] | None = None

    def read(self, block: Block, skips: Skips) -> Rows:
        """Read a block of rows; a row without what its kind needs is counted and left out."""
        parse = self.parse_object if self.suffix == ".jsonl" else self.parse_row

        def read_row(number: int, line: str, rows: Rows, skips: Skips) -> None:
            record = parse(number, line, skips)
            if record is not None:
                self.keep(record, number, line, rows, skips)

        return read_lines(block, read_row, skips)

    def parse_object(self, number: int, line: str, skips: Skips) -> dict[str, object] | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            skips.add("no JSON", line=number, text=line, reason=error)
            return None
        if not isinstance(record, dict):
            skips.add("no JSON object", line=number, text=line)
            return None
        return record

    def parse_row(self, number: int, line: str, skips: Skips) -> dict[str, object] | None:
        try:
            fields = line.split("\t") if self.suffix == ".tsv" else next(csv.reader([line], strict=True))
        except csv.Error as error:
            skips.add("no CSV row", line=number, text=line, reason=error)
            return None
        if self.header is None:
            self.header = [name.strip() for name in fields]
            self.check_header(self.header, number)
            return None
        if len(fields) != len(self.header):
            skips.add(f"{len(fields)} columns where {len(self.header)} were expected", line=number, text=line)
            return None
        return dict(zip(self.header, fields, strict=True))

    def check_header(self, header: list[str], number: int) -> None:
        """Refuse a header that lacks what the kind needs or the caller named."""
        needed = [column for column in COLUMNS[self.kind] if column not in OPTIONAL or column in self.columns]
        missing = [column for column in needed if self.find(column, header) is None]
        if self.kind == "names" and self.find("name", header) is None and self.find("alias", header) is None:
            missing = missing or ["name"]
        if missing:
            raise WrongFormat(
                f"{self.path}:{number}: the header {header!r} has no column for {', '.join(missing)}; "
                f"name it with --column {missing[0]}=HEADER",
                path=self.path,
                line=number,
                missing=missing,
            )

    def find(self, column: str, header: Iterable[str]) -> str | None:
        """Find the header of a column: the caller's, else the first usual one."""
        if column in self.columns:
            return self.columns[column] if self.columns[column] in header else None
        by_fold = {name.casefold(): name for name in header}
        return next((by_fold[usual] for usual in USUAL[column] if usual in by_fold), None)

    def values(self, record: dict[str, object], column: str) -> list[str] | None:
        """Read a cell as strings, several from a JSON array; nothing if it holds what is neither text nor number."""
        header = self.find(column, record)
        value = record.get(header) if header is not None else None
        cells = [cell for cell in (value if isinstance(value, list) else [value]) if cell is not None]
        if not all(isinstance(cell, str | int | float) and not isinstance(cell, bool) for cell in cells):
            return None
        return [text for text in (str(cell).strip() for cell in cells) if text]

    def keep(self, record: dict[str, object], number: int, line: str, rows: Rows, skips: Skips) -> None:
        """Turn a record into rows of its kind."""
        found: dict[str, list[str]] = {}
        for column in COLUMNS[self.kind]:
            values = self.values(record, column)
            if values is None:
                skips.add(f"neither text nor number under {column}", line=number, text=line)
                return
            if column in ("relation", "type"):
                beside = next(iter(found.get("subject") or found.get("entity") or ()), "")
                found[column] = [canonical_property(value, beside=beside) for value in values]
            else:
                found[column] = values if column in ("name", "alias") else [canonical_id(value) for value in values]
        fault = self.fault(found)
        if fault:
            skips.add(fault, line=number, text=line)
        elif self.kind == "facts":
            rows.facts.extend(product(found["subject"], found["relation"], found["object"]))
        elif self.kind == "types":
            rows.types.extend(product(found["entity"], found["type"]))
        else:
            rows.names.extend(product(found["entity"], [False], found["name"]))
            rows.names.extend(product(found["entity"], [True], found["alias"]))

    def fault(self, found: dict[str, list[str]]) -> str:
        """Name what makes a record unusable."""
        lacking = [column for column, values in found.items() if column not in OPTIONAL and not all(values or [""])]
        if self.kind == "names" and not found["name"] and not found["alias"]:
            lacking.append("name")
        if lacking:
            return f"nothing under {', '.join(lacking)}"
        return flaw(*chain.from_iterable(found.values()))
