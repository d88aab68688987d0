"""Readers of the SimpleQuestions release, of its name and type files, and of counts of names.

Facts: `www.freebase.com/m/0abc` TAB relation TAB objects separated by spaces. Names and types: `<fb:m.0abc>` TAB
`<fb:type.object.name>` TAB `"name"@en` TAB `.`. Names of entities or relations may also follow their id on one line,
separated by tabs, as in Wikidata5M and `entity2text.txt`. Clean blocks are read in columns, others line by line; both
give the same rows. Counts: name TAB id TAB count, or id TAB count for an entity under all its names.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from kbtools.indexers.folder.name_counts import count_key
from kbtools.indexers.readers.batches import (
    ALIAS,
    BOM,
    Block,
    LineReader,
    RecordBatch,
    Rows,
    Skips,
    SourceKind,
    batch_of,
    count_byte,
    flaw,
    keep_name,
    lines_of,
    read_lines,
    repeated,
    shorten,
)
from kbtools.indexers.readers.delimited_columns import parse_cells
from kbtools.indexers.readers.formats import OPENING
from kbtools.indexers.readers.labels import Languages
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source
from kbtools.kb.ids import canonical_id, canonical_property, is_freebase, split_literal, unescape
from kbtools.kb.table_heads import entity_role, is_header
from kbtools.read_ahead import map_ahead
from kbtools.text.normaliser import normal_form

_PREFIX = "www.freebase.com/"
_LONGEST = (1 << 31) - 1
"""Largest text that Arrow's offsets allow, in bytes; without an end `binary_slice` of Arrow 26 fails at random."""

_DOTS = bytes.maketrans(b"/", b".")
"""Freebase's ids in links, `m/0abc`, are written `m.0abc` everywhere else."""

NAME_PREDICATES = {"type.object.name": 0, "common.topic.alias": ALIAS}
"""Predicates of names, each with the rank of its names."""

TYPE_PREDICATE = "type.object.type"

_NO_NAME = re.compile(r"(/|https?:|www\.|[mg]\.|[LPQ]\d)\S*|\S*_\S*|\s*")
"""What follows an id in a file of facts rather than names: an id of a relation."""


class ReleaseReader:
    """The reader `release`: facts if facts are wanted, else names and types."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    sample: ClassVar[bytes] = (
        b'<fb:m.01>\t<fb:type.object.name>\t"Jaws"@en\t.\n<fb:m.01>\tbroken\n'
        b"<fb:m.01>\t<fb:type.object.type>\t<fb:film.film>\t.\n"
    )

    def __init__(self, source: Source, options: ReadOptions, skips: Skips) -> None:
        self.source = source
        self.options = options
        self.skips = skips
        self.plain = False

    @classmethod
    def sniff(cls, line: bytes, kind: SourceKind) -> bool:
        """Return whether a line looks like one of the release; facts may come from any knowledge base."""
        if _is_plain(line, kind):
            return True
        columns = line.count(b"\t") + 1
        return (columns == 4 and line.startswith(b"<fb:") and kind != "any") or (columns == 3 and kind == "facts")

    def read(self, blocks: Iterable[Block]) -> Iterator[RecordBatch]:
        """Read each block in columns if it is clean, else line by line."""
        if self.source.kind in ("names", "relations"):
            first = next(blocks := iter(blocks), None)
            blocks = chain([first] if first else [], blocks)
            # The first line that is of either form decides, since earlier ones may be damaged.
            for _, line in islice(lines_of(first) if first else (), OPENING):
                self.plain = _is_plain(line, self.source.kind)
                if self.plain or line.startswith(b"<"):
                    break
        for batch, block in map_ahead(self.in_columns, blocks, threads=max(1, self.options.jobs - 1)):
            if batch:
                self.skips.lines += count_byte(block.text, "\n")
                yield batch
            else:
                yield from read_lines(block, self.read_line(), self.skips).batches()

    def in_columns(self, block: Block) -> tuple[RecordBatch | None, Block]:
        """Read a block in columns, None if it is not clean; return the block as well."""
        if self.source.kind != "facts":
            return statements_in_columns(block, self.options.language), block
        return None if self.options.list_separator else facts_in_columns(block), block

    def read_line(self) -> LineReader:
        """Return the reader of lines, for a block that is not clean."""
        if self.source.kind == "facts":
            return fact_reader(self.options.list_separator)
        if self.plain:
            return _names_reader(self.source.kind)
        return statement_reader(self.options.language)


def _is_plain(line: bytes, kind: SourceKind) -> bool:
    """Return whether a line has an id and its names, without being a header or a fact."""
    if kind not in ("names", "relations") or line.startswith(b"<") or b"\t" not in line or b"\r" in line.rstrip():
        return False
    cells = line.decode(errors="replace").split("\t")
    return not _has_heads(cells) and _NO_NAME.fullmatch(cells[1]) is None


def _has_heads(cells: Sequence[str]) -> bool:
    return "name" in map(entity_role, cells) or is_header(cells, least=1)


def _parse_columns(text: bytes, *, columns: int) -> pa.Table | None:
    """Read a block of tab-separated lines as string columns; return None if it is not clean."""
    if b"\0" in text or b"\r" in text or text.startswith(BOM):
        return None
    return parse_cells(text, [str(column) for column in range(columns)], delimiter="\t")


def fact_reader(separator: str | None = None) -> LineReader:
    """Return a reader of lines of facts: subject, relation, and the objects that share them.

    Spaces separate Freebase's ids; any other object with spaces stays whole, unless a separator is given.
    """

    def read_fact(number: int, line: str, rows: Rows, skips: Skips) -> None:
        fields = [field.strip(" ") for field in line.split("\t")]
        if len(fields) != 3:
            skips.add(f"{len(fields)} columns where 3 were expected", line=number, text=line)
            return
        if number == 1 and is_header(fields):
            skips.add("a header", line=number, text=line, bad=False)
            return
        subject, spellings = canonical_id(fields[0]), _divide(fields[2], separator)
        relation = canonical_property(fields[1], beside=subject)
        objects = [canonical_id(spelling) for spelling in spellings]
        if not subject or not relation or not objects or "" in objects:
            skips.add("an empty column", line=number, text=line)
        elif len(spellings) == 1 and " " in spellings[0] and any(map(is_freebase, spellings[0].split(" "))):
            skips.add("an id of Freebase among words", line=number, text=line)
        else:
            if not separator and " " in spellings[0] and not skips.notes:
                skips.note(
                    f"an object with spaces, taken as one: {shorten(spellings[0])}; --list-separator ' ' splits it",
                    line=number,
                )
            rows.facts.extend((subject, relation, entity) for entity in objects)

    return read_fact


def _divide(objects: str, separator: str | None) -> list[str]:
    parts = [part.strip(" ") for part in objects.split(separator or " ")]
    parts = [part for part in parts if part]
    return parts if separator or all(map(is_freebase, parts)) else [objects]


def facts_in_columns(block: Block) -> RecordBatch | None:
    """Read a clean block of facts at once; return None if a line needs closer inspection."""
    table = _parse_columns(block.text, columns=3)
    if table is None:
        return None
    subjects, relations, objects = (column.combine_chunks() for column in table.columns)
    # One row for every object of every line, with the line's subject and relation.
    lists = pc.split_pattern(objects, " ")
    parents, objects = pc.list_parent_indices(lists), pc.list_flatten(lists)
    # Any other space is inside or next to an id.
    if count_byte(block.text, " ") != len(objects) - len(lists):
        return None
    subjects, relations, objects = (_dotted(column) for column in (subjects, relations, objects))
    if subjects is None or relations is None or objects is None:
        return None
    columns = [subjects.take(parents), relations.take(parents), objects]
    return batch_of("facts", columns, block.first_line)


def _dotted(column: pa.StringArray) -> pa.StringArray | None:
    """Apply `canonical_id` to a column of links; return None if one is empty or not a link of Freebase."""
    if not pc.all(pc.starts_with(column, _PREFIX)).as_py() or pc.min(pc.binary_length(column)).as_py() == len(_PREFIX):
        return None
    # In bytes, since Arrow would search for character boundaries; the prefix is ASCII.
    ids = pc.binary_slice(column.view(pa.binary()), len(_PREFIX), _LONGEST)
    _, offsets, letters = ids.buffers()
    return pa.StringArray.from_buffers(len(ids), offsets, pa.py_buffer(letters.to_pybytes().translate(_DOTS)))


def statement_reader(language: str) -> LineReader:
    """Return a reader of lines of names and types that keeps names in some languages."""
    languages = Languages.read(language)

    def read_statement(number: int, line: str, rows: Rows, skips: Skips) -> None:
        fields = line.split("\t")
        if len(fields) != 4 or fields[3].strip() != ".":
            skips.add(f"{len(fields)} columns where 4, the last a dot, were expected", line=number, text=line)
            return
        entity, predicate, value = (field.strip(" ") for field in fields[:3])
        entity, predicate = canonical_id(entity), canonical_id(predicate)
        if not entity or not canonical_id(value):
            skips.add("an empty column", line=number, text=line)
        elif predicate == TYPE_PREDICATE:
            rows.types.append((entity, canonical_id(value)))
        elif predicate not in NAME_PREDICATES:
            skips.add("a predicate other than name, alias or type", line=number, text=line, bad=False)
        else:
            literal = split_literal(value)
            if literal is None:
                skips.add("a name that is not a quoted literal", line=number, text=line)
            elif (rank := languages[literal[1]]) is None:
                skips.add(f"name in a language other than {language!r}", line=number, text=line, bad=False)
            else:
                rank = NAME_PREDICATES[predicate] or rank
                keep_name(entity, rank, unescape(literal[0]), literal[1], number, rows, skips)

    return read_statement


def _names_reader(kind: SourceKind) -> LineReader:
    """Return a reader of lines with an id, its name and maybe aliases, separated by tabs."""

    def read_names(number: int, line: str, rows: Rows, skips: Skips) -> None:
        spelt, *names = (field.strip() for field in line.split("\t"))
        names = [name for name in names if name]
        if number == 1 and _has_heads([spelt, *names]):
            skips.add("a header", line=number, text=line, bad=False)
        elif not spelt or not names:
            skips.add("no id followed by a tab and a name", line=number, text=line)
        elif kind == "relations":
            # Beside Freebase's topics, `/film/film/genre` is spelt with dots.
            ids = {canonical_id(spelt), canonical_property(spelt, beside="m.01")}
            rows.relations.extend((relation, 0, names[0], "") for relation in sorted(ids))
        else:
            for place, name in enumerate(names):
                keep_name(canonical_id(spelt), ALIAS if place else 0, name, None, number, rows, skips)

    return read_names


def _angled(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Extract the ids from `<fb:...>`; return None if one is empty or written differently."""
    if not pc.all(pc.and_(pc.starts_with(column, "<fb:"), pc.ends_with(column, ">"))).as_py():
        return None
    if pc.min(pc.binary_length(column)).as_py() <= len("<fb:>"):
        return None
    return _sliced(column, len("<fb:"), -len(">"))


def _sliced(column: pa.ChunkedArray, start: int, stop: int) -> pa.ChunkedArray:
    """Cut ASCII characters off both ends; in bytes, since Arrow would search for character boundaries."""
    return pc.binary_slice(column.cast(pa.binary()), start, stop).cast(pa.string())


def _unescaped(column: pa.StringArray) -> pa.StringArray | None:
    """Undo the escapes of a column; return None if the result of one cannot be stored."""
    mask = pc.match_substring(column, "\\")
    plain = [unescape(literal) for literal in column.filter(mask).to_pylist()]
    if not plain:
        return column
    return None if flaw(*plain) else pc.replace_with_mask(column, mask, pa.array(plain, pa.string()))


def statements_in_columns(block: Block, language: str) -> RecordBatch | None:
    """Read a clean block of names or types at once; return None if a line needs closer inspection."""
    table = _parse_columns(block.text, columns=4)
    if table is None or not pc.all(pc.equal(table.column(3), ".")).as_py():
        return None
    entity, predicate, value = (table.column(column) for column in range(3))
    entities, predicates = _angled(entity), _angled(predicate)
    if entities is None or predicates is None:
        return None
    kinds = set(pc.unique(predicates).to_pylist())
    if kinds == {TYPE_PREDICATE}:
        types = _angled(value)
        return None if types is None else batch_of("types", [entities, types], block.first_line)
    # Only names in the first language are clean; the line reader ranks the others.
    first = Languages.read(language).tags[0]
    tag = f'"@{first}'
    if not kinds <= NAME_PREDICATES.keys():
        return None
    if not pc.all(pc.and_(pc.starts_with(value, '"'), pc.ends_with(value, tag))).as_py():
        return None
    ranks = pc.if_else(pc.equal(predicates, "common.topic.alias"), ALIAS, 0).cast(pa.uint8())
    text = _unescaped(_sliced(value, 1, -len(tag)).combine_chunks())
    if text is None or pc.any(pc.equal(pc.utf8_trim_whitespace(text), "")).as_py():
        return None
    return batch_of("names", [entities, ranks, text, repeated(first, len(text))], block.first_line)


_COUNT = re.compile("[0-9]{1,15}")
"""A count; longer numbers would lose precision as shares."""


class CountsReading(Reading):
    """A pass over a file of counts."""

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the counts of a file; raise TooManyBadLines at its end if too many lines are bad."""
        for block in self.blocks():
            yield from read_lines(block, _read_count, self.skips).batches()
        self.skips.check()


def _read_count(number: int, line: str, rows: Rows, skips: Skips) -> None:
    """Read a line into entity, key of the name, and count, or count it as left out."""
    *name, entity, count = line.split("\t") if "\t" in line else ("", "", line)
    count = count.strip()
    if len(name) > 1 or not entity.strip() or not _COUNT.fullmatch(count):
        heads = number == 1 and not any(map(str.isdigit, count))
        kind = "line of heads" if heads else "neither name, id and count nor id and count, separated by tabs"
        skips.add(kind, line=number, text=line, bad=not heads)
    elif name and not normal_form(name[0]):
        skips.add("blank name", line=number, text=line)
    else:
        rows.counts.append((canonical_id(entity.strip()), count_key(normal_form(name[0])) if name else 0, int(count)))
