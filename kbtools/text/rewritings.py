"""Other spellings of a whole name: without its bracket, inverted at its comma, or from catalogues and registers."""

import html
import re
import unicodedata
from collections.abc import Iterator

from kbtools.text.function_words import has_content
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Form

_APOSTROPHES = r"'\u2018\u2019\u02bb\u02bc\u02be\u02bf\u00b4`"
APOSTROPHE = re.compile(rf"(?<=\w)\s?[{_APOSTROPHES}](?=\w)")
_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]\s*$")
# Latin-1, Latin Extended, Vietnamese letters and dashes, before which FBSQ's names lost a `\u`.
_HEXADECIMAL = r"(?:0[0-9a-f]{3}|1e[0-9a-f]{2}|20[0-9a-f]{2})"
_LOST_ESCAPE = re.compile(rf"(?<=[^\W\d_]){_HEXADECIMAL}|{_HEXADECIMAL}(?=[^\W\d_])", re.IGNORECASE)
ENTITY = re.compile(r"&#?\w+;")

# Headings of catalogues: `[sound recording]`, `Twall, Mark, 1835-1910`, `Dorn. Ministry of Fish`, ` / by Ada`.
_MEDIUM = re.compile(r" \[[^\[\]]+\](?= )")
_YEARS = re.compile(
    r", (?:(?:ca|fl|b|d|born|died|active)\.? \d{4}\??|\d{4}\??(?= ?[-\u2013]))"
    r"(?: ?[-\u2013] ?(?:(?:ca|d)\.? )?(?:\d{4}\??)?)?\.?$"
)
_AUTHORITY = re.compile(r"^[^\W\d_][^.,/]*[^\W\d_]{3}\. (?=[^\W\d_]\w* )")
_RESPONSIBILITY = re.compile(r" / .*$")
_SUBTITLE = re.compile(r" : .*$")

_THOUSANDS = re.compile(r"\d,\d{3}(?!\d)")

_GREEK = re.compile(r"(?<![\u0370-\u03ff\u1f00-\u1fff])[\u0391-\u03c9](?![\u0370-\u03ff\u1f00-\u1fff])")
"""A single Greek letter, as in `TGF-β`."""

_SIGN = re.compile(r"(?<=[^\W\d_])[!$@](?=[^\W\d_])|\+(?=[\s\d+]|$)")
_SPELT_SIGNS = {"!": "i", "$": "s", "@": "a", "+": " plus "}
"""Signs read as letters or a word: `P!nk`, `A$AP`, `+44`."""

REWRITABLE = re.compile(
    rf"[{_APOSTROPHES}(\[,]|&#?\w+;|[01][0-9a-fA-F]{{3}}|20[0-9a-fA-F]{{2}}| [:/] |\w{{4}}\. \w|"
    rf"{_SIGN.pattern}|{_GREEK.pattern}"
)

_LEGAL_FORMS = {
    "corporation": "corp", "incorporated": "inc", "company": "co", "limited": "ltd", "limited company": "ltd",
    "limited liability company": "llc", "public limited company": "plc", "limited partnership": "lp",
    "gesellschaft mit beschrankter haftung": "gmbh", "aktiengesellschaft": "ag", "kommanditgesellschaft": "kg",
    "societe anonyme": "sa", "sociedad anonima": "sa", "societa per azioni": "spa", "aktiebolag": "ab",
    "societa a responsabilita limitata": "srl", "societe a responsabilite limitee": "sarl", "osakeyhtio": "oy",
    "naamloze vennootschap": "nv", "besloten vennootschap": "bv", "sociedade anonima": "sa",
}  # fmt: skip
"""Legal forms of companies in normal form, and their abbreviations."""

_AMBIGUOUS = frozenset("ab ag as co company kg limited lp pt sa se sia".split())
"""Legal forms that also end other names, `Bad Company`; they are dropped only after two or more words."""

_ABBREVIATED = _AMBIGUOUS.union(
    _LEGAL_FORMS.values(),
    """aps asa bhd doo ood eood gbr jsc kft kgaa llp mbh oao ohg ojsc ooo oyj pao pte pty sarl sas sasu tbk zao
    zrt""".split(),
)
LEADING = re.compile(r"^(pt|ooo|oao|zao|pao|sia) (?=\w+ )")
_LEGAL = re.compile(rf" ({'|'.join(sorted({*_LEGAL_FORMS, *_ABBREVIATED}, key=len, reverse=True))})$")
LEGAL_WORDS = frozenset(form.rsplit(" ", 1)[-1] for form in {*_LEGAL_FORMS, *_ABBREVIATED})
"""The last words of legal forms."""

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS)
_DAY = r"\d\d?(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?P<month>{_MONTH}) (?P<day>{_DAY})(?: (?P<year>\d{{4}}))?|"
    rf"(?P<before>{_DAY}) (?:of )?(?P<after>{_MONTH})(?: (?P<last>\d{{4}}))?|"
    r"(?P<first>\d{4}) (?P<number>0[1-9]|1[0-2]) (?P<end>\d\d)"
)


def join_apostrophes(text: str) -> str:
    """Return a text without apostrophes inside words: `Nadirs` for `Nadir's` and `nadir 's`."""
    return APOSTROPHE.sub("", text)


def rewritings(name: str) -> list[tuple[str, Form]]:
    """Return the applicable rewritings of a name, strictest first."""
    rewritten = [(join_apostrophes(name), Form.APOSTROPHE)]
    bracket = _BRACKET.search(name)
    if bracket:
        bare = name[: bracket.start()]
        rewritten += [(bare, Form.BRACKET), (join_apostrophes(bare), Form.BRACKET)]
    bare = bare if bracket else name
    heading = _YEARS.sub("", _MEDIUM.sub("", bare))
    if _RESPONSIBILITY.search(heading) and _SUBTITLE.search(heading):
        rewritten.append((heading := _RESPONSIBILITY.sub("", heading), Form.BRACKET))
    rewritten += [(text, Form.COMMA) for text in _turned(heading)]
    if heading != bare:
        rewritten.append((heading, Form.BRACKET))
    if _AUTHORITY.search(heading):
        rewritten.append((_AUTHORITY.sub("", heading), Form.BRACKET))
    decoded = _LOST_ESCAPE.sub(_decode_escape, html.unescape(name) if ENTITY.search(name) else name)
    if decoded != name:
        rewritten.append((decoded, Form.ESCAPE))
    spelt = _GREEK.sub(_spell_letter, _SIGN.sub(lambda sign: _SPELT_SIGNS[sign.group()], name))
    if spelt != name:
        rewritten.append((spelt, Form.OTHERWISE))
    return rewritten


def title_of(name: str) -> str:
    """Return a catalogue's title in normal form, without medium, edition, subtitle and authors."""
    return normal_form(_SUBTITLE.sub("", _RESPONSIBILITY.sub("", _MEDIUM.sub("", _BRACKET.sub("", name)))))


def _turned(name: str) -> list[str]:
    """Return a name inverted at its only comma, and its last part alone."""
    if name.count(",") != 1 or _THOUSANDS.search(name):
        return []
    last, first = name.split(",")
    return [f"{first} {last}", last]


def contradict(one: str, other: str) -> bool:
    """Return whether the brackets or years after two names have no word in common: `(1992)` and `(1996)`."""
    words, other_words = (
        {word for part in (_BRACKET, _YEARS) for mark in part.findall(name) for word in normal_form(mark).split(" ")}
        for name in (one, other)
    )
    return bool(words and other_words) and words.isdisjoint(other_words)


def _spell_letter(letter: re.Match[str]) -> str:
    """Return the name of a Greek letter."""
    return unicodedata.name(letter.group()).split(" WITH ")[0].rsplit(" ", 1)[-1].lower()


def respelt(form: str) -> Iterator[tuple[str, Form]]:
    """Yield other spellings of a date, or of a company with its legal form abbreviated or dropped."""
    if date := read_date(form):
        year, month, day = date[0] if len(date) > 2 else "", _MONTHS[int(date[-2]) - 1], str(int(date[-1]))
        spellings = [f"{month} {day} {year}".strip(), f"{day} {month} {year}".strip(), " ".join(date)]
        yield from ((text, Form.OTHERWISE) for text in spellings[: 3 if year else 2])
    bare, ends = part_company(form)
    if ends:
        yield " ".join([bare, *ends]), Form.OTHERWISE


def part_company(form: str) -> tuple[str, list[str]]:
    """Return a company's name in normal form without its legal forms, and these abbreviated; empty without any."""
    bare, ends = LEADING.sub("", form), [lead[1] for lead in [LEADING.match(form)] if lead]
    while bare.rsplit(" ", 1)[-1] in LEGAL_WORDS and (end := _LEGAL.search(bare)):
        bare = bare[: end.start()]
        ends.insert(0, _LEGAL_FORMS.get(end[1], end[1]))
    is_name = has_content(bare) and len(bare) > 1 and (" " in bare or not _AMBIGUOUS.issuperset(ends))
    return (bare, ends) if is_name else (form, [])


def read_date(form: str) -> tuple[str, ...]:
    """Return the digits of year, if present, month and day of a date in normal form; empty for any other text."""
    date = _DATE.fullmatch(form)
    if not date:
        return ()
    day = int((date["day"] or date["before"] or date["end"])[:2].rstrip("snrt"))
    months = [month[:3] for month in _MONTHS]
    number = int(date["number"] or months.index((date["month"] or date["after"])[:3]) + 1)
    year = date["year"] or date["last"] or date["first"]
    return (*([year] if year else []), f"{number:02}", f"{day:02}") if 1 <= day <= 31 else ()


def _decode_escape(match: re.Match[str]) -> str:
    """Return the letter or mark of four hexadecimal digits that lost their `\\u`; the digits if there is none."""
    character = chr(int(match.group(), 16))
    spells = not character.isascii() and character.isprintable() and not character.isspace()
    return character if spells else match.group()
