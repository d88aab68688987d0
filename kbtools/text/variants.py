"""Variants of names: one key for `Iron Kite II`, `iron kite 2` and `iron kite two`, and all forms under which a name is
stored."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from kbtools.text.function_words import STOP_WORDS
from kbtools.text.normaliser import fold, normal_form, split_words
from kbtools.text.question import UNSPACED
from kbtools.text.rewritings import ENTITY, REWRITABLE, part_company, respelt, rewritings
from kbtools.text.rungs import Form

_SHORT = {
    "avenue": "ave", "boulevard": "blvd", "doctor": "dr", "fort": "ft", "junior": "jr", "mister": "mr", "mount": "mt",
    "number": "no", "part": "pt", "road": "rd", "saint": "st", "senior": "sr", "street": "st", "versus": "vs",
    "volume": "vol", "brothers": "bros",
}  # fmt: skip
"""Words and their abbreviations; users add others with `kbtools index --variants`."""

CONJUNCTIONS = frozenset({"and", "n"})
"""Words dropped between others; `&` is read as `and`, and `+` is not a word."""

_UNITS = dict(zip("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                 "sixteen seventeen eighteen nineteen".split(), range(20), strict=True))  # fmt: skip
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
_IRREGULAR = {
    "first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12,
}  # fmt: skip
_ORDINALS = (
    _IRREGULAR
    | {f"{word}th": value for word, value in _UNITS.items() if value not in _IRREGULAR.values()}
    | {f"{word[:-1]}ieth": value for word, value in _TENS.items()}
)
_ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})")
_COUNTED = re.compile(r"(\d+)(?:st|nd|rd|th)")

_MOST_LETTERS = 3
"""The most letters of a word in a code, as in `GDC-0941`, `IL-2` and `AT&T`."""

_LONG_NUMBER = 8
"""Fewest digits of a number that may be split anywhere, such as an ISBN; `8 1 2` is not 812."""

_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
"""Numbers that never form a code with the word beside them."""

SPECIAL = frozenset(_SHORT) | CONJUNCTIONS | _UNITS.keys() | _TENS.keys() | _ORDINALS.keys() | {"hundred", "v"}

_WORDS_REMEMBERED = 100_000
"""Words whose rewriting is cached; limited, since numbers and misspelt words are unlimited."""

_PLAIN = frozenset("ast")
"""Single letters in most questions, an article and endings after an apostrophe; alone they are not initials."""

ARTICLE = re.compile(r"(?:the|an?) (?=.)")
JOINED = re.compile("[-/]")


@lru_cache(_WORDS_REMEMBERED)
def roman_value(word: str) -> int:
    """Return the value of a Roman numeral up to 39, 0 for any other word."""
    match = _ROMAN.fullmatch(word)
    if not match or not word:
        return 0
    ones = {"ix": 9, "iv": 4}.get(match.group(2), match.group(2).count("i") + 5 * match.group(2).count("v"))
    return 10 * len(match.group(1)) + ones


@lru_cache(_WORDS_REMEMBERED)
def is_special(word: str) -> bool:
    """Return whether a rule may rewrite a word."""
    if word in _PLAIN:
        return False
    return (
        word in SPECIAL or len(word) == 1 or not word.isalpha() or roman_value(word) > 0 or bool(UNSPACED.search(word))
    )


def variant_forms(words: Sequence[str], joins: Sequence[bool], *, articles: bool = False) -> Iterator[tuple[str, Form]]:
    """Yield the variants of words, besides their normal form, for storage and look-up.

    `joins` is whether each word follows the one before without a space. The shortened form has no inner initials, and
    with `articles` no inner articles.
    """
    spelt, joined = _abbreviated(words, joins)
    whole = " ".join(_as_codes(spelt, joined))
    whole = whole if whole.isascii() else normal_form(whole)  # ASCII is in normal form already
    normal = " ".join(words)
    if whole != normal:
        yield whole, Form.OTHERWISE
    if len(spelt) > 2 and len(spelt[0]) > 1 and len(spelt[-1]) > 1:
        light = {"the", "an"} if articles else set()
        kept = [
            word
            for place, word in enumerate(spelt)
            if not 0 < place < len(spelt) - 1
            or joined[place]
            or not (word in light or (len(word) == 1 and word.isalpha() and (articles or word not in "ai")))
        ]
        fewer = " ".join(kept)
        if len(kept) < len(spelt) and fewer != whole:
            yield fewer, Form.SHORTENED


def _abbreviated(words: Sequence[str], joins: Sequence[bool]) -> tuple[list[str], list[bool]]:
    """Return words with numbers as digits, abbreviations, and no conjunctions; a single word is unchanged."""
    spelt: list[str] = []
    joined: list[bool] = []
    place, last = 0, len(words) - 1
    while place <= last:
        word, length = words[place], 1
        inner = 0 < place < last
        if inner and word in CONJUNCTIONS:
            place += 1
            continue
        if inner and word == "the" and words[place + 1] in _ORDINALS:
            place += 1
            continue
        if last > 0 and not (joins[place] and len(word) == 1):
            number, length = _number_at(words, place)
            if number is not None:
                word = str(number)
            elif inner and word == "v":
                word = "vs"
            else:
                word = _SHORT.get(word, word)
        spelt.append(word)
        joined.append(joins[place])
        place += length
    return spelt, joined


def _number_at(words: Sequence[str], place: int) -> tuple[int | None, int]:
    """Return the number at a place, spelt, ordinal or Roman, None if there is none, and its number of words."""
    word = words[place]
    following = words[place + 1] if place + 1 < len(words) else ""
    if word in _TENS:
        units = _UNITS.get(following) or _ORDINALS.get(following) or 0
        return (_TENS[word] + units, 2) if 0 < units < 10 else (_TENS[word], 1)
    if word in _UNITS and following == "hundred":
        rest = place + 2 + (words[place + 2 : place + 3] == ["and"])
        more, length = _number_at(words, rest) if rest < len(words) and words[rest] in _UNITS | _TENS else (None, 0)
        return 100 * _UNITS[word] + (more or 0), rest - place + length if more else 2
    if word in _UNITS or word in _ORDINALS:
        return _UNITS.get(word, _ORDINALS.get(word)), 1
    counted = _COUNTED.fullmatch(word)
    if counted:
        return int(counted.group(1)), 1
    if len(word) > 1 or (place == len(words) - 1 and place > 0 and words[place - 1].isalpha()):
        return roman_value(word) or None, 1
    return None, 1


def _as_codes(words: Sequence[str], joins: Sequence[bool]) -> list[str]:
    """Return words with initials and parts of codes joined: `dk harrow` for `d k harrow`, `gdc0941` for `gdc 0941`."""
    runs: list[list[str]] = []
    thousands: list[bool] = []
    for word, join in zip(words, joins, strict=True):
        if runs and _are_one_code(runs[-1][-1], word, join=join):
            runs[-1].append(word)
            thousands[-1] = thousands[-1] and join and len(word) == 3
        else:
            runs.append([word])
            thousands.append(len(word) <= 3)
    parts: list[str] = []
    for run, is_grouped in zip(runs, thousands, strict=True):
        code = "".join(run)
        is_number = all(word.isdigit() for word in run)
        parts += [code] if not is_number or is_grouped or len(code) >= _LONG_NUMBER else run
    return parts


def _are_one_code(before: str, word: str, *, join: bool) -> bool:
    """Return whether two adjacent words are parts of one code: initials, numbers, or short and joined.

    Adjacent words of scripts without spaces also are: `スター・ウォーズ` is `スターウォーズ`.
    """
    if len(before) == len(word) == 1 and before.isalpha() and word.isalpha():
        return True
    if UNSPACED.match(before[-1]) and UNSPACED.match(word[0]):
        return True
    if before[-1].isdigit() and word[0].isdigit():
        return True
    if not (_is_short(before) and _is_short(word)):
        return False
    if join:
        return True
    numbered = before[-1].isdigit() or word[0].isdigit()
    return numbered and not any(_YEAR.fullmatch(part) or part in STOP_WORDS for part in (before, word))


@lru_cache(100_000)
def _is_short(word: str) -> bool:
    return len(word) <= _MOST_LETTERS or any(character.isdigit() for character in word)


def core_form(name: str) -> str:
    """Return the distinctive words of a name: numbers and codes as digits, without a legal form."""
    spelt = " ".join(_as_codes(*_abbreviated(*words_of(name))))
    return part_company(spelt)[0]


def name_forms(name: str) -> dict[str, Form]:
    """Return the forms of a name, each with the least rewriting that makes it; empty for a blank name."""
    normal = normal_form(name)
    if not normal:
        return {}
    forms = {normal: Form.NORMAL}
    rewritten = rewritings(name) if REWRITABLE.search(name) else []
    for text, form in rewritten:
        key = normal_form(text)
        if key:
            forms.setdefault(key, form)
    if any(map(is_special, normal.split(" "))) or " the " in normal or JOINED.search(name):
        for text in dict.fromkeys((name, *(text for text, _ in rewritten))):
            if ENTITY.search(text):
                continue
            for key, form in variant_forms(*words_of(text), articles=True):
                forms.setdefault(key, form)
    for key, own_form in tuple(forms.items()):
        if own_form in (Form.NORMAL, Form.OTHERWISE):
            for text, form in respelt(key):
                forms.setdefault(text, form)
    for key, form in tuple(forms.items()):
        article = ARTICLE.match(key)
        if article:
            forms.setdefault(key[article.end() :], form if form in (Form.OTHERWISE, Form.SHORTENED) else Form.ARTICLE)
    return forms


def words_of(text: str) -> tuple[list[str], list[bool]]:
    """Return the words of a text, and whether each follows the one before without a space."""
    chunks = [split_words(chunk) for chunk in fold(text).split()]
    return [word for chunk in chunks for word in chunk], [place > 0 for chunk in chunks for place in range(len(chunk))]
