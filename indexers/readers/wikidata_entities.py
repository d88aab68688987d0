"""Lines of Wikidata's JSON dump as tables: names, best statements of each property, types and counts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.indexers.readers.batches import ALIAS, BOM, SCHEMAS, Block, Kind, RecordBatch, Skips, batch_of, flaw
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import Keep, ReadOptions
from kbtools.indexers.readers.wikidata_values import SPELLINGS, Members, Statement, Term, WikidataEntity, literal

TYPE, SUBCLASS = "P31", "P279"

_T = TypeVar("_T")
_Columns = tuple[list[Any], ...]


@dataclass(slots=True)
class ParsedBlock:
    """The content of a block: tables, the account of its lines, and the numbers of its entities with their lines.

    `unclosed` is the number of arrays that begin in it minus those that end. A property's number is negative.
    """

    batches: list[RecordBatch]
    skips: Skips
    numbers: NDArray[np.int64]
    lines: NDArray[np.int64]
    unclosed: int


class _EntityRows:
    """Rows as lists of columns, which fill faster than tuples."""

    def __init__(self) -> None:
        self.columns: dict[Kind, _Columns] = {kind: tuple([] for _ in SCHEMAS[kind]) for kind in SCHEMAS}

    def batches(self, line: int) -> list[RecordBatch]:
        return [
            batch_of(kind, map(pa.array, columns, schema.types), line)
            for kind, schema in SCHEMAS.items()
            if any(columns := self.columns[kind])
        ]

    def texts(self) -> Iterable[str]:
        for columns in self.columns.values():
            for column in columns:
                yield from (value for value in column if isinstance(value, str))

    def extend(self, other: "_EntityRows") -> None:
        for kind, columns in other.columns.items():
            for column, values in zip(self.columns[kind], columns, strict=True):
                column += values


def _append(columns: _Columns, *values: object) -> None:
    for column, value in zip(columns, values, strict=True):
        column.append(value)


class EntityParser:
    """A parser of blocks of the dump, independent of each other so that several processes can share them."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self.path = path
        self.options = options
        self.keep = options.keep
        self.chooses = options.keep != Keep(properties=options.keep.properties)
        self.ranks = Languages.read(options.language)
        self.decode = msgspec.json.Decoder(WikidataEntity).decode

    def __reduce__(self) -> tuple[type["EntityParser"], tuple[str, ReadOptions]]:
        """Omit the decoder, which each process builds for itself."""
        return EntityParser, (self.path, self.options)

    def parse(self, block: Block) -> ParsedBlock:
        """Read the lines of a block; a line without an entity adds no row."""
        skips, rows = Skips(self.path, 1.0), _EntityRows()
        numbers: list[int] = []
        lines: list[int] = []
        redirects: list[RecordBatch] = []
        text, start, number, unclosed = block.text, 0, block.first_line - 1, 0
        # Only then may a text contain a NUL byte, and the rows of each entity must be checked.
        careful = rb"\u0000" in text
        view = memoryview(text)
        # A line is a view of the block, and is not kept after it is read.
        while (end := text.find(b"\n", start)) >= 0:
            number += 1
            line: bytes | memoryview = view[start : end - 1]
            if not text.startswith(b"},", end - 2):  # True of all but a few lines.
                raw = text[start:end]
                line, opens, closes = _strip_array(raw)
                unclosed += opens - closes
                if not line and not raw.strip():
                    skips.add("blank line", line=number, text="", bad=False)
            start = end + 1
            if not line:
                continue
            target = _EntityRows() if careful or self.chooses else rows
            try:
                entity = self.decode(line)
                if entity.redirect is not None and entity.entity is not None:
                    # One batch each, so that each has its line.
                    pair = pa.array([entity.entity]), pa.array([entity.redirect])
                    redirects.append(batch_of("redirects", pair, number))
                    continue
                entity_number = self.read_entity(entity, line, number, target, skips)
            except (ValueError, RecursionError) as error:
                is_json = type(error) in (msgspec.ValidationError, ValueError)
                kind = "not a Wikidata entity" if is_json else "invalid JSON"
                skips.add(kind, line=number, text=bytes(line[:200]).decode(errors="backslashreplace"), reason=error)
                continue
            if careful and (fault := flaw(*target.texts())):
                skips.add(fault, line=number, text=entity.id)
                continue
            if target is not rows:
                rows.extend(target)
            if entity_number:
                numbers.append(entity_number)
                lines.append(number)
        skips.lines = number + 1 - block.first_line
        batches = [*rows.batches(block.first_line), *redirects]
        return ParsedBlock(batches, skips, np.array(numbers, np.int64), np.array(lines, np.int64), unclosed)

    def read_entity(
        self, entity: WikidataEntity, line: bytes | memoryview, number: int, rows: _EntityRows, skips: Skips
    ) -> int:
        """Add the rows of an entity and return its number, 0 if it has none. Adds nothing if it raises ValueError.

        With a filter, `rows` holds this entity alone.
        """
        entity_id = entity.id
        entity_number = int(entity_id[1:]) if entity_id[1:].isdecimal() else 0
        letter = entity_id[:1]
        if not entity_number or letter not in "QP":
            if entity.type in ("item", "property"):
                raise ValueError(f"an id such as Q42 or P31 was expected, found {entity_id!r}")
            kind = f"{entity.type}, which is neither item nor property"
            skips.add(kind, line=number, text=entity_id, bad=False)
            return 0
        if letter == "P":
            self.add_terms(entity.labels, entity_id, rows.columns["labels"])
            return -entity_number
        facts = rows.columns["facts"]
        before, sitelinks = len(facts[0]), len(entity.sitelinks)
        self.add_claims(entity, line, number, rows, skips)
        reason = self.keep.refuses(entity_id, rows.columns["types"][1], sitelinks) if self.chooses else ""
        labelled = self.add_terms(entity.labels, entity_id, rows.columns["labels" if reason else "names"])
        if not labelled:
            kind = f"entity without a label in {self.options.language!r}"
            skips.add(kind, line=number, text=entity_id, bad=False)
        if reason:
            skips.add(reason, line=number, text=entity_id, bad=False)
            for column in (*facts, *rows.columns["types"]):
                column.clear()
            return entity_number
        if sitelinks and (labelled or len(facts[0]) > before):
            _append(rows.columns["counts"], entity_id, 0, sitelinks)
        if entity.aliases:
            self.add_aliases(entity.aliases, entity_id, rows.columns["names"])
        if entity.descriptions:
            self.add_terms(entity.descriptions, entity_id, rows.columns["descriptions"])
        return entity_number

    def add_terms(self, terms: Members[Term], entity_id: str, columns: _Columns) -> bool:
        """Add the labels or descriptions in the wanted languages; return whether there is one."""
        entities, ranks, texts, tags = columns
        rank_of, before = self.ranks, len(entities)
        for tag, term in _members(terms):
            rank = rank_of[tag]
            if rank is not None and term.value.strip():
                entities.append(entity_id)
                ranks.append(rank)
                texts.append(term.value)
                tags.append(tag.lower())
        return len(entities) > before

    def add_aliases(self, aliases: Members[list[Term]], entity_id: str, columns: _Columns) -> None:
        for tag, terms in _members(aliases):
            if self.ranks[tag] is not None:
                for term in terms:
                    if term.value.strip():
                        _append(columns, entity_id, ALIAS, term.value, tag.lower())

    def add_claims(
        self, entity: WikidataEntity, line: bytes | memoryview, number: int, rows: _EntityRows, skips: Skips
    ) -> None:
        """Add the values of the best statements as facts, and the types and superclasses among them."""
        subjects, relations, objects = rows.columns["facts"]
        entity_id, properties = entity.id, self.keep.properties
        for relation, statements in _members(entity.claims):
            if properties and relation not in properties and relation not in (TYPE, SUBCLASS):
                continue
            values: list[str] = []
            for statement in statements if len(statements) == 1 else _best(statements):
                if statement.rank == "deprecated":
                    continue
                datavalue = statement.mainsnak.datavalue
                if statement.mainsnak.snaktype != "value":
                    kind = f"statement of {statement.mainsnak.snaktype}"
                    skips.add(kind, line=number, text=f"{entity_id} {relation}", bad=False)
                    continue
                try:
                    spell = SPELLINGS.get(datavalue.type)  # type: ignore[union-attr]
                    if spell:
                        values.append(spell(datavalue.value))  # type: ignore[union-attr]
                    else:
                        kind, value = _unknown_value(line, relation, statement, statements)
                        values.append(value)
                        skips.add(kind, line=number, text=f"{entity_id} {relation}", bad=False)
                except (AttributeError, TypeError, ValueError) as error:
                    reason = error if type(error) is ValueError else "a part of it is missing, or of another type"
                    text = f"{entity_id} {relation}"
                    skips.add("claim without a value", line=number, text=text, reason=reason)
            if not properties or relation in properties:
                subjects += [entity_id] * len(values)
                relations += [relation] * len(values)
                objects += values
            if relation == TYPE or (relation == SUBCLASS and self.options.closure):
                entities, classes = rows.columns["types" if relation == TYPE else "subclasses"]
                entities += [entity_id] * len(values)
                classes += values


def _members(record: dict[str, _T] | list[Any]) -> "Iterable[tuple[str, _T]]":
    """Return the members of an object; an empty array stands for an empty object."""
    return record.items() if isinstance(record, dict) else ()


def _strip_array(raw: bytes) -> tuple[bytes, bool, bool]:
    """Remove array brackets and the comma from a line; return whether it opens and whether it closes the array."""
    line, opens, closes = raw.strip(), False, False
    if line[:1] != b"{":
        line = line.removeprefix(BOM)
        opens = line.startswith(b"[")
        line = line.removeprefix(b"[").strip()
    if line[-1:] == b"]" and line.rstrip(b"]").rstrip()[-1:] in (b"}", b""):
        closes = True
        line = line[:-1].rstrip()
    return line.removesuffix(b","), opens, closes


def _unknown_value(
    line: bytes | memoryview, relation: str, statement: Statement, statements: list[Statement]
) -> tuple[str, str]:
    """Return a value of an unknown type as text, from a full parse of its line, and a note that names the type."""
    place = next(place for place, other in enumerate(statements) if other is statement)
    datavalue = msgspec.json.decode(line)["claims"][relation][place]["mainsnak"]["datavalue"]
    if "type" not in datavalue or "value" not in datavalue:
        raise ValueError("no type, or no value")
    value = datavalue["value"]
    text = literal(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return f"value of the unknown kind {datavalue['type']!r}, kept as text", text


def _best(statements: list[Statement]) -> list[Statement]:
    """Return the preferred statements, or all if none is preferred."""
    return [statement for statement in statements if statement.rank == "preferred"] or statements
