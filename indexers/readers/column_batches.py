"""Columns of a table as record batches: ids made canonical and odd rows set apart, all rows of a block at once."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kbtools.indexers.readers.batches import ALIAS, SCHEMAS, Kind, RecordBatch
from kbtools.indexers.readers.table_columns import OPTIONAL, PROPERTIES, SAYING, TEXTS, TableColumns
from kbtools.kb.ids import TOPIC, canonical_property

REWRITTEN = r"^(<|fb:|ns:|/?[mg]/[01]|(https?://)?(www\.|rdf\.)?freebase\.com/)"
"""The beginnings of all spellings that `canonical_id` rewrites."""

LISTED = r"^\[.*\]$|\S\|\S"
"""Cells that look like lists."""


def parse_cells(
    text: bytes,
    heads: Sequence[str],
    *,
    delimiter: str,
    quotes: bool = False,
    on_ragged: Callable[[pyarrow.csv.InvalidRow], str] | None = None,
) -> pa.Table | None:
    """Divide whole rows into columns of text; nothing if Arrow cannot, as for a row of another length."""
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(text),
            # One block, so that the numbers of rows count from its start.
            read_options=pyarrow.csv.ReadOptions(column_names=heads, use_threads=False, block_size=len(text) + 1),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, quote_char='"' if quotes else False, double_quote=quotes, escape_char=False,
                newlines_in_values=quotes, ignore_empty_lines=False, invalid_row_handler=on_ragged,
            ),
            # Text in every column, where Arrow would guess numbers and dates.
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(heads, pa.string()), strings_can_be_null=False
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        return None


def read_columns(
    table: TableColumns, columns: Mapping[str, pa.Array], line: int
) -> tuple[list[RecordBatch], list[int]]:
    """Turn columns of text into tables; rows that need a closer look are left out, and their places given.

    Those are the rows without a value, or with one that is empty or a list.
    """
    length = len(next(iter(columns.values())))
    empty = pa.array([""] * length, pa.string())
    values: dict[str, pa.Array] = {}
    odd = pa.array([False] * length, pa.bool_())
    for column in columns.values():
        odd = pc.or_(odd, pc.is_null(column)) if column.null_count else odd
    for name in table.names:
        values[name] = pc.utf8_trim_whitespace(pc.fill_null(columns[name], "")) if name in columns else empty
        if name not in TEXTS:
            beside = values.get(PROPERTIES.get(name, ""))
            values[name] = canonical_column(values[name], beside)
        if name not in OPTIONAL:
            odd = pc.or_(odd, pc.equal(values[name], ""))
        if table.options.list_separator is not None:
            odd = pc.or_(odd, pc.match_substring(values[name], table.options.list_separator))
            odd = pc.or_(odd, pc.starts_with(values[name], "["))
        elif not table.lists_noted and name not in ("entity", "subject", "relation", "description", "language"):
            note_lists(table, name, values[name], line)
    if "name" in table.names:
        # A row of names has a name, an alias or a description: the lengths of all together are not zero.
        lengths = [pc.binary_length(values.get(name, empty)) for name in SAYING]
        odd = pc.or_(odd, pc.equal(reduce(pc.add, lengths), 0))
        if "language" in columns:  # each of these is counted, with its line
            odd = pc.or_(odd, pc.is_null(language_ranks(table, values["language"])))
    if pc.any(odd).as_py():
        clean = pc.invert(odd)
        values = {name: column.filter(clean) for name, column in values.items()}
    return [batch for batch in lay_out(table, values, line) if batch.table.num_rows], pc.indices_nonzero(
        odd
    ).to_pylist()


def lay_out(table: TableColumns, values: Mapping[str, pa.Array], line: int) -> list[RecordBatch]:
    """Lay columns of clean values out as the tables of their kind."""
    kind, schema = table.kind, SCHEMAS[table.kind]
    if kind != "names":
        return [RecordBatch(kind, pa.Table.from_arrays(list(values.values()), schema=schema), line)]
    batches = []
    for name in SAYING:
        filled = pc.not_equal(values[name], "")
        texts, entities, tags = (values[column].filter(filled) for column in (name, "entity", "language"))
        # The same rank in every row, made by Arrow.
        ranks = pa.repeat(pa.scalar(ALIAS, pa.uint8()), len(texts)) if name == "alias" else language_ranks(table, tags)
        columns = [entities, ranks, texts, pc.ascii_lower(tags)]
        text_kind: Kind = "descriptions" if name == "description" else "names"
        text_schema = SCHEMAS[text_kind]
        named = pa.Table.from_arrays(columns[: len(text_schema)], schema=text_schema)
        batches.append(RecordBatch(text_kind, named, line))
    return batches


def language_ranks(table: TableColumns, tags: pa.Array) -> pa.Array:
    """Give the place of each language among those that are asked for, nothing of one that is not."""
    distinct = tags.dictionary_encode()
    ranks = [table.languages.rank(tag) for tag in distinct.dictionary.to_pylist()]
    return pa.array(ranks, pa.uint8()).take(distinct.indices)


def note_lists(table: TableColumns, name: str, column: pa.Array, line: int) -> None:
    """Say that cells look like lists, once a file."""
    listed = column.filter(pc.match_substring_regex(column, LISTED))
    if len(listed):
        table.lists_noted = True
        table.skips.note(
            f"cells under {name} that look like lists, such as {listed[0].as_py()[:60]!r}; "
            "--list-separator '|' takes them apart",
            line=line,
        )


def canonical_column(column: pa.Array, beside: pa.Array | None) -> pa.Array:
    """Give the ids of a column their canonical form; `beside` holds those that tell Freebase's properties."""
    column = respell(column, pc.match_substring_regex(column, REWRITTEN), "")
    if beside is None:
        return column
    property_of_topic = pc.and_(pc.starts_with(column, "/"), pc.match_substring_regex(beside, f"^({TOPIC.pattern})$"))
    # Any id of Freebase says the same of the properties beside it.
    return respell(column, property_of_topic, "m.0abc")


def respell(column: pa.Array, mask: pa.Array, beside: str) -> pa.Array:
    """Rewrite the ids of some rows, each distinct one once."""
    if not pc.any(mask).as_py():
        return column
    distinct = column.filter(mask).dictionary_encode()
    spelt = [canonical_property(spelling, beside=beside) for spelling in distinct.dictionary.to_pylist()]
    return pc.replace_with_mask(column, mask, pa.array(spelt, pa.string()).take(distinct.indices))
