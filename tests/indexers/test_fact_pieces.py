"""Facts that wait as numbers become the same rows, whatever the pieces and batches they come in."""

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtools.indexers.building.staging import FactPiece, FactPieces
from kbtools.indexers.readers.batches import SCHEMAS

names = st.sampled_from("abcdefg")
facts = st.lists(st.tuples(names, names, names), max_size=8)


@settings(deadline=None)
@given(st.lists(st.lists(facts, max_size=3), max_size=4), st.integers(1, 9))
def test_facts_come_back_as_the_rows_of_their_ids(pieces: list[list[list[tuple[str, str, str]]]], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        waiting = FactPieces(Path(folder))
        spelt, predicates = [], []
        for chunks in pieces:
            ids, relations = waiting.add(FactPiece.of(table_of(chunks)))
            spelt += ids.to_pylist()
            predicates += relations.to_pylist()
        rows = list(
            waiting.rows(
                batches([ord(row["id"]) for row in spelt], size),
                batches([ord(row["relation"]) for row in predicates], size),
            )
        )
        waiting.close()

    expected = [fact for chunks in pieces for chunk in chunks for fact in chunk]
    found = [tuple(map(chr, row.values())) for table in rows for row in table.to_pylist()]
    assert found == expected
    assert [row["number"] for row in spelt] == list(range(len(spelt)))
    subjects = {row["id"] for row in spelt if row["is_subject"]}
    assert subjects == {subject for subject, _, _ in expected}


def table_of(chunks: list[list[tuple[str, str, str]]]) -> pa.Table:
    schema = SCHEMAS["facts"]
    tables = [
        pa.Table.from_pylist([dict(zip(schema.names, fact, strict=True)) for fact in chunk], schema=schema)
        for chunk in chunks
    ]
    return pa.concat_tables([schema.empty_table(), *tables])


def batches(numbers: list[int], size: int) -> list[pa.RecordBatch]:
    return pa.table({"row": pa.array(numbers, pa.uint32())}).to_batches(max_chunksize=size)
