"""The normaliser of names and questions, which decides which spellings are equal.

NFKC, case folding, marks removed, `&` read as `and`, split on punctuation, single spaces.
"""

import functools
import re
import unicodedata
from collections.abc import Sequence
from importlib.resources import files

NORMALISER_VERSION = 2
"""Stored in every manifest; a knowledge base refuses another version."""

_ASCII_WORDS = re.compile(r"[a-z0-9]+|&")
_ASCII_GAPS = re.compile(r"[^a-z0-9\n]+")

_LATIN = re.compile(
    r"LATIN (?:SMALL )?LETTER (?:SMALL CAPITAL |TURNED |REVERSED |OPEN |INSULAR )*([A-Z]{1,2})(?: WITH .+)?"
)
"""Unicode names of letters that Lucene's ASCIIFoldingFilter also folds: `ø` is O WITH STROKE, `ɛ` OPEN E, `æ` AE."""

_OTHER_LATIN = {"ð": "d", "þ": "th", "ŋ": "n", "ə": "a", "ĸ": "q", "ƿ": "w", "ȝ": "z", "ı": "i", "ȷ": "j"}
_SEMITIC = dict(zip("ىیکةەٱ", "ييكهها", strict=True)) | {"\u0640": "", "װ": "וו", "ױ": "וי", "ײ": "יי"}
"""Letters of Arabic and Hebrew with the same meaning; tatweel only stretches a word."""

_MARKS = frozenset("\u2122\u2120\u00ae")
"""Trademark and service mark signs, which compatibility forms would turn into letters."""

_FRACTION = "\u2044"
"""The slash in the compatibility form of `½`, which must not join the number before it."""

_LOOK_ALIKES = dict(zip("аеорсухкіјѕһԁ", "aeopcyxkijshd", strict=True)) | dict(
    zip("αεικορτχβζ", "aeikoptxbz", strict=True)
)
"""Cyrillic and Greek letters that look like Latin ones in both cases."""

_MIXED = _LOOK_ALIKES | dict(zip("мтвн", "mtbh", strict=True)) | dict(zip("μνυη", "mvun", strict=True))
"""Those, and letters that look alike in one case only, for words that also have Latin letters."""

_TO_CYRILLIC = {latin: letter for letter, latin in _MIXED.items() if letter >= "\u0400"}
_TO_GREEK = {latin: letter for letter, latin in _MIXED.items() if letter < "\u0400"}
# The look-behind avoids a search from every letter of a run without these scripts.
_OTHER_SCRIPT = re.compile(r"(?<![^\W\d_])[^\W\d_]*?[\u0370-\u04ff\u0500-\u052f][^\W\d_]*")
_APOSTROPHE_LETTERS = str.maketrans(dict.fromkeys("\u02bb\u02bc\u02be\u02bf", "'"))
"""Letters typed as an apostrophe, mapped to one: `Hawaiʻi`, `Qurʾan`."""

_LETTER_MARKS = frozenset({0, 7, 8, 9, 103, 118, 129, 130, 132})
"""Combining classes of marks that are part of the spelling: vowel signs, also of Thai, Lao and Tibetan, nukta,
virama."""

_TRADITIONAL, _SIMPLIFIED = files("kbtools.text").joinpath("simplified_characters.txt").read_text("utf-8").split()
_SIMPLER = str.maketrans(_TRADITIONAL, _SIMPLIFIED)
"""The simplified character of each traditional one, the most frequent of several (OpenCC)."""

_UNSEEN = ("Cf", "Cs", "Me")
"""Categories of characters without a spelling: joiners and directions, broken surrogates, enclosing marks."""

_SELECTORS = frozenset(map(chr, (0x34F, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Marks that only select a shape, such as the colour of an emoji."""


@functools.cache
def fold_character(character: str) -> str:
    """Return the folded form of a character, without case and accents: one, several or no characters."""
    if unicodedata.category(character) in _UNSEEN or character in _SELECTORS:
        return ""
    if character in _MARKS:
        return character
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    parts = unicodedata.normalize("NFKD", folded.translate(_APOSTROPHE_LETTERS))
    letters = "".join(map(_fold_letter, (part for part in parts if unicodedata.combining(part) in _LETTER_MARKS)))
    return f" {letters}" if _FRACTION in letters and letters != _FRACTION else letters


def _fold_letter(letter: str) -> str:
    """Return the folded form of a letter without a decomposition: strokes, hooks, ligatures, equivalent letters."""
    if letter.isascii():
        return letter
    if letter in _SEMITIC:
        return _SEMITIC[letter]
    if ord(letter) in _SIMPLER:
        return letter.translate(_SIMPLER)
    latin = _LATIN.fullmatch(unicodedata.name(letter, ""))
    return _OTHER_LATIN.get(letter) or (latin.group(1).lower() if latin else letter)


def _fold_look_alikes(match: re.Match[str]) -> str:
    """Return a word of mixed scripts in the script of most of its letters, if the others look like letters of it."""
    word = match.group()
    latin = "".join(_LOOK_ALIKES.get(letter, letter) for letter in word)
    if latin.isascii():
        return latin
    latin_letters = sum(letter.isascii() for letter in word)
    is_greek = any("\u0370" <= letter < "\u0400" for letter in word)
    table = _MIXED if 2 * latin_letters > len(word) else _TO_GREEK if is_greek else _TO_CYRILLIC
    spelt = "".join(table.get(letter, letter) for letter in word)
    return spelt if latin_letters and len({letter.isascii() for letter in spelt}) == 1 else word


@functools.cache
def is_word_character(folded: str) -> bool:
    """Return whether a folded character is part of a word: a letter, a digit or a mark of the spelling."""
    return any(unicodedata.category(part)[0] in "LNM" for part in folded)


def fold(text: str) -> str:
    """Return a text folded by character; punctuation and spaces stay."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFC", "".join(map(fold_character, text)))
    return _OTHER_SCRIPT.sub(_fold_look_alikes, folded)


def split_words(folded: str) -> list[str]:
    """Return the words of a folded text without punctuation; `&` is the word `and`."""
    if folded.isascii():
        words = _ASCII_WORDS.findall(folded)
        return ["and" if word == "&" else word for word in words] if "&" in folded else words
    spaced = "".join(part if is_word_character(part) else " and " if part == "&" else " " for part in folded)
    return spaced.split()


def normal_form(text: str) -> str:
    """Return the form under which a name is stored and looked up.

    It has single spaces between words; a text without words (`?`, `!!!`) keeps its punctuation, so only a text with no
    visible character has an empty form.
    """
    folded = fold(text)
    # A text without words is its punctuation without spaces.
    return " ".join(split_words(folded)) or "".join(folded.split())


def normal_forms(texts: Sequence[str]) -> list[str]:
    """Return the normal forms of texts, ten times as fast for ASCII texts as one by one."""
    plain = [text if text.isascii() else "" for text in texts]
    forms = _ASCII_GAPS.sub(" ", "\n".join(plain).lower().replace("&", " and ")).split("\n")
    if len(forms) != len(texts):  # a text contains a line break
        return list(map(normal_form, texts))
    return [form.strip() or normal_form(text) for form, text in zip(forms, texts, strict=True)]
