"""The one normaliser, for names and questions alike: it decides which spellings are the same.

NFKC, case fold, marks stripped, `&` read as `and`, split on punctuation, single spaces (design, section 4).
"""

import functools
import re
import unicodedata

NORMALISER_VERSION = 1
"""Goes into every manifest: a knowledge base refuses a normaliser that it was not built with."""

ASCII_WORDS = re.compile(r"[a-z0-9]+|&")
STROKED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
APOSTROPHE_LETTERS = str.maketrans(dict.fromkeys("\u02bb\u02bc\u02be\u02bf", "'"))
"""Letters that are typed for an apostrophe, and an apostrophe for them: `Hawaiʻi`, `Qurʾan`."""

LETTER_MARKS = frozenset({0, 7, 8, 9})
"""Combining classes of marks that are no accents: vowel signs, nukta, kana voicing, virama."""

UNSEEN = ("Cf", "Cs", "Me")
"""Categories of what is no part of a spelling: joiners and directions, broken surrogates, enclosing marks."""

SELECTORS = frozenset(map(chr, (0x34F, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Marks that only choose a shape, such as the colour of an emoji."""


@functools.cache
def fold_character(character: str) -> str:
    """Fold one character: compatibility form, case, accents; a letter may become several, what is unseen none."""
    if unicodedata.category(character) in UNSEEN or character in SELECTORS:
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    parts = unicodedata.normalize("NFKD", folded.translate(APOSTROPHE_LETTERS))
    return "".join(part for part in parts if unicodedata.combining(part) in LETTER_MARKS).translate(STROKED)


@functools.cache
def is_word_character(folded: str) -> bool:
    """Tell whether a folded character belongs to a word: letters, digits and the marks that spell."""
    return any(unicodedata.category(part)[0] in "LNM" for part in folded)


def fold(text: str) -> str:
    """Fold a text character by character; punctuation and spaces stay."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", "".join(map(fold_character, text)))


def split_words(folded: str) -> list[str]:
    """Split a folded text into its words; punctuation falls away, `&` is the word `and`."""
    if folded.isascii():
        words = ASCII_WORDS.findall(folded)
        return ["and" if word == "&" else word for word in words] if "&" in folded else words
    spaced = "".join(part if is_word_character(part) else " and " if part == "&" else " " for part in folded)
    return spaced.split()


def punctuation_form(folded: str) -> str:
    """Keep what a text without a word is made of: its marks, without spaces."""
    return "".join(folded.split())


def normal_form(text: str) -> str:
    """Give the form under which a name is stored and looked up.

    Words joined by single spaces; a text without any word (`?`, `!!!`) keeps its punctuation instead, so
    that only a text with nothing to see has an empty normal form.
    """
    folded = fold(text)
    return " ".join(split_words(folded)) or punctuation_form(folded)
