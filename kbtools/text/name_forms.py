"""The forms that a name is stored under: its normal form, and the rewritings that questions use instead."""

import html
import re

from kbtools.text.normaliser import fold, normal_form, split_words
from kbtools.text.rungs import Form
from kbtools.text.variants import is_special, variant_forms

APOSTROPHES = r"'\u2018\u2019\u02bb\u02bc\u02be\u02bf\u00b4`"
APOSTROPHE = re.compile(rf"(?<=\w)\s?[{APOSTROPHES}](?=\w)")
ARTICLE = re.compile(r"(?:the|an?) (?=.)")
BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]\s*$")
# Letters of Latin-1 and Latin Extended, Vietnamese letters and dashes: what FBSQ's names lost a `\u` before.
HEXADECIMAL = r"(?:0[0-9a-f]{3}|1e[0-9a-f]{2}|20[0-9a-f]{2})"
LOST_ESCAPE = re.compile(rf"(?<=[^\W\d_]){HEXADECIMAL}|{HEXADECIMAL}(?=[^\W\d_])", re.IGNORECASE)
ENTITY = re.compile(r"&#?\w+;")
JOINED = re.compile("[-/]")
REWRITABLE = re.compile(rf"[{APOSTROPHES}(\[,]|&#?\w+;|[01][0-9a-fA-F]{{3}}|20[0-9a-fA-F]{{2}}")


def join_apostrophes(text: str) -> str:
    """Write a text without the apostrophes inside its words: `Nadir's` and `nadir 's` become `Nadirs`."""
    return APOSTROPHE.sub("", text)


def name_forms(name: str) -> dict[str, Form]:
    """List the forms of a name, each with the least rewriting that gives it; empty for a blank name."""
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
    for key, form in tuple(forms.items()):
        article = ARTICLE.match(key)
        if article:
            forms.setdefault(key[article.end() :], form if form in (Form.OTHERWISE, Form.SHORTENED) else Form.ARTICLE)
    return forms


def words_of(text: str) -> tuple[list[str], list[bool]]:
    """List the words of a text, and whether each follows the one before it without a space."""
    chunks = [split_words(chunk) for chunk in fold(text).split()]
    return [word for chunk in chunks for word in chunk], [place > 0 for chunk in chunks for place in range(len(chunk))]


def rewritings(name: str) -> list[tuple[str, Form]]:
    """Rewrite a name in each way that applies; the strictest first."""
    rewritten = [(join_apostrophes(name), Form.APOSTROPHE)]
    bracket = BRACKET.search(name)
    if bracket:
        bare = name[: bracket.start()]
        rewritten += [(bare, Form.BRACKET), (join_apostrophes(bare), Form.BRACKET)]
    if name.count(",") == 1:
        last, first = name.split(",")
        rewritten += [(f"{first} {last}", Form.COMMA), (last, Form.COMMA)]
    decoded = LOST_ESCAPE.sub(decode_escape, html.unescape(name) if ENTITY.search(name) else name)
    if decoded != name:
        rewritten.append((decoded, Form.ESCAPE))
    return rewritten


def decode_escape(match: re.Match[str]) -> str:
    """Read four hexadecimal digits as the letter or mark that lost its `\\u`; leave them where they name none."""
    character = chr(int(match.group(), 16))
    spells = not character.isascii() and character.isprintable() and not character.isspace()
    return character if spells else match.group()
