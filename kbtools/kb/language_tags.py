"""Languages by their tags (BCP 47): the names that a requested language covers, and whether a text is a name or an
alias of an entity in it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kbtools.errors import UnknownLanguage

MUL, UND = "mul", "und"
"""The tag of names in every language, and of names without a language."""

_TAG = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")

_NO_NAME, NAME, ALIAS = 0, 1, 2
"""The roles of a text in some languages: neither, a name, or only an alias."""


def read_languages(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the tags in a text such as `de,en`, preferred first; raise UnknownLanguage if no name has one of them."""
    tags = tuple(dict.fromkeys(tag.strip().lower().replace("_", "-") for tag in text.split(",") if tag.strip()))
    present = sorted(set(known) - {UND})
    if not present:
        raise UnknownLanguage(
            f"{text!r} was requested, but no name has a language; index again from sources with languages, and "
            "reload clusters loaded by an earlier kbtools",
            language=text,
        )
    for tag in tags or (text,):
        if not _TAG.fullmatch(tag) or not tags_for(tag, present):
            raise UnknownLanguage(f"no name is in the language {tag!r}; there are {listed(present)}", language=tag)
    return tags


def listed(tags: Sequence[str], most: int = 20) -> str:
    """Return tags as text, only the first if there are many."""
    more = f" and {len(tags) - most:,} more" if len(tags) > most else ""
    return ", ".join(tags[:most]) + more


def tags_for(wanted: str, known: Collection[str]) -> list[str]:
    """Return the known tags that cover a language, nearest first: itself, less specific tags, its regions.

    The lookup of RFC 4647 accepts `de` for `de-AT`, its basic filtering `de-AT` for `de`.
    """
    near = [tag for tag in known if wanted == tag or wanted.startswith(f"{tag}-")]
    regions = [tag for tag in known if tag.startswith(f"{wanted}-")]
    return sorted(near, key=len, reverse=True) + sorted(regions)


def accepted_tags(languages: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the known tags that some languages cover, preferred first.

    Names in every language and names without a language come last.
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
        """Return all of its languages, sorted."""
        return tuple(sorted({*self.name_in, *self.alias_in}))

    @property
    def parts(self) -> dict[str, bool]:
        """Return whether it is an alias, by language."""
        return dict.fromkeys(self.name_in, False) | dict.fromkeys(self.alias_in, True)

    def part_in(self, tags: Collection[str]) -> int:
        """Return its role in some languages."""
        if any(tag in tags for tag in self.name_in):
            return NAME
        return ALIAS if any(tag in tags for tag in self.alias_in) else _NO_NAME


def part_among(names: Iterable[SpokenName], text: str, tags: Collection[str]) -> int:
    """Return the role of a text among the names of an entity in some languages."""
    return next((name.part_in(tags) for name in names if name.text == text), _NO_NAME)


_UNIT, _RECORD = "\x1f", "\x1e"
"""The separators between a tag and its text, and between languages, in stored texts."""


class SpokenText(str):
    """A text in several languages: the string is in the first of them, `by_tag` has all."""

    by_tag: Mapping[str, str]

    @classmethod
    def of(cls, by_tag: Mapping[str, str]) -> "SpokenText":
        """Return texts by tag, with the default language first."""
        text = cls(next(iter(by_tag.values())))
        text.by_tag = dict(by_tag)
        return text


def read_text(stored: str | None) -> str | None:
    """Return a text that `stored_text` wrote, None for an empty one."""
    if not stored or _UNIT not in stored:
        return stored or None
    return SpokenText.of(dict(part.split(_UNIT, 1) for part in stored.split(_RECORD)))


def stored_text(text: str | None) -> str:
    """Return a text with its languages in stored form, empty for None."""
    if not isinstance(text, SpokenText):
        return text or ""
    return _RECORD.join(f"{tag}{_UNIT}{spoken}" for tag, spoken in text.by_tag.items())


def spoken_texts(text: str) -> Collection[str]:
    """Return a text in all of its languages."""
    return text.by_tag.values() if isinstance(text, SpokenText) else [text]


def text_in(text: str | None, tags: Iterable[str]) -> str | None:
    """Return a text in the first of some languages that it has, or else in its default one."""
    if not isinstance(text, SpokenText):
        return text
    return next((text.by_tag[tag] for tag in tags if tag in text.by_tag), str(text))


def with_text(text: str | None, tag: str, new: str, *, usual: str) -> str:
    """Return a text with a new one in a language, or in all languages without a tag.

    A text without languages is in the default language of its knowledge base.
    """
    if not tag or (tag == usual and not isinstance(text, SpokenText)):
        return new
    before = text.by_tag if isinstance(text, SpokenText) else {usual: text} if text else {}
    return SpokenText.of({**before, tag: new})


def usual_language(languages: Iterable[str]) -> str:
    """Return the default language, the first among those of names, empty if there is none."""
    return next((tag for tag in languages if tag != UND), "")
