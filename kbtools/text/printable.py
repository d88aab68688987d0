"""Text that is safe where it is shown: it commands no terminal, breaks no line, and is no mark of a page."""

import re
from collections.abc import Iterable, Sequence
from html import escape

UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029"  # control characters, separators of lines
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls, which make a terminal show another order
    "\ud800-\udfff]"  # lone surrogates: bytes of a path that are no UTF-8
)

_LONGEST_SHOWN = 2_000
"""Characters of an error that are shown: a long path and a sentence."""

_MARKS = re.compile(r"[\\`*_\[\]|~#]")
"""Characters that mean something to Markdown within a line; those of HTML are escaped before."""


def visible(text: str) -> str:
    r"""Write what a terminal would obey or cannot show as escapes: `\x1b`, `\u202e`, `\udcff`."""
    return UNPRINTABLE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def shortened(text: str, most: int = _LONGEST_SHOWN) -> str:
    """Return a text as it is, or the beginning and the end of a long one: an error may repeat what a file holds."""
    return text if len(text) <= most else f"{text[: most // 2]} [...] {text[-most // 2 :]}"


def html_text(text: str) -> str:
    """Write a text so that a page of HTML shows it as it is."""
    return escape(visible(text))


def markdown_text(text: str) -> str:
    """Write a text so that Markdown shows it as it is, on one line: neither marks, nor tags, nor table cells."""
    return _MARKS.sub(r"\\\g<0>", escape(visible(" ".join(text.split())), quote=False))


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay texts and numbers out as a table of HTML; None is an empty cell."""
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = (
        "".join(f"<{cell}>{'' if value is None else html_text(str(value))}</{cell}>" for value in row)
        for cell, row in lines
    )
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
