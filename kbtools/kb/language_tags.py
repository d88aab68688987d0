"""Languages by their tags (BCP 47): which names of a knowledge base are meant where a language is asked for,
and in which an entity bears a text as its name or as an alias."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from kbtools.errors import UnknownLanguage

MUL, UND = "mul", "und"
"""The tag of a name for every language, and that of a name without a language."""

TAG = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")

NO_NAME, NAME, ALIAS = 0, 1, 2
"""The parts that a text plays in some languages: none, a name, or an alias alone."""


def read_languages(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Read `de,en` into tags, the preferred first; raise UnknownLanguage for one that no name is in."""
    tags = tuple(dict.fromkeys(tag.strip().lower().replace("_", "-") for tag in text.split(",") if tag.strip()))
    present = sorted(set(known) - {UND})
    if not present:
        raise UnknownLanguage(
            f"{text!r} was asked for, and no name here has a language; index again from sources that say languages, "
            "and load again what an earlier kbtools loaded into a cluster",
            language=text,
        )
    for tag in tags or (text,):
        if not TAG.fullmatch(tag) or not tags_for(tag, present):
            raise UnknownLanguage(f"no name is in the language {tag!r}; there are {listed(present)}", language=tag)
    return tags


def listed(tags: Sequence[str], most: int = 20) -> str:
    """List tags, the first of many."""
    more = f" and {len(tags) - most:,} more" if len(tags) > most else ""
    return ", ".join(tags[:most]) + more


def tags_for(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the tags that cover a language, the nearest first: itself, what it is a region of, its regions.

    The lookup of RFC 4647 takes `de` for `de-AT`, its basic filtering `de-AT` for `de`.
    """
    near = [tag for tag in known if wanted == tag or wanted.startswith(f"{tag}-")]
    regions = [tag for tag in known if tag.startswith(f"{wanted}-")]
    return sorted(near, key=len, reverse=True) + sorted(regions)


def accepted_tags(languages: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of the names that some languages cover, the preferred first.

    Names for every language, and those without one, come last.
    """
    known = tuple(known)
    wanted = [tag for language in languages for tag in tags_for(language, known)]
    return tuple(dict.fromkeys([*wanted, *(tag for tag in (MUL, UND) if tag in known)]))


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
