"""A comparison as a page of Markdown."""

from collections.abc import Iterator, Sequence

from kbtools.comparison.report.section import Section
from kbtools.comparison.report.summary import Report
from kbtools.comparison.report.tables import best_text, excluded_text
from kbtools.comparison.run import Run


def origin_text(run: Run) -> str:
    """Say what was compared on what."""
    kb, questions = run.origin.kb, run.origin.questions
    return (
        f"Knowledge base {kb.path} (content {kb.digest[:12]}), "
        f"questions {questions.path} (content {questions.digest[:12]}), kbtools {run.origin.version}."
    )


def markdown_page(report: Report, sections: Sequence[Section]) -> str:
    """Write a run as a Markdown page."""
    lines = [
        "# Comparison",
        "",
        origin_text(report.run),
        excluded_text(report.run) + ".",
        f"Best: {best_text(report)}.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", section.lead, "", *table_lines(section)]
        lines += ["", *(f"- {note}" for note in section.notes)] if section.notes else []
    return "\n".join([*lines, ""])


def table_lines(section: Section) -> Iterator[str]:
    """Lay out a table, words to the left and numbers to the right; without rows there is none."""
    if not section.rows:
        return
    rule = ["---"] * section.words + ["---:"] * (len(section.head) - section.words)
    for row in [section.head, rule, *section.rows]:
        yield "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |"
