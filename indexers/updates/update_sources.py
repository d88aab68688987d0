"""The sources of an update: files of changes, of ids that go, and of rows that come or go, read into a draft."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Literal

from kbtools.errors import NothingBuilt
from kbtools.indexers.readers.batches import Kind, RecordBatch, flaw
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.lines import lines_of
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import read_blocks
from kbtools.indexers.readers.table_files import open_reading
from kbtools.indexers.updates.change_records import EntityChange, read_changes
from kbtools.indexers.updates.draft import Draft
from kbtools.kb.ids import canonical_id

CHANGES_AT_ONCE = 1_000
"""Changes whose entities are announced together, which a cluster then answers in few requests."""

Role = Literal["changes", "gone", "add", "remove"]
"""The part of a file: records of changes, ids of entities that go, rows that come, rows that go."""

METHODS: dict[Role, dict[Kind, Callable[..., None]]] = {
    "add": {
        "facts": Draft.add_fact,
        "types": Draft.add_type,
        "relations": Draft.name_relation,
        "redirects": Draft.merge,
    },
    "remove": {"facts": Draft.remove_fact, "types": Draft.remove_type},
}
"""The change that a row of each kind is; names have a rank, and are apart."""


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
    read = 0
    for batch in reading.batches():
        read += apply(draft, batch, part.role)
    if not read:
        kind, lines = "rows" if part.source.kind == "any" else part.source.kind, reading.skips.lines
        raise NothingBuilt(f"{part.source.name}: no {kind} among its {lines:,} lines; is it the right file?")
    return reading.skips


def apply(draft: Draft, batch: RecordBatch, role: Role) -> int:
    """Make the changes of rows; give their number, 0 of a kind that an update does not take."""
    rows = [tuple(row.values()) for row in batch.table.to_pylist()]
    about = {"facts": (0, 2), "redirects": (0, 1)}.get(batch.kind, (0,))
    draft.kb.expect_entities([row[place] for row in rows for place in about])
    if batch.kind == "names":
        for entity, rank, text, language in rows:
            if role == "add":
                draft.add_name(entity, text, rank, language)
            else:
                draft.remove_name(entity, text)
        return len(rows)
    if batch.kind == "descriptions":
        # The last is of the first language that there is, the shortest text as in a build.
        best = {entity: text for entity, _, text in sorted(rows, key=itemgetter(1, 2), reverse=True)}
        for entity, text in best.items() if role == "add" else ():
            draft.describe(entity, text)
        return len(best) if role == "add" else 0
    method = METHODS[role].get(batch.kind)
    if method is None:
        return 0
    for row in rows:
        method(draft, *row)
    return len(rows)


def read_lines_into(draft: Draft, part: UpdateSource, options: ReadOptions) -> Skips:
    """Make the changes of a file of records or of ids, line by line."""
    skips = Skips(part.source.name, options.max_bad)
    lines = text_lines(part.source, skips)
    languages = Languages.read(options.language)
    changes = removals(lines, skips) if part.role == "gone" else records(lines, skips, languages)
    while together := list(islice(changes, CHANGES_AT_ONCE)):
        draft.kb.expect_entities([entity for change in together for entity in change.entities])
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
