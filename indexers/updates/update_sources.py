"""The sources of an update: files of changes, of ids to remove, and of rows to add or remove, read into a draft.

Changes are JSON Lines: what to add to an entity or remove from it, and entities to remove or merge.

    {"id": "Q1", "names": ["Ann"], "aliases": ["Annie"], "types": ["Q5"], "facts": {"P19": ["Q2"]}}
    {"id": "Q1", "description": "a painter"}
    {"id": "Q1", "rename": {"Ann": "Anne"}}
    {"id": "Q1", "remove": {"aliases": ["Annie"], "types": true, "facts": {"P19": ["Q2"], "P20": true}}}
    {"remove": "Q1"}
    {"merge": "Q3", "into": "Q1"}

Names may be given by language: `{"names": {"de": "Köln", "en": ["Cologne"]}}`. `true` means all values. Removals of a
record come before its additions.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Literal

import pyarrow as pa

from kbtools.errors import NothingBuilt, WrongFormat
from kbtools.indexers.building.derived_rows import CELL
from kbtools.indexers.readers.batches import ALIAS, Kind, RecordBatch, Skips, flaw, lines_of
from kbtools.indexers.readers.formats import suffix_of
from kbtools.indexers.readers.json_lines import DECODER
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import TEXT_TABLES, WIDE, ReadOptions, Source
from kbtools.indexers.readers.sources import read_blocks
from kbtools.indexers.readers.table_files import BINARY, open_reading
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.ids import canonical_id, canonical_property
from kbtools.text.normaliser import normal_form

_EntityChange = tuple[Any, ...]
"""A change to be made to a draft: a method and its arguments."""

_CHANGES_AT_ONCE = 1_000
"""Changes whose entities are looked up together, which takes a cluster few requests."""

Role = Literal["changes", "gone", "add", "remove"]
"""The role of a file: records of changes, ids of entities to remove, rows to add, rows to remove."""

_METHODS: dict[Role, dict[Kind, Callable[..., None]]] = {
    "add": {"facts": Draft.add_fact, "types": Draft.add_type, "redirects": Draft.merge},
    "remove": {"facts": Draft.remove_fact, "types": Draft.remove_types},
}
"""The change for a row of each kind; kinds with languages are separate."""

_ONE, _BOTH = slice(1), slice(None, None, 2)

_ENTITIES: dict[Callable[..., None], slice] = {
    Draft.merge: slice(2), Draft.add_fact: _BOTH, Draft.remove_fact: _BOTH
}  # fmt: skip
"""The positions of entity ids among the arguments of methods; by default the first."""

_GIVEN = frozenset({"id", "names", "aliases", "types", "description", "facts", "remove", "rename"})
_REMOVED = frozenset({"names", "aliases", "types", "description", "facts"})

_OF_TABLES = "pass tables with one entity per row to --table, others to --facts or --names"


@dataclass(frozen=True, slots=True)
class UpdateSource:
    """A file of an update, and its role."""

    source: Source
    role: Role


def read_into(draft: Draft, part: UpdateSource, options: ReadOptions) -> Skips:
    """Make the changes of a source; raise TooManyBadLines at its end if too many lines are bad."""
    if part.role in ("changes", "gone"):
        return _read_lines_into(draft, part, options)
    reading = open_reading(part.source, options)
    read, cells, numbered = 0, _Cells(), _NumberedRows(draft, part.source)
    for batch in reading.batches():
        if batch.kind == "names" and part.source.format == WIDE and part.role == "add":
            numbered.compare(batch)
        read += _apply(draft, cells.put_off(batch) if part.source.format == WIDE else batch, part.role)
    read += sum(_apply(draft, batch, part.role) for batch in cells.settled(draft))
    numbered.check(reading.skips)
    if not read:
        kind, lines = "rows" if part.source.kind == "any" else part.source.kind, reading.skips.lines
        raise NothingBuilt(f"{part.source.name}: no {kind} among its {lines:,} lines; is it the right file?")
    return reading.skips


class _NumberedRows:
    """The rows of a table without ids, whose numbers may be those of other rows that the knowledge base has."""

    def __init__(self, draft: Draft, source: Source) -> None:
        self.draft, self.source, self.end = draft, source, draft.end
        self.alike: set[str] = set()
        """The rows that have a name of their entity."""
        self.unlike: dict[str, tuple[str, str]] = {}
        """The rows with another name than their entity, and both names."""
        self.new: dict[str, None] = {}
        """The names of new entities."""

    def compare(self, batch: RecordBatch) -> None:
        """Compare the names of rows with those of the entities with their ids, before they are added."""
        columns = [batch.table.column(name).to_pylist() for name in ("entity", "rank", "text")]
        start = self.source.rows
        rows = [(entity, text) for entity, rank, text in zip(*columns, strict=True)
                if rank != ALIAS and entity.startswith(start) and entity[len(start):].isdigit()]  # fmt: skip
        self.draft.expect(entity for entity, _ in rows)
        for entity, text in rows:
            row = self.draft.find(entity)
            if row is None:
                self.new[text] = None
            elif row < self.end and (names := self.draft.names[row]):
                if normal_form(text) in map(normal_form, names):
                    self.alike.add(entity)
                else:
                    self.unlike.setdefault(entity, (text, next(iter(names))))

    def check(self, skips: Skips) -> None:
        """Raise WrongFormat if a row would change an entity with another name; note new namesakes."""
        for entity, (text, name) in self.unlike.items():
            if entity not in self.alike:
                cure = "rename the file to add its rows as new entities, or use a column of ids"
                problem = f"the row {text!r} has no id, and its number {entity!r} is that of {name!r}; {cure}"
                raise WrongFormat(f"{self.source.name}: {problem}", path=str(self.source.path))
        bearers = self.draft.bearers(list(islice(self.new, _CHANGES_AT_ONCE)))
        if known := next((text for text in self.new if min(bearers.get(text.lower(), {self.end})) < self.end), None):
            note = f"rows without an id are new entities, even if others have their names, such as {known!r}"
            skips.note(f"{note}; build and update with a column of ids to match them", line=1)


class _Cells:
    """The cells of a table, resolved to entities or values once all its rows are read, as in a build."""

    def __init__(self) -> None:
        self.facts: list[RecordBatch] = []

    def put_off(self, batch: RecordBatch) -> RecordBatch:
        """Return the rows that can be added now; facts come later, when the names of the table are known."""
        if batch.kind != "facts":
            return batch
        self.facts.append(batch)
        return replace(batch, table=batch.table.slice(0, 0))

    def settled(self, draft: Draft) -> Iterator[RecordBatch]:
        """Yield the facts with each cell replaced by an entity or a literal."""
        columns = [batch.table.column("object").to_pylist() for batch in self.facts]
        cells = {cell: parts.groups() for cell in chain(*columns) if (parts := re.fullmatch(CELL, cell, re.DOTALL))}
        bearers = draft.bearers({text for text, kind in cells.values() if kind == "name"})
        draft.expect(text for text, kind in cells.values() if kind not in ("number", "date"))
        settled = {cell: _settle(draft, text, kind, bearers) for cell, (text, kind) in cells.items()}
        for batch, column in zip(self.facts, columns, strict=True):
            objects = pa.array([settled.get(cell, cell) for cell in column], pa.string())
            place = batch.table.schema.get_field_index("object")
            yield replace(batch, table=batch.table.set_column(place, batch.table.schema.field(place), objects))


def _settle(draft: Draft, text: str, kind: str, bearers: Mapping[str, Collection[int]]) -> str:
    """Return the entity with this id, or the only one with this name, for a cell; else a literal of its kind."""
    if kind not in ("number", "date") and draft.find(text) is not None:
        return text
    if kind == "name" and len(rows := bearers.get(text.lower(), ())) == 1:
        return draft.id_of(next(iter(rows)))
    time = "dateTime" if ":" in text else "date"
    datatype = {"number": "decimal", "date": time, "url": "anyURI"}.get(kind)
    return f'"{text}"' + (f"^^<http://www.w3.org/2001/XMLSchema#{datatype}>" if datatype else "")


def _apply(draft: Draft, batch: RecordBatch, role: Role) -> int:
    """Make the changes of rows; return their number, 0 for a kind that updates ignore."""
    rows = [tuple(row.values()) for row in batch.table.to_pylist()]
    about = {"facts": (0, 2), "redirects": (0, 1)}.get(batch.kind, (0,))
    draft.expect(row[place] for row in rows for place in about)
    if batch.kind == "names":
        for entity, rank, text, language in rows:
            if role == "add":
                draft.add_name(entity, text, rank, language)
            else:
                draft.remove_name(entity, text)
        return len(rows)
    if batch.kind in ("descriptions", "relations"):
        if role != "add":
            return 0
        # As in a build: the first description by spelling, and the shortest name of a relation; see derived_rows.
        best: dict[tuple[str, str], str] = {}
        short = batch.kind == "relations"
        for owner, _, text, language in sorted(rows, key=lambda row: (row[1], short and len(row[2]), row[2])):
            best.setdefault((owner, language), text)
        for (owner, language), text in best.items():
            (draft.describe if batch.kind == "descriptions" else draft.name_relation)(owner, text, language)
        return len(best)
    method = _METHODS[role].get(batch.kind)
    if method is None:
        return 0
    for row in rows:
        method(draft, *row)
    return len(rows)


def _read_lines_into(draft: Draft, part: UpdateSource, options: ReadOptions) -> Skips:
    """Make the changes of a file of records or ids, line by line."""
    if part.role == "changes" and suffix_of(part.source.path) in (*TEXT_TABLES, *BINARY):
        problem = f"{part.source.name}: found a table, expected changes as JSON Lines; {_OF_TABLES}"
        raise WrongFormat(problem, path=str(part.source.path))
    skips = Skips(part.source.name, options.max_bad)
    lines = _text_lines(part.source, skips)
    languages = Languages.read(options.language)
    changes = _removals(lines, skips) if part.role == "gone" else _records(lines, skips, languages)
    while together := list(islice(changes, _CHANGES_AT_ONCE)):
        draft.expect(entity for method, *about in together for entity in about[_ENTITIES.get(method, _ONE)])
        for method, *arguments in together:
            method(draft, *arguments)
    skips.check()
    return skips


def _removals(lines: Iterable[tuple[int, str]], skips: Skips) -> Iterator[_EntityChange]:
    """Yield a removal for each line with an id."""
    for number, line in lines:
        entity = line.strip()
        if problem := "more than an id" if "\t" in entity else flaw(entity):
            skips.add(problem, line=number, text=line)
        else:
            yield Draft.delete, canonical_id(entity)


def _records(lines: Iterable[tuple[int, str]], skips: Skips, languages: Languages) -> Iterator[_EntityChange]:
    """Yield the changes of each line with a record."""
    for number, line in lines:
        try:
            yield from _read_changes(line, languages)
        except (ValueError, RecursionError) as error:
            skips.add("invalid record of changes", line=number, text=line, reason=error)


def _text_lines(source: Source, skips: Skips) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are text, with their numbers."""
    for block in read_blocks(source.path):
        for number, raw in lines_of(block):
            skips.lines += 1
            if not raw.strip():
                skips.add("blank line", line=number, text="", bad=False)
                continue
            try:
                yield number, raw.decode()
            except UnicodeDecodeError:
                skips.add("invalid UTF-8", line=number, text=raw.decode(errors="backslashreplace"))


def _read_changes(line: str, languages: Languages) -> list[_EntityChange]:
    """Return the changes of a record; raise ValueError with its fault."""
    record = DECODER.decode(line)
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    if record.keys() == {"remove"}:
        return [(Draft.delete, canonical_id(text)) for text in _texts_of(record, "remove")]
    if record.keys() == {"merge", "into"}:
        into = canonical_id(_text_of(record["into"], "into"))
        return [(Draft.merge, canonical_id(text), into) for text in _texts_of(record, "merge")]
    _require_fields(record, _GIVEN)
    if not isinstance(record.get("id"), str):
        raise ValueError("no id; expected a text under 'id'")
    if record.keys() == {"id"}:
        raise ValueError("only an id; expected also names, aliases, types, description, facts, remove or rename")
    return list(_changes_of(canonical_id(_text_of(record["id"], "id")), record, languages))


def _changes_of(entity: str, record: Mapping[str, Any], languages: Languages) -> Iterator[_EntityChange]:
    if "remove" in record:
        yield from _removals_of(entity, record["remove"])
    for old, new in _mapping_of(record, "rename").items():
        yield Draft.rename, entity, _text_of(old, "rename"), _name_of(new, "rename")
    for field, rank in (("names", 0), ("aliases", ALIAS)):
        for tag, text in _spoken_texts(record, field):
            place = languages[tag]
            # Names in an unlisted language rank after all others.
            name_rank = rank or (len(languages.tags) if place is None else place)
            yield Draft.add_name, entity, _name_of(text, field), name_rank, tag
    for kind in _texts_of(record, "types"):
        yield Draft.add_type, entity, canonical_property(kind, beside=entity)
    if "description" in record:
        described = record["description"] if isinstance(record["description"], dict) else {"": record["description"]}
        for tag, text in described.items():
            yield Draft.describe, entity, _text_of(text, "description"), tag.lower()
    facts = _mapping_of(record, "facts")
    for relation in facts:
        for target in _texts_of(facts, relation):
            yield Draft.add_fact, entity, _relation_of(relation, entity), canonical_id(target)


def _removals_of(entity: str, removed: Any) -> Iterator[_EntityChange]:
    """Yield the removals from an entity."""
    if not isinstance(removed, dict):
        raise ValueError("'remove' next to an id must be an object of names, aliases, types, description and facts")
    _require_fields(removed, _REMOVED)
    for field in ("names", "aliases"):
        if removed.get(field) is True:
            yield Draft.remove_names, entity, field == "aliases"
            continue
        for text in _texts_of(removed, field):
            yield Draft.remove_name, entity, text
    if removed.get("types") is True:
        yield Draft.remove_types, entity
    else:
        for kind in _texts_of(removed, "types"):
            yield Draft.remove_types, entity, canonical_property(kind, beside=entity)
    if removed.get("description") is True:
        yield Draft.remove_description, entity
    elif "description" in removed:
        raise ValueError(f"'description' to remove is {removed['description']!r:.60}, expected true")
    if removed.get("facts") is True:
        yield Draft.remove_facts, entity
        return
    facts = _mapping_of(removed, "facts")
    for relation in facts:
        row = _relation_of(relation, entity)
        if facts[relation] is True:
            yield Draft.remove_facts, entity, row
            continue
        for target in _texts_of(facts, relation):
            yield Draft.remove_fact, entity, row, canonical_id(target)


def _relation_of(relation: str, entity: str) -> str:
    return canonical_property(_text_of(relation, "facts"), beside=entity)


def _require_fields(record: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := sorted(record.keys() - known):
        of_table = bool({"subject", "entity", "name", "label"} & set(unknown))
        cure = _OF_TABLES if of_table else f"known: {', '.join(sorted(known))}"
        raise ValueError(f"unknown field {unknown[0]!r}; {cure}")


def _texts_of(record: Mapping[str, Any], field: str) -> Sequence[str]:
    """Return the texts of a field, which may be a single one."""
    value = record.get(field, ())
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple):
        raise ValueError(f"{field!r} is {value!r:.60}, expected a text or a list of texts")
    return [_text_of(text, field) for text in values]


def _spoken_texts(record: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a field with their languages, for an object of texts by language."""
    if not isinstance(record.get(field), dict):
        yield from (("", text) for text in _texts_of(record, field))
        return
    for tag in record[field]:
        yield from ((_text_of(tag, field).lower(), text) for text in _texts_of(record[field], tag))


def _mapping_of(record: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = record.get(field, {})
    if not isinstance(value, dict):
        raise ValueError(f"{field!r} is {value!r:.60}, expected an object")
    return value


def _text_of(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{field!r} contains {value!r:.60}, expected text")
    if problem := flaw(value):
        raise ValueError(f"{problem} in {field!r}")
    return value


def _name_of(value: Any, field: str) -> str:
    text = _text_of(value, field)
    if not normal_form(text):
        raise ValueError(f"blank name in {field!r}")
    return text
