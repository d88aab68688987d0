"""Languages and ranks of names, apart from batches: who looks names up needs no Arrow."""

from functools import cache

ALIAS = 255
"""The rank of an alias. A name's is the place of its language in `--lang`, from 0: the lowest is the one shown."""

LAST_RANK = ALIAS - 1
"""The rank of a name in a later language of its entity, where no other is known."""

DEFAULT_LANGUAGES = "en,mul"
"""English, then `mul`: Wikidata's label for every language, where a name is spelt alike in most."""


class Languages(dict[str | None, int | None]):
    """The place of a literal's language among those asked for, from 0, by its tag; None if it is not wanted.

    A region speaks its language (`en-GB` is `en`), and a literal without a tag is of the first.
    """

    def __init__(self, tags: tuple[str, ...]) -> None:
        super().__init__()
        self.tags = tags
        """The languages in order of preference; an empty one stands for all that are not listed."""

    @classmethod
    @cache
    def read(cls, text: str) -> "Languages":
        """Read `en,mul,de`; `de,` is German before any other, and nothing at all the default before any other."""
        return cls(
            tuple(tag.strip().strip("*").lower() for tag in (text.strip() or f"{DEFAULT_LANGUAGES},").split(","))
        )

    def __missing__(self, tag: str | None) -> int | None:
        spoken = (tag or "").lower()
        wanted = (not tag or not own or spoken == own or spoken.startswith(own + "-") for own in self.tags)
        self[tag] = next((rank for rank, is_wanted in enumerate(wanted) if is_wanted), None)
        return self[tag]

    def rank(self, tag: str | None) -> int | None:
        """Return the place of a tag, found once for all literals that have it."""
        return self[tag]
