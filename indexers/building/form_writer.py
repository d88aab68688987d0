"""The writer of the exact index, whose values `kbtools.indexers.building.form_groups` lays out."""

import errno
import resource
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb
import pyarrow as pa
import pyarrow.compute as pc

from kbtools.indexers.building.form_groups import FormGroups
from kbtools.indexers.folder.form_store import LONGEST_KEY, form_key

MAP_SIZE = 1 << 26
"""Bytes of address space that writing begins with: the map is doubled when it is full, since `ulimit -v` counts it."""

WRITTEN_AT_ONCE = 500_000
"""Pairs of one transaction, whose dirty pages lie in memory until it ends."""

SCARCE = 1 << 20
"""Free bytes below which a disk is taken to be full."""


class FormWriter:
    """A writer of both tables in one pass over sorted rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.map_size = MAP_SIZE
        with self.failing():
            self.environment = lmdb.open(
                str(path),
                subdir=False,
                map_size=MAP_SIZE,
                max_dbs=2,
                lock=False,
                sync=False,
                metasync=False,
                mode=0o666,
            )
            self.tables = {name: self.environment.open_db(name) for name in (b"forms", b"words")}
        self.lengths: set[int] = set()
        self.forms = 0

    def write_forms(self, groups: Iterable[FormGroups]) -> None:
        """Append values by ascending form; those with hashed keys go in out of order."""
        database = self.tables[b"forms"]
        hashed: list[tuple[bytes, bytes]] = []

        def keyed() -> Iterator[tuple[bytes, bytes]]:
            for group in groups:
                self.forms += len(group.values)
                self.lengths.update((pc.unique(pc.count_substring(group.forms, " ")).to_numpy() + 1).tolist())
                keys = group.forms.cast(pa.binary())
                long = pc.or_(pc.greater(pc.binary_length(keys), LONGEST_KEY), pc.match_substring(keys, b"\0"))
                pairs = list(zip(keys.to_pylist(), group.values, strict=True))
                for place in reversed(pc.indices_nonzero(long).to_pylist()):
                    key, value = pairs.pop(place)
                    hashed.append((form_key(key.decode()), value))
                yield from pairs

        self.append(database, keyed())
        self.put(database, hashed, append=False)

    def write_words(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Append the number of names by ascending word."""
        database = self.tables[b"words"]
        self.append(
            database,
            (
                (form_key(word), count.to_bytes(4, "little"))
                for batch in batches
                for word, count in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
                if len(word.encode()) <= LONGEST_KEY
            ),
        )

    def append(self, database: Any, items: Iterator[tuple[bytes, bytes]]) -> None:
        """Append sorted pairs, committing now and then so that memory stays bounded."""
        while batch := list(islice(items, WRITTEN_AT_ONCE)):
            self.put(database, batch, append=True)

    def put(self, database: Any, batch: list[tuple[bytes, bytes]], *, append: bool) -> None:
        """Write pairs in one transaction, in a larger map where this one is full."""
        with self.failing():
            while True:
                try:
                    with self.environment.begin(write=True, db=database) as transaction:
                        transaction.cursor().putmulti(batch, append=append)
                    return
                except lmdb.MapFullError:
                    self.map_size *= 2
                    self.environment.set_mapsize(self.map_size)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Raise the reason for what LMDB calls an input/output error: a full disk, or a limit on the size of files."""
        try:
            yield
        except lmdb.MemoryError as error:
            raise OSError(errno.ENOMEM, f"no address space for {self.map_size:,} bytes, see ulimit -v") from error
        except lmdb.Error as error:
            full = shutil.disk_usage(self.path.parent).free < SCARCE
            limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
            raise OSError(errno.ENOSPC if full else errno.EFBIG if limited else errno.EIO, str(error)) from error

    def __enter__(self) -> "FormWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.environment.close()

    def close(self) -> None:
        """Flush to the disk and close."""
        with self.failing():
            self.environment.sync(True)
        self.environment.close()
