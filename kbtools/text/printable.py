"""Text made safe for display in terminals, on single lines, in HTML and in Markdown."""

import re
from collections.abc import Iterable, Sequence
from html import escape

UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029"  # control characters, separators of lines
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls, which change the order of letters
    "\ud800-\udfff]"  # lone surrogates: bytes of a path that are not UTF-8
)

_LONGEST_SHOWN = 2_000
"""The most characters shown of an error, enough for a long path and a sentence."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of texts that a spreadsheet would run as formulas (OWASP, CSV injection)."""

_SIGNED_NUMBER = re.compile(r"[+-][\d\s.,()/-]*")
"""Numbers, dates and telephone numbers with a sign, which do no harm: `-5`, `+49 228 1234`."""

_MARKS = re.compile(r"[\\`*_\[\]|~#]")
"""Characters with a meaning inside a line of Markdown; those of HTML are escaped before."""


def visible(text: str) -> str:
    r"""Return a text with control characters and others that a terminal cannot show as escapes: `\x1b`, `\u202e`."""
    return UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def spreadsheet_cell(value: object) -> object:
    """Return a value of a cell; a text that a spreadsheet would run as a formula follows an apostrophe."""
    harmful = isinstance(value, str) and value.startswith(_FORMULA) and not _SIGNED_NUMBER.fullmatch(value)
    return f"'{value}" if harmful else value


def shortened(text: str, most: int = _LONGEST_SHOWN) -> str:
    """Return a text, cut in the middle if it is long, as errors may quote the content of a file."""
    return text if len(text) <= most else f"{text[: most // 2]} [...] {text[-most // 2 :]}"


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 question`, `2,000 questions`, `3 entities`."""
    many = f"{noun[:-1]}ie" if noun.endswith("ty") else noun
    return f"{count:,} {noun if count == 1 else f'{many}s'}"


def html_text(text: str) -> str:
    """Return a text escaped for HTML."""
    return escape(visible(text))


def markdown_text(text: str) -> str:
    """Return a text on one line, escaped for Markdown and its tables."""
    return _MARKS.sub(r"\\\g<0>", escape(visible(" ".join(text.split())), quote=False))


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table of texts and numbers; None becomes an empty cell."""
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = (
        "".join(f"<{cell}>{'' if value is None else html_text(str(value))}</{cell}>" for value in row)
        for cell, row in lines
    )
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
