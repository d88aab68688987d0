"""What is said of a reader of someone else that fails, or gives other than its contract says."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kbtools.errors import BrokenPlugin
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.batches import RecordBatch
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source


class Foreign:
    """A reader that takes what every reader is given."""

    suffixes = ()

    def __init__(self, *_: object) -> None:
        pass


class Raising(Foreign):
    """A reader that fails in the middle."""

    def read(self, blocks: Iterator[object]) -> Iterator[object]:
        yield from ()
        raise ValueError("a line of three")


class Exiting(Foreign):
    """A reader that would end the program."""

    def read(self, blocks: Iterator[object]) -> Iterator[object]:
        raise SystemExit(3)


class Silent(Foreign):
    """A reader that gives nothing to iterate over."""

    def read(self, blocks: Iterator[object]) -> None:
        return None


class OtherColumns(Foreign):
    """A reader whose tables are none of ours."""

    def read(self, blocks: Iterator[object]) -> Iterator[object]:
        yield RecordBatch("facts", pa.table({"a": [1]}), 1)


class Words(Foreign):
    """A reader that gives text."""

    def read(self, blocks: Iterator[object]) -> Iterator[object]:
        yield "a\tb\tc"


class Typing(Foreign):
    """A reader that makes its tables itself."""

    def read(self, blocks: Iterator[object]) -> Iterator[object]:
        yield RecordBatch("types", pa.table({"entity": ["a"], "type": ["painter"]}), 1)
        yield RecordBatch("subclasses", pa.table({"type": ["painter"], "parent": ["artist"]}), 1)


class Unmade:
    """A reader that takes no arguments."""

    suffixes = ()


class Missing(Foreign):
    """A reader that needs another file."""

    def read(self, blocks: Iterator[object]) -> Iterator[object]:
        yield Path("/nonexistent/table").read_text(encoding="utf-8")


def build_with(reader: type, folder: Path) -> None:
    source = folder / "facts.txt"
    source.write_text("a\tb\tc\n", encoding="utf-8")
    options = ReadOptions(format=f"{__name__}:{reader.__name__}")
    build([Source(source, "facts")], folder / "x.kb", options=options, watch=BuildProgress())


@pytest.mark.parametrize(
    ("reader", "sentence"),
    [
        (Raising, "reader Raising failed: ValueError.'a line of three'"),
        (Exiting, "reader Exiting failed: SystemExit"),
        (Silent, "reader Silent failed: TypeError"),
        (OtherColumns, "reader OtherColumns gave columns ..a.., expected a RecordBatch"),
        (Words, "reader Words gave .*, expected a RecordBatch"),
        (Unmade, "cannot be made: TypeError"),
    ],
)
def test_a_reader_that_fails_is_named(tmp_path: Path, reader: type, sentence: str) -> None:
    with pytest.raises(BrokenPlugin, match=sentence):
        build_with(reader, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["facts.txt"]


def test_tables_with_the_columns_of_their_kind_are_read(tmp_path: Path) -> None:
    (tmp_path / "types.txt").write_text("a painter\n", encoding="utf-8")
    options = ReadOptions(format=f"{__name__}:Typing")

    batches = list(Reading(Source(tmp_path / "types.txt", "any"), options).batches())

    assert [batch.table.to_pylist()[0] for batch in batches] == [
        {"entity": "a", "type": "painter"}, {"type": "painter", "parent": "artist"},
    ]  # fmt: skip


def test_a_file_that_a_reader_lacks_is_not_said_to_be_the_target(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/nonexistent/table"):
        build_with(Missing, tmp_path)
