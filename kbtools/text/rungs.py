"""The rungs of links: how far words of a question are from the name they matched."""

import unicodedata
from enum import IntEnum

from kbtools.text.normaliser import fold


class Rung(IntEnum):
    """The way in which a mention matched a name; a lower rung is stricter."""

    EXACT = 1
    CASE = 2
    ACCENTS = 3
    PUNCTUATION = 4
    APOSTROPHE = 5
    VARIANT = 6
    FUZZY = 7
    NEAR = 8
    """By vectors, not by name."""

    label: str
    """The rung as results spell it."""

    def __init__(self, _: int) -> None:
        self.label = self.name.lower()


class Form(IntEnum):
    """The rewriting of a name that led to the form under which it is stored."""

    NORMAL = 0
    APOSTROPHE = 1
    ARTICLE = 2
    BRACKET = 3
    COMMA = 4
    ESCAPE = 5
    OTHERWISE = 6
    """Numbers, abbreviations, initials and codes in another spelling (`kbtools.text.variants`)."""

    SHORTENED = 7
    """The same without inner initials and articles."""

    @property
    def rung(self) -> Rung:
        """Return the strictest rung of a match with this form."""
        return _STRICTEST[self]


_STRICTEST = dict.fromkeys(Form, Rung.VARIANT) | {Form.NORMAL: Rung.EXACT, Form.APOSTROPHE: Rung.APOSTROPHE}


def compare(surface: str, name: str) -> Rung:
    """Return the rung of two spellings with the same normal form; `surface` is the question's words."""
    if surface == name:
        return Rung.EXACT
    if surface.isascii() and name.isascii():
        if surface.lower() == name.lower():  # the most common case, checked first for speed
            return Rung.CASE
    else:
        surface, name = unicodedata.normalize("NFC", surface), unicodedata.normalize("NFC", name)
    surface, name = " ".join(surface.split()), " ".join(name.split())
    if surface == name:
        return Rung.EXACT
    if surface.casefold() == name.casefold():
        return Rung.CASE
    if fold(surface) == fold(name):
        return Rung.ACCENTS
    return Rung.PUNCTUATION
