"""Languages and ranks of names, apart from batches: who looks names up needs no Arrow."""

import re
from dataclasses import dataclass
from functools import cache

ALIAS = 255
"""The rank of an alias. A name's is the place of its language in `--lang`, from 0: the lowest is the one shown."""

LAST_RANK = ALIAS - 1
"""The rank of a name in a later language of its entity, where no other is known."""

DEFAULT_LANGUAGES = "en,mul"
"""English, then `mul`: Wikidata's label for every language, where a name is spelt alike in most."""

KEY_NAMESPACE = "http://rdf.freebase.com/key/"
KEY_ESCAPE = re.compile(r"\$([0-9A-F]{4})")


@dataclass(frozen=True, slots=True)
class Languages:
    """Languages in order of preference; an empty one stands for all that are not listed."""

    tags: tuple[str, ...]

    @classmethod
    @cache
    def read(cls, text: str) -> "Languages":
        """Read `en,mul,de`; `de,` is German before any other, and nothing at all the default before any other."""
        return cls(
            tuple(tag.strip().strip("*").lower() for tag in (text.strip() or f"{DEFAULT_LANGUAGES},").split(","))
        )

    def rank(self, tag: str | None) -> int | None:
        """Return the place of a literal's language, from 0; None if it is not wanted.

        A region speaks its language (`en-GB` is `en`), and a literal without a tag is of the first.
        """
        if not tag:
            return 0
        tag = tag.lower()
        for rank, wanted in enumerate(self.tags):
            if not wanted or tag == wanted or tag.startswith(wanted + "-"):
                return rank
        return None


def decode_key(key: str) -> str:
    """Read a key of Freebase as a name: `Barry_O$0027Branagh` is Barry O'Branagh."""
    return KEY_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), key).replace("_", " ")
