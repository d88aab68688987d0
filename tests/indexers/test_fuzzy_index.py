"""The files of the fuzzy index, which readers that may not write beside them open as well."""

import errno
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from kbtools.indexers.folder.column_files import StringTable, StringWriter
from kbtools.indexers.folder.fuzzy_index import FuzzyIndex, FuzzyWriter


def write_texts(path: Path, texts: list[str]) -> StringTable:
    writer = StringWriter(path)
    writer.write(pa.array(texts))
    writer.close()
    return StringTable(path)


def test_marks_and_letters_of_every_kind_are_found_by_their_trigrams(tmp_path: Path) -> None:
    forms = ['"\\"', "''\"", "\\n\\n", "\x7f\x01\x1f", "日本語", "😀😀😀", "jaws \u2028"]
    texts = write_texts(tmp_path / "texts", forms)
    with FuzzyWriter(tmp_path / "fuzzy") as writer:
        writer.add(forms, np.arange(len(forms), dtype=np.uint32))
        writer.close()

    index = FuzzyIndex(tmp_path / "fuzzy", texts=texts)

    assert [index.near(form) for form in forms] == [[row] for row in range(len(forms))]


def test_the_nine_rarest_trigrams_of_a_form_find_a_hundred_names(tmp_path: Path) -> None:
    form = "abcdefghijklmnop"
    trigrams = [form[start : start + 3] for start in range(14)]
    # The first nine are in one name each, the others in two.
    forms = [*trigrams, *(f"{trigram} x" for trigram in trigrams[9:]), *(f"zzz {number}" for number in range(150))]
    long = ["q" * 201, "q" * 200]
    with FuzzyWriter(tmp_path / "fuzzy") as writer:
        writer.add([*forms, *long], np.arange(len(forms) + 2, dtype=np.uint32))
        writer.close()

    index = FuzzyIndex(tmp_path / "fuzzy", texts=write_texts(tmp_path / "texts", [*forms, *long]))

    assert sorted(index.near(form)) == list(range(9))
    assert len(set(index.near("zzz"))) == 100
    assert index.near("qqq") == [len(forms) + 1]
    assert index.near("yyy") == index.near("zz") == []
    assert index.names([0, 0, 1]) == {"abc", "bcd"}


def test_a_closed_writer_locks_the_folder_no_more(tmp_path: Path) -> None:
    writer = FuzzyWriter(tmp_path / "fuzzy")
    writer.add(["heroes"], np.zeros(1, dtype=np.uint32))
    writer.close()
    time.sleep(1)  # tantivy looks for commits twice a second

    assert list((tmp_path / "fuzzy").glob("*.lock")) == []


def test_a_lock_that_was_left_is_no_reader_s_to_take(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts", ["Heroes"])
    with FuzzyWriter(tmp_path / "fuzzy") as writer:
        writer.add(["heroes"], np.zeros(1, dtype=np.uint32))
        writer.close()
    for lock in (tmp_path / "fuzzy").glob("*.lock"):
        lock.unlink()
    # Not to be opened for writing even by root, who may write what is read-only.
    (tmp_path / "fuzzy" / ".tantivy-meta.lock").mkdir()

    index = FuzzyIndex(tmp_path / "fuzzy", texts=texts)

    assert index.names(index.near("heroez")) == {"heroes"}


@pytest.mark.parametrize(
    ("message", "free", "number"),
    [
        ("An index writer was killed", 0, errno.ENOSPC),
        ("An index writer was killed", 1 << 40, errno.EIO),
        ("a field is missing", 0, errno.EIO),
    ],
)
def test_a_killed_writer_is_explained_by_a_full_disk_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, free: int, number: int
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    with FuzzyWriter(tmp_path / "fuzzy") as writer:
        assert writer.reason(ValueError(message)).errno == number
