"""Names with their languages: in which one an entity bears a text as its name, and in which as an alias."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

NO_NAME, NAME, ALIAS = 0, 1, 2
"""The parts that a text plays in some languages: none, a name, or an alias alone."""


class SpokenName(NamedTuple):
    """A name or an alias of an entity, with the tags of the languages in which it is either."""

    text: str
    name_in: tuple[str, ...] = ()
    alias_in: tuple[str, ...] = ()

    @property
    def languages(self) -> tuple[str, ...]:
        """Return all of its languages, in the order of their tags."""
        return tuple(sorted({*self.name_in, *self.alias_in}))

    @property
    def parts(self) -> dict[str, bool]:
        """Return its languages, each with whether it is an alias there."""
        return dict.fromkeys(self.name_in, False) | dict.fromkeys(self.alias_in, True)

    def part_in(self, tags: Collection[str]) -> int:
        """Return its part in some languages."""
        if any(tag in tags for tag in self.name_in):
            return NAME
        return ALIAS if any(tag in tags for tag in self.alias_in) else NO_NAME


def part_among(names: Iterable[SpokenName], text: str, tags: Collection[str]) -> int:
    """Return the part of a text in some languages among the names of an entity."""
    return next((name.part_in(tags) for name in names if name.text == text), NO_NAME)
