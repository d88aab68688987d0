"""The layout of a table with one entity per row: its rows become names, types, descriptions and facts."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.indexers.readers.batches import RecordBatch, Skips, batch_of, repeated
from kbtools.indexers.readers.cell_forms import (
    NOT_AVAILABLE,
    PLACEHOLDER,
    REFERENCE,
    UNIT_OF_HEAD,
    is_value,
    spelt_values,
    without_references,
)
from kbtools.indexers.readers.entity_columns import ID_SEPARATORS, EntityColumns, find_head, listed
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.marginal_rows import continuing_rows, filled_cells, marginal_rows
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.table_rows import (
    SAYING,
    Cells,
    TableRows,
    as_text,
    canonical_column,
    is_list,
    language_ranks,
    named_batch,
    read_cells,
    trimmed,
)
from kbtools.kb.table_heads import entity_role, plain_head
from kbtools.text.printable import plural


class EntityLayout:
    """The layout of a table with one entity per row: columns of ids, texts and types; all others are relations.

    `EntityColumns` chooses the roles.
    """

    strict = False

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.wide = options.wide
        self.skips = skips
        self.languages = Languages.read(options.language)
        self.columns = EntityColumns(source, options, skips)
        self.heads: Sequence[str] = ()
        self.header: list[str] = []
        """The heads of the columns, made unique."""
        self.continued: tuple[int, int] | None = None
        """The first row that continues the row above, and how many do."""
        self.last = ""
        """The id of the row that the next block may continue."""
        self.marked: dict[str, None] = {}
        """The columns with reference marks."""
        self.placeholders: dict[str, str] = {}
        """The columns with cells that mean empty ones, and the first such cell of each."""

    def fits(self, header: Sequence[str]) -> bool:
        """Return whether the columns named by options are present; without such options, those of an id and a name."""
        wanted = [self.wide.subject, *self.wide.name]
        if any(wanted):
            return any(find_head(name, header) for name in wanted if name)
        return {"id", "name"} & {entity_role(head) for head in header} != set() and len(header) > 1

    def begin(self, header: Sequence[str], number: int, *, advice: str = "") -> None:
        self.heads = header
        bare = [head if re.search(UNIT_OF_HEAD, head) else re.sub(REFERENCE, r"\1", head) for head in header]
        header = bare if len({*bare}) == len({*header}) else header
        header = [head.strip() or f"column {place}" for place, head in enumerate(header, 1)]
        self.header = [head if head not in header[:place] else f"{head} {list(header[:place + 1]).count(head)}"
                       for place, head in enumerate(header)]  # fmt: skip
        if renamed := [head for head, old in zip(self.header, header, strict=True) if head != old]:
            names = ", ".join(map(repr, renamed[:10]))
            self.skips.note(f"columns with the header of another one, renamed {names}", line=number)

    def needs(self, fields: Iterable[str]) -> list[str]:
        return list(fields)

    def finish(self) -> None:
        """Note the columns that options name but the table lacks."""
        # A note rather than an error, since another table of the same build may have the column.
        columns, language = self.columns, self.columns.language
        known = {*columns.roles, *(column.wanted for column in columns.texts.values())}
        folded = {name.casefold() for name in known}
        for option in (*SAYING, "type"):
            for absent in getattr(self.wide, option):
                if absent.casefold() not in folded:
                    self.skips.note(f"no column {absent!r}, which --{option} names", line=1)
        if language and language not in known:
            self.skips.note(f"no column {language!r}, which --column language names", line=1)
        if self.continued:
            first, count = self.continued
            self.skips.note(f"{plural(count, 'row')} without id and name continue the row above", line=first)
        if self.marked:
            self.skips.note(f"reference marks such as [1] are left out in {listed(self.marked)}", line=1)
        if self.placeholders:
            shown = ", ".join(repr(cell) for cell in dict.fromkeys(self.placeholders.values()))
            self.skips.note(f"cells with only {shown} taken as empty, in {listed(self.placeholders)}", line=1)

    def lay_out(self, rows: TableRows) -> Iterator[RecordBatch]:
        """Yield the names, types, descriptions and facts of a block, column by column."""
        marginal = marginal_rows(rows, self.heads)
        rows.count(marginal, self.skips)
        rows = rows.without(marginal) if marginal else rows
        if not len(rows.lines):
            return
        batch, line = rows.columns, rows.lines[0]
        if self.header:
            batch = batch.rename_columns(self.header)
        columns = self.columns
        batch, marked = without_references(batch)
        self.marked |= dict.fromkeys(marked)
        batch = columns.with_full_names(batch)
        for cell in rows.strange:
            kind = f"{cell.fault} under {cell.column}, left out"
            self.skips.add(kind, line=rows.lines[cell.row], text=rows.shown(cell.row), bad=False)
        # An object of JSON Lines continues no other.
        continuing = continuing_rows(batch) if self.header else np.zeros(batch.num_rows, dtype=bool)
        if len(columns.roles) < len(batch.schema) or not columns.roles.keys() >= set(batch.schema.names):
            columns.choose(batch.filter(pa.array(~continuing)) if continuing.any() else batch, line)
        subjects = self.subjects(rows, batch, continuing)
        present = pc.not_equal(subjects, "")
        tags = None
        if columns.language in batch.schema.names:
            tags = pc.ascii_lower(trimmed(as_text(batch[columns.language])))
        for name in batch.schema.names:
            text, role = columns.texts.get(name), columns.roles[name]
            if role == "other table" or (text is None and role in ("id", "language", "row number")):
                continue
            # A white-space separator does not divide names: spaces separate their words.
            separator = None if (text and text.kind == "description") or role == "id" else self.options.list_separator
            column = batch[name]
            if separator is None and text and text.kind == "alias" and pa.types.is_string(column.type):
                # Wikidata's query service separates aliases by commas.
                signs = r"\s*[;|]\s*|, " if name.endswith("AltLabel") else r"\s*[;|]\s*"
                column, separator = pc.replace_substring_regex(column, signs, ";"), ";"
            elif name in columns.id_lists and pa.types.is_string(column.type):
                column, separator = pc.replace_substring_regex(column, ID_SEPARATORS, ";"), ";"
            cells = read_cells(column, separator, words=text is not None and self.options.divides_words)
            if flawed := cells.flawed():
                line_of, text_of = rows.lines[flawed[0]], rows.shown(flawed[0])
                kind = f"NUL byte under {name}, left out"
                self.skips.add(kind, line=line_of, text=text_of, bad=False, count=len(flawed))
                cells = cells.kept(pc.invert(pc.match_substring(cells.texts, "\0")))
            cells = cells.kept(cells.beside(present))
            if role != "id" and not (text and text.kind == "name"):
                cells = self.without_placeholders(name, cells)
            if not len(cells.texts):
                continue
            entities = cells.beside(subjects)
            if text is not None and text.owner:
                owners = canonical_column(trimmed(as_text(batch[text.owner])))
                cells = cells.kept(cells.beside(pc.not_equal(owners, "")))
                entities = cells.beside(owners)
            other = columns.is_other_name(name)
            if text is not None or other:
                tag = text.language if text else ""
                spoken = repeated(tag, len(entities)) if tags is None or tag else cells.beside(tags)
                yield from self.lay_out_texts(text.kind if text else "alias", entities, cells.texts, spoken, line)
            if role == "type":
                yield batch_of("types", [entities, canonical_column(cells.texts)], line)
            elif text is None or other:
                linked = "name" if find_head(name, self.wide.link) else "key" if _KEY.search(plain_head(name)) else ""
                values = spelt_values(cells.texts, linked)
                yield batch_of("facts", [entities, repeated(name, len(values)), values], line)

    def subjects(self, rows: TableRows, batch: pa.RecordBatch, continuing: NDArray[np.bool_]) -> pa.Array:
        """Return the id of each row, or its number in a table without ids; count the rows without an id.

        A row that has neither an id nor a name has those of the row above if it may be one of the `continuing`.
        """
        name = next((name for name, role in self.columns.roles.items() if role == "id"), None)
        if name is None:
            numbers = pa.array([f"{self.source.rows}{line}" for line in rows.lines], pa.string())
            return self.carried(numbers, rows, batch, continuing)
        # In JSON Lines, all objects of a block may lack the field.
        ids = batch[name] if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
        if is_list(ids.type):
            raise self.columns.unfit(f"the column {name!r} holds lists, expected an id; name another with --id")
        subjects = self.carried(canonical_column(trimmed(as_text(ids))), rows, batch, continuing)
        lacking = pc.indices_nonzero(pc.equal(subjects, "")).to_pylist()
        rows.count(dict.fromkeys(lacking, f"no value under {name}"), self.skips)
        return subjects

    def carried(
        self, subjects: pa.Array, rows: TableRows, batch: pa.RecordBatch, continuing: NDArray[np.bool_]
    ) -> pa.Array:
        """Return the ids with that of the row above for each row that continues it."""
        for name in batch.schema.names if continuing.any() else ():
            if self.columns.role_of(name, "id") or self.columns.role_of(name, "name"):
                continuing = continuing & ~filled_cells(batch[name])
        if not self.last:
            continuing[:1] = False
        if continuing.any():
            count = np.count_nonzero(continuing) + (self.continued[1] if self.continued else 0)
            self.continued = (self.continued or (rows.lines[int(continuing.argmax())],))[0], int(count)
            places = np.maximum.accumulate(np.where(continuing, 0, np.arange(1, len(continuing) + 1)))
            subjects = pa.concat_arrays([pa.array([self.last]), subjects]).take(pa.array(places))
        self.last = subjects[-1].as_py()
        return subjects

    def without_placeholders(self, name: str, cells: Cells) -> Cells:
        """Return the values of a column except dashes and the like; in a column with `+`, a dash is a value."""
        empty, missing = pc.match_substring_regex(cells.texts, PLACEHOLDER), pc.equal(cells.texts, NOT_AVAILABLE)
        if pc.any(missing).as_py() and is_value(cells.texts.filter(pc.invert(pc.or_(empty, missing)))):
            empty = pc.or_(empty, missing)
        if not pc.any(empty).as_py() or pc.any(pc.equal(cells.texts, "+")).as_py():
            return cells
        self.placeholders.setdefault(name, cells.texts.filter(empty)[0].as_py())
        return cells.kept(pc.invert(empty))

    def lay_out_texts(
        self, kind: str, entities: pa.Array, texts: pa.Array, tags: pa.Array, line: int
    ) -> Iterator[RecordBatch]:
        """Yield the names, aliases or descriptions in the wanted languages."""
        ranks = language_ranks(self.languages, tags)
        if ranks.null_count:
            others = pc.is_null(ranks)
            self.skips.add(
                f"name in a language other than {self.options.language!r}",
                line=line, text=texts.filter(others)[0].as_py(), bad=False, count=ranks.null_count,
            )  # fmt: skip
            entities, texts, tags, ranks = (part.filter(pc.invert(others)) for part in (entities, texts, tags, ranks))
        if len(texts):
            yield named_batch(kind, entities, ranks, texts, tags, line)


_KEY = re.compile(r"\bids?$")
"""The end of heads of columns that hold keys, such as `boss_id`."""
