"""The formats of the SimpleQuestions release and of the name and type files that go with it.

Facts: `www.freebase.com/m/0abc` TAB relation TAB objects separated by spaces. Names and types: `<fb:m.0abc>` TAB
`<fb:type.object.name>` TAB `"name"@en` TAB `.`. Clean blocks are read in columns, others line by line; both
give the same rows.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kbtools.indexers.readers.records import SCHEMAS, Batch, Rows, flaw
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import BOM, Block, lines_of
from kbtools.kb.ids import canonical_id, split_literal, unescape

PREFIX = b"www.freebase.com/"
DOTS = bytes.maketrans(b"/", b".")
NAME_PREDICATES = {"type.object.name": False, "common.topic.alias": True}
TYPE_PREDICATE = "type.object.type"

LineReader = Callable[[int, str, Rows, Skips], None]


def read_lines(block: Block, read: LineReader, skips: Skips) -> Rows:
    """Read a block line by line, leaving out what cannot be text."""
    rows = Rows()
    for number, raw in lines_of(block):
        skips.lines += 1
        if not raw.strip():
            skips.add("blank line", line=number, text="", bad=False)
        elif b"\0" in raw:
            skips.add("NUL byte", line=number, text=raw.decode(errors="replace"))
        else:
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                skips.add("invalid UTF-8", line=number, text=raw.decode(errors="backslashreplace"))
                continue
            read(number, line, rows, skips)
            rows.mark(number)
    return rows


def parse_columns(text: bytes, *, columns: int) -> pa.Table | None:
    """Read a block of tab-separated lines as string columns; nothing if it is not clean."""
    lines = text.count(b"\n")
    if text.count(b"\t") != lines * (columns - 1) or b"\0" in text or b"\r" in text or text.startswith(BOM):
        return None
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(text),
            read_options=pyarrow.csv.ReadOptions(
                column_names=[str(column) for column in range(columns)], use_threads=False, block_size=len(text) + 1
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter="\t", quote_char=False, double_quote=False, escape_char=False, ignore_empty_lines=False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={str(column): pa.string() for column in range(columns)}, strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None


# --- facts


def read_fact(number: int, line: str, rows: Rows, skips: Skips) -> None:
    """Read one line of facts: subject, relation, and the objects that share them."""
    fields = line.split("\t")
    if len(fields) != 3:
        skips.add(f"{len(fields)} columns where 3 were expected", line=number, text=line)
        return
    subject, relation = canonical_id(fields[0].strip(" ")), canonical_id(fields[1].strip(" "))
    objects = [canonical_id(spelling) for spelling in fields[2].split(" ") if spelling]
    if not subject or not relation or not objects or "" in objects:
        skips.add("an empty column", line=number, text=line)
        return
    rows.facts.extend((subject, relation, entity) for entity in objects)


def facts_in_columns(block: Block) -> Batch | None:
    """Read a clean block of facts at once; nothing if a line of it needs a closer look."""
    text = b"\n" + block.text
    starts = (b"\t", b" ", b"\n")
    fields = sum(text.count(start) for start in starts) - 1
    if fields != text.count(PREFIX) or fields != sum(text.count(start + PREFIX) for start in starts):
        return None
    text = text[1:].replace(PREFIX, b"").translate(DOTS)
    if b" \n" in text or b"\t " in text or b" \t" in text or b"  " in text:
        return None
    table = parse_columns(text, columns=3)
    if table is None or any(pc.any(pc.equal(column, "")).as_py() for column in table.columns):
        return None
    if any(pc.any(pc.match_substring(table.column(side), " ")).as_py() for side in (0, 1)):
        return None
    lists = pc.split_pattern(table.column(2).combine_chunks(), " ")
    parents = pc.list_parent_indices(lists)
    columns = [table.column(0).take(parents), table.column(1).take(parents), pc.list_flatten(lists)]
    return Batch("facts", pa.Table.from_arrays(columns, schema=SCHEMAS["facts"]), block.first_line)


# --- names and types


def statement_reader(language: str) -> LineReader:
    """Make the reader of name and type lines that keeps names in one language, or in any if it is empty."""

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
            skips.add("a predicate that is no name, alias or type", line=number, text=line, bad=False)
        else:
            literal = split_literal(value)
            if literal is None:
                skips.add("a name that is no quoted literal", line=number, text=line)
            elif not speaks(literal[1], language):
                skips.add(f"name in another language than {language!r}", line=number, text=line, bad=False)
            else:
                keep_name(entity, NAME_PREDICATES[predicate], unescape(literal[0]), number, rows, skips)

    return read_statement


def keep_name(entity: str, alias: bool, text: str, number: int, rows: Rows, skips: Skips) -> None:
    """Keep a name that has something to say."""
    fault = flaw(entity, text) or ("" if text.strip() else "an empty name")
    if fault:
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.names.append((entity, alias, text))


def speaks(tag: str | None, language: str) -> bool:
    """Tell whether a literal's tag is of a language; one without a tag is of any."""
    if not language or not tag:
        return True
    tag, language = tag.lower(), language.lower()
    return tag == language or tag.startswith(language + "-")


def angled(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Take the ids out of `<fb:...>`; nothing if one of them is spelt otherwise, or empty."""
    if not pc.all(pc.and_(pc.starts_with(column, "<fb:"), pc.ends_with(column, ">"))).as_py():
        return None
    ids = pc.utf8_slice_codeunits(column, 4, -1)
    return None if pc.any(pc.equal(ids, "")).as_py() else ids


def unescaped(column: pa.StringArray) -> pa.StringArray | None:
    """Undo the escapes of a column; nothing if one of them brings what cannot be stored."""
    mask = pc.match_substring(column, "\\")
    plain = [unescape(literal) for literal in column.filter(mask).to_pylist()]
    if not plain:
        return column
    return None if flaw(*plain) else pc.replace_with_mask(column, mask, pa.array(plain, pa.string()))


def statements_in_columns(block: Block, language: str) -> list[Batch] | None:
    """Read a clean block of names and types at once; nothing if a line of it needs a closer look."""
    table = parse_columns(block.text, columns=4)
    if table is None or not pc.all(pc.equal(table.column(3), ".")).as_py():
        return None
    entity, predicate, value = (table.column(column) for column in range(3))
    entities, predicates = angled(entity), angled(predicate)
    if entities is None or predicates is None:
        return None
    kinds = set(pc.unique(predicates).to_pylist())
    if kinds == {TYPE_PREDICATE}:
        types = angled(value)
        if types is None:
            return None
        return [Batch("types", pa.Table.from_arrays([entities, types], schema=SCHEMAS["types"]), block.first_line)]
    tag = f'"@{language or "en"}'
    if kinds <= NAME_PREDICATES.keys():
        if not pc.all(pc.and_(pc.starts_with(value, '"'), pc.ends_with(value, tag))).as_py():
            return None
        alias = pc.equal(predicates, "common.topic.alias")
        text = unescaped(pc.utf8_slice_codeunits(value, 1, -len(tag)).combine_chunks())
        if text is None or pc.any(pc.equal(pc.utf8_trim_whitespace(text), "")).as_py():
            return None
        return [
            Batch("names", pa.Table.from_arrays([entities, alias, text], schema=SCHEMAS["names"]), block.first_line)
        ]
    return None
