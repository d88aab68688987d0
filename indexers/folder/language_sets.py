"""The languages of names on disk: the distinct sets of languages, and the number of each name's set.

A set is a text such as `de en~ fr`, by tag, with `~` if the name is an alias. There is no file if no name has a
language, and no column of numbers if all have the same set: then a name that is an alias is one in that language.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.indexers.folder.column_files import StringTable, read_column
from kbtools.kb.language_tags import ALIAS, NAME, UND, SpokenName

SETS, NUMBERS = "language.set", "alias.language"
LANGUAGE_FILES = (NUMBERS, f"{SETS}.utf8", f"{SETS}.starts")

_MARK = "~"


def set_text(parts: Mapping[str, bool]) -> str:
    """Write languages as a set, each with whether the name is an alias in it."""
    return " ".join(f"{tag}{_MARK if parts[tag] else ''}" for tag in sorted(parts))


def spoken(text: str, languages: str) -> SpokenName:
    """Return a name with the languages of a set."""
    tags = languages.split(" ") if languages else []
    alias_in = tuple(tag.removesuffix(_MARK) for tag in tags if tag.endswith(_MARK))
    return SpokenName(text, tuple(tag for tag in tags if not tag.endswith(_MARK)), alias_in)


class LanguageSets:
    """A reader of the languages of `names` names by row."""

    def __init__(self, folder: Path, files: Collection[str], *, names: int) -> None:
        self.sets: Sequence[str] | StringTable = StringTable(folder / SETS) if f"{SETS}.utf8" in files else [UND]
        self.numbers: NDArray[Any] | None = None
        if NUMBERS in files:
            width = (folder / NUMBERS).stat().st_size // names if names else 1
            self.numbers = read_column(folder / NUMBERS, f"<u{width}")
        self.parts_in = lru_cache(16)(self.read_parts)

    def read_parts(self, tags: frozenset[str]) -> NDArray[np.uint8]:
        """Return the role of names of each set (NAME, ALIAS or ABSENT) in some languages: (sets,)."""
        return np.array([spoken("", languages).part_in(tags) for languages in self.sets], dtype=np.uint8)

    def parts(self, rows: NDArray[Any], is_alias: NDArray[Any], tags: frozenset[str]) -> NDArray[np.uint8]:
        """Return the role of names in some languages: (rows,)."""
        if self.numbers is not None:
            parts: NDArray[np.uint8] = self.parts_in(tags)[self.numbers[rows]]
            return parts
        part = np.where(is_alias, ALIAS, NAME) if self.sets[0] in tags else np.zeros(len(rows))
        return part.astype(np.uint8)

    def spoken(self, row: int, text: str, *, is_alias: bool) -> SpokenName:
        """Return a name with its languages."""
        if self.numbers is not None:
            return spoken(text, self.sets[int(self.numbers[row])])
        return SpokenName(text, (), (self.sets[0],)) if is_alias else SpokenName(text, (self.sets[0],))
