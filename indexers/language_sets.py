"""The languages of names on disk: the sets of languages that names have, and the number of the set of each name.

A set is a text such as `de en~ fr`, by tag, with `~` where the name is an alias. There is no file where no name has a
language, and no column of numbers where all have the same one: then a name is an alias where it is one at all.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kbtools.indexers.column_files import ColumnWriter, StringTable, StringWriter, read_column
from kbtools.indexers.readers.batches import repeated
from kbtools.kb.language_tags import UND
from kbtools.kb.spoken_names import ALIAS, NAME, SpokenName

SETS, NUMBERS = "language.set", "alias.language"
LANGUAGE_FILES = (NUMBERS, f"{SETS}.utf8", f"{SETS}.starts")

WIDTHS = ("<u1", "<u2", "<u4")
AT_ONCE = 1_000_000
"""Numbers that are made narrower at once."""

MARK = "~"


def set_text(parts: Mapping[str, bool]) -> str:
    """Write languages as a set, each with whether the name is an alias there; a language has one of both."""
    return " ".join(f"{tag}{MARK if parts[tag] else ''}" for tag in sorted(parts))


def spoken(text: str, languages: str) -> SpokenName:
    """Give a name the languages of a set."""
    tags = languages.split(" ") if languages else []
    alias_in = tuple(tag.removesuffix(MARK) for tag in tags if tag.endswith(MARK))
    return SpokenName(text, tuple(tag for tag in tags if not tag.endswith(MARK)), alias_in)


class LanguageWriter:
    """A writer of the languages of names, in the order of their rows; `tags` are those that are known by number."""

    def __init__(self, folder: Path, tags: Sequence[str]) -> None:
        self.folder, self.tags = folder, [tag or UND for tag in tags]
        self.numbers: dict[str, int] = {}
        self.names: Counter[int] = Counter()
        self.column = ColumnWriter(folder / NUMBERS, WIDTHS[-1])

    def write(self, parts: pa.StringArray) -> None:
        """Take for each name twice the number of each of its languages, 1 more for an alias, with spaces between."""
        encoded = parts.dictionary_encode()
        numbers = [self.number(text) for text in encoded.dictionary.to_pylist()]
        own = np.array(numbers, dtype=np.uint32)[encoded.indices.to_numpy()]
        self.names.update(dict(enumerate(np.bincount(own).tolist())))
        if len(self.tags) > 1:
            self.column.write(own)

    def number(self, parts: str) -> int:
        """Number a set; where a name is both a name and an alias of a language, it is a name."""
        if len(self.tags) == 1:
            return self.numbers.setdefault(self.tags[0], 0)
        tags: dict[str, bool] = {}
        for part in map(int, parts.split(" ")):
            tag = self.tags[part >> 1]
            tags[tag] = tags.get(tag, True) and bool(part & 1)
        return self.numbers.setdefault(set_text(tags), len(self.numbers))

    def counts(self) -> dict[str, int]:
        """Count the names of each language, the commonest first; nothing where none has a language."""
        counts: Counter[str] = Counter()
        for languages, number in self.numbers.items():
            counts.update(dict.fromkeys(spoken("", languages).languages, self.names[number]))
        return {} if counts.keys() <= {UND} else dict(counts.most_common())

    def close(self) -> dict[str, str]:
        """Write what there is to tell apart; give the hash of each file, as columns and tables of strings have it."""
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
        """Write the numbers again with as many bytes as the largest needs; give the hash."""
        wide = self.folder / NUMBERS
        width = next(width for width in WIDTHS if len(self.numbers) - 1 <= np.iinfo(width).max)
        numbers = read_column(wide, WIDTHS[-1])
        with closing(ColumnWriter(self.folder / f"{NUMBERS}.new", width)) as narrow:
            for first in range(0, len(numbers), AT_ONCE):
                narrow.write(numbers[first : first + AT_ONCE])
            digest = narrow.close()
        (self.folder / f"{NUMBERS}.new").replace(wide)
        return digest


class LanguageSets:
    """A reader of the languages of names by row, of which there are so many."""

    def __init__(self, folder: Path, files: Collection[str], *, names: int) -> None:
        self.sets: Sequence[str] | StringTable = StringTable(folder / SETS) if f"{SETS}.utf8" in files else [UND]
        self.numbers: NDArray[Any] | None = None
        if NUMBERS in files:
            width = (folder / NUMBERS).stat().st_size // names if names else 1
            self.numbers = read_column(folder / NUMBERS, f"<u{width}")
        self.parts_in = lru_cache(16)(self.read_parts)

    def read_parts(self, tags: frozenset[str]) -> NDArray[np.uint8]:
        """Tell of each set which part its names play in some languages: (sets,)."""
        return np.array([spoken("", languages).part_in(tags) for languages in self.sets], dtype=np.uint8)

    def parts(self, rows: NDArray[Any], is_alias: NDArray[Any], tags: frozenset[str]) -> NDArray[np.uint8]:
        """Tell which part names play in some languages: (rows,)."""
        if self.numbers is not None:
            parts: NDArray[np.uint8] = self.parts_in(tags)[self.numbers[rows]]
            return parts
        part = np.where(is_alias, ALIAS, NAME) if self.sets[0] in tags else np.zeros(len(rows))
        return part.astype(np.uint8)

    def terms(self, rows: NDArray[Any], is_alias: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any], pa.Array]:
        """List the names of some rows as sources say them, once for each of their languages.

        Give the place of each among the rows, whether it is an alias, and the tag, empty for none: (terms,).
        """
        if self.numbers is None:
            return np.arange(len(rows)), is_alias, repeated(self.sets[0].replace(UND, ""), len(rows))
        numbers, own = np.unique(self.numbers[rows], return_inverse=True)
        languages = [spoken("", self.sets[number]) for number in numbers.tolist()]
        terms = [
            [*((tag, False) for tag in name.name_in), *((tag, True) for tag in name.alias_in)] for name in languages
        ]
        starts = np.cumsum([0, *map(len, terms)])
        counts = np.diff(starts)[own]
        places = np.repeat(np.arange(len(rows)), counts)
        # For every name, for every language of its set: the place of the pair, without a loop over the names.
        pairs = np.arange(len(places)) + np.repeat(starts[own] - np.cumsum(counts) + counts, counts)
        tags = pa.array(["" if tag == UND else tag for own_terms in terms for tag, _ in own_terms], pa.string())
        flags = np.array([flag for own_terms in terms for _, flag in own_terms], dtype=bool)
        return places, flags[pairs], tags.take(pa.array(pairs))

    def spoken(self, row: int, text: str, *, is_alias: bool) -> SpokenName:
        """Give a name with its languages."""
        if self.numbers is not None:
            return spoken(text, self.sets[int(self.numbers[row])])
        return SpokenName(text, (), (self.sets[0],)) if is_alias else SpokenName(text, (self.sets[0],))
