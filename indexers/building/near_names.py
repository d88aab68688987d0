"""The indexes of near names, by trigrams and by edits, written from normal forms in this or a separate process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.folder.column_files import ColumnWriter
from kbtools.indexers.folder.edit_index import EditKeys
from kbtools.indexers.folder.fuzzy_index import FuzzyWriter
from kbtools.indexers.folder.kb_folder import COLUMNS, FUZZY, WORK
from kbtools.processes import Worker

MANY = 200_000
"""The fewest names for which a separate process pays off: indexing them takes 1.5 s."""

_QUEUED = 8_192
"""Forms per batch: tantivy queues 10,000 and indexes them while others are hashed; with larger batches the caller would
busy-wait for space.
"""

Forms = tuple[Sequence[str], NDArray[np.uint32]]
"""Normal forms, each with the row of a name that has it."""

Indexer = Callable[[Forms | None], dict[str, str]]
"""A function that takes forms, or None at the end; it then returns the SHA-256 of each column file."""


class NearNames:
    """A writer of both indexes of names into a folder; it opens its files when the first forms arrive."""

    def __init__(self, folder: Path, *, names: int) -> None:
        self.folder, self.names = folder, names

    @cached_property
    def fuzzy(self) -> FuzzyWriter:
        return FuzzyWriter(self.folder / FUZZY)

    @cached_property
    def edits(self) -> EditKeys:
        return EditKeys(self.folder / WORK, names=self.names)

    def __call__(self, forms: Forms | None) -> dict[str, str]:
        if forms is None:
            return self.finish()
        texts, rows = forms
        for first in range(0, len(texts), _QUEUED):
            some = slice(first, first + _QUEUED)
            self.fuzzy.add(texts[some], rows[some])
            self.edits.add(texts[some], rows[some])
        return {}

    def finish(self) -> dict[str, str]:
        """Write the collected forms; return the SHA-256 of each column file."""
        self.fuzzy.close()
        with (
            closing(self.column("edit.key")) as keys,
            closing(self.column("edit.row")) as rows,
            closing(self.column("edit.signature")) as signature,
        ):
            for hashes, owners in self.edits.runs():
                keys.write(hashes)
                rows.write(owners)
            for run in self.edits.signature():
                signature.write(run)
            return {"edit.key": keys.close(), "edit.row": rows.close(), "edit.signature": signature.close()}

    def column(self, name: str) -> ColumnWriter:
        return ColumnWriter(self.folder / name, COLUMNS[name])

    def close(self) -> None:
        """Close all open files, so that nothing is written afterwards."""
        for name in vars(self).keys() & {"fuzzy", "edits"}:
            getattr(self, name).__exit__()


@contextmanager
def near_indexer(folder: Path, *, names: int, jobs: int) -> Iterator[Indexer]:
    """Yield a writer of both indexes; with several jobs it is a separate process, one batch behind."""
    task = NearNames(folder, names=names)
    if jobs == 1 or names < MANY:
        with closing(task):
            yield task
        return
    with closing(Worker(task)) as worker:
        under_way = False

        def index(forms: Forms | None) -> dict[str, str]:
            nonlocal under_way
            if under_way:
                worker.receive()
            worker.send(forms)
            under_way = forms is not None
            return {} if under_way else worker.receive()

        yield index
