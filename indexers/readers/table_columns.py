"""Columns of a table and what they hold: found by their heads, taken row by row or all rows at once."""

from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import isfinite, prod

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS, SCHEMAS, Kind, RecordBatch, Rows, flaw
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.kb.ids import TOPIC, canonical_id, canonical_property
from kbtools.kb.table_heads import USUAL

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "facts": ("subject", "relation", "object"),
    "names": ("entity", "name", "alias"),
    "types": ("entity", "type"),
    "relations": ("relation", "name"),
    "redirects": ("old", "new"),
}
OPTIONAL = {"name", "alias"}
TEXTS = {"name", "alias"}
PROPERTIES = {"relation": "subject", "type": "entity"}
"""Columns of relations and types, and the column of ids beside them."""

MOST_ROWS = 100_000
"""Rows of one line with several lists, unless each of its values makes one: 20 KB can hold three lists of 1,000."""

REWRITTEN = r"^(<|fb:|ns:|/?[mg]/[01]|(https?://)?(www\.|rdf\.)?freebase\.com/)"
"""How every spelling begins that `canonical_id` rewrites."""

LISTED = r"^\[.*\]$|\S\|\S"
"""Cells that look like lists."""


class TableColumns:
    """The columns that one table has for its kind: which heads they stand under, and their values as rows."""

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        if source.kind == "any":
            suffix = source.path.suffix.lower().strip(".")
            raise WrongFormat(f"{source.path}: --rdf takes N-Triples, found {suffix}", path=str(source.path))
        self.path = str(source.path)
        self.kind: Kind = source.kind
        self.options = options
        self.skips = skips
        self.names = COLUMNS[source.kind]
        self.lists_noted = options.list_separator is not None

    def heads(self, header: Iterable[str]) -> dict[str, list[str]]:
        """Find the heads of each column, the first to be preferred: the caller's, else the usual ones."""
        by_fold: dict[str, list[str]] = {}
        for head in header:
            by_fold.setdefault(head.casefold(), []).append(head)
        usual = {name: chain.from_iterable(by_fold.get(head, ()) for head in self.usual(name)) for name in self.names}
        return {
            name: [head for head in header if head == self.options.columns[name]]
            if name in self.options.columns
            else list(usual[name])
            for name in self.names
        }

    def usual(self, name: str) -> tuple[str, ...]:
        """List the usual heads of a column; a file of relations calls its ids so too."""
        return (*USUAL[name], "id") if self.kind == "relations" and name == "relation" else USUAL[name]

    def missing(self, heads: Mapping[str, Sequence[str]]) -> list[str]:
        """Name the columns that the kind needs, or the caller named, and that have no head."""
        columns = self.options.columns
        missing = [name for name in self.names if not heads[name] and (self.needs(name) or name in columns)]
        return missing or (["name"] if "name" in heads and not heads["name"] and not heads.get("alias") else [])

    def needs(self, name: str) -> bool:
        return name not in OPTIONAL

    def check_header(self, header: Sequence[str], number: int, *, advice: str = "") -> dict[str, str]:
        """Give the head of each column; refuse a header that lacks one, or has one of them twice."""
        heads = self.heads(header)
        if missing := self.missing(heads):
            raise self.unfit(number, missing, f"the header {list(header)!r}", advice)
        for name, options in heads.items():
            twice = [head for head in options if head.casefold() == options[0].casefold()]
            if len(twice) > 1:
                raise WrongFormat(
                    f"{self.path}:{number}: found {len(twice)} columns {twice[0]!r}, expected one for {name}; "
                    "rename the others in the header",
                    path=self.path,
                    line=number,
                )
        taken = {name: options[0] for name, options in heads.items() if options}
        self.note_unused([head for head in header if head not in taken.values()], number)
        return taken

    def unfit(self, number: int, missing: Sequence[str], header: str, advice: str = "") -> WrongFormat:
        """Say which columns a header lacks, and which of them the caller named."""
        named = self.options.columns.get(missing[0])
        given = f" (--column {missing[0]}={named} was given, and there is no {named!r})" if named else ""
        return WrongFormat(
            f"{self.path}:{number}: {header} has no column for {', '.join(missing)}; "
            f"name it with --column {missing[0]}=HEADER{given}{advice}",
            path=self.path,
            line=number,
            missing=list(missing),
        )

    def note_unused(self, unused: Sequence[str], number: int) -> None:
        """Name the columns that are not used, and how they would be."""
        if unused:
            shown = ", ".join(map(repr, unused[:10])) + (", ..." if len(unused) > 10 else "")
            example = f"{self.names[-1]}={unused[0]}"
            self.skips.note(f"columns not used: {shown}; --column {example} takes one", line=number)

    # Row by row.

    def keep(self, cells: Mapping[str, object], number: int, line: str, rows: Rows) -> None:
        """Turn the cells of a row into rows of its kind, or count why not."""
        columns: dict[str, list[str]] = {}
        for name in self.names:
            values = self.values(cells.get(name))
            if values is None:
                self.skips.add(f"neither text nor number under {name}", line=number, text=line)
                return
            columns[name] = self.spell(name, values, columns)
        fault = self.fault(columns)
        if fault:
            self.skips.add(fault, line=number, text=line)
        elif self.kind == "names":
            rows.names.extend(product(columns["entity"], [0], columns["name"]))
            rows.names.extend(product(columns["entity"], [ALIAS], columns["alias"]))
        else:
            list_of_kind: list[tuple[str, ...]] = getattr(rows, self.kind)
            list_of_kind.extend(product(*columns.values()))

    def values(self, cell: object) -> list[str] | None:
        """Read a cell as strings, several from a list; nothing if it holds what is neither text nor number."""
        cells = [value for value in (cell if isinstance(cell, list) else [cell]) if value is not None]
        texts: list[str] = []
        for value in cells:
            if isinstance(value, str):
                texts.extend(self.divide(value))
            elif isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
                return None
            else:
                texts.append(str(value))
        return [text for text in map(str.strip, texts) if text]

    def divide(self, text: str) -> list[str]:
        """Take a cell with a list apart, if lists were announced: `["a", "b"]`, or parts with the separator between."""
        separator = self.options.list_separator
        if separator is None:
            return [text]
        if text.strip().startswith("[") and text.strip().endswith("]"):
            try:
                values = literal_eval(text.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                values = None
            if isinstance(values, list) and all(isinstance(value, str | int | float) for value in values):
                return list(map(str, values))
        return text.split(separator)

    def spell(self, name: str, values: list[str], columns: Mapping[str, list[str]]) -> list[str]:
        """Give ids their canonical form."""
        if name in TEXTS:
            return values
        if name in PROPERTIES:
            beside = next(iter(columns.get(PROPERTIES[name], ())), "")
            return [canonical_property(value, beside=beside) for value in values]
        return [canonical_id(value) for value in values]

    def fault(self, columns: dict[str, list[str]]) -> str:
        """Name what makes a record unusable."""
        lacking = [name for name, values in columns.items() if self.needs(name) and not all(values or [""])]
        if "name" in columns and not columns["name"] and not columns.get("alias"):
            lacking.append("name")
        if lacking:
            return f"nothing under {', '.join(lacking)}"
        counts = {name: len(values) for name, values in columns.items()}
        total = sum(counts.values())
        counts["name"] = counts.get("name", 1) + counts.pop("alias", 0)
        if prod(counts.values()) > max(MOST_ROWS, total):
            return f"lists that make {prod(counts.values()):,} rows, more than {MOST_ROWS:,}"
        return flaw(*chain.from_iterable(columns.values()))

    # All rows at once.

    def batches(self, columns: Mapping[str, pa.Array], line: int) -> tuple[list[RecordBatch], list[int]]:
        """Turn columns of text into tables; rows that need a closer look are left out, and their places given.

        Those are the rows without a value, or with one that is empty or a list.
        """
        length = len(next(iter(columns.values())))
        empty = pa.array([""] * length, pa.string())
        values: dict[str, pa.Array] = {}
        odd = pa.array([False] * length, pa.bool_())
        for column in columns.values():
            odd = pc.or_(odd, pc.is_null(column)) if column.null_count else odd
        for name in self.names:
            values[name] = pc.utf8_trim_whitespace(pc.fill_null(columns[name], "")) if name in columns else empty
            if name not in TEXTS:
                beside = values.get(PROPERTIES.get(name, ""))
                values[name] = canonical_column(values[name], beside)
            if self.needs(name):
                odd = pc.or_(odd, pc.equal(values[name], ""))
            if self.options.list_separator is not None:
                odd = pc.or_(odd, pc.match_substring(values[name], self.options.list_separator))
                odd = pc.or_(odd, pc.starts_with(values[name], "["))
            elif not self.lists_noted and name not in ("entity", "subject", "relation"):
                self.note_lists(name, values[name], line)
        if "name" in self.names:
            odd = pc.or_(
                odd, pc.equal(pc.add(pc.binary_length(values["name"]), pc.binary_length(values.get("alias", empty))), 0)
            )
        if pc.any(odd).as_py():
            clean = pc.invert(odd)
            values = {name: column.filter(clean) for name, column in values.items()}
        return [batch for batch in self.tables(values, line) if batch.table.num_rows], pc.indices_nonzero(
            odd
        ).to_pylist()

    def tables(self, values: Mapping[str, pa.Array], line: int) -> list[RecordBatch]:
        """Lay columns of clean values out as the tables of their kind."""
        schema = SCHEMAS[self.kind]
        if self.kind != "names":
            return [RecordBatch(self.kind, pa.Table.from_arrays(list(values.values()), schema=schema), line)]
        batches = []
        for name, rank in (("name", 0), ("alias", ALIAS)):
            named = pc.not_equal(values[name], "")
            texts, entities = values[name].filter(named), values["entity"].filter(named)
            ranks = pa.array([rank], pa.uint8()).take(pa.array([0] * len(texts), pa.int64()))
            batches.append(RecordBatch("names", pa.Table.from_arrays([entities, ranks, texts], schema=schema), line))
        return batches

    def note_lists(self, name: str, column: pa.Array, line: int) -> None:
        """Say that cells look like lists, once a file."""
        listed = column.filter(pc.match_substring_regex(column, LISTED))
        if len(listed):
            self.lists_noted = True
            self.skips.note(
                f"cells under {name} that look like lists, such as {listed[0].as_py()[:60]!r}; "
                "--list-separator '|' takes them apart",
                line=line,
            )


def canonical_column(column: pa.Array, beside: pa.Array | None) -> pa.Array:
    """Give the ids of a column their canonical form; `beside` holds those that tell Freebase's properties."""
    column = respell(column, pc.match_substring_regex(column, REWRITTEN), "")
    if beside is None:
        return column
    property_of_topic = pc.and_(pc.starts_with(column, "/"), pc.match_substring_regex(beside, f"^({TOPIC.pattern})$"))
    return respell(column, property_of_topic, "m.0abc")


def respell(column: pa.Array, mask: pa.Array, beside: str) -> pa.Array:
    """Rewrite the ids of some rows, each distinct one once."""
    if not pc.any(mask).as_py():
        return column
    distinct = column.filter(mask).dictionary_encode()
    spelt = [canonical_property(spelling, beside=beside) for spelling in distinct.dictionary.to_pylist()]
    return pc.replace_with_mask(column, mask, pa.array(spelt, pa.string()).take(distinct.indices))
