"""Files of a report in the folder of its run: tables for people, CSV and JSON for programs, pictures and the page."""

import csv
import io
import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kbtools.comparison.column_store import named_failure, write_file, write_text
from kbtools.comparison.report.markup import html_page, markdown_page
from kbtools.comparison.report.pictures import draw_pictures, picture_bytes
from kbtools.comparison.report.sections import make_sections
from kbtools.comparison.report.summary import Report, is_control
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import Resamples, compare_cells
from kbtools.storage import make_folder

JSON_VERSION = 1
"""Of figures.json, which has a life of its own beside the records of a query."""

PICTURES, PAGE = "pictures", "report.html"

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so is a formula to a spreadsheet (OWASP, CSV injection)."""


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


def write_page(report: Report) -> Path:
    """Write the page without pictures, for where nothing can draw them."""
    return write_text(report.run.folder / PAGE, html_page(report, make_sections(report), {}))


def write_page_with_pictures(report: Report) -> Path:
    """Write each picture as PNG and SVG, and the page; raise MissingDependency without matplotlib."""
    drawn = {
        name: {kind: picture_bytes(figure, kind) for kind in ("png", "svg")}
        for name, figure in draw_pictures(report).items()
    }
    folder = report.run.folder / PICTURES
    with named_failure(folder):
        make_folder(folder)
    for name, kinds in drawn.items():
        for kind, content in kinds.items():
            write_file(folder / f"{name}.{kind}", content)
    page = html_page(report, make_sections(report), {name: kinds["svg"] for name, kinds in drawn.items()})
    return write_text(report.run.folder / PAGE, page)


def figures_csv(report: Report) -> str:
    """Write the figures, a row per cell and figure."""
    head = ["pruning", "scorer", "subject", "ranker", "figure", "value", "low", "high", "part", "whole", "weights"]
    return csv_text(
        head,
        (
            [*cell.cell, name, *map(number, asdict(figure).values()), report.run.weights_text(cell.cell)]
            for cell in report.cells
            for name, figure in cell.figures.items()
        ),
    )


def significance_csv(run: Run) -> str:
    """Write the difference of every two cells, a row each."""
    names = ["difference", "low", "high", "won", "lost", "mcnemar", "bootstrap"]
    differences = compare_cells({cell: run.strict(cell) for cell in run.cells}, Resamples(len(run)))
    return csv_text(
        ["one", "other", *names],
        ([pair.one.label, pair.other.label, *(getattr(pair, name) for name in names)] for pair in differences),
    )


def csv_text(head: list[str], rows: Iterable[list[str | float | None]]) -> str:
    """Write rows as CSV; a text that a spreadsheet would compute is led by an apostrophe, numbers stay as they are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
                         for value in row])  # fmt: skip
    return text.getvalue()


def report_json(report: Report) -> str:
    """Write the figures as one JSON document; what is no number is null."""
    run = report.run
    record: dict[str, Any] = {
        "json_version": JSON_VERSION,
        **asdict(run.origin),
        "questions_counted": len(run),
        "excluded": run.excluded(),
        "missing": list(run.missing),
        "best": list(report.best.cell),
        "tied_best": [list(cell.cell) for cell in report.tied_best],
        "cells": [
            {
                **cell.cell._asdict(),
                "control": is_control(cell.cell),
                "weighting": run.cells[cell.cell].facts["weighting"],
                "weights": run.cells[cell.cell].facts["weights"],
                "unanswered": cell.unanswered,
                "figures": {
                    name: {key: number(value) for key, value in asdict(figure).items()}
                    for name, figure in cell.figures.items()
                },
                "causes": {
                    cause.label: {"questions": count, "lost": lost} for cause, (count, lost) in cell.causes.items()
                },
            }
            for cell in report.cells
        ],
        "against_best": [
            asdict(pair) | {"one": list(pair.one), "other": list(pair.other)} for pair in report.against_best
        ],
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def number(value: float | None) -> float | None:
    """Return a number, or None for what is no number."""
    return None if value is None or math.isnan(value) else value
