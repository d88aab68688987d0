"""The edit index: names within two edits of a form, found by a third of their letters that the edits left intact.

Two edits leave at least one third of a name intact, and it occurs in the other spelling at a place that the name's
length bounds (pass-join: Li et al. 2011). Each third of each name is a key; a form has few. False matches are filtered
by a 64-bit signature of the name's letter pairs.
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
"""Length of the shortest name with three parts."""

_MOST_DIFFERENT = 8
"""Most letter pairs by which two edits can make names differ: two replaced letters remove four and add four."""

COMPARED = 300
"""Least number of names for which letters are compared as well, which costs as much as reading some of their texts."""

KEPT = 2_000
"""Most names returned: those with the most similar letter pairs."""

MOST_SEEN = 200_000
"""Most names whose letter pairs are compared, those of the rarest parts first: none of 3,000 variants needs 40,000, and
if a hundred thousand names begin alike, this limits a look-up to some ten milliseconds.
"""

_DIFFERENT_LETTERS = 2 * EDITS
"""Most letters in which two edits make names differ: each replacement removes one and adds one."""

_UNTOLD = 1 << 63
"""The bit of characters that normal forms rewrite: all but ASCII, and `&`, which becomes `and`."""

_BITS = np.zeros(256, dtype=np.uint64)
for _place, _letter in enumerate(string.ascii_lowercase + string.digits):
    _BITS[[ord(_letter), ord(_letter.upper())]] = 1 << _place
_BITS[128:] = _BITS[ord("&")] = _UNTOLD

_NOTHING = np.empty(0, dtype=np.uint32)

_HASHED_AT_ONCE = 50_000
"""Names hashed in one pass."""

_BUCKETS = 64
"""Most buckets of keys: with 5.9 million names, so 18 million keys, one holds 2 MB, and with thirty times as many names
70 MB.
"""

_NAMES_IN_A_BUCKET = 50_000
"""Names for which another bucket is opened: fewer would open and empty files for a megabyte that one sort takes."""

_SIGNED = np.dtype([("row", "<u4"), ("signature", "<u8")])

_Hashes = NDArray[np.uint64]

_BASE = 0x9E3779B97F4A7C15
_POWERS, _INVERSE = (
    np.array([pow(base, power, 1 << 64) for power in range(LONGEST_NAME + EDITS + 1)], dtype=np.uint64)
    for base in (_BASE, pow(_BASE, -1, 1 << 64))
)
"""For a rolling hash modulo 2^64: any run of letters is hashed from two sums, independent of the letters before it."""

_MIX, _SPREAD, _WIDE = (np.array([odd], dtype=np.uint64) for odd in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, _BASE))


class _Segments(NamedTuple):
    """The runs of letters of a form that may be a part of a name near it, one row each: the number of the part, the
    length of the name, and the start and end in the form.
    """

    part: NDArray[np.int64]
    length: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def _cut(length: int) -> tuple[int, ...]:
    """Return the start of each part of a name, and the end of the last."""
    first = length // _PARTS
    return 0, first, first + (length - first) // 2, length


@lru_cache(maxsize=2 * LONGEST_NAME)
def _segments_of(length: int) -> _Segments:
    """List the runs of a form of some length that may be a part of a name within two edits.

    At most i of the edits come before part i, since otherwise an earlier part would be intact, and at most EDITS - i
    after it: both limit how far it has moved.
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
    """The letters of some forms end to end, and the start and length of each form."""

    codes: _Hashes
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def _letters_of(forms: Sequence[str]) -> _Letters:
    """Return forms as code points."""
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    codes = np.frombuffer("".join(forms).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    return _Letters(codes, np.cumsum(lengths) - lengths, lengths)


def _key_of(sums: _Hashes, first: NDArray[np.int64], last: NDArray[np.int64], at: _Segments) -> NDArray[np.uint32]:
    """Hash runs of letters together with the part and the length of the name they belong to.

    `sums` are running sums of letters by powers; `first` and `last` are places among them, `at.first` those in a form.
    """
    # The sum between two places, divided by the first power: equal letters have equal hashes at any place.
    hashed = (sums[last] - sums[first]) * _INVERSE[at.first]
    hashed += _SPREAD * (at.part * (LONGEST_NAME + 1) + at.length + 1).astype(np.uint64)
    hashed ^= hashed >> np.uint64(31)
    hashed *= _MIX
    return (hashed >> np.uint64(32)).astype(np.uint32)


def _running_sums(letters: _Letters) -> _Hashes:
    """Return the running sums of letters times powers, over all forms: (letters + 1,)."""
    place = np.arange(len(letters.codes)) - np.repeat(letters.starts, letters.lengths)
    return np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum((letters.codes + np.uint64(1)) * _POWERS[place])))


def _signatures_of(letters: _Letters) -> _Hashes:
    """Return the set of letter pairs of each form as 64 bits; no form may be empty: (forms,)."""
    # One bit for each letter and the one after it, none for the last letter of a form.
    following = np.zeros_like(letters.codes)
    following[:-1] = letters.codes[1:]
    following[letters.starts + letters.lengths - 1] = 0
    pair = (letters.codes * np.uint64(8191) + following) * _WIDE
    return np.bitwise_or.reduceat(np.uint64(1) << (pair >> np.uint64(58)), letters.starts)


class Probes(NamedTuple):
    """Some forms, the keys of runs of their letters, the form of each run, and the letter pairs of each form."""

    forms: Sequence[str]
    keys: NDArray[np.uint32]
    form_of: NDArray[np.int64]
    signatures: _Hashes


def probes_of(forms: Sequence[str]) -> Probes:
    """Hash the runs by which names within two edits of forms are found; too short and too long forms have none."""
    every = [_segments_of(len(form)) for form in forms]
    fit = [place for place, segments in enumerate(every) if len(segments.part)]
    signatures = np.zeros(len(forms), dtype=np.uint64)
    if not fit:
        return Probes(forms, _NOTHING, np.empty(0, dtype=np.int64), signatures)
    # All forms in one pass: the key of every run of letters of every form.
    at = _Segments(*map(np.concatenate, zip(*(every[place] for place in fit), strict=True)))
    letters, runs = _letters_of([forms[place] for place in fit]), [len(every[place].part) for place in fit]
    start = letters.starts.repeat(runs)
    signatures[fit] = _signatures_of(letters)
    return Probes(
        forms, _key_of(_running_sums(letters), start + at.first, start + at.last, at), np.repeat(fit, runs), signatures
    )


def _hash_names(forms: Sequence[str], rows: NDArray[np.uint32]) -> Iterator[tuple[_Hashes, NDArray[Any]]]:
    """Yield the keys of normal forms with the row of each, which sort by key, and their letter pairs by row.

    Forms too short or too long for the index are left out.
    """
    lengths = np.fromiter(map(len, forms), dtype=np.int64, count=len(forms))
    places = np.flatnonzero((lengths >= SHORTEST) & (lengths <= LONGEST_NAME))
    for first in range(0, len(places), _HASHED_AT_ONCE):
        piece = places[first : first + _HASHED_AT_ONCE]
        letters, piece_rows = _letters_of([forms[place] for place in piece.tolist()]), rows[piece]
        sums, third = _running_sums(letters), letters.lengths // _PARTS
        starts = np.stack([np.zeros_like(third), third, third + (letters.lengths - third) // 2, letters.lengths])
        parts = []
        for part in range(_PARTS):
            at = _Segments(np.full(len(piece_rows), part), letters.lengths, starts[part], starts[part + 1])
            keys = _key_of(sums, letters.starts + at.first, letters.starts + at.last, at)
            parts.append(keys.astype(np.uint64) << np.uint64(32) | piece_rows)
        signed = np.empty(len(piece_rows), dtype=_SIGNED)
        signed["row"], signed["signature"] = piece_rows, _signatures_of(letters)
        yield np.concatenate(parts), signed


class EditKeys:
    """The keys and signatures of names, collected in files of a work folder before they are written.

    Keys are put into buckets by their order, signatures into buckets by the rows of their names; buckets are
    sorted and written one at a time, so memory does not grow with the names.
    """

    def __init__(self, folder: Path, *, names: int) -> None:
        self.folder, self.names = folder, names
        self.buckets = min(1 + names // _NAMES_IN_A_BUCKET, _BUCKETS)
        self.files = ExitStack()
        self.keys, self.signatures = (
            [self.files.enter_context((folder / f"edit.{part}.{bucket}").open("w+b")) for bucket in range(self.buckets)]
            for part in ("keys", "signatures")
        )

    def __enter__(self) -> "EditKeys":
        return self

    def __exit__(self, *_: object) -> None:
        self.files.close()

    def add(self, forms: Sequence[str], rows: NDArray[np.uint32]) -> None:
        """Add normal forms, each with the row of a name."""
        for keyed, signed in _hash_names(forms, rows):
            # A key is the upper half of 64 bits; its share of all keys is the bucket.
            _share_out(keyed, (keyed >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32), self.keys)
            buckets = signed["row"].astype(np.uint64) * np.uint64(self.buckets) // np.uint64(self.names)
            _share_out(signed, buckets, self.signatures)

    def runs(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield keys, ascending, and the rows of their names, one bucket at a time."""
        for file in self.keys:
            keyed = np.sort(_take_back(file, np.uint64))
            yield (keyed >> np.uint64(32)).astype(np.uint32), keyed.astype(np.uint32)

    def signature(self) -> Iterator[_Hashes]:
        """Yield the letter pairs of all names by row; a name without a normal form of its own has none."""
        # The first row of a bucket is the least with `row * buckets // names` equal to its number.
        firsts = [-(-bucket * self.names // self.buckets) for bucket in range(self.buckets + 1)]
        for (first, last), file in zip(pairwise(firsts), self.signatures, strict=True):
            signed = _take_back(file, _SIGNED)
            signature = np.zeros(last - first, dtype=np.uint64)
            signature[signed["row"] - np.uint32(first)] = signed["signature"]
            yield signature


def _share_out(values: NDArray[Any], buckets: NDArray[np.uint64], files: Sequence[IO[bytes]]) -> None:
    """Append each value to the file of its bucket."""
    order = np.argsort(buckets.astype(np.uint8), kind="stable")
    edges = np.cumsum(np.bincount(buckets.astype(np.int64), minlength=len(files)))[:-1]
    for file, run in zip(files, np.split(values[order], edges), strict=True):
        file.write(run.tobytes())


def _take_back(file: IO[bytes], dtype: DTypeLike) -> NDArray[Any]:
    """Return the content of a bucket's file, and empty it."""
    file.seek(0)
    values = np.frombuffer(file.read(), dtype=dtype)
    file.seek(0)
    file.truncate()
    return values


class EditIndex:
    """An index of the names with at least three letters that finds those within two edits of a form."""

    def __init__(
        self, keys: NDArray[np.uint32], rows: NDArray[np.uint32], signatures: _Hashes, *, texts: StringTable
    ) -> None:
        self.keys, self.rows, self.signatures, self.texts = keys, rows, signatures, texts

    def recall(self, probes: Probes) -> list[NDArray[np.uint32]]:
        """Return for each form the rows of names that may be within two edits of it, at most KEPT, those most similar.

        The probes are hashed once and serve several indexes.
        """
        # All forms in one pass: the names that share a part with any run of letters of any form.
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
        return [near if len(near) <= COMPARED else self.most_similar(form, near, unlike) for form, near, unlike in runs]

    def most_similar(self, form: str, rows: NDArray[np.uint32], unlike: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Return the names that share a form's letters; of too many, those with the most similar letter pairs."""
        shared = share_letters(form, self.texts, rows)
        rows, unlike = rows[shared], unlike[shared]
        return rows if len(rows) <= KEPT else rows[np.argsort(unlike, kind="stable")[:KEPT]]


def _rarest_runs(form_of: NDArray[np.int64], sizes: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Choose the runs of each form with the fewest names, up to MOST_SEEN names in all."""
    order = np.lexsort((firsts, sizes, form_of))
    total = sizes[order].cumsum()
    # The total of the preceding forms, to be subtracted.
    opening = form_of[order].searchsorted(form_of[order], "left")
    before = (total - sizes[order])[opening]
    return order[total - before <= MOST_SEEN]


def share_letters(form: str, texts: StringTable, rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return a mask of the names, none of them empty, that may be within two edits of a normal form.

    Two edits change at most four letters of a set: this rejects most of the thousands of names that share a part and
    most letter pairs with a form, without reading their texts one by one.
    """
    if not form.isascii():
        return np.ones(len(rows), dtype=bool)
    codes, starts = texts.bytes_at(rows)
    letters = np.bitwise_or.reduceat(_BITS[codes], starts)
    letters_of_form = np.bitwise_or.reduce(_BITS[np.frombuffer(form.encode(), dtype=np.uint8)])
    similar: NDArray[np.bool_] = np.bitwise_count(letters ^ letters_of_form) <= _DIFFERENT_LETTERS
    return similar | (letters >= _UNTOLD)
