"""Columns and string tables: what is written is read back, row by row."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbtools.errors import KBUnusable
from kbtools.indexers.folder.column_files import (
    ColumnWriter,
    StartsWriter,
    StringTable,
    StringWriter,
    read_column,
    release_pages,
    spread,
)
from kbtools.indexers.folder.embedded import EmbeddedKB

AWKWARD = ["", "a", "Łódź", "", "\N{GRINNING FACE}", "line\nbreak", "x" * 10_000, "\0"]


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., StringTable]:
    """Write batches of strings; open the table."""

    def write(*batches: list[str]) -> StringTable:
        writer = StringWriter(tmp_path / "t")
        for batch in batches:
            writer.write(pa.array(batch, pa.string()))
        writer.close()
        return StringTable(tmp_path / "t")

    return write


def test_a_column_holds_its_values_as_little_endian(tmp_path: Path) -> None:
    writer = ColumnWriter(tmp_path / "c", np.uint32)
    writer.write(np.array([1, 2]))
    writer.write(np.array([], dtype=np.int64))
    writer.write(np.array([2**32 - 1]))
    digest = writer.close()

    written = (tmp_path / "c").read_bytes()

    assert written == b"\1\0\0\0\2\0\0\0\xff\xff\xff\xff"
    assert digest == hashlib.sha256(written).hexdigest()
    assert read_column(tmp_path / "c", np.uint32).tolist() == [1, 2, 2**32 - 1]
    assert writer.count == 3


def test_an_empty_column_is_read(tmp_path: Path) -> None:
    ColumnWriter(tmp_path / "c", np.uint64).close()

    assert read_column(tmp_path / "c", np.uint64).tolist() == []


def test_an_opened_column_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(bytes(8))

    assert not read_column(tmp_path / "c", np.uint64).flags.writeable


def test_an_opened_column_outlives_its_file(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(bytes(8))
    column = read_column(tmp_path / "c", np.uint64)

    (tmp_path / "c").unlink()

    assert column.tolist() == [0]


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(KBUnusable, match=r"/c: No such file or directory; .* index again"):
        read_column(tmp_path / "c", np.uint64)


def test_strings_come_back_by_row(table: Callable[..., StringTable]) -> None:
    strings = table(AWKWARD[:3], [], AWKWARD[3:])

    assert len(strings) == len(AWKWARD)
    assert list(strings) == AWKWARD


def test_a_table_without_strings_is_empty(table: Callable[..., StringTable]) -> None:
    assert list(table()) == []
    assert table().find("a") is None


def test_batches_do_not_change_the_digest(tmp_path: Path) -> None:
    one, two = StringWriter(tmp_path / "one"), StringWriter(tmp_path / "two")
    one.write(pa.array(["a", "bc"], pa.string()))
    two.write(pa.array(["a"], pa.string()))

    two.write(pa.array(["bc"], pa.string()))

    assert one.close() == two.close()


def test_the_borders_of_strings_change_the_digest(tmp_path: Path) -> None:
    one, two = StringWriter(tmp_path / "one"), StringWriter(tmp_path / "two")
    one.write(pa.array(["a", "bc"], pa.string()))

    two.write(pa.array(["ab", "c"], pa.string()))

    assert one.close() != two.close()


def test_a_slice_of_strings_is_written_alone(tmp_path: Path) -> None:
    writer = StringWriter(tmp_path / "t")
    writer.write(pa.array(["a", "bc", "d", "é"]).slice(1, 2))
    writer.write(pa.array(["a", "é", "f"]).slice(1))
    writer.close()

    assert list(StringTable(tmp_path / "t")) == ["bc", "d", "é", "f"]


@settings(deadline=None)
@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 40)), st.integers(31, 40))
def test_starts_of_runs_are_running_sums(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], cuts: list[int], entities: int
) -> None:
    path = tmp_path_factory.mktemp("starts") / "t"
    writer = StartsWriter(ColumnWriter(path, np.uint64))
    for batch in np.split(np.array(sorted(rows), dtype=np.uint32), sorted(cut for cut in cuts if cut <= len(rows))):
        writer.write(batch)
    writer.close(entities)

    counts = np.bincount(np.array(rows, dtype=np.int64), minlength=entities)
    assert read_column(path, np.uint64).tolist() == [0, *np.cumsum(counts).tolist()]
    assert writer.rows == len(set(rows))


@settings(max_examples=50)
@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))), st.text(st.characters(exclude_categories=["Cs"])))
def test_find_agrees_with_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, strings: set[str], wanted: str
) -> None:
    ordered = sorted(strings, key=str.encode)
    path = tmp_path_factory.mktemp("find") / "t"
    writer = StringWriter(path)
    writer.write(pa.array(ordered, pa.string()))
    writer.close()

    table = StringTable(path)

    assert [table.find(string) for string in ordered] == list(range(len(ordered)))
    assert table.find(wanted) == (ordered.index(wanted) if wanted in strings else None)


def resident() -> int:
    with open("/proc/self/status", encoding="utf-8") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith(("RssFile", "RssShmem")))  # on disk, or not


def test_a_knowledge_base_reads_the_same_after_its_pages_are_given_back(sample_path: Path) -> None:
    kb = EmbeddedKB(sample_path)
    before = (list(kb.entity_ids), list(kb.alias_texts), kb.lookup(["harry potter"]).keys(), list(kb.forms.entries()))

    release_pages(sample_path)

    assert (
        list(kb.entity_ids),
        list(kb.alias_texts),
        kb.lookup(["harry potter"]).keys(),
        list(kb.forms.entries()),
    ) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what is mapped")
def test_pages_that_were_read_are_given_back(tmp_path: Path) -> None:
    (tmp_path / "big.starts").write_bytes(b"\0" * 8 * 4_000_000)
    (tmp_path / "big.utf8").write_bytes(b"")
    table = StringTable(tmp_path / "big")
    assert sum(table.starts) == 0
    before = resident()
    release_pages(tmp_path, beyond=1 << 40)
    assert before - resident() < 10_000

    release_pages(tmp_path, beyond=1)

    assert before - resident() > 20_000  # kilobytes of the 32 MB


def test_what_is_no_text_is_in_no_table(table: Callable[..., StringTable]) -> None:
    assert table(["a", "b"]).find("\udcff") is None


@pytest.mark.parametrize("starts", [[0, 3, 2], [0, 3, 5], [0, 1, 1 << 40]])
def test_a_run_that_the_values_do_not_hold_is_an_index_error(starts: list[int]) -> None:
    with pytest.raises(IndexError, match="a run"):
        spread(np.array(starts), np.array([1]), 4)


@given(st.lists(st.sampled_from(AWKWARD), max_size=9), st.sampled_from([*AWKWARD, "b"]), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_strings_of_some_rows_are_those_of_a_loop(
    table: Callable[..., StringTable], strings: list[str], wanted: str, data: st.DataObject
) -> None:
    strings = sorted(strings)
    own = table(strings)
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=9)) if strings else []
    picked = [strings[row] for row in rows]
    ascending = np.array(sorted(rows), dtype=np.uint32)
    letters, begin = own.bytes_at(np.array(rows, dtype=np.uint32))

    assert own.take(rows) == picked
    assert [bytes(part).decode() for part in np.split(letters, begin[1:])][: len(rows)] == picked
    assert own.places_of(wanted, np.array(rows, dtype=np.uint32)).tolist() == [
        place for place, string in enumerate(picked) if string == wanted
    ]
    found = own.find_among(wanted, ascending)
    assert (found is None) == (wanted not in picked)
    assert found is None or strings[found] == wanted
