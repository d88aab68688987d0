"""The files of the fuzzy index, which readers that may not write beside them open as well."""

from pathlib import Path

import numpy as np

from kbtools.indexers.column_files import StringTable, StringWriter
from kbtools.indexers.fuzzy_index import FuzzyIndex, FuzzyWriter


def test_a_lock_that_was_left_is_no_reader_s_to_take(tmp_path: Path) -> None:
    import pyarrow as pa

    texts = StringWriter(tmp_path / "texts")
    texts.write(pa.array(["Heroes"]))
    texts.close()
    with FuzzyWriter(tmp_path / "fuzzy", threads=1) as writer:
        writer.add(["heroes"], np.zeros(1, dtype=np.uint32))
        writer.close()
    for lock in (tmp_path / "fuzzy").glob("*.lock"):
        lock.unlink()
    # Not to be opened for writing even by root, who may write what is read-only.
    (tmp_path / "fuzzy" / ".tantivy-meta.lock").mkdir()

    index = FuzzyIndex(tmp_path / "fuzzy", texts=StringTable(tmp_path / "texts"))

    assert index.names(index.near("heroez")) == {"heroes"}
