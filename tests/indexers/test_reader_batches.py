"""Blocks, rows and the account of lines left out, on which all readers rest."""

import re
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtools.errors import TooManyBadLines
from kbtools.indexers.readers.batches import (
    Block,
    Kind,
    RecordBatch,
    Rows,
    Skips,
    batch_of,
    flaw,
    gathered,
    keep_description,
    keep_name,
    lines_of,
    with_languages,
)


@given(st.integers(1, 5_000), st.data())
def test_the_advised_share_of_bad_lines_is_enough_and_given_for_few_alone(lines: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(1, lines))
    skips = Skips("f", 0.0, lines=lines)
    skips.add("blank line", line=1, text="", bad=False, count=lines)
    skips.add("rare", line=1, text="x", count=bad // 3)
    skips.add("common", line=2, text="y", count=bad - bad // 3)

    with pytest.raises(TooManyBadLines, match=r"most frequent: common, first at f:2: 'y'") as raised:
        skips.check()
    advised = re.search(r"with --max-bad ([0-9.]+)$", str(raised.value))

    assert (advised is not None) == (bad <= lines / 4)
    if advised:
        Skips("f", float(advised[1]), lines, skips.kinds).check()
        assert float(advised[1]) < bad / lines + 0.001


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 9), st.integers(1, 3)), min_size=1), st.data())
def test_accounts_of_two_parts_are_that_of_the_whole(entries: list[tuple[str, int, int]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    entries = sorted(entries[:cut], key=lambda entry: entry[1]) + [(kind, 9 + n, c) for kind, n, c in entries[cut:]]
    whole, first, second = Skips("f", 1.0), Skips("f", 1.0, lines=9), Skips("f", 1.0, lines=5)
    for place, (kind, line, count) in enumerate(entries):
        for skips in (whole, first if place < cut else second):
            skips.add(kind, line=line, text=kind, reason=f"line {line}", count=count)
    first.absorb(second)

    assert first.kinds == whole.kinds
    assert first.lines == 14
    for kind, skip in whole.kinds.items():
        line = min(line for name, line, _ in entries if name == kind)
        assert (skip.line, skip.count) == (line, sum(count for name, _, count in entries if name == kind))
        assert skip.example == f"f:{line}: {kind!r} ({f'line {line}'!r})"


@given(st.lists(st.tuples(st.sampled_from(["types", "redirects"]), st.integers(0, 5))), st.integers(1, 9))
def test_batches_are_joined_up_to_a_size_and_lose_no_row(parts: list[tuple[Kind, int]], least: int) -> None:
    batches = [
        batch_of(kind, [pa.array([f"{place}.{row}" for row in range(size)], pa.string())] * 2, place)
        for place, (kind, size) in enumerate(parts)
    ]

    joined = list(gathered(batches, least))

    for kind in ("types", "redirects"):
        own, sizes = [batch for batch in joined if batch.kind == kind], [size for name, size in parts if name == kind]
        assert rows(own) == rows([batch for batch in batches if batch.kind == kind])
        assert all(batch.table.num_rows >= least for batch in own[:-1])
        assert all(batch.table.num_rows < least + max(sizes) for batch in own)


def rows(batches: Sequence[RecordBatch]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.table.to_pylist()]


def test_rows_of_a_kind_have_the_line_of_the_first() -> None:
    read = Rows()
    read.facts.append(("a", "r", "b"))
    read.mark(3)
    read.facts.append(("a", "r", "c"))
    read.names.append(("a", 2, "A"))
    read.relations.append(("r", "is"))
    read.mark(4)

    batches = {batch.kind: (batch.line, rows([batch])) for batch in read.batches()}

    assert batches == {
        "facts": (3, [("a", "r", "b"), ("a", "r", "c")]),
        "names": (4, [("a", 2, "A", "")]),
        "relations": (4, [("r", 0, "is", "")]),
    }
    assert len(read) == 4


@pytest.mark.parametrize("columns", [("entity", "text"), ("entity", "rank", "text")])
def test_names_without_a_rank_or_a_language_get_them(columns: tuple[str, ...]) -> None:
    cells = {"entity": pa.array(["a"]), "rank": pa.array([7], pa.uint8()), "text": pa.array(["A"])}
    table = pa.table({name: cells[name] for name in columns})

    completed = with_languages(RecordBatch("names", table, 1)).table

    assert completed.to_pylist() == [
        {"entity": "a", "rank": 7 if "rank" in columns else 0, "text": "A", "language": ""}
    ]


def test_lines_lose_their_ends_and_marks_and_keep_their_numbers() -> None:
    block = Block(b"\xef\xbb\xbfa\r\n\n\xef\xbb\xbfb \n", 5)
    assert list(lines_of(block)) == [(5, b"a"), (6, b""), (7, b"b ")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a\0", "NUL byte"), ("\ud800", "half a surrogate pair"), ("a\udfff", "half a surrogate pair"),
        ("\ud7ff\ue000", ""), ("a", ""), ("\U0001f600", ""),
    ],
)  # fmt: skip
def test_texts_that_cannot_be_stored_are_left_out(text: str, fault: str) -> None:
    assert flaw("a", text) == flaw(text, "ä") == fault
    for keep, own in ((keep_name, "names"), (keep_description, "descriptions")):
        read, skips = Rows(), Skips("f", 1.0)
        keep("a", 1, text, "DE-at", 7, read, skips)
        assert getattr(read, own) == ([] if fault else [("a", 1, text, "de-at")])
        assert [(kind, skip.line) for kind, skip in skips.kinds.items()] == ([(fault, 7)] if fault else [])
