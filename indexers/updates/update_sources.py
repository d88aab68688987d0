"""The sources of an update: files of changes, of ids that go, and of rows that come or go, read into a draft.

Changes are JSON Lines: what an entity gets, what is taken from it, and entities that go or are merged.

    {"id": "Q1", "names": ["Ann"], "aliases": ["Annie"], "types": ["Q5"], "facts": {"P19": ["Q2"]}}
    {"id": "Q1", "description": "a painter"}
    {"id": "Q1", "rename": {"Ann": "Anne"}}
    {"id": "Q1", "remove": {"aliases": ["Annie"], "types": true, "facts": {"P19": ["Q2"], "P20": true}}}
    {"remove": "Q1"}
    {"merge": "Q3", "into": "Q1"}

Names may be given by language, `{"names": {"de": "Köln", "en": ["Cologne"]}}`. `true` stands for all there are. In a
record, what is taken away goes first.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa

from kbtools.errors import NothingBuilt, WrongFormat
from kbtools.indexers.building.derived_rows import CELL
from kbtools.indexers.readers.batches import ALIAS, Kind, RecordBatch, Skips, flaw, lines_of
from kbtools.indexers.readers.formats import suffix_of
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import TEXT_TABLES, WIDE, ReadOptions, Source
from kbtools.indexers.readers.sources import read_blocks
from kbtools.indexers.readers.table_files import BINARY, DECODER, open_reading
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.ids import canonical_id, canonical_property
from kbtools.text.normaliser import normal_form


class EntityChange:
    """A change that a draft is to make: one of its methods, with what that takes."""

    __slots__ = ("arguments", "method", "options")

    def __init__(self, method: str, *arguments: str | int, **options: bool) -> None:
        self.method, self.arguments, self.options = method, arguments, options

    def make(self, draft: Draft) -> None:
        getattr(draft, self.method)(*self.arguments, **self.options)

    @property
    def entities(self) -> Sequence[Any]:
        """Return the ids of the entities that it is about."""
        return self.arguments[ENTITIES.get(self.method, ONE)]


CHANGES_AT_ONCE = 1_000
"""Changes whose entities are announced together, which a cluster then answers in few requests."""

Role = Literal["changes", "gone", "add", "remove"]
"""The part of a file: records of changes, ids of entities that go, rows that come, rows that go."""

METHODS: dict[Role, dict[Kind, Callable[..., None]]] = {
    "add": {
        "facts": Draft.add_fact,
        "types": Draft.add_type,
        "redirects": Draft.merge,
    },
    "remove": {"facts": Draft.remove_fact, "types": Draft.remove_types},
}
"""The change that a row of each kind is; texts have languages, and are apart."""

ONE, BOTH = slice(1), slice(None, None, 2)

ENTITIES = {"merge": slice(2), "add_fact": BOTH, "remove_fact": BOTH}
"""The places of ids of entities among the arguments of methods; the others have one, in the first place."""

GIVEN = frozenset({"id", "names", "aliases", "types", "description", "facts", "remove", "rename"})
REMOVED = frozenset({"names", "aliases", "types", "description", "facts"})

OF_TABLES = "tables of an entity a row go to --table, others to --facts, --names or --types"


@dataclass(frozen=True, slots=True)
class UpdateSource:
    """A file of an update, and its part."""

    source: Source
    role: Role


def read_into(draft: Draft, part: UpdateSource, options: ReadOptions) -> Skips:
    """Make the changes of a source; raise TooManyBadLines at its end where too many lines are none."""
    if part.role in ("changes", "gone"):
        return read_lines_into(draft, part, options)
    reading = open_reading(part.source, options)
    read, cells = 0, Cells()
    for batch in reading.batches():
        read += apply(draft, cells.put_off(batch) if part.source.format == WIDE else batch, part.role)
    read += sum(apply(draft, batch, part.role) for batch in cells.settled(draft))
    if not read:
        kind, lines = "rows" if part.source.kind == "any" else part.source.kind, reading.skips.lines
        raise NothingBuilt(f"{part.source.name}: no {kind} among its {lines:,} lines; is it the right file?")
    return reading.skips


class Cells:
    """The cells of a table, which stand for entities or values once all rows of it are read, as in a build."""

    def __init__(self) -> None:
        self.facts: list[RecordBatch] = []

    def put_off(self, batch: RecordBatch) -> RecordBatch:
        """Return the rows that can be added now; facts come later, when the names of the table are known."""
        if batch.kind != "facts":
            return batch
        self.facts.append(batch)
        return replace(batch, table=batch.table.slice(0, 0))

    def settled(self, draft: Draft) -> Iterator[RecordBatch]:
        """Yield the facts with an entity or a literal in place of each cell."""
        columns = [batch.table.column("object").to_pylist() for batch in self.facts]
        cells = {cell: parts.groups() for cell in chain(*columns) if (parts := re.fullmatch(CELL, cell, re.DOTALL))}
        bearers = draft.bearers({text for text, kind in cells.values() if kind == "name"})
        draft.expect(text for text, kind in cells.values() if kind not in ("number", "date"))
        settled = {cell: settle(draft, text, kind, bearers) for cell, (text, kind) in cells.items()}
        for batch, column in zip(self.facts, columns, strict=True):
            objects = pa.array([settled.get(cell, cell) for cell in column], pa.string())
            place = batch.table.schema.get_field_index("object")
            yield replace(batch, table=batch.table.set_column(place, batch.table.schema.field(place), objects))


def settle(draft: Draft, text: str, kind: str, bearers: Mapping[str, Collection[int]]) -> str:
    """Return the entity that a cell is the id of, or the only one of its name; else a literal of its kind."""
    if kind not in ("number", "date") and draft.find(text) is not None:
        return text
    if kind == "name" and len(rows := bearers.get(text.lower(), ())) == 1:
        return draft.id_of(next(iter(rows)))
    time = "dateTime" if ":" in text else "date"
    datatype = {"number": "decimal", "date": time, "url": "anyURI"}.get(kind)
    return f'"{text}"' + (f"^^<http://www.w3.org/2001/XMLSchema#{datatype}>" if datatype else "")


def apply(draft: Draft, batch: RecordBatch, role: Role) -> int:
    """Make the changes of rows; give their number, 0 of a kind that an update does not take."""
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
        # The first language of an entity is the usual one, the shortest text of each is taken, as in a build.
        best: dict[tuple[str, str], str] = {}
        for owner, _, text, language in sorted(rows, key=itemgetter(1, 2)):
            best.setdefault((owner, language), text)
        for (owner, language), text in best.items():
            (draft.describe if batch.kind == "descriptions" else draft.name_relation)(owner, text, language)
        return len(best)
    method = METHODS[role].get(batch.kind)
    if method is None:
        return 0
    for row in rows:
        method(draft, *row)
    return len(rows)


def read_lines_into(draft: Draft, part: UpdateSource, options: ReadOptions) -> Skips:
    """Make the changes of a file of records or of ids, line by line."""
    if part.role == "changes" and suffix_of(part.source.path) in (*TEXT_TABLES, *BINARY):
        found = f"{part.source.name}: found a table, expected changes as JSON Lines; {OF_TABLES}"
        raise WrongFormat(found, path=str(part.source.path))
    skips = Skips(part.source.name, options.max_bad)
    lines = text_lines(part.source, skips)
    languages = Languages.read(options.language)
    changes = removals(lines, skips) if part.role == "gone" else records(lines, skips, languages)
    while together := list(islice(changes, CHANGES_AT_ONCE)):
        draft.expect(entity for change in together for entity in change.entities)
        for change in together:
            change.make(draft)
    skips.check()
    return skips


def removals(lines: Iterable[tuple[int, str]], skips: Skips) -> Iterator[EntityChange]:
    """Read ids of entities that go, one a line."""
    for number, line in lines:
        entity = line.strip()
        if problem := "more than an id" if "\t" in entity else flaw(entity):
            skips.add(problem, line=number, text=line)
        else:
            yield EntityChange("delete", canonical_id(entity))


def records(lines: Iterable[tuple[int, str]], skips: Skips, languages: Languages) -> Iterator[EntityChange]:
    """Read records of changes, one a line."""
    for number, line in lines:
        try:
            yield from read_changes(line, languages)
        except (ValueError, RecursionError) as error:
            skips.add("no record of changes", line=number, text=line, reason=error)


def text_lines(source: Source, skips: Skips) -> Iterator[tuple[int, str]]:
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


def read_changes(line: str, languages: Languages) -> list[EntityChange]:
    """Read a record into changes; raise ValueError with what is wrong with it."""
    record = DECODER.decode(line)
    if not isinstance(record, dict):
        raise ValueError("no JSON object")
    if record.keys() == {"remove"}:
        return [EntityChange("delete", canonical_id(text)) for text in texts_of(record, "remove")]
    if record.keys() == {"merge", "into"}:
        into = canonical_id(text_of(record["into"], "into"))
        return [EntityChange("merge", canonical_id(text), into) for text in texts_of(record, "merge")]
    require_fields(record, GIVEN)
    if not isinstance(record.get("id"), str):
        raise ValueError("no id; expected a text under 'id'")
    if record.keys() == {"id"}:
        raise ValueError(
            "nothing but an id; expected names, aliases, types, description, facts, remove or rename beside it"
        )
    return list(changes_of(canonical_id(text_of(record["id"], "id")), record, languages))


def changes_of(entity: str, record: Mapping[str, Any], languages: Languages) -> Iterator[EntityChange]:
    """Yield the changes of an entity."""
    if "remove" in record:
        yield from removals_of(entity, record["remove"])
    for old, new in mapping_of(record, "rename").items():
        yield EntityChange("rename", entity, text_of(old, "rename"), name_of(new, "rename"))
    for field, rank in (("names", 0), ("aliases", ALIAS)):
        for tag, text in spoken_texts(record, field):
            place = languages.rank(tag)
            # Names in a language that is not listed come behind those in the others.
            own = rank or (len(languages.tags) if place is None else place)
            yield EntityChange("add_name", entity, name_of(text, field), own, tag)
    for kind in texts_of(record, "types"):
        yield EntityChange("add_type", entity, canonical_property(kind, beside=entity))
    if "description" in record:
        described = record["description"] if isinstance(record["description"], dict) else {"": record["description"]}
        for tag, text in described.items():
            yield EntityChange("describe", entity, text_of(text, "description"), tag.lower())
    facts = mapping_of(record, "facts")
    for relation in facts:
        for target in texts_of(facts, relation):
            yield EntityChange("add_fact", entity, relation_of(relation, entity), canonical_id(target))


def removals_of(entity: str, removed: Any) -> Iterator[EntityChange]:
    """Yield what is taken from an entity."""
    if not isinstance(removed, dict):
        raise ValueError("'remove' beside an id is an object of names, aliases, types, description and facts")
    require_fields(removed, REMOVED)
    for field in ("names", "aliases"):
        if removed.get(field) is True:
            yield EntityChange("remove_names", entity, aliases=field == "aliases")
            continue
        for text in texts_of(removed, field):
            yield EntityChange("remove_name", entity, text)
    if removed.get("types") is True:
        yield EntityChange("remove_types", entity)
    else:
        for kind in texts_of(removed, "types"):
            yield EntityChange("remove_types", entity, canonical_property(kind, beside=entity))
    if removed.get("description") is True:
        yield EntityChange("remove_description", entity)
    elif "description" in removed:
        raise ValueError(f"'description' to remove is {removed['description']!r:.60}, expected true")
    if removed.get("facts") is True:
        yield EntityChange("remove_facts", entity)
        return
    facts = mapping_of(removed, "facts")
    for relation in facts:
        row = relation_of(relation, entity)
        if facts[relation] is True:
            yield EntityChange("remove_facts", entity, row)
            continue
        for target in texts_of(facts, relation):
            yield EntityChange("remove_fact", entity, row, canonical_id(target))


def relation_of(relation: str, entity: str) -> str:
    return canonical_property(text_of(relation, "facts"), beside=entity)


def require_fields(record: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := sorted(record.keys() - known):
        of_table = bool({"subject", "entity", "name", "label"} & set(unknown))
        cure = OF_TABLES if of_table else f"known: {', '.join(sorted(known))}"
        raise ValueError(f"unknown field {unknown[0]!r}; {cure}")


def texts_of(record: Mapping[str, Any], field: str) -> Sequence[str]:
    """Return the texts of a field, which may be one alone."""
    value = record.get(field, ())
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple):
        raise ValueError(f"{field!r} is {value!r:.60}, expected a text or a list of texts")
    return [text_of(text, field) for text in values]


def spoken_texts(record: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a field with their languages, where it is an object of texts by language."""
    if not isinstance(record.get(field), dict):
        yield from (("", text) for text in texts_of(record, field))
        return
    for tag in record[field]:
        yield from ((text_of(tag, field).lower(), text) for text in texts_of(record[field], tag))


def mapping_of(record: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = record.get(field, {})
    if not isinstance(value, dict):
        raise ValueError(f"{field!r} is {value!r:.60}, expected an object")
    return value


def text_of(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{field!r} holds {value!r:.60}, expected text")
    if problem := flaw(value):
        raise ValueError(f"{problem} in {field!r}")
    return value


def name_of(value: Any, field: str) -> str:
    text = text_of(value, field)
    if not normal_form(text):
        raise ValueError(f"blank name in {field!r}")
    return text
