"""The layout of a table with one entity per row: the role of each column is named, or guessed from head and cells."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import RecordBatch, Skips, batch_of, repeated
from kbtools.indexers.readers.cell_forms import PLACEHOLDER, is_address, is_distinct, is_shaped, is_value, spelt_values
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.marginal_rows import marginal_rows
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
from kbtools.kb.table_heads import ENTITY_ROLES, NAME_HEADS, entity_role, name_parts, plain_head


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """A column of names, aliases or descriptions, as an option names it, and their language."""

    kind: str
    wanted: str
    language: str


class EntityLayout:
    """The layout of a table with one entity per row: columns of ids, texts and types; all others are relations.

    Roles not named by an option are guessed from the heads and the first rows.
    """

    strict = False

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.wide = options.wide
        self.skips = skips
        self.languages = Languages.read(options.language)
        self.language = options.columns.get("language")
        self.heads: Sequence[str] = ()
        self.header: list[str] = []
        """The heads of the columns, made unique."""
        self.roles: dict[str, str] = {}
        """The role of each column: id, name, alias, type, description, language, or value."""
        self.texts: dict[str, _TextColumn] = {}
        self.parts: tuple[str, str] | None = None
        """The columns of given and of family names, where names are made of both."""
        self.placeholders: dict[str, str] = {}
        """The columns with cells that stand for empty ones, and the first such cell of each."""

    def unfit(self, reason: str) -> WrongFormat:
        return WrongFormat(f"{self.source.name}: {reason}", path=str(self.source.path))

    def fits(self, header: Sequence[str]) -> bool:
        """Return whether the columns named by options are present; without such options, those of an id and a name."""
        wanted = [self.wide.subject, *self.wide.name]
        if any(wanted):
            return any(find_head(name, header) for name in wanted if name)
        return {"id", "name"} & {entity_role(head) for head in header} != set() and len(header) > 1

    def begin(self, header: Sequence[str], number: int, *, advice: str = "") -> None:
        self.heads = header
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
        known = {*self.roles, *(column.wanted for column in self.texts.values())}
        folded = {name.casefold() for name in known}
        for option in (*SAYING, "type"):
            for absent in getattr(self.wide, option):
                if absent.casefold() not in folded:
                    self.skips.note(f"no column {absent!r}, which --{option} names", line=1)
        if self.language and self.language not in known:
            self.skips.note(f"no column {self.language!r}, which --column language names", line=1)
        if self.placeholders:
            shown = ", ".join(repr(cell) for cell in dict.fromkeys(self.placeholders.values()))
            self.skips.note(f"cells with only {shown} taken as empty, in {_listed(self.placeholders)}", line=1)

    def choose(self, batch: pa.RecordBatch, line: int) -> None:
        """Choose the role of each new column and report it."""
        fields = [name for name in batch.schema.names if name not in self.roles]
        first = not self.roles
        if first:
            self.roles |= dict.fromkeys(filter(None, [self.find_id(batch)]), "id")
        for name in fields:
            column = None if name in (self.parts or ()) else self.texts.get(name) or self.find_text(name)
            if column:
                self.texts[name] = column
            role = "language" if name == self.language else column.kind if column else ""
            self.roles[name] = self.roles.get(name, "") or role or self.find_type(name) or "value"
        named = self.wide.name or any(column.kind == "name" for column in self.texts.values())
        if first and not named and (name := self.find_name(batch)):
            self.texts[name] = _TextColumn("name", name, "")
            self.roles[name] = "id" if self.roles[name] == "id" else "name"
        if first:
            self.skips.note(self.report(batch), line=line)
            alike = [name for name in batch.schema.names if is_shaped(name, batch[name])]
            if alike and (alike[0] == batch.schema.names[0] or len(alike) == 1):
                note = f"{alike[0]!r} is taken as a header, but looks like the cells below it; is the header missing?"
                self.skips.note(note, line=line)
            self.note_lists(batch, line)
            self.note_links(batch, line)

    def report(self, batch: pa.RecordBatch) -> str:
        """Return a line that reports the role of each column."""
        parts = {role: [name for name in self.roles if self.role_of(name, role)] for role in ("id", *SAYING, "type")}
        values = [name for name, role in self.roles.items() if role == "value" and any(batch[name][:1_000].to_pylist())]
        role_lines = [f"{role} {', '.join(map(repr, names[:5]))}" for role, names in parts.items() if names]
        role_lines = role_lines if parts["id"] else ["no id, rows are numbered", *role_lines]
        return f"columns: {'; '.join(role_lines)}" + (f"; values {_listed(values)}" if values else "")

    def note_lists(self, batch: pa.RecordBatch, line: int) -> None:
        """Note the columns whose cells look like lists, which are divided if they hold aliases, and whole if not."""
        if self.options.list_separator is not None:
            return
        for name in batch.schema.names:
            aliases = name in self.texts and self.texts[name].kind == "alias"
            if not (aliases or self.roles[name] == "value") or not pa.types.is_string(batch[name].type):
                continue
            cells = batch[name].filter(pc.not_equal(batch[name], ""))
            lists = pc.sum(pc.match_substring_regex(cells, _LIST)).as_py() or 0
            if aliases and lists:
                self.skips.note(
                    f"aliases in {name!r} divided at ';' and '|'; use --list-separator to change it", line=line
                )
            elif lists > 1 and lists >= _LISTS * len(cells):
                note = (
                    f"cells of {name!r} seem to be lists, each taken as one value; use --list-separator to divide them"
                )
                self.skips.note(note, line=line)

    def note_links(self, batch: pa.RecordBatch, line: int) -> None:
        """Note columns of values, such as `Boss`, in which at least half of the values are names of rows."""
        plain = {name: trimmed(as_text(batch[name])) for name in batch.schema.names if not is_list(batch[name].type)}
        names = [column for name, column in plain.items() if self.role_of(name, "name")]
        if not names:
            return
        for name, column in plain.items():
            if self.roles[name] == "value" and not find_head(name, self.wide.link):
                cells = column.filter(pc.not_equal(column, "")).unique()
                named = pc.sum(pc.is_in(cells, pa.concat_arrays(names))).as_py() or 0
                if named and named >= _NAMES * len(cells):
                    self.skips.note(
                        f"cells of {name!r} are names of rows; --link-column {name!r} links them", line=line
                    )

    def role_of(self, name: str, role: str) -> bool:
        return self.roles[name] == role or (name in self.texts and self.texts[name].kind == role)

    def find_id(self, batch: pa.RecordBatch) -> str:
        """Return the column of ids: the named one, else one with a usual head, else one whose ids are all different."""
        header = batch.schema.names
        if self.wide.subject:
            if column := find_head(self.wide.subject, header):
                return column
            raise self.unfit(f"found the columns {header[:20]!r}, none of them {self.wide.subject!r}; change --id")
        assigned = {*self.wide.alias, *self.wide.type, *self.wide.description, *self.wide.link}
        by_plain = {plain_head(name): name for name in reversed(header) if name not in assigned}
        usual = [
            name for head in ENTITY_ROLES["id"].split("|") if (name := by_plain.get(head, ""))
            and (head not in _ALSO_VALUES or self.language or is_distinct(batch[name]))
        ]  # fmt: skip
        ending = [name for plain, name in by_plain.items() if _CODE_HEAD.search(plain) and is_distinct(batch[name])]
        addressed = [
            name for name in header if name not in assigned and is_address(batch[name]) and is_distinct(batch[name])
        ]
        numbered = [name for name in header[:1] if _NUMBER_HEAD.search(plain_head(name)) and is_distinct(batch[name])]
        return next(iter([*usual, *reversed(ending), *addressed, *numbered]), "")

    def find_text(self, name: str) -> _TextColumn | None:
        """Return the kind of text in a column; its language is given after an @ in its head or in the option."""
        head = name.casefold()
        stem, at, tag = head.rpartition("@")
        kinds = {wanted: kind for kind in SAYING for wanted in getattr(self.wide, kind)}
        for wanted, kind in kinds.items():
            column, base, language = wanted.casefold().rpartition("@")
            if wanted.casefold() == head:
                return _TextColumn(kind, wanted, tag if at else "")
            if base and column == head:
                return _TextColumn(kind, wanted, language)
            if at and wanted.casefold() == stem:
                return _TextColumn(kind, wanted, tag)
        role = entity_role(stem if at else name)
        if (
            role in SAYING
            and not getattr(self.wide, role)
            and self.roles.get(name) != "id"
            and name not in self.wide.type
        ):
            return _TextColumn(role, name, tag if at else "")
        return None

    def find_type(self, name: str) -> str:
        """Return `type` for a column of types, else an empty text."""
        if self.wide.type:
            return "type" if find_head(name, self.wide.type) else ""
        return "type" if entity_role(name) == "type" else ""

    def find_name(self, batch: pa.RecordBatch) -> str:
        """Return the column of names if none is named: by its head, else the first column of distinct texts."""
        header: list[str] = batch.schema.names
        values = [name for name in header if self.roles[name] == "value" and name not in self.wide.link]
        # `Company` beside `Company code`.
        ids = (plain_head(name) for name in header if self.roles[name] == "id")
        stems = [re.sub(r" (id|code|key|no|nr|number)$", "", head) for head in ids]
        for heads in (*map(re.escape, stems), *NAME_HEADS):
            for name in values:
                if re.fullmatch(heads, plain_head(name)):
                    return name
        texts = [name for name in header if name in values or self.may_name(name, batch[name])]
        texts = [name for name in texts if pa.types.is_string(batch[name].type) and not is_value(batch[name])]
        texts.sort(key=lambda name: _NUMBER_HEAD.search(plain_head(name)) is not None)
        # Where no column differs in nearly all rows, one that differs in half of them, as names of people do.
        return next((name for least in (0.9, 0.5) for name in texts if is_distinct(batch[name], least)), "")

    def may_name(self, name: str, column: pa.Array) -> bool:
        """Return whether a column of short descriptions or names, which no option names, may hold the only names."""
        kind = self.texts[name].kind if name in self.texts else ""
        if not (kind == "description" or (kind == "alias" and "name" in plain_head(name))) or getattr(self.wide, kind):
            return False
        return pa.types.is_string(column.type) and (pc.mean(pc.utf8_length(column)).as_py() or 0) <= _SHORT

    def with_full_names(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the column of full names, where the table has given and family names and no option names another."""
        if not self.roles and not self.wide.name and (parts := name_parts(batch.schema.names)):
            # A name that holds the other one is full already.
            columns = [batch[part].to_pylist() for part in parts]
            full = any(a and b and (a in b or b in a) for a, b in zip(*columns, strict=True))
            self.parts = None if full or not all(map(pa.types.is_string, batch.select(parts).schema.types)) else parts
        if not self.parts or not {*self.parts} <= {*batch.schema.names}:
            return batch
        head = f"{self.parts[0]} {self.parts[1]}"
        self.texts[head] = _TextColumn("name", head, "")
        cells = [trimmed(as_text(batch[part])) for part in self.parts]
        return batch.append_column(head, trimmed(pc.binary_join_element_wise(*cells, " ")))

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
        batch = self.with_full_names(batch)
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
            # A white-space separator does not divide names: spaces separate their words.
            separator = None if (text and text.kind == "description") or role == "id" else self.options.list_separator
            column = batch[name]
            if separator is None and text and text.kind == "alias" and pa.types.is_string(column.type):
                column, separator = pc.replace_substring_regex(column, r"\s*[;|]\s*", ";"), ";"
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
            if text is not None:
                own_tag = tags is None or text.language
                spoken = repeated(text.language, len(entities)) if own_tag else cells.beside(tags)
                yield from self.lay_out_texts(text.kind, entities, cells.texts, spoken, line)
            elif role == "type":
                yield batch_of("types", [entities, canonical_column(cells.texts)], line)
            else:
                linked = "name" if find_head(name, self.wide.link) else "key" if _KEY.search(plain_head(name)) else ""
                values = spelt_values(cells.texts, linked)
                yield batch_of("facts", [entities, repeated(name, len(values)), values], line)

    def subjects(self, rows: TableRows, batch: pa.RecordBatch) -> pa.Array:
        """Return the id of each row, or its number in a table without ids; count the rows without an id."""
        name = next((name for name, role in self.roles.items() if role == "id"), None)
        if name is None:
            return pa.array([f"{self.source.rows}{line}" for line in rows.lines], pa.string())
        # In JSON Lines, all objects of a block may lack the field.
        ids = batch[name] if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
        if is_list(ids.type):
            raise self.unfit(f"the column {name!r} holds lists, expected an id; name another with --id")
        subjects = canonical_column(trimmed(as_text(ids)))
        lacking = pc.indices_nonzero(pc.equal(subjects, "")).to_pylist()
        rows.count(dict.fromkeys(lacking, f"nothing under {name}"), self.skips)
        return subjects

    def without_placeholders(self, name: str, cells: Cells) -> Cells:
        """Return the values of a column except dashes and the like; beside `+`, a dash is a value."""
        empty = pc.match_substring_regex(cells.texts, PLACEHOLDER)
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


def find_head(wanted: str, header: Iterable[str]) -> str:
    """Return the column with this head, else one that differs only in case; empty if there is none."""
    header = list(header)
    folded = {head.strip().casefold(): head for head in reversed(header)}
    return wanted if wanted in header else folded.get(wanted.strip().casefold(), "")


def _listed(columns: Iterable[str]) -> str:
    """Return the first eight columns as a list in a sentence."""
    names = list(columns)
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


_SHORT = 60
"""Letters of descriptions, on average, up to which they may be names, as in a catalogue of parts."""

_LIST = r"\S\s*[;|]\s*[^\s;|]"
_LISTS = 0.2
"""A cell with several parts, and the share of such cells from which a column seems to hold lists."""

_NAMES = 0.5
"""If at least this share of a column's cells are names of rows, a note says so."""

_KEY = re.compile(r"\bids?$")
"""The end of heads of columns that hold keys, such as `boss_id`."""

_ALSO_VALUES = frozenset(("code", "entity", "key", "subject"))
"""Heads of ids only where no row repeats another: `Subject` may be that of a lesson."""

_CODE_HEAD = re.compile(r" (id|code|key)$")
_NUMBER_HEAD = re.compile(
    r"\b(no|nr|num|number|numero|ref|reference|codigo|codice|sku|ean|isbn|barcode)$|(nr|nummer)$|"
    r"^(symbol|ticker|abbr|iata|icao|iso)\b"
)
"""Heads of numbers and short codes, which are ids if the column is the first and its values are distinct."""
