"""The one normaliser, for names and questions alike: it decides which spellings are the same.

NFKC, case fold, marks stripped, `&` read as `and`, split on punctuation, single spaces.
"""

import functools
import re
import unicodedata
from collections.abc import Sequence
from importlib.resources import files

NORMALISER_VERSION = 2
"""Goes into every manifest: a knowledge base refuses a normaliser that it was not built with."""

_ASCII_WORDS = re.compile(r"[a-z0-9]+|&")
_ASCII_GAPS = re.compile(r"[^a-z0-9\n]+")

_LATIN = re.compile(
    r"LATIN (?:SMALL )?LETTER (?:SMALL CAPITAL |TURNED |REVERSED |OPEN |INSULAR )*([A-Z]{1,2})(?: WITH .+)?"
)
"""Names of the letters that Lucene's ASCIIFoldingFilter folds too: `ø` is O WITH STROKE, `ɛ` is OPEN E, `æ` is AE."""

_OTHER_LATIN = {"ð": "d", "þ": "th", "ŋ": "n", "ə": "a", "ĸ": "q", "ƿ": "w", "ȝ": "z", "ı": "i", "ȷ": "j"}
_SEMITIC = dict(zip("ىیکةەٱ", "ييكهها", strict=True)) | {"\u0640": "", "װ": "וו", "ױ": "וי", "ײ": "יי"}
"""Letters of Arabic and Hebrew that stand for each other; tatweel only stretches a word."""

_MARKS = frozenset("\u2122\u2120\u00ae")
"""Signs of a trademark or service mark, which are no letters though compatibility makes letters of them."""

_FRACTION = "\u2044"
"""The slash that compatibility makes of `½`, 1 and 2, which are no part of the number before them."""

_LOOK_ALIKES = dict(zip("аеорсухкіјѕһԁ", "aeopcyxkijshd", strict=True)) | dict(
    zip("αεικορτχβζ", "aeikoptxbz", strict=True)
)
"""Letters of Cyrillic and Greek that look like Latin ones, in both cases."""

_MIXED = _LOOK_ALIKES | dict(zip("мтвн", "mtbh", strict=True)) | dict(zip("μνυη", "mvun", strict=True))
"""The same and those that look alike in one case, which a word that has Latin letters too is written with."""

_TO_CYRILLIC = {latin: letter for letter, latin in _MIXED.items() if letter >= "\u0400"}
# The look behind: else each letter of a run that has none of these scripts would begin a search of the rest of it.
_OTHER_SCRIPT = re.compile(r"(?<![^\W\d_])[^\W\d_]*?[\u0370-\u04ff\u0500-\u052f][^\W\d_]*")
_APOSTROPHE_LETTERS = str.maketrans(dict.fromkeys("\u02bb\u02bc\u02be\u02bf", "'"))
"""Letters that are typed for an apostrophe, and an apostrophe for them: `Hawaiʻi`, `Qurʾan`."""

_LETTER_MARKS = frozenset({0, 7, 8, 9, 103, 118, 129, 130, 132})
"""Combining classes of marks that are no accents: vowel signs, those of Thai, Lao and Tibetan too, nukta, virama."""

_TRADITIONAL, _SIMPLIFIED = files("kbtools.text").joinpath("simplified_characters.txt").read_text("utf-8").split()
_SIMPLER = str.maketrans(_TRADITIONAL, _SIMPLIFIED)
"""The simplified character of each traditional one, of the commonest if there are several (OpenCC)."""

_UNSEEN = ("Cf", "Cs", "Me")
"""Categories of what is no part of a spelling: joiners and directions, broken surrogates, enclosing marks."""

_SELECTORS = frozenset(map(chr, (0x34F, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Marks that only choose a shape, such as the colour of an emoji."""


@functools.cache
def fold_character(character: str) -> str:
    """Fold one character: compatibility form, case, accents; a letter may become several, what is unseen none."""
    if unicodedata.category(character) in _UNSEEN or character in _SELECTORS:
        return ""
    if character in _MARKS:
        return character
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    parts = unicodedata.normalize("NFKD", folded.translate(_APOSTROPHE_LETTERS))
    letters = "".join(map(_fold_letter, (part for part in parts if unicodedata.combining(part) in _LETTER_MARKS)))
    return f" {letters}" if _FRACTION in letters and letters != _FRACTION else letters


def _fold_letter(letter: str) -> str:
    """Fold a letter that no decomposition folds: strokes, hooks and ligatures, letters that stand for each other."""
    if letter.isascii():
        return letter
    if letter in _SEMITIC:
        return _SEMITIC[letter]
    if ord(letter) in _SIMPLER:
        return letter.translate(_SIMPLER)
    latin = _LATIN.fullmatch(unicodedata.name(letter, ""))
    return _OTHER_LATIN.get(letter) or (latin.group(1).lower() if latin else letter)


def _fold_look_alikes(match: re.Match[str]) -> str:
    """Write a word in one script, the one that most of its letters are of, if the others look like letters of it."""
    word = match.group()
    latin = "".join(_LOOK_ALIKES.get(letter, letter) for letter in word)
    if latin.isascii():
        return latin
    own = sum(letter.isascii() for letter in word)
    table = _MIXED if 2 * own > len(word) else _TO_CYRILLIC
    spelt = "".join(table.get(letter, letter) for letter in word)
    return spelt if own and len({letter.isascii() for letter in spelt}) == 1 else word


@functools.cache
def is_word_character(folded: str) -> bool:
    """Return whether a folded character belongs to a word: letters, digits and the marks that spell."""
    return any(unicodedata.category(part)[0] in "LNM" for part in folded)


def fold(text: str) -> str:
    """Fold a text character by character; punctuation and spaces stay."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFC", "".join(map(fold_character, text)))
    return _OTHER_SCRIPT.sub(_fold_look_alikes, folded)


def split_words(folded: str) -> list[str]:
    """Split a folded text into its words; punctuation falls away, `&` is the word `and`."""
    if folded.isascii():
        words = _ASCII_WORDS.findall(folded)
        return ["and" if word == "&" else word for word in words] if "&" in folded else words
    spaced = "".join(part if is_word_character(part) else " and " if part == "&" else " " for part in folded)
    return spaced.split()


def normal_form(text: str) -> str:
    """Return the form under which a name is stored and looked up.

    Words joined by single spaces; a text without any word (`?`, `!!!`) keeps its punctuation instead, so
    that only a text with nothing to see has an empty normal form.
    """
    folded = fold(text)
    # A text without a word is its marks, without spaces.
    return " ".join(split_words(folded)) or "".join(folded.split())


def normal_forms(texts: Sequence[str]) -> list[str]:
    """Return the normal forms of texts, ten times as fast as one by one if they are ASCII, as most names are."""
    plain = [text if text.isascii() else "" for text in texts]
    forms = _ASCII_GAPS.sub(" ", "\n".join(plain).lower().replace("&", " and ")).split("\n")
    if len(forms) != len(texts):  # one has lines of its own
        return list(map(normal_form, texts))
    return [form.strip() or normal_form(text) for form, text in zip(forms, texts, strict=True)]
