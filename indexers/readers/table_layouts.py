"""Rows of a table laid out as record batches: a fact, a name, a type per row, or an entity per row.

Both lay-outs take columns of text or of lists of it, a block of rows at once; rows that cannot be used are counted.
"""

import re
import shlex
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import ALIAS, SCHEMAS, Kind, RecordBatch, repeated
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.lines import BOM
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.kb.ids import TOPIC, canonical_property
from kbtools.kb.table_heads import ENTITY_ROLES, NAME_HEADS, SUFFIX, USUAL, entity_role, plain_head

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "facts": ("subject", "relation", "object"),
    "names": ("entity", "language", "name", "description", "alias"),
    "types": ("entity", "type"),
    "relations": ("relation", "name"),
    "redirects": ("old", "new"),
}
SAYING = ("name", "alias", "description")
OPTIONAL = TEXTS = {"language", *SAYING}
PROPERTIES = {"relation": "subject", "type": "entity"}
"""Columns of relations and types, and the column of ids beside them."""

MOST_ROWS = 100_000
"""Rows of one line with several lists, unless each of its values makes one: 20 KB can hold three lists of 1,000."""

MOST_COLUMNS = 10_000
"""Columns of a table: more are no table, and cost a minute for a million of them."""

REWRITTEN = r"^(<|fb:|ns:|/?[mg]/[01]|(https?://)?(www\.|rdf\.)?freebase\.com/)"
"""The beginnings of all spellings that `canonical_id` rewrites."""

LISTED = r"^\[.*\]$|\S\|\S"
"""Cells that look like lists."""

NO_TEXT = "neither text nor number"
"""What a cell holds that is no value: an object, or what is no finite number."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StrangeCell:
    """A cell that holds no text that can be stored: its row, its column, and what it holds."""

    row: int
    column: str
    fault: str


@dataclass(slots=True)
class TableRows:
    """Rows in columns of text or of lists of it, and the line of each; `text` holds the lines from `first_line` on."""

    columns: pa.RecordBatch
    lines: Sequence[int]
    strange: Sequence[StrangeCell] = ()
    text: bytes = b""
    first_line: int = 0
    split: list[bytes] = field(default_factory=list)

    def shown(self, row: int) -> str:
        """Return a row as its file has it, for a report."""
        if not self.text:
            return str(self.columns.slice(row, 1).to_pylist()[0])
        self.split = self.split or self.text.split(b"\n")
        line = self.split[self.lines[row] - self.first_line]
        return line.rstrip(b"\r").removeprefix(BOM).decode(errors="backslashreplace")

    def count(self, faults: Mapping[int, str], skips: Skips) -> None:
        """Count the rows that cannot be used by their fault; a blank line is none."""
        rows_by_fault: dict[str, list[int]] = {}
        for row, fault in sorted(faults.items()):
            blank = fault.startswith("nothing under") and not self.shown(row).strip()
            rows_by_fault.setdefault("blank line" if blank else fault, []).append(row)
        for fault, rows in rows_by_fault.items():
            text = "" if fault == "blank line" else self.shown(rows[0])
            skips.add(fault, line=self.lines[rows[0]], text=text, bad=fault != "blank line", count=len(rows))


class Layout(Protocol):
    """A lay-out of the rows of a table."""

    strict: bool
    """Whether truth values and lists in lists are faults; else they are text, and lists."""

    def fits(self, header: Sequence[str]) -> bool:
        """Return whether a line may be the header of the table."""
        ...

    def begin(self, header: Sequence[str], number: int, *, advice: str = "") -> None:
        """Take the header that stands for all rows; raise WrongFormat where a column is missing."""
        ...

    def needs(self, fields: Iterable[str]) -> list[str]:
        """Return those of some columns that are used."""
        ...

    def lay_out(self, rows: TableRows) -> Iterator[RecordBatch]: ...

    def finish(self) -> None:
        """Note what was not used once all rows are laid out."""
        ...


def layout_of(source: Source, options: ReadOptions, skips: Skips) -> Layout:
    """Return the lay-out of a source."""
    if source.format == WIDE:
        return EntityLayout(source, options, skips)
    return FactLayout(source, options, skips)


def laid_out(layout: Layout, rows: Iterable[TableRows]) -> Iterator[RecordBatch]:
    """Yield the tables of all rows."""
    for part in rows:
        if part.columns.num_rows:
            yield from layout.lay_out(part)
    layout.finish()


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of a column, trimmed: one of each row, maybe empty; or of lists, with the row of each value."""

    texts: pa.Array
    rows: Places | None = None

    def kept(self, mask: pa.Array) -> "Cells":
        """Return some of the values."""
        rows = np.arange(len(self.texts)) if self.rows is None else self.rows
        return Cells(self.texts.filter(mask), rows[mask.to_numpy(zero_copy_only=False)])

    def filled(self) -> "Cells":
        """Leave out the empty values."""
        mask = pc.not_equal(self.texts, "")
        return self if self.rows is None and pc.all(mask).as_py() else self.kept(mask)

    def lacking(self, count: int) -> Places:
        """Return the rows without a value, or with an empty one, in order."""
        blank: Places = pc.indices_nonzero(pc.equal(self.texts, "")).to_numpy().astype(np.int64)
        if self.rows is None:
            return blank
        absent = np.flatnonzero(np.bincount(self.rows, minlength=count) == 0)
        return np.union1d(absent, self.rows[blank])

    def sizes(self, count: int) -> Places:
        """Return the number of values of each row."""
        if self.rows is None:
            return pc.not_equal(self.texts, "").cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]
        return np.bincount(self.rows, minlength=count)

    def first_of_each(self, count: int) -> pa.Array:
        """Return the first value of each row, empty where it has none."""
        assert self.rows is not None
        rows, places = np.unique(self.rows, return_index=True)
        first = np.full(count, len(self.texts))
        first[rows] = places
        return pa.concat_arrays([self.texts, repeated("", 1)]).take(pa.array(first))

    def flawed(self) -> list[int]:
        """List the rows with a NUL byte."""
        if not contains(self.texts, "\0"):
            return []
        places = pc.indices_nonzero(pc.match_substring(self.texts, "\0")).to_numpy()
        return (places if self.rows is None else self.rows[places]).tolist()  # type: ignore[no-any-return]


def contains(column: pa.Array, letter: str) -> bool:
    """Return whether a letter of ASCII is in the memory of a column of text, that of the rows around it too."""
    buffer = column.buffers()[2]
    return buffer is not None and bool((np.frombuffer(buffer, np.uint8) == ord(letter)).any())


def read_cells(column: pa.Array, separator: str | None = None, *, words: bool = False) -> Cells:
    """Return the values of a column: lists are taken apart, in cells with a separator too; their empty parts go.

    Where the separator stands between the `words` of a text, only cells such as `["a", "b"]` are lists.
    """
    if not is_list(column.type):
        column = as_text(column)
        if separator is None:
            return Cells(trimmed(column))
        column = divided(column, separator, words=words)
    rows = np.arange(len(column))
    while is_list(column.type):
        rows = rows[pc.list_parent_indices(column).to_numpy()]
        column = pc.list_flatten(column)
    return Cells(trimmed(as_text(column)), rows).filled()


def first_filled(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the cells of the first column that has one, row by row."""
    if len(columns) == 1:
        return columns[0]
    if any(is_list(column.type) for column in columns):
        kind = pa.list_(pa.string())
        columns = [
            column if is_list(column.type) else pa.array([cell and [cell] for cell in column.to_pylist()], kind)
            for column in columns
        ]
    return pc.coalesce(*columns)


def trimmed(column: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(pc.fill_null(column, "") if column.null_count else column)


def divided(column: pa.Array, separator: str, *, words: bool) -> pa.Array:
    """Take cells with lists apart: `["a", "b"]` as pandas writes it, or parts with the separator between."""
    if not words and not pc.any(pc.match_substring_regex(column, r"^\s*\[.*\]\s*$")).as_py():
        return pc.split_pattern(column, separator)
    lists = [cell and (listed(cell) or ([cell] if words else cell.split(separator))) for cell in column.to_pylist()]
    return pa.array([[] if cell is None else cell or [""] for cell in lists], pa.list_(pa.string()))


def listed(cell: str) -> list[str]:
    """Return the values of a cell that holds a list as Python writes it, none where it holds no such list."""
    if not (cell.strip().startswith("[") and cell.strip().endswith("]")):
        return []
    try:
        values = literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    texts = isinstance(values, list) and all(isinstance(value, str | int | float) for value in values)
    return list(map(str, values)) if texts else []


def as_text(column: pa.Array) -> pa.Array:
    """Write numbers, dates and categories as text; a whole number has no fraction, whatever its column holds."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 1e15))
        numbers = pc.cast(pc.if_else(whole, column, 0), pa.int64())
        return pc.if_else(whole, pc.cast(numbers, pa.string()), pc.cast(column, pa.string()))
    if pa.types.is_timestamp(column.type):
        # A day without an hour is a date.
        texts = pc.replace_substring_regex(pc.cast(column, pa.string()), r" 00:00:00(\.0+)?$", "")
        return pc.replace_substring(texts, " ", "T")
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def canonical_column(column: pa.Array, beside: pa.Array | None = None) -> pa.Array:
    """Give the ids of a column their canonical form; `beside` holds those that tell Freebase's properties."""
    column = respell(column, pc.match_substring_regex(column, REWRITTEN), "")
    if beside is None:
        return column
    property_of_topic = pc.and_(pc.starts_with(column, "/"), pc.match_substring_regex(beside, f"^({TOPIC.pattern})$"))
    # Any id of Freebase says the same of the properties beside it.
    return respell(column, property_of_topic, "m.0abc")


def respell(column: pa.Array, mask: pa.Array, beside: str) -> pa.Array:
    """Rewrite the ids of some rows, each distinct one once."""
    if not pc.any(mask).as_py():
        return column
    distinct = column.filter(mask).dictionary_encode()
    spelt = [canonical_property(spelling, beside=beside) for spelling in distinct.dictionary.to_pylist()]
    return pc.replace_with_mask(column, mask, pa.array(spelt, pa.string()).take(distinct.indices))


def multiplied(columns: Sequence[Cells], kept: Places, count: int) -> list[pa.Array]:
    """Return the columns of the kept rows, a row for every choice of a value of each, the last varying fastest."""
    if all(column.rows is None for column in columns):
        return [column.texts if len(kept) == count else column.texts.take(pa.array(kept)) for column in columns]
    rows, picks = kept, []
    for column in columns:
        if column.rows is None:
            picks.append(rows)
            continue
        sizes = np.bincount(column.rows, minlength=count)
        starts, times = np.cumsum(sizes) - sizes, sizes[rows]
        repeats = np.repeat(np.arange(len(rows)), times)
        inside = np.arange(len(repeats)) - np.repeat(np.cumsum(times) - times, times)
        picks = [pick[repeats] for pick in picks] + [starts[rows][repeats] + inside]
        rows = rows[repeats]
    return [column.texts.take(pa.array(pick)) for column, pick in zip(columns, picks, strict=True)]


def language_ranks(languages: Languages, tags: pa.Array) -> pa.Array:
    """Return the place of each language among those that are asked for, null of one that is not."""
    distinct = tags.dictionary_encode()
    ranks = [languages.rank(tag) for tag in distinct.dictionary.to_pylist()]
    return pa.array(ranks, pa.uint8()).take(distinct.indices)


def batch_of(kind: Kind, columns: Sequence[pa.Array], line: int) -> RecordBatch:
    schema = SCHEMAS[kind]
    return RecordBatch(kind, pa.Table.from_arrays(list(columns), schema=schema), line)


def named_batch(
    kind: str, entities: pa.Array, ranks: pa.Array, texts: pa.Array, tags: pa.Array, line: int
) -> RecordBatch:
    """Return names, aliases or descriptions as a table; aliases have a rank of their own."""
    if kind == "description":
        return batch_of("descriptions", [entities, ranks, texts], line)
    if kind == "alias":
        ranks = pa.repeat(pa.scalar(ALIAS, pa.uint8()), len(texts))
    return batch_of("names", [entities, ranks, texts, pc.ascii_lower(tags)], line)


class FactLayout:
    """The lay-out of a table with a fact, a name or a type per row, its columns found by their heads."""

    strict = True

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        if source.kind == "any":
            suffix = source.path.suffix.lower().strip(".")
            raise WrongFormat(f"{source.path}: --rdf takes RDF, found {suffix}", path=str(source.path))
        self.path = source.name
        self.kind: Kind = source.kind
        self.options = options
        self.skips = skips
        self.names = COLUMNS[source.kind]
        self.lists_noted = options.list_separator is not None
        self.languages = Languages.read(options.language)
        self.places: dict[str, int] = {}
        self.fields: dict[str, None] = {}

    def heads(self, header: Iterable[str]) -> dict[str, list[str]]:
        """Find the heads of each column, the first to be preferred: the caller's, else the usual ones."""
        by_fold: dict[str, list[str]] = {}
        for head in header:
            by_fold.setdefault(head.casefold(), []).append(head)
        # `subject_id` stands for a column where nothing is called `subject`.
        for head in header:
            by_fold.setdefault(SUFFIX.sub("", head.casefold()), [head])
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
        missing = [name for name in self.names if not heads[name] and (name not in OPTIONAL or name in columns)]
        return missing or ([] if any(heads.get(name) for name in OPTIONAL) or "name" not in heads else ["name"])

    def fits(self, header: Sequence[str]) -> bool:
        return not self.missing(self.heads(header))

    def begin(self, header: Sequence[str], number: int, *, advice: str = "") -> None:
        heads = self.heads(header)
        if missing := self.missing(heads):
            headless = "without a header" in advice and not (self.kind == "facts" and len(missing) == 3)
            raise self.unfit(number, missing, f"the header {list(header)[:100]!r}", "" if headless else advice)
        for name, options in heads.items():
            twice = [head for head in options if head.casefold() == options[0].casefold()]
            if len(twice) > 1:
                raise WrongFormat(
                    f"{self.path}:{number}: found {len(twice)} columns {twice[0]!r}, expected one for {name}; "
                    "rename the others in the header",
                    path=self.path,
                    line=number,
                )
        columns = {name: options[0] for name, options in heads.items() if options}
        self.places = {name: list(header).index(head) for name, head in columns.items()}
        self.note_unused([head for head in header if head not in columns.values()], number)

    def unfit(self, number: int, missing: Sequence[str], header: str, advice: str = "") -> WrongFormat:
        """Say which columns a header lacks, and which of them the caller named."""
        named = self.options.columns.get(missing[0])
        option = f" (--column {missing[0]}={named} was given, and there is no {named!r})" if named else ""
        return WrongFormat(
            f"{self.path}:{number}: {header} has no column for {', '.join(missing)}; "
            f"name it with --column {missing[0]}=HEADER{option}{advice}",
            path=self.path,
            line=number,
            missing=list(missing),
        )

    def note_unused(self, unused: Sequence[str], number: int) -> None:
        """Name the columns that are not used, and how they would be."""
        if unused:
            names = ", ".join(map(repr, unused[:10])) + (", ..." if len(unused) > 10 else "")
            # What pandas calls `Unnamed: 0`, or writes no head above, is its index: nothing to take.
            named = [head for head in unused if head.strip() and not head.startswith("Unnamed: ")]
            advice = f"; --column {shlex.quote(f'{self.names[-1]}={named[0]}')} takes one" if named else ""
            self.skips.note(f"columns not used: {names}{advice}", line=number)

    def needs(self, fields: Iterable[str]) -> list[str]:
        fields = list(fields)
        self.fields.update(dict.fromkeys(fields))
        return list(dict.fromkeys(chain.from_iterable(self.heads(fields).values())))

    def finish(self) -> None:
        """Name the fields of objects that were not used; raise WrongFormat where a named one never came."""
        heads = self.heads(self.fields)
        absent = [name for name in self.names if name in self.options.columns and not heads[name]]
        if absent and self.fields:
            raise self.unfit(1, absent, f"a file of objects with the fields {list(self.fields)[:20]!r}")
        used = set(chain.from_iterable(heads.values()))
        self.note_unused([field for field in self.fields if field not in used], 1)

    def columns(self, batch: pa.RecordBatch) -> dict[str, tuple[list[str], pa.Array]]:
        """Return the heads of each column and its cells: of objects, those under the first field that one has."""
        if self.places:
            return {name: ([batch.schema.names[place]], batch.column(place)) for name, place in self.places.items()}
        heads = self.heads(batch.schema.names)
        return {name: (found, first_filled([batch[head] for head in found])) for name, found in heads.items() if found}

    def lay_out(self, rows: TableRows) -> Iterator[RecordBatch]:
        """Yield the tables of a block, and count the rows that cannot be used."""
        count, line = rows.columns.num_rows, rows.lines[0]
        columns = self.columns(rows.columns)
        cells: dict[str, Cells] = {}
        for name in self.names:
            if name in columns or name not in SAYING:
                cells[name] = self.cells(name, columns[name][1] if name in columns else None, count, cells)
        faults = self.faults(rows.strange, {head: name for name, (heads, _) in columns.items() for head in heads})
        for row, fault in self.flaws(cells, count):
            faults.setdefault(row, fault)
        rows.count(faults, self.skips)
        kept = np.setdiff1d(np.arange(count), list(faults)) if faults else np.arange(count)
        if not self.lists_noted:
            self.note_lists(cells, line)
        if self.kind == "names":
            yield from self.lay_out_names(rows, cells, kept)
        elif len(kept):
            yield batch_of(self.kind, multiplied(list(cells.values()), kept, count), line)

    def cells(self, name: str, column: pa.Array | None, count: int, before: Mapping[str, Cells]) -> Cells:
        """Return the values under a name, ids in their canonical form."""
        if column is None:
            # Names without a language are in the first; any other column that lacks is a fault of each row.
            return Cells(repeated("", count))
        # Spaces stand between the words of a name, whatever else they divide.
        words = name in TEXTS and self.options.divides_words
        values = read_cells(column, None if name == "description" else self.options.list_separator, words=words)
        if name in TEXTS:
            return values
        owner, beside = before.get(PROPERTIES.get(name, "")), None
        if owner is not None:
            beside = owner.texts if owner.rows is None else owner.first_of_each(count)
            beside = beside if values.rows is None else beside.take(pa.array(values.rows))
        return Cells(canonical_column(values.texts, beside), values.rows)

    def faults(self, strange: Iterable[StrangeCell], names: Mapping[str, str]) -> dict[int, str]:
        """Return the rows with a cell that cannot be stored, and what is wrong with each."""
        faults: dict[int, str] = {}
        for cell in strange:
            if name := names.get(cell.column):
                faults.setdefault(cell.row, f"{cell.fault} under {name}" if cell.fault == NO_TEXT else cell.fault)
        return faults

    def flaws(self, cells: Mapping[str, Cells], count: int) -> Iterator[tuple[int, str]]:
        """Yield the rows that cannot be used, and what is wrong with each: a value that lacks, too many, a NUL byte."""
        lacking = {name: values.lacking(count) for name, values in cells.items() if name not in OPTIONAL}
        if said := [cells[name].lacking(count) for name in SAYING if name in cells]:
            # A row lacks a name where all of its texts are empty.
            lacking["name"] = np.flatnonzero(np.bincount(np.concatenate(said), minlength=count) == len(said))
        if any(map(len, lacking.values())):
            rows = {name: set(places.tolist()) for name, places in lacking.items()}
            for row in sorted(set().union(*rows.values())):
                yield row, f"nothing under {', '.join(name for name, places in rows.items() if row in places)}"
        if any(values.rows is not None for values in cells.values()):
            yield from self.overlong(cells, count)
        for values in cells.values():
            yield from ((row, "NUL byte") for row in values.flawed())

    def overlong(self, cells: Mapping[str, Cells], count: int) -> Iterator[tuple[int, str]]:
        """Yield the rows whose lists make too many rows."""
        sizes = {name: values.sizes(count) for name, values in cells.items()}
        total = np.sum(list(sizes.values()), axis=0)
        # Each text stands in a row of its own: their numbers add up, where those of other columns multiply.
        texts = [sizes.pop(name) for name in SAYING if name in sizes]
        factors = [*sizes.values(), *([np.sum(texts, axis=0)] if texts else [])]
        made = np.prod(factors, axis=0, dtype=np.float64)
        for row in np.flatnonzero(made > np.maximum(MOST_ROWS, total)).tolist():
            yield row, f"lists that make {made[row]:,.0f} rows, more than {MOST_ROWS:,}"

    def lay_out_names(self, rows: TableRows, cells: Mapping[str, Cells], kept: Places) -> Iterator[RecordBatch]:
        """Yield the names, aliases and descriptions of rows in the languages that are wanted."""
        count, line, tags = rows.columns.num_rows, rows.lines[0], cells["language"]
        if tags.rows is not None:
            # A row without a language is in the first.
            absent = np.setdiff1d(kept, tags.rows)
            places = np.concatenate([tags.rows, absent])
            order = np.argsort(places, kind="stable")
            texts = pa.concat_arrays([tags.texts, repeated("", len(absent))])
            tags = Cells(texts.take(pa.array(order)), places[order])
        ranks = language_ranks(self.languages, tags.texts)
        if ranks.null_count:
            owners = np.arange(count) if tags.rows is None else tags.rows
            others = owners[pc.indices_nonzero(pc.is_null(ranks)).to_numpy()]
            others = others[np.isin(others, kept)]
            if len(others):
                kind = f"name in another language than {self.options.language!r}"
                first = int(others[0])
                self.skips.add(kind, line=rows.lines[first], text=rows.shown(first), bad=False, count=len(others))
            tags = tags.kept(pc.is_valid(ranks))
        for name in [name for name in SAYING if name in cells]:
            said = cells[name]
            if said.rows is None and tags.rows is None and cells["entity"].rows is None:
                # The usual table, in which each row has at most one of each.
                filled = pc.not_equal(said.texts, "")
                if len(kept) < count:
                    filled = pc.and_(filled, pa.array(np.isin(np.arange(count), kept)))
                columns = [column.texts.filter(filled) for column in (cells["entity"], tags, said)]
            else:
                columns = multiplied([cells["entity"], tags, said.filled()], kept, count)
            entities, languages, texts = columns
            if len(texts):
                yield named_batch(name, entities, language_ranks(self.languages, languages), texts, languages, line)

    def note_lists(self, cells: Mapping[str, Cells], line: int) -> None:
        """Say that cells look like lists, once a file."""
        for name in self.names:
            if name not in cells or name in ("entity", "subject", "relation", "description", "language"):
                continue
            texts = cells[name].texts
            listed = texts.filter(pc.match_substring_regex(texts, LISTED))
            if len(listed) and cells[name].rows is None:
                self.lists_noted = True
                self.skips.note(
                    f"cells under {name} that look like lists, such as {listed[0].as_py()[:60]!r}; "
                    "--list-separator '|' takes them apart",
                    line=line,
                )
                return


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of names, aliases or descriptions, as an option names it, and the language of all of them."""

    kind: str
    wanted: str
    language: str


class EntityLayout:
    """The lay-out of a table with an entity per row: columns of its id, its texts and types; all others are relations.

    What no option names is guessed, from the heads and from the first rows.
    """

    strict = False

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.wide = options.wide
        self.skips = skips
        self.languages = Languages.read(options.language)
        self.language = options.columns.get("language")
        self.header: list[str] = []
        self.roles: dict[str, str] = {}
        """The part of each column: id, name, alias, type, description, language, or value."""
        self.texts: dict[str, TextColumn] = {}

    def unfit(self, reason: str) -> WrongFormat:
        return WrongFormat(f"{self.source.name}: {reason}", path=str(self.source.path))

    def fits(self, header: Sequence[str]) -> bool:
        """Return whether the columns that options name are there; where none is, those of an id and a name."""
        wanted = [self.wide.subject, *self.wide.name]
        if any(wanted):
            return any(find_head(name, header) for name in wanted if name)
        return {"id", "name"} & {entity_role(head) for head in header} != set() and len(header) > 1

    def begin(self, header: Sequence[str], number: int, *, advice: str = "") -> None:
        self.header = [head if head not in header[:place] else f"{head} {list(header[:place + 1]).count(head)}"
                       for place, head in enumerate(header)]  # fmt: skip
        if renamed := [head for head, old in zip(self.header, header, strict=True) if head != old]:
            names = ", ".join(map(repr, renamed[:10]))
            self.skips.note(f"columns with the head of another one, called {names}", line=number)

    def needs(self, fields: Iterable[str]) -> list[str]:
        return list(fields)

    def finish(self) -> None:
        """Name the columns that options name and the table lacks."""
        # A note, since another table of the same build may have it.
        there = {*self.roles, *(column.wanted for column in self.texts.values())}
        folded = {name.casefold() for name in there}
        for option in (*SAYING, "type"):
            for absent in getattr(self.wide, option):
                if absent.casefold() not in folded:
                    self.skips.note(f"no column {absent!r}, which --{option} names", line=1)
        if self.language and self.language not in there:
            self.skips.note(f"no column {self.language!r}, which --column language names", line=1)

    def choose(self, batch: pa.RecordBatch, line: int) -> None:
        """Choose the part of each new column, and say which it is."""
        fields = [name for name in batch.schema.names if name not in self.roles]
        first = not self.roles
        if first:
            self.roles |= dict.fromkeys(filter(None, [self.find_id(batch)]), "id")
        for name in fields:
            if column := self.find_text(name):
                self.texts[name] = column
            role = "language" if name == self.language else column.kind if column else ""
            self.roles[name] = self.roles.get(name, "") or role or self.find_type(name) or "value"
        named = self.wide.name or any(column.kind == "name" for column in self.texts.values())
        if first and not named and (name := self.find_name(batch)):
            self.texts[name] = TextColumn("name", name, "")
            self.roles[name] = "name" if self.roles[name] == "value" else self.roles[name]
        if first:
            self.skips.note(self.report(), line=line)

    def report(self) -> str:
        """Say in a line which columns were taken for what."""
        parts = {role: [name for name in self.roles if self.role_of(name, role)] for role in ("id", *SAYING, "type")}
        values = [name for name, role in self.roles.items() if role == "value"]
        said = [f"{role} {', '.join(map(repr, names[:5]))}" for role, names in parts.items() if names]
        said = said if parts["id"] else ["no id, rows are numbered", *said]
        listed = ", ".join(map(repr, values[:8])) + (", ..." if len(values) > 8 else "")
        return f"columns: {'; '.join(said)}" + (f"; values {listed}" if values else "")

    def role_of(self, name: str, role: str) -> bool:
        return self.roles[name] == role or (name in self.texts and self.texts[name].kind == role)

    def find_id(self, batch: pa.RecordBatch) -> str:
        """Return the column of ids: the one that is named, else a usual one, else one of ids that are all different."""
        header = batch.schema.names
        if self.wide.subject:
            if found := find_head(self.wide.subject, header):
                return found
            raise self.unfit(f"found the columns {header[:20]!r}, none of them {self.wide.subject!r}; change --id")
        taken = {*self.wide.alias, *self.wide.type, *self.wide.description, *self.wide.link}
        by_plain = {plain_head(name): name for name in reversed(header) if name not in taken}
        usual = [by_plain[head] for head in ENTITY_ROLES["id"].split("|") if head in by_plain]
        ending = [
            name for plain, name in by_plain.items() if re.search(r" (id|code|key)$", plain) and distinct(batch[name])
        ]
        return next(iter([*usual, *reversed(ending)]), "")

    def find_text(self, name: str) -> TextColumn | None:
        """Return what a column says of entities; its language stands behind an @ in its head or in the option."""
        head = name.casefold()
        stem, at, tag = head.rpartition("@")
        kinds = {wanted: kind for kind in SAYING for wanted in getattr(self.wide, kind)}
        for wanted, kind in kinds.items():
            column, said, language = wanted.casefold().rpartition("@")
            if wanted.casefold() == head:
                return TextColumn(kind, wanted, tag if at else "")
            if said and column == head:
                return TextColumn(kind, wanted, language)
            if at and wanted.casefold() == stem:
                return TextColumn(kind, wanted, tag)
        role = entity_role(stem if at else name)
        if (
            role in SAYING
            and not getattr(self.wide, role)
            and self.roles.get(name) != "id"
            and name not in self.wide.type
        ):
            return TextColumn(role, name, tag if at else "")
        return None

    def find_type(self, name: str) -> str:
        """Return `type` for a column of types."""
        if self.wide.type:
            return "type" if find_head(name, self.wide.type) else ""
        return "type" if entity_role(name) == "type" else ""

    def find_name(self, batch: pa.RecordBatch) -> str:
        """Return the column of names where none is called so: by its head, else the first of texts that differ."""
        header: list[str] = batch.schema.names
        values = [name for name in header if self.roles[name] == "value" and name not in self.wide.link]
        for heads in NAME_HEADS:
            for name in values:
                if re.fullmatch(heads, plain_head(name)):
                    return name
        texts = [name for name in values if pa.types.is_string(batch[name].type) and not is_value(batch[name])]
        return next((name for name in texts if distinct(batch[name])), "")

    def lay_out(self, rows: TableRows) -> Iterator[RecordBatch]:
        """Yield the names, types, descriptions and facts of a block, column by column."""
        batch, line, count = rows.columns, rows.lines[0], rows.columns.num_rows
        if self.header:
            batch = batch.rename_columns(self.header)
        for cell in rows.strange:
            kind = f"{cell.fault} under {cell.column}, left out"
            self.skips.add(kind, line=rows.lines[cell.row], text=rows.shown(cell.row), bad=False)
        if len(self.roles) < len(batch.schema) or not self.roles.keys() >= set(batch.schema.names):
            self.choose(batch, line)
        subjects = self.subjects(rows, batch)
        present = pc.not_equal(subjects, "")
        tags = None
        if self.language in batch.schema.names:
            tags = pc.ascii_lower(trimmed(as_text(batch[self.language])))
        for name in batch.schema.names:
            text, role = self.texts.get(name), self.roles[name]
            if text is None and role in ("id", "language"):
                continue
            # Spaces stand between the words of a name, whatever else they divide.
            separator = None if (text and text.kind == "description") or role == "id" else self.options.list_separator
            cells = read_cells(batch[name], separator, words=text is not None and self.options.divides_words)
            owners = np.arange(count) if cells.rows is None else cells.rows
            wanted = pc.and_(present.take(pa.array(owners)), pc.not_equal(cells.texts, ""))
            if flawed := cells.flawed():
                line_of, text_of = rows.lines[flawed[0]], rows.shown(flawed[0])
                kind = f"NUL byte under {name}, left out"
                self.skips.add(kind, line=line_of, text=text_of, bad=False, count=len(flawed))
                wanted = pc.and_(wanted, pc.invert(pc.match_substring(cells.texts, "\0")))
            if not pc.all(wanted).as_py():
                cells, owners = cells.kept(wanted), owners[wanted.to_numpy(zero_copy_only=False)]
            if not len(cells.texts):
                continue
            entities = subjects if len(owners) == count and cells.rows is None else subjects.take(pa.array(owners))
            if text is not None:
                own = (
                    repeated(text.language, len(entities))
                    if tags is None or text.language
                    else tags.take(pa.array(owners))
                )
                yield from self.lay_out_texts(text.kind, entities, cells.texts, own, line)
            elif role == "type":
                yield batch_of("types", [entities, canonical_column(cells.texts)], line)
            else:
                linked = "name" if find_head(name, self.wide.link) else "key" if KEY.search(plain_head(name)) else ""
                values = spelt_values(cells.texts, linked)
                yield batch_of("facts", [entities, repeated(name, len(values)), values], line)

    def subjects(self, rows: TableRows, batch: pa.RecordBatch) -> pa.Array:
        """Return the id of each row, its number in a table without ids; count the rows that lack one."""
        name = next((name for name, role in self.roles.items() if role == "id"), None)
        if name is None:
            stem = self.source.path.name.partition(".")[0]
            return pa.array([f"{stem}/{line}" for line in rows.lines], pa.string())
        # Of objects, those of a block may all lack it.
        ids = batch[name] if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
        if is_list(ids.type):
            raise self.unfit(f"the column {name!r} holds lists, expected an id; name another with --id")
        subjects = canonical_column(trimmed(as_text(ids)))
        lacking = Cells(subjects).lacking(len(subjects)).tolist()
        rows.count(dict.fromkeys(lacking, f"nothing under {name}"), self.skips)
        return subjects

    def lay_out_texts(
        self, kind: str, entities: pa.Array, texts: pa.Array, tags: pa.Array, line: int
    ) -> Iterator[RecordBatch]:
        """Yield names, aliases or descriptions in the languages that are wanted."""
        ranks = language_ranks(self.languages, tags)
        if ranks.null_count:
            others = pc.is_null(ranks)
            self.skips.add(
                f"name in another language than {self.options.language!r}",
                line=line, text=texts.filter(others)[0].as_py(), bad=False, count=ranks.null_count,
            )  # fmt: skip
            entities, texts, tags, ranks = (part.filter(pc.invert(others)) for part in (entities, texts, tags, ranks))
        if len(texts):
            yield named_batch(kind, entities, ranks, texts, tags, line)


def find_head(wanted: str, header: Iterable[str]) -> str:
    """Return the column that a person means: of this head, else of one that differs in its capitals; else nothing."""
    header = list(header)
    folded = {head.strip().casefold(): head for head in reversed(header)}
    return wanted if wanted in header else folded.get(wanted.strip().casefold(), "")


def distinct(column: pa.Array) -> bool:
    """Return whether each row has a value of its own, but for a few."""
    if is_list(column.type) or pa.types.is_nested(column.type) or not len(column):
        return False
    texts = trimmed(as_text(column))
    return bool(
        pc.count_distinct(texts).as_py() >= 0.9 * len(texts)
        and pc.count(texts.filter(pc.equal(texts, ""))).as_py() <= 0.1 * len(texts)
    )


VALUES = {
    "number": r"^[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$",
    "date": r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$",
    "url": r"^(https?|ftp)://\S+$",
}
"""The values that are told by how they are written; a number with a leading zero is a code, and stays text."""

SHAPED = rf"{REWRITTEN}|^[QP][1-9]\d*$|^{TOPIC.pattern}$"
"""Cells that are ids by their form: Freebase's and Wikidata's."""

KEY = re.compile(r"\bids?$")
"""The ending of the heads of columns that hold keys, such as `boss_id`."""

PLAIN = r"^[^\d+\-/<:QPmgfnhw]"
"""The beginning of cells that are text for certain."""


def is_value(column: pa.Array) -> bool:
    """Return whether most cells of a column of text are numbers, dates or addresses."""
    texts = column.filter(pc.is_valid(column))
    matching = sum(pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0 for pattern in VALUES.values())
    return bool(len(texts) and matching >= 0.5 * len(texts))


def spelt_values(texts: pa.Array, linked: str) -> pa.Array:
    """Write cells as objects of facts: ids by their form as they are, all others as cells, which a build settles.

    Where they are `linked`, by `key` or by `name`, numbers may be entities too.
    """
    shaped, kinds = None, repeated(linked or "text", len(texts))
    if not pc.all(pc.match_substring_regex(texts, PLAIN)).as_py():
        for name, pattern in VALUES.items() if not linked else ():
            kinds = pc.if_else(pc.match_substring_regex(texts, pattern), name, kinds)
        shaped = pc.match_substring_regex(texts, SHAPED)
        texts = pc.replace_substring_regex(texts, r"^([+-]?\d+)\.0$", r"\1")
    escaped = texts
    for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        escaped = pc.replace_substring(escaped, letter, escape) if contains(texts, letter) else escaped
    cells = pc.binary_join_element_wise('"', escaped, '"^^<cell:', kinds, ">", "")
    if shaped is None or not pc.any(shaped).as_py():
        return cells
    return pc.if_else(shaped, canonical_column(texts), cells)
