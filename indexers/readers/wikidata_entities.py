"""Lines of Wikidata's JSON dump as tables: names, the best statements of each property, types, and what counts."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from kbtools.indexers.readers.batches import ALIAS, SCHEMAS, Kind, RecordBatch, flaw
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.lines import BOM, Block
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.wikidata_values import literal, spell

TYPE, SUBCLASS = "P31", "P279"


class Term(TypedDict):
    """A label or an alias."""

    value: str


class DataValue(TypedDict, total=False):
    """A value, of whatever type."""

    type: str
    value: Any


class Snak(TypedDict, total=False):
    """A property with its value, or without one."""

    snaktype: str
    datavalue: DataValue


class Statement(TypedDict, total=False):
    """A snak with its rank and qualifiers."""

    rank: str
    mainsnak: Snak


class Sitelink(TypedDict):
    """A page of an entity, of which only the number counts."""


class Entity(TypedDict, total=False):
    """An entity as it is read of a line; the dump writes an empty object as an empty array."""

    id: str
    type: str
    labels: dict[str, Term] | list[Any]
    aliases: dict[str, list[Term]] | list[Any]
    descriptions: dict[str, Term] | list[Any]
    claims: dict[str, list[Statement]] | list[Any]
    sitelinks: dict[str, Sitelink] | list[Any]
    entity: str
    redirect: str


def make_decoder() -> Callable[[bytes], Any]:
    """Take msgspec's parser where it is installed, which skips what is not read, else the standard library's."""
    try:
        import msgspec
    except ImportError:
        return json.loads
    return msgspec.json.Decoder(Entity).decode


@dataclass(slots=True)
class ParsedBlock:
    """The content of a block: tables, the account of its lines, and the numbers of its entities with their lines.

    `opened` and `closed` count the ends of arrays. A property's number is negative.
    """

    batches: list[RecordBatch]
    skips: Skips
    numbers: "np.ndarray[Any, np.dtype[np.int64]]"
    lines: "np.ndarray[Any, np.dtype[np.int64]]"
    redirects: list[tuple[int, str, str]]
    opened: int
    closed: int


@dataclass(slots=True)
class EntityRows:
    """Rows as columns, which fill faster than tuples do; an id is kept once for all rows of its entity.

    The first two columns of each kind are those ids and how many rows each has, in place of the first of its schema.
    """

    columns: dict[Kind, tuple[list[Any], ...]] = field(
        default_factory=lambda: {kind: ([], *([] for _ in schema)) for kind, schema in SCHEMAS.items()}
    )

    def add(self, kind: Kind, entity_id: str, *columns: Sequence[object]) -> None:
        """Append rows of one entity, whose id stands in the first column."""
        if count := len(columns[0]):
            ids, counts, *others = self.columns[kind]
            ids.append(entity_id)
            counts.append(count)
            for column, values in zip(others, columns, strict=True):
                column += values

    def batches(self, line: int) -> list[RecordBatch]:
        """Lay the rows out as tables; raise UnicodeEncodeError where one is no text."""
        return [
            RecordBatch(
                kind,
                pa.Table.from_arrays(
                    [
                        pa.array(ids, pa.string()).take(pa.array(np.repeat(np.arange(len(ids)), counts))),
                        *(
                            pa.array(column, type)
                            for column, type in zip(columns, SCHEMAS[kind].types[1:], strict=True)
                        ),
                    ],
                    schema=SCHEMAS[kind],
                ),
                line,
            )
            for kind, (ids, counts, *columns) in self.columns.items()
            if ids
        ]

    def texts(self) -> Iterable[str]:
        """Yield every id and text."""
        for columns in self.columns.values():
            for column in columns:
                yield from (value for value in column if isinstance(value, str))


class EntityParser:
    """A reader of blocks of the dump, each by itself, so that several processes may."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self.path = path
        self.options = options
        self.language = options.language
        self.languages = Languages.read(options.language)
        self.keep = options.keep
        self.closure = options.closure
        self.decode = make_decoder()
        self.ranks: dict[str, int | None] = {}

    def __reduce__(self) -> tuple[type["EntityParser"], tuple[str, ReadOptions]]:
        """Leave out the decoder, which is made anew in each process."""
        return EntityParser, (self.path, self.options)

    def parse(self, block: Block) -> ParsedBlock:
        """Read a block, once more with a look at every text if one of them cannot be stored."""
        # From the end, where Python looks for the first of these bytes, which is rare, and else for the last.
        if block.text.rfind(b"\\u0000") < 0 and b"\0" not in block.text:
            try:
                return self.parse_lines(block, careful=False)
            except UnicodeEncodeError:
                pass
        return self.parse_lines(block, careful=True)

    def parse_lines(self, block: Block, *, careful: bool) -> ParsedBlock:
        """Read the lines of a block; a line that is no entity adds no row."""
        skips, rows = Skips(self.path, 1.0), EntityRows()
        numbers: list[int] = []
        lines: list[int] = []
        redirects: list[tuple[int, str, str]] = []
        opened = closed = 0
        for number, raw in enumerate(block.text.split(b"\n")[:-1], block.first_line):
            skips.lines += 1
            line = raw.strip()
            if line[:1] != b"{":
                line = line.removeprefix(BOM)
                opened += line.startswith(b"[")
                line = line.removeprefix(b"[").strip()
            if line[-1:] == b"]" and line.rstrip(b"]").rstrip()[-1:] in (b"}", b""):
                closed += 1
                line = line[:-1].rstrip()
            line = line.removesuffix(b",")
            if not line:
                if not raw.strip():
                    skips.add("blank line", line=number, text="", bad=False)
                continue
            try:
                entity = self.decode(line)
            except (ValueError, RecursionError) as error:
                kind = "no entity of Wikidata" if type(error).__name__ == "ValidationError" else "no JSON"
                skips.add(kind, line=number, text=line[:200].decode(errors="backslashreplace"), reason=error)
                continue
            target = EntityRows() if careful else rows
            try:
                entity_number = self.read_entity(entity, number, target, skips, redirects)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                skips.add("no entity of Wikidata", line=number, text=line[:200].decode(errors="replace"), reason=error)
                continue
            if careful:
                if fault := flaw(*target.texts()):
                    skips.add(fault, line=number, text=str(entity["id"]))
                    continue
                for kind_of_rows, columns in target.columns.items():
                    for column, values in zip(rows.columns[kind_of_rows], columns, strict=True):
                        column.extend(values)
            if entity_number:
                numbers.append(entity_number)
                lines.append(number)
        return ParsedBlock(
            rows.batches(block.first_line), skips, np.array(numbers, np.int64), np.array(lines, np.int64),
            redirects, opened, closed,
        )  # fmt: skip

    def read_entity(
        self,
        entity: Mapping[str, Any],
        line: int,
        rows: EntityRows,
        skips: Skips,
        redirects: list[tuple[int, str, str]],
    ) -> int:
        """Add the rows of an entity, all or none; give its number, 0 where it has none."""
        if "redirect" in entity:
            redirects.append((line, entity["entity"], entity["redirect"]))
            return 0
        entity_id = entity["id"]
        number = int(entity_id[1:]) if entity_id[1:].isdecimal() else 0
        letter = entity_id[:1]
        if not number or letter not in "QP":
            if entity.get("type", "item") in ("item", "property"):
                raise ValueError(f"an id such as Q42 or P31 was expected, found {entity_id!r}")
            skips.add(f"{entity.get('type')}, which is neither item nor property", line=line, text=entity_id, bad=False)
            return 0
        ranks, texts, tags = self.terms(entity.get("labels") or {})
        if letter == "P":
            rows.add("labels", entity_id, ranks, texts, tags)
            return -number
        if not texts:
            skips.add(f"entity without a label in {self.language!r}", line=line, text=entity_id, bad=False)
        relations, objects, types, classes = self.claims(entity.get("claims") or {}, entity_id, line, skips)
        sitelinks = len(entity.get("sitelinks") or ())
        reason = self.keep.refuses(entity_id, types, sitelinks)
        if not reason:
            aliases, alias_tags = self.aliases(entity.get("aliases") or {})
        if self.closure:
            rows.add("subclasses", entity_id, classes)
        if reason:
            skips.add(reason, line=line, text=entity_id, bad=False)
            rows.add("labels", entity_id, ranks, texts, tags)
            return number
        rows.add("names", entity_id, ranks + [ALIAS] * len(aliases), texts + aliases, tags + alias_tags)
        rows.add("facts", entity_id, relations, objects)
        rows.add("types", entity_id, types)
        if sitelinks and (texts or objects):
            rows.add("counts", entity_id, [0], [sitelinks])
        if described := min(zip(*self.terms(entity.get("descriptions") or {}), strict=True), default=None):
            rows.add("descriptions", entity_id, *([part] for part in described[:2]))
        return number

    def terms(self, labels: Mapping[str, Term]) -> tuple[list[int], list[str], list[str]]:
        """Give the labels of the languages asked for, with the place and the tag of each."""
        ranks, texts, tags = [], [], []
        for tag, term in labels.items():
            rank = self.rank(tag)
            if rank is not None and term["value"].strip():
                ranks.append(rank)
                texts.append(term["value"])
                tags.append(tag.lower())
        return ranks, texts, tags

    def aliases(self, aliases: Mapping[str, list[Term]]) -> tuple[list[str], list[str]]:
        """Give the aliases of the languages asked for, with the tag of each."""
        texts, tags = [], []
        for tag, terms in aliases.items():
            if self.rank(tag) is not None:
                values = [term["value"] for term in terms if term["value"].strip()]
                texts += values
                tags += [tag.lower()] * len(values)
        return texts, tags

    def rank(self, tag: str) -> int | None:
        """Give the place of a language, from 0; nothing if it is not wanted."""
        if tag not in self.ranks:
            self.ranks[tag] = self.languages.rank(tag)
        return self.ranks[tag]

    def claims(
        self, claims: Mapping[str, list[Statement]], entity_id: str, line: int, skips: Skips
    ) -> tuple[list[str], list[str], list[str], list[str]]:
        """Give relations and objects of the best statements, and the types and superclasses among them."""
        relations: list[str] = []
        objects: list[str] = []
        types: list[str] = []
        classes: list[str] = []
        properties = self.keep.properties
        for relation, statements in claims.items():
            if properties and relation not in properties and relation not in (TYPE, SUBCLASS):
                continue
            values = []
            for statement in best(statements):
                snak = statement["mainsnak"]
                if snak["snaktype"] != "value":
                    kind = f"statement of {snak['snaktype']}"
                    skips.add(kind, line=line, text=f"{entity_id} {relation}", bad=False)
                    continue
                try:
                    value = self.read_value(snak["datavalue"], f"{entity_id} {relation}", line, skips)
                except (KeyError, TypeError, ValueError) as error:
                    skips.add("claim without a value", line=line, text=f"{entity_id} {relation}", reason=repr(error))
                    continue
                values.append(value)
            if relation == TYPE:
                types = values
            elif relation == SUBCLASS:
                classes = values
            if not properties or relation in properties:
                relations += [relation] * len(values)
                objects += values
        return relations, objects, types, classes

    def read_value(self, datavalue: DataValue, claim: str, line: int, skips: Skips) -> str:
        """Write a value as an object; one of an unknown kind is kept as text, and counted."""
        kind, value = datavalue["type"], datavalue["value"]
        spelt = spell(kind, value)
        if spelt is not None:
            return spelt
        skips.add(f"value of the unknown kind {kind!r}, kept as text", line=line, text=claim, bad=False)
        return literal(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def best(statements: list[Statement]) -> list[Statement]:
    """Give the statements of the best rank: the preferred ones, else the normal ones, never the deprecated."""
    if len(statements) == 1:
        return statements if statements[0].get("rank") != "deprecated" else []
    preferred = [statement for statement in statements if statement.get("rank") == "preferred"]
    return preferred or [statement for statement in statements if statement.get("rank") != "deprecated"]
