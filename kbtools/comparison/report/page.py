"""A comparison as one HTML page that needs nothing beside it: tables, and pictures inside."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from kbtools.comparison.report.markdown import origin_text
from kbtools.comparison.report.section import Section
from kbtools.comparison.report.summary import Report
from kbtools.comparison.report.tables import best_text, excluded_text

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


def html_page(report: Report, sections: Sequence[Section], pictures: Mapping[str, bytes]) -> str:
    """Write a run as a page; pictures are SVG, by name."""
    body = [
        "<h1>Comparison</h1>",
        f"<p>{escape(origin_text(report.run))}<br>{escape(excluded_text(report.run))}.</p>",
        f"<p>Best: {escape(best_text(report))}.</p>",
        *(picture(name, drawn) for name, drawn in pictures.items()),
        *(line for section in sections for line in section_lines(section, best=list(report.best.cell))),
    ]
    head = f'<meta charset="utf-8"><title>kbtools compare</title><style>{STYLE}</style>'
    return "\n".join([f'<!doctype html><html lang="en"><head>{head}</head><body>', *body, "</body></html>", ""])


def picture(name: str, drawn: bytes) -> str:
    """Put a picture into the page itself."""
    source = base64.b64encode(drawn).decode()
    return f'<figure><img alt="{escape(name)}" src="data:image/svg+xml;base64,{source}"></figure>'


def section_lines(section: Section, *, best: Sequence[str]) -> Iterator[str]:
    """Lay out a section; the row of the best cell stands out, and without rows there is no table."""
    yield f"<h2>{escape(section.title)}</h2><p>{escape(section.lead)}</p>"
    if not section.rows:
        return
    yield "<div class=wide><table>"
    yield row_line(section.head, words=section.words, cell="th")
    for row in section.rows:
        named = [text.removesuffix(" *") for text in row[: section.words]]
        marked = named in (list(best), [" / ".join(best)])
        yield row_line(row, words=section.words, cell="td", kind=" class=best" if marked else "")
    yield "</table></div>"
    if section.notes:
        yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in section.notes) + "</ul>"


def row_line(texts: Sequence[str], *, words: int, cell: str, kind: str = "") -> str:
    cells = "".join(
        f"<{cell}{'' if at < words else ' class=number'}>{escape(text)}</{cell}>" for at, text in enumerate(texts)
    )
    return f"<tr{kind}>{cells}</tr>"
