"""The languages of names as they are written."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from kbtools.indexers.folder.column_files import ColumnWriter, StringWriter, read_column
from kbtools.indexers.folder.language_sets import NUMBERS, SETS, set_text, spoken
from kbtools.kb.language_tags import UND

WIDTHS = ("<u1", "<u2", "<u4")
NUMBERS_AT_ONCE = 1_000_000
"""Numbers that are made narrower at once."""


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
            for first in range(0, len(numbers), NUMBERS_AT_ONCE):
                narrow.write(numbers[first : first + NUMBERS_AT_ONCE])
            digest = narrow.close()
        (self.folder / f"{NUMBERS}.new").replace(wide)
        return digest
