"""The summary of a run: figures of every cell, and the best cell against every other.

It becomes a table for a terminal, and with its sections a page of Markdown or one self-contained page of HTML.
"""

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbtools.answering.resampling import Resamples
from kbtools.comparison.figures import MEASURES, CellFigures, Figure, run_figures
from kbtools.comparison.grid import CONTROL_PRUNER, CONTROL_SCORER, CONTROL_SUBJECTS, Cell
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import Difference, compare_cells
from kbtools.ranking.system import POPULARITY
from kbtools.text.printable import html_text, markdown_text

_SAME = 1e-9
"""Accuracies closer than this are equal: far less than one answer, far more than rounding errors."""

_MISSING_SHOWN = 5
"""Missing cells that a sentence names."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; }
.verdict { font-size: 1.25rem; line-height: 1.35; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left; white-space: nowrap; }
.number { text-align: right; }
tr.best { background: #eef6ee; font-weight: 600; }
.pictures { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; }
img { width: 100%; }
ul, .origin { font-size: 13px; color: #555; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; }
  h1 { font-size: 1.5rem; }
  .verdict { font-size: 1.1rem; }
  table { font-size: 12px; }
  th, td { padding: 0.25rem 0.35rem; }
  ul { padding-left: 1.1rem; }
}
"""


@dataclass(frozen=True, slots=True)
class Report:
    """A run with all its figures; `against_best` compares the best cell with every other."""

    run: Run
    cells: Sequence[CellFigures]
    against_best: Sequence[Difference]

    @property
    def best(self) -> CellFigures:
        """The most accurate cell, the first one if several tie."""
        return self.tied_best[0]

    @property
    def tied_best(self) -> list[CellFigures]:
        return _find_best(self.cells)


def make_report(run: Run) -> Report:
    """Return the figures of a run, with its most accurate cell compared with every other."""
    resamples = Resamples(len(run))
    cells = run_figures(run, resamples)
    best = _find_best(cells)[0].cell
    pairs = [(best, cell) for cell in run.cells if cell != best]
    return Report(run, cells, compare_cells({cell: run.strict(cell) for cell in run.cells}, resamples, pairs))


def _find_best(cells: Sequence[CellFigures]) -> list[CellFigures]:
    """Return the cells with the highest accuracy in the order of the run, several if they tie exactly."""
    highest = max(cell.figures["accuracy"].value for cell in cells)
    return [cell for cell in cells if cell.figures["accuracy"].value > highest - _SAME]


def is_control(cell: Cell) -> bool:
    """Return whether subjects of a cell are not scored or only counted, or none of its parts is trained."""
    return cell.subject in CONTROL_SUBJECTS or cell == Cell(CONTROL_PRUNER, CONTROL_SCORER, POPULARITY)


def show(name: str, figure: Figure) -> str:
    """Return a value as text: shares in per cent, a dash for nan."""
    if math.isnan(figure.value):
        return "-"
    measure = MEASURES[name]
    return f"{(100 if measure.per_cent else 1) * figure.value:.{measure.decimals}f}"


def show_interval(name: str, figure: Figure) -> str:
    if math.isnan(figure.low):
        return "-"
    scale = 100 if MEASURES[name].per_cent else 1
    return f"{scale * figure.low:.1f}-{scale * figure.high:.1f}"


def _origin_text(run: Run) -> str:
    """Return a line with the knowledge base and the questions of a run."""
    kb, questions = run.origin.kb, run.origin.questions
    return (
        f"Knowledge base {kb.path} (content {kb.digest[:12]}), "
        f"questions {questions.path} (content {questions.digest[:12]}), kbtools {run.origin.version}."
    )


def _excluded_text(run: Run) -> str:
    """Return a sentence on questions that no system can answer, and on missing cells."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in run.excluded().items())
    text = f"n = {len(run):,}, including questions that no system can answer: {counts}; they count as wrong"
    if not run.missing:
        return text
    more = f" and {len(run.missing) - _MISSING_SHOWN:,} more" if len(run.missing) > _MISSING_SHOWN else ""
    shown = ", ".join(run.missing[:_MISSING_SHOWN])
    return f"{text}; missing on disk: {shown}{more}, which kbtools compare recomputes"


def best_text(report: Report) -> str:
    """Return the best cell, the cells that tie with it, and the cells that are not significantly worse."""
    tied = [cell.cell.label for cell in report.tied_best]
    accuracy = show("accuracy", report.best.figures["accuracy"])
    text = f"{tied[0]}, {accuracy}" if len(tied) == 1 else f"{len(tied)} cells tie at {accuracy}: {', '.join(tied)}"
    if len(tied) == len(report.cells):
        return text
    level = [pair.other.label for pair in report.against_best if pair.low <= 0 and pair.other.label not in tied]
    return text + (f"; not certainly better than {', '.join(level)}" if level else "; better than every other cell")


def verdict_text(report: Report) -> str:
    """Return sentences on the most accurate system and whether the difference may be chance."""
    tied = [cell.cell.label for cell in report.tied_best]
    share = f"{show('accuracy', report.best.figures['accuracy'])} % of {len(report.run):,} questions right"
    text = f"{tied[0]} answers {share}." if len(tied) == 1 else f"{' and '.join(tied)} each answer {share}."
    level = [pair.other.label for pair in report.against_best if pair.low <= 0 and pair.other.label not in tied]
    if level:
        others = " and ".join(level) if len(level) <= 2 else f"{len(level)} other systems"
        return f"{text} The difference from {others} may be chance."
    return text if len(tied) == len(report.cells) else f"{text} That is reliably better than every other system."


def terminal_table(report: Report) -> str:
    """Return a table of the main figures for a terminal, with a star at controls."""
    names = [name for name in MEASURES if name not in ("oracle", "pool_median")]
    parts = part_names(report)
    rows = [[*parts, "accuracy", "95 %", *(MEASURES[name].head for name in names[1:]), "weights"]]
    for cell in report.cells:
        accuracy = cell.figures["accuracy"]
        rows.append(
            [*cell_names(report, cell.cell), show("accuracy", accuracy), show_interval("accuracy", accuracy)]
            + [show(name, cell.figures[name]) for name in names[1:]]
            + [report.run.weights_text(cell.cell)]
        )
    lines = [*_aligned(rows, len(parts)), _excluded_text(report.run), "* control; best: " + best_text(report)]
    return "\n".join(lines)


def part_names(report: Report) -> list[str]:
    """Return the column heads of a cell's parts, with a ranker only if one is learned."""
    return [*Cell._fields] if any(cell.cell.learned for cell in report.cells) else [*Cell._fields[:3]]


def cell_names(report: Report, cell: Cell) -> list[str]:
    """Return the parts of a cell for these columns, with a star at the subject scorer of a control."""
    names = [*cell[:2], cell.subject + ("*" if is_control(cell) else ""), cell.ranker]
    return names[: len(part_names(report))]


def _aligned(rows: Sequence[Sequence[str]], words: int) -> Iterable[str]:
    """Yield aligned rows, with the first columns and the last one left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.ljust(width) if at < words or at == len(row) - 1 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table; the first `words` columns are text, the others numbers; rows in `best` are highlighted."""

    title: str
    lead: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    notes: Sequence[str] = ()
    best: Sequence[int] = ()


def markdown_page(report: Report, sections: Sequence[Section]) -> str:
    """Return a run as a Markdown page."""
    lines = [
        "# Comparison",
        "",
        markdown_text(_origin_text(report.run)),
        _excluded_text(report.run) + ".",
        f"Best: {markdown_text(best_text(report))}.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", markdown_text(section.lead), "", *markdown_table(section)]
        lines += ["", *(f"- {markdown_text(note)}" for note in section.notes)] if section.notes else []
    return "\n".join([*lines, ""])


def markdown_table(section: Section) -> Iterator[str]:
    """Yield the lines of a table, with words left-aligned and numbers right-aligned; none without rows."""
    if not section.rows:
        return
    # The line below the head in Markdown, with a colon for right alignment.
    rule = ["---"] * section.words + ["---:"] * (len(section.head) - section.words)
    texts = [[markdown_text(text) for text in row] for row in [section.head, *section.rows]]
    for row in [texts[0], rule, *texts[1:]]:
        yield "| " + " | ".join(row) + " |"


def html_page(report: Report, sections: Sequence[Section], pictures: Mapping[str, bytes]) -> str:
    """Return a run as an HTML page; pictures are SVG, by name."""
    body = [
        "<h1>Comparison</h1>",
        f"<p class=verdict>{html_text(verdict_text(report))}</p>",
        *(line for section in sections[:1] for line in html_section(section)),
        "<div class=pictures>",
        *(_html_picture(name, drawn) for name, drawn in pictures.items()),
        "</div>",
        *(line for section in sections[1:] for line in html_section(section)),
        f"<p class=origin>{html_text(_origin_text(report.run))}<br>{html_text(_excluded_text(report.run))}.</p>",
    ]
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{viewport}<title>kbtools compare</title><style>{_STYLE}</style>'
    return "\n".join([f'<!doctype html><html lang="en"><head>{head}</head><body>', *body, "</body></html>", ""])


def _html_picture(name: str, drawn: bytes) -> str:
    """Return an HTML figure with an embedded picture."""
    source = base64.b64encode(drawn).decode()
    return f'<figure><img alt="{html_text(name)}" src="data:image/svg+xml;base64,{source}"></figure>'


def html_section(section: Section) -> Iterator[str]:
    """Yield the HTML of a section, without a table if it has no rows."""
    yield f"<h2>{html_text(section.title)}</h2><p>{html_text(section.lead)}</p>"
    if not section.rows:
        return
    yield "<div class=wide><table>"
    yield _html_row(section.head, words=section.words, cell="th")
    for at, row in enumerate(section.rows):
        yield _html_row(row, words=section.words, cell="td", kind=" class=best" if at in section.best else "")
    yield "</table></div>"
    if section.notes:
        yield "<ul>" + "".join(f"<li>{html_text(note)}</li>" for note in section.notes) + "</ul>"


def _html_row(texts: Sequence[str], *, words: int, cell: str, kind: str = "") -> str:
    cells = "".join(
        f"<{cell}{'' if at < words else ' class=number'}>{html_text(text)}</{cell}>" for at, text in enumerate(texts)
    )
    return f"<tr{kind}>{cells}</tr>"
