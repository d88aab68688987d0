"""Names as RDF and the release spell them: literals with a language, of which the preferred ones are kept."""

import re
from dataclasses import dataclass
from functools import cache

from kbtools.indexers.readers.batches import Rows, flaw
from kbtools.indexers.readers.skips import Skips

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
        """Give the place of a literal's language, from 0; nothing if it is not wanted.

        A region speaks its language (`en-GB` is `en`), and a literal without a tag is of the first.
        """
        if not tag:
            return 0
        tag = tag.lower()
        for rank, wanted in enumerate(self.tags):
            if not wanted or tag == wanted or tag.startswith(wanted + "-"):
                return rank
        return None


def keep_description(entity: str, rank: int, text: str, number: int, rows: Rows, skips: Skips) -> None:
    """Keep a description."""
    if fault := flaw(entity, text):
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.descriptions.append((entity, rank, text))


def keep_name(entity: str, rank: int, text: str, language: str | None, number: int, rows: Rows, skips: Skips) -> None:
    """Keep a name that has something to say."""
    fault = flaw(entity, text) or ("" if text.strip() else "an empty name")
    if fault:
        skips.add(fault, line=number, text=f"{entity} {text}")
    else:
        rows.names.append((entity, rank, text, (language or "").lower()))


def decode_key(key: str) -> str:
    """Read a key of Freebase as a name: `Barry_O$0027Branagh` is Barry O'Branagh."""
    return KEY_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), key).replace("_", " ")
