"""The tables of a run as files in its folder."""

from pathlib import Path

from kbtools.comparison.report.markdown import markdown_page
from kbtools.comparison.report.records import figures_csv, report_json, significance_csv
from kbtools.comparison.report.sections import make_sections
from kbtools.comparison.report.summary import Report
from kbtools.errors import OutputUnusable


def write_tables(report: Report) -> list[Path]:
    """Write the tables as Markdown, CSV and JSON, the differences of all pairs of cells among them."""
    return [
        write_text(report.run.folder / name, text)
        for name, text in (
            ("report.md", markdown_page(report, make_sections(report))),
            ("figures.csv", figures_csv(report)),
            ("figures.json", report_json(report)),
            ("significance.csv", significance_csv(report.run)),
        )
    ]


def write_text(path: Path, text: str) -> Path:
    """Write a text; raise OutputUnusable where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OutputUnusable(f"{path}: cannot be written ({error.strerror})", path=str(path)) from error
    return path
