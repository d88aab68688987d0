"""A table with its title and notes, before it is Markdown or HTML."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table; the first `words` columns are text, the rest numbers."""

    title: str
    lead: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    notes: Sequence[str] = ()
