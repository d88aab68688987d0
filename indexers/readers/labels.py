"""Languages and ranks of names; separate from batches so that looking up names does not import Arrow."""

from functools import cache

ALIAS = 255
"""The rank of an alias. A name's rank is the position of its language in `--lang`, from 0; the lowest is shown."""

LAST_RANK = ALIAS - 1
"""The rank of a name in another language of its entity, used if no better one is known."""

DEFAULT_LANGUAGES = "en,mul"
"""English, then `mul`: Wikidata's label for all languages in which a name is spelt the same."""


class Languages(dict[str | None, int | None]):
    """The position of each language tag among the wanted languages, from 0; None if it is not wanted.

    A region counts as its language (`en-GB` as `en`), and a literal without a tag as the first language.
    """

    def __init__(self, tags: tuple[str, ...]) -> None:
        super().__init__()
        self.tags = tags
        """The languages in order of preference; an empty one stands for all languages not listed."""

    @classmethod
    @cache
    def read(cls, text: str) -> "Languages":
        """Read `en,mul,de`; `de,` prefers German to any other language, an empty text the default languages."""
        return cls(
            tuple(tag.strip().strip("*").lower() for tag in (text.strip() or f"{DEFAULT_LANGUAGES},").split(","))
        )

    def __missing__(self, tag: str | None) -> int | None:
        language = (tag or "").lower()
        wanted = (
            not tag or not listed or language == listed or language.startswith(listed + "-") for listed in self.tags
        )
        self[tag] = next((rank for rank, is_wanted in enumerate(wanted) if is_wanted), None)
        return self[tag]
