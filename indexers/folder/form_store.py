"""The exact index: an LMDB file from normal forms to their names and entities, and from words to counts.

A value has one group per spelling, as `kbtools.indexers.building.form_writer` lays them out. A filter with a bit per
stored form, by hash, precedes the store: of the 55 n-grams of a question five are names, and rejecting the others by
hash takes half the time of looking them up.
"""

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary
from zlib import crc32

import lmdb
import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBUnusable
from kbtools.indexers.folder.checksums import INDEX_AGAIN, cannot_open
from kbtools.indexers.folder.column_files import StringTable
from kbtools.kb.contract import MATCH_FORMS, NameMatch, match_kind
from kbtools.text.rungs import Form

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_KEY, _KEPT = 480, 400
"""LMDB keys hold 511 bytes: the key of a longer form has its first 400 bytes and a hash."""

KIND_SHIFT, ENTITIES = 28, (1 << 28) - 1
"""The header of a group has its kind in the upper four bits, and the number of its entities in the others."""

NORMAL = match_kind(Form.NORMAL, is_alias=True)
"""The last kind of names in their normal form."""

_WIDTH = 4
"""Bytes of a number in a value."""

_opening = Lock()
_open_environments: WeakValueDictionary[tuple[int, int], "FormStore"] = WeakValueDictionary()

_BITS = 16
"""Bits per name, rounded up to a power of two: of a hundred forms that are not stored three to eight are looked up."""

_MOST_BITS = 1 << 32
"""The hash distinguishes no more."""

_BEFORE_SPACE = 0x0F6A7006
"""The hash that continues to the hash of an empty text by a space: the text after it is hashed as if it came first."""


def form_key(form: str) -> bytes:
    """Encode a form as a key; keys of short forms sort as the forms do."""
    key = form.encode()
    if len(key) <= LONGEST_KEY:
        return key
    return key[:_KEPT] + b"\0" + hashlib.sha256(key).hexdigest().encode()


class FormStore:
    """A reader of both tables; LMDB allows a process one environment per file, so open stores are shared."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
            self.environment = lmdb.open(
                str(path), subdir=False, readonly=True, lock=False, max_dbs=2, readahead=False, create=False,
                map_size=size,
            )  # fmt: skip
            # Reading beyond the end of a truncated file would end the process with a bus error.
            if (self.environment.info()["last_pgno"] + 1) * self.environment.stat()["psize"] > size:
                raise lmdb.CorruptedError("it refers to pages beyond its end")
            self.forms = self.environment.open_db(b"forms", create=False)
            self.words = self.environment.open_db(b"words", create=False)
        except lmdb.MemoryError as error:
            raise cannot_open(path, OSError(errno.ENOMEM, "no address space to map it")) from error
        except lmdb.Error as error:
            raise KBUnusable(f"{path}: cannot be opened ({error}); {INDEX_AGAIN}") from error
        self.transaction = self.environment.begin(db=self.forms, buffers=True)

    @classmethod
    def open(cls, path: Path) -> "FormStore":
        """Open a store, or share the one that this process has open."""
        try:
            stat = path.stat()
            identity = (stat.st_dev, stat.st_ino)
            with _opening:
                store = _open_environments.get(identity)
                if store is None:
                    store, stat = cls(path), path.stat()
                    if (stat.st_dev, stat.st_ino) != identity:
                        raise KBUnusable(f"{path}: it was replaced while being opened; open it again")
                    _open_environments[identity] = store
                return store
        except OSError as error:
            raise cannot_open(path, error) from error

    def __len__(self) -> int:
        return int(self.transaction.stat(self.forms)["entries"])

    def lookup(self, forms: Sequence[str], texts: StringTable) -> dict[str, list[NameMatch]]:
        """Return the names under each stored form."""
        get = self.transaction.get
        matches = {}
        for form in filter(None, forms):
            key = form.encode()
            value = get(key if len(key) <= LONGEST_KEY else form_key(form))
            if value is not None:
                matches[form] = read_groups(value, texts)
        return matches

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        """Count the names that contain each word."""
        return [count or 0 for count in self.frequencies(words)]

    def value(self, form: str) -> bytes:
        """Return the value of a form, empty if it is not stored."""
        value = self.transaction.get(form_key(form)) if form else None
        return b"" if value is None else bytes(value)

    def frequencies(self, words: Sequence[str]) -> list[int | None]:
        """Count the names that contain each word; None for a word that is not counted here."""
        get, words_table = self.transaction.get, self.words
        values = (get(form_key(word), db=words_table) if word else None for word in words)
        return [None if value is None else int.from_bytes(value, "little") for value in values]

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key in order, with its value."""
        with self.environment.begin(db=self.forms) as transaction:
            yield from transaction.cursor()

    def forms_with_prefix(self, prefix: str, *, limit: int) -> Iterator[str]:
        """Yield the normal forms among the first stored ones with a prefix, in order."""
        return (form for form, is_normal in islice(self.stored_with_prefix(prefix), limit) if is_normal)

    def stored_with_prefix(self, prefix: str) -> Iterator[tuple[str, bool]]:
        """Yield the stored forms with a prefix, in order, each with whether it is the normal form of a name.

        Only the first bytes of a long form are known; it counts as not normal.
        """
        start = prefix.encode()[:_KEPT]
        cursor = self.transaction.cursor(db=self.forms)
        if not cursor.set_range(start):
            return
        for key, value in cursor.iternext():
            form_key = bytes(key)
            if not form_key.startswith(start):
                return
            kept, long, _ = form_key.partition(b"\0")
            yield kept.decode(errors="ignore"), not long and is_normal(value)


def is_normal(value: bytes | memoryview) -> bool:
    """Return whether a value's first group is of names in their normal form."""
    return int.from_bytes(value[:4], "little") >> KIND_SHIFT <= NORMAL


def read_groups(value: bytes | memoryview, texts: StringTable) -> list[NameMatch]:
    """Unpack the groups of a value; the entities are copied out of the map, so that they may outlive it.

    Raises IndexError for a name without a letter, ValueError for half a number; both occur only in a damaged file.
    """
    if len(value) % _WIDTH:
        raise ValueError(f"a value of {len(value)} bytes")
    numbers = memoryview(value).cast("I")
    rows = np.array(numbers, dtype=np.uint32)
    rows.setflags(write=False)  # Cached arrays are shared.
    groups, position, end = [], 0, len(numbers)
    while position < end:
        header, row = numbers[position], numbers[position + 1]
        first, position = position + 2, position + 2 + (header & ENTITIES)
        name, kind = texts[row], header >> KIND_SHIFT
        if not name:
            raise IndexError(f"name {row} is empty")
        groups.append(NameMatch(name, MATCH_FORMS[kind >> 1], rows[first:position], kind & 1 == 1))
    return groups


def hash_forms(forms: "pa.StringArray") -> NDArray[np.uint32]:
    """Return the hash of each form, as used by the filter."""
    keys = forms.cast("binary").to_pylist()
    return np.fromiter(map(crc32, keys), dtype=np.uint32, count=len(keys))


class FilterWriter:
    """A collector of the hashes of the forms of a number of names."""

    def __init__(self, names: int) -> None:
        self.bits = np.zeros(min(_MOST_BITS, 1 << (_BITS * max(names, 1) - 1).bit_length()) // 8, dtype=np.uint8)

    def add(self, hashes: NDArray[np.uint32]) -> None:
        slots = hashes & np.uint32(8 * len(self.bits) - 1)
        np.bitwise_or.at(self.bits, slots >> np.uint32(3), np.uint8(1) << (slots & np.uint32(7)).astype(np.uint8))


class FormFilter:
    """A reader of the bits of all stored forms, with the forms `also` that updates added."""

    def __init__(self, bits: NDArray[np.uint8], *, also: Iterable[str] = ()) -> None:
        self.bits = bits.data  # Indexing it is twice as fast as indexing the array.
        self.mask = 8 * len(bits) - 1
        self.also = frozenset(crc32(form.encode()) & self.mask for form in also)

    def keep(self, forms: Sequence[str]) -> list[str]:
        """Return the forms that may be stored, in order; no stored one is missing."""
        bits, mask, also = self.bits, self.mask, self.also
        return [
            form for form in forms if bits[(slot := crc32(form.encode()) & mask) >> 3] >> (slot & 7) & 1 or slot in also
        ]

    def runs(self, words: Sequence[str], lengths: frozenset[int]) -> list[tuple[int, int]]:
        """Return the runs of words that may be stored forms, as `KnowledgeBase.likely_runs` does.

        The hash of a run continues that of the next shorter wanted length, so that no form is built, and one very long
        name does not slow a long question.
        """
        bits, mask, also = self.bits, self.mask, self.also
        wanted = sorted([length for length in lengths if 0 < length <= len(words)])
        kept = []
        for first, pieces in enumerate(_run_pieces(words, wanted)):
            checksum = _BEFORE_SPACE
            for length, piece in zip(wanted, pieces, strict=False):
                checksum = crc32(piece, checksum)
                if bits[(slot := checksum & mask) >> 3] >> (slot & 7) & 1 or slot in also:
                    kept.append((length, first))
        return [(first, first + length - 1) for length, first in sorted(kept)]


def _run_pieces(words: Sequence[str], lengths: Sequence[int]) -> Iterator[list[bytes]]:
    """Yield, from each word on, the words that each length adds to the length before it; each word follows a space."""
    spaced = [f" {word}".encode() for word in words]
    most = len(lengths)
    if not most or lengths[-1] == most:  # Each length adds one word, as in short questions.
        for first in range(len(words)):
            yield spaced[first : first + most]
        return
    joined, bounds = b"".join(spaced), [0, *accumulate(map(len, spaced))]
    for first in range(len(words)):
        ends = [bounds[first + length] for length in lengths if first + length <= len(words)]
        yield [joined[begin:end] for begin, end in pairwise([bounds[first], *ends])]
