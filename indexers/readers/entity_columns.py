"""The role of each column of a table with one entity per row: named by an option, or guessed from head and cells."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.errors import WrongFormat
from kbtools.indexers.readers.batches import Skips
from kbtools.indexers.readers.cell_forms import (
    has_comma_lists,
    is_address,
    is_code,
    is_distinct,
    is_repeated,
    is_row_numbers,
    is_shaped,
    is_value,
)
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.table_rows import SAYING, as_text, is_list, trimmed
from kbtools.kb.table_heads import ENTITY_ROLES, NAME_HEADS, OTHER_NAMES, entity_role, name_parts, plain_head


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """A column of names, aliases or descriptions, as an option names it, and their language.

    `owner` is the column of the entities that they belong to, empty for those of the rows.
    """

    kind: str
    wanted: str
    language: str
    owner: str = ""


class EntityColumns:
    """The roles of the columns of a table; those that no option names are guessed from the heads and the first rows."""

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.wide = options.wide
        self.skips = skips
        self.language = options.columns.get("language")
        self.roles: dict[str, str] = {}
        """The role of each column: id, name, alias, type, description, language, row number, other table, or value."""
        self.texts: dict[str, _TextColumn] = {}
        self.parts: tuple[str, str] | None = None
        """The columns of given and of family names, where names are made of both."""
        self.addresses: list[str] = []
        """The columns of Wikidata's addresses."""
        self.id_lists: set[str] = set()
        """The columns of values with lists of ids of rows."""
        self.spoken: dict[str, tuple[str, str]] = {}
        """The columns whose heads end in a language, such as `name_de` beside `name_en`: their roles and languages."""

    def unfit(self, reason: str) -> WrongFormat:
        return WrongFormat(f"{self.source.name}: {reason}", path=str(self.source.path))

    def choose(self, batch: pa.RecordBatch, line: int) -> None:
        """Choose the role of each new column and report it."""
        fields = [name for name in batch.schema.names if name not in self.roles]
        first = not self.roles
        self.find_spoken(batch.schema.names)
        if first:
            self.addresses = [name for name in batch.schema.names if is_address(batch[name])]
            self.roles |= dict.fromkeys(filter(None, [self.find_id(batch)]), "id")
            self.leave_out_row_numbers(batch, line)
            self.leave_out_next_table(batch, line)
        for name in fields:
            column = None if name in (self.parts or ()) else self.texts.get(name) or self.find_text(name)
            if column:
                self.texts[name] = column
            role = "language" if name == self.language else column.kind if column else ""
            self.roles[name] = self.roles.get(name, "") or role or self.find_type(name) or "value"
        named = self.wide.name or any(column.kind == "name" and not column.owner for column in self.texts.values())
        if first and not named and (name := self.find_name(batch)):
            self.texts[name] = _TextColumn("name", name, "")
            self.roles[name] = "id" if self.roles[name] == "id" else "name"
        if first:
            self.skips.note(self.report(batch), line=line)
            alike = [name for name in batch.schema.names if is_shaped(name, batch[name])]
            if again := [name for name in batch.schema.names if is_repeated(name, batch[name])]:
                note = f"{again[0]!r} is taken as a header, but also occurs in a cell below; is the header missing?"
                if len(batch.schema.names) == 3:
                    note += " A header for facts is: subject,relation,object"
                self.skips.note(note, line=line)
            elif alike and (alike[0] == batch.schema.names[0] or len(alike) == 1):
                note = f"{alike[0]!r} is taken as a header, but looks like the cells below it; is the header missing?"
                self.skips.note(note, line=line)
            self.note_lists(batch, line)
            self.note_links(batch, line)

    def leave_out_row_numbers(self, batch: pa.RecordBatch, line: int) -> None:
        """Leave out a first column of row numbers that no option names."""
        name = batch.schema.names[0]
        named = {*self.wide.name, *self.wide.others}
        if name not in self.roles and not find_head(name, named) and is_row_numbers(name, batch[name]):
            self.roles[name] = "row number"
            self.skips.note(f"row numbers, left out: {name!r}", line=line)

    def leave_out_next_table(self, batch: pa.RecordBatch, line: int) -> None:
        """Leave out the columns of another table: right of an empty column, with the head of the first one again."""
        names = batch.schema.names
        gap = next((at for at, name in enumerate(names) if at and _is_empty(name, batch[name])), len(names) - 1)
        if names[gap + 1 : gap + 2] == [f"{names[0]} 2"]:
            self.roles |= dict.fromkeys(names[gap:], "other table")
            note = f"another table begins at the column {names[gap + 1]!r}, left out; save it as a file of its own"
            self.skips.note(note, line=line)

    def report(self, batch: pa.RecordBatch) -> str:
        """Return a line that reports the role of each column."""
        parts = {role: [name for name in self.roles if self.role_of(name, role)] for role in ("id", *SAYING, "type")}
        values = [name for name, role in self.roles.items() if role == "value" and any(batch[name][:1_000].to_pylist())]
        role_lines = [f"{role} {', '.join(map(repr, names[:5]))}" for role, names in parts.items() if names]
        role_lines = role_lines if parts["id"] else ["no id, rows are numbered", *role_lines]
        return f"columns: {'; '.join(role_lines)}" + (f"; values {listed(values)}" if values else "")

    def note_lists(self, batch: pa.RecordBatch, line: int) -> None:
        """Note columns of lists; lists of aliases or of ids of rows are divided, others stay whole."""
        if self.options.list_separator is not None:
            return
        keys = [batch[name] for name in batch.schema.names if self.roles[name] == "id"]
        # A column of ids with lists is refused later.
        named = [trimmed(as_text(column)) for column in keys if not is_list(column.type)]
        # Without a letter, `1,2` may be a number.
        ids = pc.filter(named[0], pc.match_substring_regex(named[0], r"\p{L}")) if named else pa.array([], pa.string())
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
            elif not aliases and _are_lists_of(ids, cells):
                self.id_lists.add(name)
                note = f"ids of rows in {name!r} divided at ';', '|' and ','; use --list-separator to change it"
                self.skips.note(note, line=line)
            elif not aliases and ((lists > 1 and lists >= _LISTS * len(cells)) or has_comma_lists(cells)):
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
                others = pc.and_(pc.not_equal(column, ""), pc.not_equal(column, names[0]))
                cells = column.filter(others).unique()
                named = pc.sum(pc.is_in(cells, pa.concat_arrays(names))).as_py() or 0
                if named and named >= _NAMES * len(cells):
                    self.skips.note(
                        f"cells of {name!r} are names of rows; --link-column {name!r} links them", line=line
                    )

    def role_of(self, name: str, role: str) -> bool:
        if role == "alias" and self.roles[name] == "value" and self.is_other_name(name):
            return True
        return self.roles[name] == role or (name in self.texts and self.texts[name].kind == role)

    def is_other_name(self, name: str) -> bool:
        """Return whether a column holds names that are values too, such as `Common name` beside `Latin name`."""
        columns = [column for column, role in self.roles.items() if role in ("value", "name")]
        others = [column for column in columns if re.fullmatch(OTHER_NAMES, plain_head(column))]
        # Nobody asks for the only name of an entity.
        only = self.roles[name] == "name" and len(others) == 1
        return name in others and not only and not self.wide.alias

    def find_id(self, batch: pa.RecordBatch) -> str:
        """Return the column of ids: the named one, else one with a usual head, else one whose ids are all different."""
        header = batch.schema.names
        if self.wide.subject:
            if column := find_head(self.wide.subject, header):
                return column
            raise self.unfit(f"found the columns {header[:20]!r}, none of them {self.wide.subject!r}; change --id")
        assigned = self.wide.others
        by_plain = {plain_head(name): name for name in reversed(header) if name not in assigned}
        usual = [
            name for head in ENTITY_ROLES["id"].split("|") if (name := by_plain.get(head, ""))
            and (head not in _ALSO_VALUES or self.language or is_distinct(batch[name]))
        ]  # fmt: skip
        ending = [name for plain, name in by_plain.items() if _CODE_HEAD.search(plain) and is_distinct(batch[name])]
        addressed = [name for name in self.addresses if name not in assigned and is_distinct(batch[name])]
        # Wikidata's query service repeats an entity for each of its values.
        addressed += [name for name in self.addresses if name == header[0] and f"{name}Label" in header]
        numbered = [name for name in header[:1] if _NUMBER_HEAD.search(plain_head(name)) and is_distinct(batch[name])]
        coded = [name for name in header[:1] if is_code(batch[name]) and is_distinct(batch[name])]
        if not any(pa.types.is_string(batch[name].type) and not is_value(batch[name]) for name in header[1:]):
            coded = []  # The codes are the only names.
        return next(iter([*usual, *reversed(ending), *addressed, *numbered, *coded]), "")

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
        for suffix, kind in _OF_ADDRESSES.items():
            owner = name.removesuffix(suffix)
            if owner in self.addresses and owner != name and not getattr(self.wide, kind):
                return _TextColumn(kind, name, "", "" if self.roles.get(owner) == "id" else owner)
        role, tag = (entity_role(stem), tag) if at else self.spoken.get(name, (entity_role(name), ""))
        if (
            role in SAYING
            and not getattr(self.wide, role)
            and self.roles.get(name) != "id"
            and name not in self.wide.type
        ):
            return _TextColumn(role, name, tag)
        return None

    def find_spoken(self, header: Sequence[str]) -> None:
        """Find texts in several languages by their heads, unless none of these languages is wanted."""
        ends = {name: end.groups() for name in header if (end := _SPOKEN_HEAD.fullmatch(plain_head(name)))}
        stems = Counter(stem for stem, _ in ends.values())
        wanted = {stem for stem, tag in ends.values() if Languages.read(self.options.language)[tag] is not None}
        titled = "name" not in map(entity_role, header)
        for name, (stem, tag) in ends.items():
            role = entity_role(stem) or ("name" if titled and re.fullmatch(NAME_HEADS[0], stem) else "")
            if role in SAYING and stems[stem] > 1 and stem in wanted:
                self.spoken[name] = role, tag

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
        heads = (*map(re.escape, stems), *("symbol" for stem in stems if stem == "gene"), *NAME_HEADS)
        named = [name for head in heads for name in values if re.fullmatch(head, plain_head(name))]
        texts = [name for name in header if name in values or self.may_name(name, batch[name])]
        texts = [name for name in texts if pa.types.is_string(batch[name].type) and not is_value(batch[name])]
        texts.sort(key=lambda name: (is_code(batch[name]), _NUMBER_HEAD.search(plain_head(name)) is not None))
        # If no column is distinct in nearly all rows, one that is distinct in half of them, such as names of people.
        best = next((name for least in (0.9, 0.5) for name in texts if is_distinct(batch[name], least)), "")
        if named and best == header[0] and not is_distinct(batch[named[0]], 0.5):
            return best  # `Player` beside a `Team name` that most rows repeat.
        return next(iter(named), best)

    def may_name(self, name: str, column: pa.Array) -> bool:
        """Return whether a column of short descriptions or names, which no option names, may contain the only names."""
        kind = self.texts[name].kind if name in self.texts else ""
        if not (kind == "description" or (kind == "alias" and "name" in plain_head(name))) or getattr(self.wide, kind):
            return False
        return pa.types.is_string(column.type) and (pc.mean(pc.utf8_length(column)).as_py() or 0) <= _SHORT

    def with_full_names(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the column of full names if the table has given and family names and no option names another column."""
        if not self.roles and not self.wide.name and (parts := name_parts(batch.schema.names)):
            # A name that contains the other one is full already.
            columns = [batch[part].to_pylist() for part in parts]
            full = any(a and b and (a in b or b in a) for a, b in zip(*columns, strict=True))
            self.parts = None if full or not all(map(pa.types.is_string, batch.select(parts).schema.types)) else parts
        if not self.parts or not {*self.parts} <= {*batch.schema.names}:
            return batch
        head = f"{self.parts[0]} {self.parts[1]}"
        self.texts[head] = _TextColumn("name", head, "")
        cells = [trimmed(as_text(batch[part])) for part in self.parts]
        return batch.append_column(head, trimmed(pc.binary_join_element_wise(*cells, " ")))


def _is_empty(name: str, column: pa.Array) -> bool:
    """Return whether a column has neither a head nor a cell."""
    return name.startswith("column ") and not any(column.to_pylist())


def find_head(wanted: str, header: Iterable[str]) -> str:
    """Return the column with this head, else one that differs only in case; empty if there is none."""
    header = list(header)
    folded = {head.strip().casefold(): head for head in reversed(header)}
    return wanted if wanted in header else folded.get(wanted.strip().casefold(), "")


def listed(columns: Iterable[str]) -> str:
    """Return the first eight columns as a list in a sentence."""
    names = list(columns)
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def _are_lists_of(ids: pa.Array, cells: pa.Array) -> bool:
    """Return whether some cells hold several ids, and all such cells nothing else."""
    several = pc.and_(pc.match_substring_regex(cells, ID_SEPARATORS), pc.invert(pc.is_in(cells, ids)))
    parts = pc.list_flatten(pc.split_pattern_regex(trimmed(cells.filter(several)), ID_SEPARATORS))
    return len(parts) > 0 and bool(pc.all(pc.is_in(parts, ids)).as_py())


ID_SEPARATORS = r"\s*[;|,]\s*"

_SHORT = 60
"""Letters of descriptions, on average, up to which they may be names, as in a catalogue of parts."""

_LIST = r"\S\s*[;|]\s*[^\s;|]"
_LISTS = 0.2
"""A cell with several parts, and the share of such cells from which a column seems to contain lists."""

_NAMES = 0.5
"""The share of a column's cells that are names of rows from which a note reports it."""

_ALSO_VALUES = frozenset(("code", "entity", "key", "subject"))
"""Heads of ids only if the values are distinct: `Subject` may be the subject of a lesson."""

_OF_ADDRESSES = {"Label": "name", "Description": "description", "AltLabel": "alias"}
"""What Wikidata's query service adds to the name of a variable for the texts of its entity."""

_SPOKEN_HEAD = re.compile(r"(.+) ([a-z]{2})")
"""A head that ends in the code of a language, as `name_de` and `Label (fr)` do."""

_CODE_HEAD = re.compile(r" (id|code|key)$")
_NUMBER_HEAD = re.compile(
    r"\b(no|nr|num|number|numero|ref|reference|codigo|codice|sku|ean|isbn|barcode)$|(nr|nummer)$|"
    r"^(symbol|ticker|abbr|iata|icao|iso)\b|^lp$|\b(kod|cod|numer|cislo|код|номер|артикул)$|"
    r"(编号|編號|代码|番号|コード|번호|코드|رقم)$"
)
"""Heads of numbers and short codes, which are ids if the column is the first and its values are distinct."""
