"""The layout of a table with one fact, name or type per row."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import Kind, RecordBatch, Skips, batch_of, repeated
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.table_rows import (
    NO_TEXT,
    SAYING,
    Cells,
    Places,
    StrangeCell,
    TableRows,
    canonical_column,
    first_filled,
    is_list,
    language_ranks,
    named_batch,
    read_cells,
)
from kbtools.kb.table_heads import SUFFIX, USUAL

_COLUMNS: dict[Kind, tuple[str, ...]] = {
    "facts": ("subject", "relation", "object"),
    "names": ("entity", "language", "name", "description", "alias"),
    "types": ("entity", "type"),
    "relations": ("relation", "language", "name"),
    "redirects": ("old", "new"),
}
_TEXTS = {"language", *SAYING}
_PROPERTIES = {"relation": "subject", "type": "entity"}
"""Columns of relations and types, with the column of ids that accompanies each."""

_MOST_ROWS = 100_000
"""Most rows from one line with several lists that are multiplied: 20 KB can hold three lists of 1,000 values."""

_LISTED = r"^\[.*\]$|\S\|\S"
"""Cells that look like lists."""


def _multiplied(columns: Sequence[Cells], kept: Places, count: int) -> list[pa.Array]:
    """Return the columns of the kept rows with one row per combination of values; the last column varies fastest."""
    sizes = [column.sizes(count) for column in columns]
    times = np.prod([counts[kept] for counts in sizes], axis=0)
    rows = np.repeat(kept, times)
    if len(rows) == count and max(map(np.max, sizes)) == 1:
        return [column.texts for column in columns]
    # The number of a combination within its row; its digits are the positions of the values.
    choice = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    texts = []
    for column, counts in zip(reversed(columns), reversed(sizes), strict=True):
        choice, place = np.divmod(choice, counts[rows])
        texts.append(column.texts.take(pa.array(place + (np.cumsum(counts) - counts)[rows])))
    return texts[::-1]


class FactLayout:
    """The layout of a table with one fact, name or type per row; columns are found by their heads."""

    strict = True

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        if source.kind == "any":
            suffix = source.path.suffix.lower().strip(".")
            raise WrongFormat.at(source.path, f"--rdf takes RDF, found {suffix}")
        self.path = source.name
        self.kind: Kind = source.kind
        self.options = options
        self.skips = skips
        self.names = _COLUMNS[source.kind]
        self.lists_noted = options.list_separator is not None
        self.languages = Languages.read(options.language)
        self.places: dict[str, int] = {}
        self.fields: dict[str, None] = {}

    def heads(self, header: Iterable[str]) -> dict[str, list[str]]:
        """Return the heads of each column in order of preference: the caller's, else the usual ones."""
        by_fold: dict[str, list[str]] = {}
        for head in header:
            by_fold.setdefault(head.casefold(), []).append(head)
        # `subject_id` is used for `subject` if no column has that name.
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
        """Return the usual heads of a column; a table of relations uses them for its ids as well."""
        return (*USUAL[name], "id") if self.kind == "relations" and name == "relation" else USUAL[name]

    def missing(self, heads: Mapping[str, Sequence[str]]) -> list[str]:
        """List the columns without a head that the kind needs or the caller named."""
        columns = self.options.columns
        missing = [name for name in self.names if not heads[name] and (name not in _TEXTS or name in columns)]
        return missing or ([] if any(heads.get(name) for name in _TEXTS) or "name" not in heads else ["name"])

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
                problem = f"found {len(twice)} columns {twice[0]!r}, expected one for {name}"
                raise WrongFormat.at(self.path, f"{problem}; rename the others in the header", line=number)
        columns = {name: options[0] for name, options in heads.items() if options}
        self.places = {name: list(header).index(head) for name, head in columns.items()}
        self.note_unused([head for head in header if head not in columns.values()], number)

    def unfit(self, number: int, missing: Sequence[str], header: str, advice: str = "") -> WrongFormat:
        """Return an error that names the columns missing from a header."""
        named = self.options.columns.get(missing[0])
        option = f" (--column {missing[0]}={named} was given, but there is no {named!r})" if named else ""
        return WrongFormat(
            f"{self.path}:{number}: {header} has no column for {', '.join(missing)}; "
            f"name it with --column {missing[0]}=HEADER{option}{advice}",
            path=self.path,
            line=number,
            missing=list(missing),
        )

    def note_unused(self, unused: Sequence[str], number: int) -> None:
        """Note the columns that are not used, and how to use them."""
        if unused:
            names = ", ".join(map(repr, unused[:10])) + (", ..." if len(unused) > 10 else "")
            # Columns named `Unnamed: 0`, or without a head, are pandas' index.
            named = [head for head in unused if head.strip() and not head.startswith("Unnamed: ")]
            advice = f"; --column {shlex.quote(f'{self.names[-1]}={named[0]}')} takes one" if named else ""
            self.skips.note(f"columns not used: {names}{advice}", line=number)

    def needs(self, fields: Iterable[str]) -> list[str]:
        fields = list(fields)
        self.fields.update(dict.fromkeys(fields))
        return list(dict.fromkeys(chain.from_iterable(self.heads(fields).values())))

    def finish(self) -> None:
        """Note the fields of objects that were not used; raise WrongFormat if a named field never occurred."""
        heads = self.heads(self.fields)
        absent = [name for name in self.names if name in self.options.columns and not heads[name]]
        if absent and self.fields:
            raise self.unfit(1, absent, f"a file of objects with the fields {list(self.fields)[:20]!r}")
        used = set(chain.from_iterable(heads.values()))
        self.note_unused([field for field in self.fields if field not in used], 1)

    def columns(self, batch: pa.RecordBatch) -> dict[str, tuple[list[str], pa.Array]]:
        """Return the heads and cells of each column; for objects, the cells come from the first field with a value."""
        if self.places:
            return {name: ([batch.schema.names[place]], batch.column(place)) for name, place in self.places.items()}
        heads = self.heads(batch.schema.names)
        return {
            name: (chosen, first_filled([batch[head] for head in chosen])) for name, chosen in heads.items() if chosen
        }

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
            plain = [name for name, (_, column) in columns.items() if not is_list(column.type)]
            self.note_lists({name: cells[name] for name in plain}, line)
        if self.kind in ("names", "relations"):
            yield from self.lay_out_names(rows, cells, kept)
        elif len(kept):
            yield batch_of(self.kind, _multiplied(list(cells.values()), kept, count), line)

    def cells(self, name: str, column: pa.Array | None, count: int, before: Mapping[str, Cells]) -> Cells:
        """Return the values of a column, with ids in canonical form."""
        if column is None:
            values = Cells(repeated("", 0), np.arange(0))
        else:
            # A white-space separator does not divide names: spaces separate their words.
            words = name in _TEXTS and self.options.divides_words
            values = read_cells(column, None if name == "description" else self.options.list_separator, words=words)
        if name == "language":
            # Names without a language are in the first.
            return values.completed(count)
        if name in _TEXTS:
            return values
        owner = before.get(_PROPERTIES.get(name, ""))
        beside = None if owner is None else values.beside(owner.first_of_each(count))
        return Cells(canonical_column(values.texts, beside), values.rows)

    def faults(self, strange: Iterable[StrangeCell], names: Mapping[str, str]) -> dict[int, str]:
        """Return the fault of each row that has a cell which cannot be stored."""
        faults: dict[int, str] = {}
        for cell in strange:
            if name := names.get(cell.column):
                faults.setdefault(cell.row, f"{cell.fault} under {name}" if cell.fault == NO_TEXT else cell.fault)
        return faults

    def flaws(self, cells: Mapping[str, Cells], count: int) -> Iterator[tuple[int, str]]:
        """Yield the rows that cannot be used with their fault: a missing value, too many values, a NUL byte."""
        sizes = {name: values.sizes(count) for name, values in cells.items()}
        # Each text gets a row of its own: their counts add up, while those of other columns multiply.
        if texts := [sizes.pop(name) for name in SAYING if name in sizes]:
            sizes["name"] = np.sum(texts, axis=0)
        lacking = {name: set(column.lacking(count).tolist()) for name, column in cells.items() if name not in _TEXTS}
        if texts:
            lacking["name"] = set(np.flatnonzero(sizes["name"] == 0).tolist())
        for row in sorted(set().union(*lacking.values())):
            yield row, f"no value under {', '.join(name for name, rows in lacking.items() if row in rows)}"
        if max(map(np.max, sizes.values())) > 1:
            products = np.prod(list(sizes.values()), axis=0, dtype=np.float64)
            for row in np.flatnonzero(products > np.maximum(_MOST_ROWS, np.sum(list(sizes.values()), axis=0))).tolist():
                yield row, f"lists that make {products[row]:,.0f} rows, more than {_MOST_ROWS:,}"
        for values in cells.values():
            yield from ((row, "NUL byte") for row in values.flawed())

    def lay_out_names(self, rows: TableRows, cells: Mapping[str, Cells], kept: Places) -> Iterator[RecordBatch]:
        """Yield names, aliases and descriptions, or names of relations, in the wanted languages."""
        count, line, tags = rows.columns.num_rows, rows.lines[0], cells["language"]
        ranks = language_ranks(self.languages, tags.texts)
        others = tags.rows[pc.is_null(ranks).to_numpy(zero_copy_only=False)]
        others = others[np.isin(others, kept)]
        if len(others):
            problem = f"name in a language other than {self.options.language!r}"
            first = int(others[0])
            self.skips.add(problem, line=rows.lines[first], text=rows.shown(first), bad=False, count=len(others))
        tags = tags.kept(pc.is_valid(ranks))
        for name in [name for name in SAYING if name in cells]:
            entities, languages, texts = _multiplied([cells[self.names[0]], tags, cells[name]], kept, count)
            if len(texts):
                kind = "relation" if self.kind == "relations" else name
                yield named_batch(kind, entities, language_ranks(self.languages, languages), texts, languages, line)

    def note_lists(self, cells: Mapping[str, Cells], line: int) -> None:
        """Note once per file that cells look like lists."""
        for name in self.names:
            if name not in cells or name in ("entity", "subject", "relation", "description", "language"):
                continue
            texts = cells[name].texts
            listed = texts.filter(pc.match_substring_regex(texts, _LISTED))
            if len(listed):
                self.lists_noted = True
                self.skips.note(
                    f"cells under {name} that look like lists, such as {listed[0].as_py()[:60]!r}; "
                    "--list-separator '|' splits them",
                    line=line,
                )
                return
