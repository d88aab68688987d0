"""The writer of the exact index; the value of a form is a run of 32-bit numbers, one group per spelling.

A group is `kind << 28 | n`, the row of the name, n entities. The languages of names are written alongside.
"""

import errno
import resource
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.indexers.folder.column_files import ColumnWriter, StringWriter, read_column
from kbtools.indexers.folder.form_store import KIND_SHIFT, LONGEST_KEY, NORMAL, form_key, hash_forms
from kbtools.indexers.folder.language_sets import NUMBERS, SETS, set_text, spoken
from kbtools.kb.language_tags import UND
from kbtools.processes import in_order

_MAP_SIZE = 1 << 26
"""Initial address space in bytes: the map is doubled when full, since `ulimit -v` counts all of it."""

_WRITTEN_AT_ONCE = 500_000
"""Pairs per transaction, whose dirty pages stay in memory until it ends."""

_SCARCE = 1 << 20
"""Free bytes below which a disk counts as full."""

_WORD_COUNTS = pa.schema({"word": pa.string(), "names": pa.uint32()})

_WIDTHS = ("<u1", "<u2", "<u4")

_NUMBERS_AT_ONCE = 1_000_000
"""Numbers narrowed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class FormGroups:
    """Ascending forms with the value of each, the kind and row of its first name, and its hash.

    `words` counts the normal forms that contain each word.
    """

    forms: pa.StringArray
    values: list[bytes]
    kinds: NDArray[np.uint8]
    names: NDArray[np.uint32]
    hashes: NDArray[np.uint32]
    words: pa.Table

    def normal(self) -> tuple[pa.StringArray, NDArray[np.uint32]]:
        """Return the forms that are the normal form of a name, and the row of such a name."""
        mask = self.kinds <= NORMAL
        return self.forms.filter(pa.array(mask)), self.names[mask]


class FormWriter:
    """A writer of both tables in one pass over sorted rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.map_size = _MAP_SIZE
        with self.failing():
            self.environment = lmdb.open(
                str(path),
                subdir=False,
                map_size=_MAP_SIZE,
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
        """Append values by ascending form; forms with hashed keys are inserted out of order."""
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
        """Append the number of names of each word, by ascending word."""
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
        """Append sorted pairs in several transactions, so that memory stays bounded."""
        while batch := list(islice(items, _WRITTEN_AT_ONCE)):
            self.put(database, batch, append=True)

    def put(self, database: Any, batch: list[tuple[bytes, bytes]], *, append: bool) -> None:
        """Write pairs in one transaction; enlarge the map if it is full."""
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
        """Raise the cause of LMDB's input/output errors: a full disk, or a limit on the size of files."""
        try:
            yield
        except lmdb.MemoryError as error:
            raise OSError(errno.ENOMEM, f"no address space for {self.map_size:,} bytes, see ulimit -v") from error
        except lmdb.Error as error:
            full = shutil.disk_usage(self.path.parent).free < _SCARCE
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


def group_forms(batches: Iterable[pa.RecordBatch], *, jobs: int) -> Iterator[FormGroups]:
    """Convert rows sorted by form, kind, text and entity into one value per form, in several processes."""
    return in_order(_group_rows, _whole_forms(batches), jobs=jobs)


def _whole_forms(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield sorted rows with all rows of a form in one batch."""
    rest: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        # The last form of a batch may continue in the next one.
        last = batch.num_rows - pc.sum(pc.equal(batch.column(0), batch.column(0)[-1])).as_py()
        if last or (rest and rest[0].column(0)[0] != batch.column(0)[0]):
            yield pa.concat_batches([*rest, batch.slice(0, last)])
            rest = []
        rest.append(batch.slice(last))
    if rest:
        yield pa.concat_batches(rest)


def _group_rows(batch: pa.RecordBatch) -> FormGroups:
    forms, kinds, texts, entities, names = batch.columns
    kinds, entities, names = (column.to_numpy() for column in (kinds, entities, names))
    rows = len(kinds)
    new_form = _differs(forms)
    # Rows are sorted, so a group ends where the kind or spelling changes.
    new_group = new_form | _differs(texts)
    new_group[1:] |= kinds[1:] != kinds[:-1]
    firsts, group = np.flatnonzero(new_group), np.cumsum(new_group)
    values = np.empty(rows + 2 * len(firsts), dtype="<u4")
    values[np.arange(rows) + 2 * group] = entities
    headers = firsts + 2 * np.arange(len(firsts))
    values[headers] = kinds[firsts].astype(np.uint32) << KIND_SHIFT | np.diff(firsts, append=rows).astype(np.uint32)
    values[headers + 1] = names[firsts]
    first_rows = np.flatnonzero(new_form)
    edges = np.append(first_rows + 2 * (group[first_rows] - 1), len(values)) * values.itemsize
    data = values.tobytes()
    distinct, kinds = forms.filter(pa.array(new_form)), kinds[first_rows]
    return FormGroups(
        distinct,
        [data[start:end] for start, end in pairwise(edges.tolist())],
        kinds,
        names[first_rows],
        hash_forms(distinct),
        count_words(distinct.filter(pa.array(kinds <= NORMAL))),
    )


def _differs(texts: pa.StringArray) -> NDArray[np.bool_]:
    """Return a mask of the texts that differ from the one before; it includes the first."""
    other = pc.not_equal(texts.slice(1), texts.slice(0, len(texts) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([np.ones(1, dtype=bool), other])


def count_words(forms: pa.StringArray) -> pa.Table:
    """Count the forms that contain each word, however often."""
    lists = pc.split_pattern(forms, " ")
    words = pc.list_flatten(lists).dictionary_encode()
    owners, codes = (np.asarray(column).astype(np.uint64) for column in (pc.list_parent_indices(lists), words.indices))
    # Replaces `np.unique`, which takes fifty times as long.
    pairs = np.sort(owners << np.uint64(32) | codes)
    distinct = pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]
    counts = np.bincount(distinct.astype(np.uint32), minlength=len(words.dictionary))
    return pa.table([words.dictionary, pa.array(counts, pa.uint32())], schema=_WORD_COUNTS)


class LanguageWriter:
    """A writer of the languages of names in the order of their rows; `tags` lists the languages by number."""

    def __init__(self, folder: Path, tags: Sequence[str]) -> None:
        self.folder, self.tags = folder, [tag or UND for tag in tags]
        self.numbers: dict[str, int] = {}
        self.names: Counter[int] = Counter()
        self.column = ColumnWriter(folder / NUMBERS, _WIDTHS[-1])

    def write(self, parts: pa.StringArray) -> None:
        """Write the languages of each name from numbers separated by spaces.

        A number is twice that of the language, plus 1 for an alias.
        """
        encoded = parts.dictionary_encode()
        numbers = [self.number(text) for text in encoded.dictionary.to_pylist()]
        sets = np.array(numbers, dtype=np.uint32)[encoded.indices.to_numpy()]
        self.names.update(dict(enumerate(np.bincount(sets).tolist())))
        if len(self.tags) > 1:
            self.column.write(sets)

    def number(self, parts: str) -> int:
        """Return the number of a set; a text that is both a name and an alias in a language counts as a name."""
        if len(self.tags) == 1:
            return self.numbers.setdefault(self.tags[0], 0)
        tags: dict[str, bool] = {}
        for part in map(int, parts.split(" ")):
            tag = self.tags[part >> 1]
            tags[tag] = tags.get(tag, True) and bool(part & 1)
        return self.numbers.setdefault(set_text(tags), len(self.numbers))

    def counts(self) -> dict[str, int]:
        """Count the names of each language, the most frequent first; empty if none has a language."""
        counts: Counter[str] = Counter()
        for languages, number in self.numbers.items():
            counts.update(dict.fromkeys(spoken("", languages).languages, self.names[number]))
        return {} if counts.keys() <= {UND} else dict(counts.most_common())

    def close(self) -> dict[str, str]:
        """Write the files if names differ in language; return the hash of each file."""
        self.column.close()
        counts = self.counts()
        if len(counts) < 2:
            (self.folder / NUMBERS).unlink()
        if not counts:
            return {}
        with closing(StringWriter(self.folder / SETS)) as sets:
            sets.write(pa.array(self.numbers if len(counts) > 1 else counts, pa.string()))
            hashes = {SETS: sets.close()}
        return hashes | {NUMBERS: self.narrow()} if len(counts) > 1 else hashes

    def narrow(self) -> str:
        """Rewrite the numbers with as many bytes as the largest needs; return the hash."""
        wide = self.folder / NUMBERS
        width = next(width for width in _WIDTHS if len(self.numbers) - 1 <= np.iinfo(width).max)
        numbers = read_column(wide, _WIDTHS[-1])
        with closing(ColumnWriter(self.folder / f"{NUMBERS}.new", width)) as narrow:
            for first in range(0, len(numbers), _NUMBERS_AT_ONCE):
                narrow.write(numbers[first : first + _NUMBERS_AT_ONCE])
            digest = narrow.close()
        (self.folder / f"{NUMBERS}.new").replace(wide)
        return digest
