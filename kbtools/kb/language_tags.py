"""Languages by their tags (BCP 47): which names of a knowledge base are meant where a language is asked for."""

import re
from collections.abc import Iterable, Sequence

from kbtools.errors import UnknownLanguage

MUL, UND = "mul", "und"
"""The tag of a name for every language, and that of a name without a language."""

TAG = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")


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
