"""Sections of a report as one page of Markdown, or as one page of HTML that needs nothing beside it."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbtools.comparison.summary import Report, best_text, excluded_text, origin_text
from kbtools.text.printable import html_text, markdown_text

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color: #222; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left; white-space: nowrap; }
.number { text-align: right; }
tr.best { background: #eef6ee; font-weight: 600; }
figure { display: inline-block; margin: 0.5rem; max-width: 100%; }
img { max-width: 100%; }
ul { font-size: 13px; color: #555; }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table; the first `words` columns are text, the rest numbers, and the rows of `best` stand out."""

    title: str
    lead: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    notes: Sequence[str] = ()
    best: Sequence[int] = ()


def markdown_page(report: Report, sections: Sequence[Section]) -> str:
    """Write a run as a Markdown page."""
    lines = [
        "# Comparison",
        "",
        markdown_text(origin_text(report.run)),
        excluded_text(report.run) + ".",
        f"Best: {markdown_text(best_text(report))}.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", markdown_text(section.lead), "", *markdown_table(section)]
        lines += ["", *(f"- {markdown_text(note)}" for note in section.notes)] if section.notes else []
    return "\n".join([*lines, ""])


def markdown_table(section: Section) -> Iterator[str]:
    """Lay out a table, words to the left and numbers to the right; without rows there is none."""
    if not section.rows:
        return
    # Markdown's line below the head, whose colons set numbers to the right.
    rule = ["---"] * section.words + ["---:"] * (len(section.head) - section.words)
    texts = [[markdown_text(text) for text in row] for row in [section.head, *section.rows]]
    for row in [texts[0], rule, *texts[1:]]:
        yield "| " + " | ".join(row) + " |"


def html_page(report: Report, sections: Sequence[Section], pictures: Mapping[str, bytes]) -> str:
    """Write a run as a page; pictures are SVG, by name."""
    body = [
        "<h1>Comparison</h1>",
        f"<p>{html_text(origin_text(report.run))}<br>{html_text(excluded_text(report.run))}.</p>",
        f"<p>Best: {html_text(best_text(report))}.</p>",
        *(html_picture(name, drawn) for name, drawn in pictures.items()),
        *(line for section in sections for line in html_section(section)),
    ]
    head = f'<meta charset="utf-8"><title>kbtools compare</title><style>{STYLE}</style>'
    return "\n".join([f'<!doctype html><html lang="en"><head>{head}</head><body>', *body, "</body></html>", ""])


def html_picture(name: str, drawn: bytes) -> str:
    """Put a picture into the page itself."""
    source = base64.b64encode(drawn).decode()
    return f'<figure><img alt="{html_text(name)}" src="data:image/svg+xml;base64,{source}"></figure>'


def html_section(section: Section) -> Iterator[str]:
    """Lay out a section; without rows there is no table."""
    yield f"<h2>{html_text(section.title)}</h2><p>{html_text(section.lead)}</p>"
    if not section.rows:
        return
    yield "<div class=wide><table>"
    yield html_row(section.head, words=section.words, cell="th")
    for at, row in enumerate(section.rows):
        yield html_row(row, words=section.words, cell="td", kind=" class=best" if at in section.best else "")
    yield "</table></div>"
    if section.notes:
        yield "<ul>" + "".join(f"<li>{html_text(note)}</li>" for note in section.notes) + "</ul>"


def html_row(texts: Sequence[str], *, words: int, cell: str, kind: str = "") -> str:
    cells = "".join(
        f"<{cell}{'' if at < words else ' class=number'}>{html_text(text)}</{cell}>" for at, text in enumerate(texts)
    )
    return f"<tr{kind}>{cells}</tr>"
