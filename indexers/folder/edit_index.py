"""The edit index: names within two edits of a form, found by a third of their letters that the edits left whole.

A name cut into three parts keeps one of them whole under two edits, and that part stands in the other spelling at a
place that its length bounds (pass-join: Li et al. 2011). Each part of each name is a key; those of a form are few.
What a key brings by accident is told by its pairs of letters, kept in 64 bits a name.
"""

import string
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kbtools.indexers.folder.column_files import StringTable
from kbtools.kb.contract import EDITS
from kbtools.linking.similarity import LONGEST_NAME

_PARTS = EDITS + 1
SHORTEST = _PARTS
"""Letters of the shortest name that has three parts."""

_MOST_DIFFERENT = 8
"""Pairs of letters by which two edits make names differ: of two letters replaced, four go and four come."""

COMPARED = 300
"""Names from which on their letters are compared as well, which costs as much as reading the texts of some of them."""

KEPT = 2_000
"""Names that are kept, those of the most like pairs of letters."""

MOST_SEEN = 200_000
"""Names whose pairs of letters are compared, those of the rarest parts first: of 3,000 variants none needs 40,000, and
where a hundred thousand names begin alike it bounds a look-up to some ten milliseconds."""

_DIFFERENT_LETTERS = 2 * EDITS
"""Letters in which two edits make names differ: of each that is replaced one goes and one comes."""

_UNTOLD = 1 << 63
"""The bit of what normal forms write otherwise: all but ASCII, and `&`, which is the word `and`."""

_BITS = np.zeros(256, dtype=np.uint64)
for _place, _letter in enumerate(string.ascii_lowercase + string.digits):
    _BITS[[ord(_letter), ord(_letter.upper())]] = 1 << _place
_BITS[128:] = _BITS[ord("&")] = _UNTOLD

_NOTHING = np.empty(0, dtype=np.uint32)

_HASHED_AT_ONCE = 50_000
"""Names that are hashed in one pass."""

_BUCKETS = 64
"""By the first six bits of a key: of 18 million keys, at 5.9 million names, one holds 2 MB, and of thirty times as many
names 70 MB."""

_SIGNED = np.dtype([("row", "<u4"), ("signature", "<u8")])

_Hashes = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15
_POWERS, _INVERSE = (
    np.array([pow(base, power, 1 << 64) for power in range(LONGEST_NAME + EDITS + 1)], dtype=np.uint64)
    for base in (_BASE, pow(_BASE, -1, 1 << 64))
)
"""Of a rolling hash modulo 2^64: any run of letters is hashed from two sums, whatever stands before it."""

_MIX, _SPREAD, _WIDE = (np.array([odd], dtype=np.uint64) for odd in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, _BASE))


class _Segments(NamedTuple):
    """The runs of letters of a form that may be a part of a name near it, a row each: which part, of a name of which
    length, from where to where in the form."""

    part: NDArray[np.int64]
    length: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def _cut(length: int) -> tuple[int, ...]:
    """Return where the parts of a name start, and where the last one ends."""
    first = length // _PARTS
    return 0, first, first + (length - first) // 2, length


@lru_cache(maxsize=2 * LONGEST_NAME)
def _segments_of(length: int) -> _Segments:
    """List the runs of a form of some length that a part of a name within two edits may be.

    Before part i stand at most i of the edits, since an earlier part would be whole otherwise, and behind it at most
    EDITS - i: both bound how far it has moved.
    """
    rows = []
    for name in range(max(SHORTEST, length - EDITS), min(LONGEST_NAME, length + EDITS) + 1):
        starts = _cut(name)
        for part in range(_PARTS):
            for moved in range(-part, part + 1):
                first, last = starts[part] + moved, starts[part + 1] + moved
                if abs(length - name - moved) <= EDITS - part and first >= 0 and last <= length:
                    rows.append((part, name, first, last))
    return _Segments(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


class _Letters(NamedTuple):
    """The letters of some forms end to end, and where each form starts and how long it is."""

    codes: _Hashes
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def _letters_of(forms: Sequence[str]) -> _Letters:
    """Read forms as code points."""
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    codes = np.frombuffer("".join(forms).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    return _Letters(codes, np.cumsum(lengths) - lengths, lengths)


def _key_of(sums: _Hashes, first: NDArray[np.int64], last: NDArray[np.int64], at: _Segments) -> NDArray[np.uint32]:
    """Hash runs of letters with the part and the length of the name that they belong to.

    `sums` are running sums of letters by powers; `first` and `last` are places among them, `at.first` those in a form.
    """
    # The sum between two places, moved to the start of the powers: the same letters hash alike wherever they stand.
    hashed = (sums[last] - sums[first]) * _INVERSE[at.first]
    hashed += _SPREAD * (at.part * (LONGEST_NAME + 1) + at.length + 1).astype(np.uint64)
    hashed ^= hashed >> np.uint64(31)
    hashed *= _MIX
    return (hashed >> np.uint64(32)).astype(np.uint32)


def _running_sums(letters: _Letters) -> _Hashes:
    """Sum letters by the powers of their places, over all forms: (letters + 1,)."""
    place = np.arange(len(letters.codes)) - np.repeat(letters.starts, letters.lengths)
    return np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum((letters.codes + np.uint64(1)) * _POWERS[place])))


def _signatures_of(letters: _Letters) -> _Hashes:
    """Mark the pairs of letters of each form, none of which is empty, one bit of 64 a pair: (forms,)."""
    # For every form, for every letter and the one after it, the last with none: one bit.
    following = np.zeros_like(letters.codes)
    following[:-1] = letters.codes[1:]
    following[letters.starts + letters.lengths - 1] = 0
    pair = (letters.codes * np.uint64(8191) + following) * _WIDE
    return np.bitwise_or.reduceat(np.uint64(1) << (pair >> np.uint64(58)), letters.starts)


class Probes(NamedTuple):
    """Some forms, the keys of runs of their letters, the form of each run, and the pairs of letters of each form."""

    forms: Sequence[str]
    keys: NDArray[np.uint32]
    form_of: NDArray[np.int64]
    signatures: _Hashes


def probes_of(forms: Sequence[str]) -> Probes:
    """Hash what names within two edits of forms are found by; too short and too long ones have no runs."""
    every = [_segments_of(len(form)) for form in forms]
    fit = [place for place, own in enumerate(every) if len(own.part)]
    signatures = np.zeros(len(forms), dtype=np.uint64)
    if not fit:
        return Probes(forms, _NOTHING, np.empty(0, dtype=np.int64), signatures)
    # All forms in one pass: for every form, for every run of its letters, the key.
    at = _Segments(*map(np.concatenate, zip(*(every[place] for place in fit), strict=True)))
    letters, runs = _letters_of([forms[place] for place in fit]), [len(every[place].part) for place in fit]
    start = letters.starts.repeat(runs)
    signatures[fit] = _signatures_of(letters)
    return Probes(
        forms, _key_of(_running_sums(letters), start + at.first, start + at.last, at), np.repeat(fit, runs), signatures
    )


def _hash_names(forms: Sequence[str], rows: NDArray[np.uint32]) -> Iterator[tuple[_Hashes, NDArray[Any]]]:
    """Yield the keys of normal forms with the row of each, which sort by key, and their pairs of letters by row.

    Shorter and longer forms than are found by edits are left out.
    """
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    places = np.flatnonzero((lengths >= SHORTEST) & (lengths <= LONGEST_NAME))
    for first in range(0, len(places), _HASHED_AT_ONCE):
        piece = places[first : first + _HASHED_AT_ONCE]
        letters, own = _letters_of([forms[place] for place in piece.tolist()]), rows[piece]
        sums, third = _running_sums(letters), letters.lengths // _PARTS
        starts = np.stack([np.zeros_like(third), third, third + (letters.lengths - third) // 2, letters.lengths])
        parts = []
        for part in range(_PARTS):
            at = _Segments(np.full(len(own), part), letters.lengths, starts[part], starts[part + 1])
            keys = _key_of(sums, letters.starts + at.first, letters.starts + at.last, at)
            parts.append(keys.astype(np.uint64) << np.uint64(32) | own)
        signed = np.empty(len(own), dtype=_SIGNED)
        signed["row"], signed["signature"] = own, _signatures_of(letters)
        yield np.concatenate(parts), signed


class EditKeys:
    """The keys and signatures of names while they are collected for writing, in files of a work folder.

    Keys lie in buckets by their first bits, signatures by the rows of their names, so that one bucket after the other
    is sorted and written, and memory does not grow with the names.
    """

    def __init__(self, folder: Path, *, names: int) -> None:
        self.folder, self.names = folder, names
        self.files = ExitStack()
        self.keys, self.signatures = (
            [self.files.enter_context((folder / f"edit.{part}.{bucket}").open("w+b")) for bucket in range(_BUCKETS)]
            for part in ("keys", "signatures")
        )

    def __enter__(self) -> "EditKeys":
        return self

    def __exit__(self, *_: object) -> None:
        self.files.close()

    def add(self, forms: Sequence[str], rows: NDArray[np.uint32]) -> None:
        """Take normal forms, each with the row of a name."""
        for keyed, signed in _hash_names(forms, rows):
            _share_out(keyed, keyed >> np.uint64(64 - _BUCKETS.bit_length() + 1), self.keys)
            buckets = signed["row"].astype(np.uint64) * np.uint64(_BUCKETS) // np.uint64(self.names)
            _share_out(signed, buckets, self.signatures)

    def runs(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield keys, ascending, and the rows of their names, a bucket at a time."""
        for file in self.keys:
            yield _keys_and_rows(_take_back(file, np.uint64))

    def signature(self) -> Iterator[_Hashes]:
        """Yield the pairs of letters of all names by row, none of a name without a normal form of its own."""
        # The first row of a bucket is the first that `row * BUCKETS // names` puts there.
        firsts = [-(-bucket * self.names // _BUCKETS) for bucket in range(_BUCKETS + 1)]
        for (first, last), file in zip(pairwise(firsts), self.signatures, strict=True):
            signed = _take_back(file, _SIGNED)
            signature = np.zeros(last - first, dtype=np.uint64)
            signature[signed["row"] - np.uint32(first)] = signed["signature"]
            yield signature


def _keys_and_rows(keyed: _Hashes) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Sort keys that hold the rows of their names, and take both apart."""
    keyed = np.sort(keyed)
    return (keyed >> np.uint64(32)).astype(np.uint32), keyed.astype(np.uint32)


def _share_out(values: NDArray[Any], buckets: NDArray[np.uint64], files: Sequence[IO[bytes]]) -> None:
    """Append each value to the file of its bucket."""
    order = np.argsort(buckets.astype(np.uint8), kind="stable")
    edges = np.cumsum(np.bincount(buckets.astype(np.int64), minlength=_BUCKETS))[:-1]
    for file, run in zip(files, np.split(values[order], edges), strict=True):
        file.write(run.tobytes())


def _take_back(file: IO[bytes], dtype: DTypeLike) -> NDArray[Any]:
    """Read what was shared out to a file, and empty it."""
    file.seek(0)
    values = np.frombuffer(file.read(), dtype=dtype)
    file.seek(0)
    file.truncate()
    return values


class EditIndex:
    """An index of the names with at least three letters, by the forms within two edits of each."""

    def __init__(
        self, keys: NDArray[np.uint32], rows: NDArray[np.uint32], signatures: _Hashes, *, texts: StringTable
    ) -> None:
        self.keys, self.rows, self.signatures, self.texts = keys, rows, signatures, texts

    def recall(self, probes: Probes) -> list[NDArray[np.uint32]]:
        """Recall for each form the rows of names that may be within two edits of it, at most KEPT of the likest.

        The forms were hashed once, for several indexes.
        """
        # All forms in one pass: for every form, for every run of its letters, the names with such a part.
        forms, keys, form_of, signatures = probes
        firsts, lasts = self.keys.searchsorted(keys, "left"), self.keys.searchsorted(keys, "right")
        seen = np.flatnonzero(lasts > firsts)
        if not len(seen):
            return [_NOTHING] * len(signatures)
        firsts, sizes, form_of = firsts[seen], (lasts - firsts)[seen], form_of[seen]
        if sizes.sum() > MOST_SEEN:
            kept = _rarest_runs(form_of, sizes, firsts)
            firsts, sizes, form_of = firsts[kept], sizes[kept], form_of[kept]
        ends = sizes.cumsum()
        rows = self.rows[np.arange(ends[-1]) + (firsts - ends + sizes).repeat(sizes)]
        of = form_of.repeat(sizes)
        different = np.bitwise_count(self.signatures[rows] ^ signatures[of])
        like = np.flatnonzero(different <= _MOST_DIFFERENT)
        unique, place = np.unique(of[like].astype(np.uint64) << np.uint64(32) | rows[like], return_index=True)
        edges = unique.searchsorted(np.arange(1, len(signatures), dtype=np.uint64) << np.uint64(32))
        runs = zip(
            forms, np.split(unique.astype(np.uint32), edges), np.split(different[like][place], edges), strict=True
        )
        return [own if len(own) <= COMPARED else self.likest(form, own, unlike) for form, own, unlike in runs]

    def likest(self, form: str, rows: NDArray[np.uint32], unlike: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Choose of many names those that share the letters of a form, and of too many those of the likest pairs."""
        shared = share_letters(form, self.texts, rows)
        rows, unlike = rows[shared], unlike[shared]
        return rows if len(rows) <= KEPT else rows[np.argsort(unlike, kind="stable")[:KEPT]]


def _rarest_runs(form_of: NDArray[np.int64], sizes: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Choose the shortest runs of each form, as many as hold MOST_SEEN names."""
    order = np.lexsort((firsts, sizes, form_of))
    total = sizes[order].cumsum()
    # What all forms before one have seen, which its own count begins with.
    opening = form_of[order].searchsorted(form_of[order], "left")
    before = (total - sizes[order])[opening]
    return order[total - before <= MOST_SEEN]


def share_letters(form: str, texts: StringTable, rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which of the names at some rows, none of them empty, may be within two edits of a normal form.

    Two edits change at most four letters of a set: this leaves out most of the thousands of names that share a part
    and most pairs of letters with a form, without reading their texts one by one.
    """
    if not form.isascii():
        return np.ones(len(rows), dtype=bool)
    codes, starts = texts.bytes_at(rows)
    letters = np.bitwise_or.reduceat(_BITS[codes], starts)
    own = np.bitwise_or.reduce(_BITS[np.frombuffer(form.encode(), dtype=np.uint8)])
    told: NDArray[np.bool_] = np.bitwise_count(letters ^ own) <= _DIFFERENT_LETTERS
    return told | (letters >= _UNTOLD)
