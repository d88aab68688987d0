"""The files of a report in the folder of its run: tables for people, CSV and JSON for programs, pictures and the page.

Each table is a section first, and then becomes Markdown and HTML.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kbtools.answering.resampling import Resamples
from kbtools.comparison.calibration import calibration_figures, run_calibration
from kbtools.comparison.column_store import named_failure, write_file, write_text
from kbtools.comparison.figures import MEASURES
from kbtools.comparison.lost_questions import EXAMPLES, Cause, read_examples
from kbtools.comparison.pictures import draw_pictures, picture_bytes
from kbtools.comparison.run_folder import Run
from kbtools.comparison.significance import Difference, compare_cells
from kbtools.comparison.summary import (
    Report,
    Section,
    cell_names,
    html_page,
    is_control,
    markdown_page,
    part_names,
    show,
    show_interval,
)
from kbtools.storage import make_folder
from kbtools.text.printable import spreadsheet_cell

_JSON_VERSION = 1
"""The version of figures.json, independent of the JSON of a query."""

_PICTURES, _PAGE = "pictures", "report.html"

_LEAST = (0.0, 0.3, 0.5, 0.7, 0.9)
"""Confidence thresholds of the table on abstention."""

_WEIGHTS_NOTE = (
    "weights: those that are not the defaults; chosen by kbtools train ranking, or tuned on the validation questions"
)
_NAMES_NOTE = (
    "n-gram-idf, and taggers that know the names of the knowledge base, look better than they are if most names belong "
    "to gold subjects, as in FBSQ's list (62 %)"
)


def write_tables(report: Report) -> list[Path]:
    """Write the tables as Markdown, CSV and JSON, including the differences of all pairs of cells."""
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
    """Write the page without pictures, if matplotlib is not installed."""
    return write_text(report.run.folder / _PAGE, html_page(report, make_sections(report), {}))


def write_page_with_pictures(report: Report) -> Path:
    """Write each picture as PNG and SVG, and the page; raise MissingDependency without matplotlib."""
    drawn = {
        name: {kind: picture_bytes(figure, kind) for kind in ("png", "svg")}
        for name, figure in draw_pictures(report).items()
    }
    folder = report.run.folder / _PICTURES
    with named_failure(folder):
        make_folder(folder)
    for name, kinds in drawn.items():
        for kind, content in kinds.items():
            write_file(folder / f"{name}.{kind}", content)
    page = html_page(report, make_sections(report), {name: kinds["svg"] for name, kinds in drawn.items()})
    return write_text(report.run.folder / _PAGE, page)


def figures_csv(report: Report) -> str:
    """Return the figures as CSV, a row per cell and figure."""
    head = ["pruning", "scorer", "subject", "ranker", "figure", "value", "low", "high", "part", "whole", "weights"]
    return csv_text(
        head,
        (
            [*cell.cell, name, *map(_number, asdict(figure).values()), report.run.weights_text(cell.cell)]
            for cell in report.cells
            for name, figure in cell.figures.items()
        ),
    )


def significance_csv(run: Run) -> str:
    """Return the differences of all pairs of cells as CSV."""
    names = ["difference", "low", "high", "won", "lost", "mcnemar", "bootstrap"]
    differences = compare_cells({cell: run.strict(cell) for cell in run.cells}, Resamples(len(run)))
    return csv_text(
        ["one", "other", *names],
        ([pair.one.label, pair.other.label, *(getattr(pair, name) for name in names)] for pair in differences),
    )


def csv_text(head: list[str], rows: Iterable[list[str | float | None]]) -> str:
    """Return rows as CSV; an apostrophe precedes texts that a spreadsheet would run as formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(map(spreadsheet_cell, row))
    return text.getvalue()


def report_json(report: Report) -> str:
    """Return the figures as one JSON document; nan becomes null."""
    run = report.run
    record: dict[str, Any] = {
        "json_version": _JSON_VERSION,
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
                    name: {key: _number(value) for key, value in asdict(figure).items()}
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


def _number(value: float | None) -> float | None:
    """Return a number, None for nan."""
    return None if value is None or math.isnan(value) else value


def make_sections(report: Report) -> list[Section]:
    """Return all sections of a report."""
    return [
        figures_section(report),
        _significance_section(report.against_best),
        causes_section(report),
        _calibration_section(report),
        abstention_section(report),
        *examples_sections(report),
        *taggers_sections(report),
    ]


def figures_section(report: Report) -> Section:
    return Section(
        "Figures",
        "Shares in per cent with 95 % bootstrap intervals; a star marks a control.",
        [*part_names(report), *(measure.head for measure in MEASURES.values()), "weights"],
        [
            [
                *cell_names(report, cell.cell),
                *(f"{show(name, cell.figures[name])} ({show_interval(name, cell.figures[name])})" for name in MEASURES),
                report.run.weights_text(cell.cell),
            ]
            for cell in report.cells
        ],
        words=len(part_names(report)),
        best=_best_rows(report),
        notes=[*(f"{measure.head}: {measure.meaning}" for measure in MEASURES.values()), _WEIGHTS_NOTE, _NAMES_NOTE],
    )


def _significance_section(differences: Sequence[Difference]) -> Section:
    return Section(
        "Significance",
        "The best cell against every other on the same questions: answers won and lost, McNemar's exact test over "
        "them, and the paired bootstrap; significance.csv has every pair of cells.",
        ["cell", "against", "points", "95 %", "won", "lost", "McNemar p", "bootstrap p"],
        [
            [
                pair.one.label,
                pair.other.label,
                f"{100 * pair.difference:+.2f}",
                f"{100 * pair.low:+.2f} to {100 * pair.high:+.2f}",
                f"{pair.won:,.1f}",
                f"{pair.lost:,.1f}",
                _show_probability(pair.mcnemar),
                _show_probability(pair.bootstrap),
            ]
            for pair in differences
        ],
        words=2,
    )


def _best_rows(report: Report) -> list[int]:
    """Return the positions of the best cells, several if they tie exactly."""
    return [at for at, cell in enumerate(report.cells) if cell in report.tied_best]


def _show_probability(probability: float) -> str:
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"


def causes_section(report: Report) -> Section:
    causes = [cause for cause in Cause if cause is not Cause.NONE]
    return Section(
        "Lost questions by cause",
        "The number of questions, with the lost answers in brackets; a tie loses a share of an answer.",
        ["cell", *(cause.label for cause in causes)],
        [
            [cell.cell.label, *(f"{cell.causes[cause][0]:,} ({cell.causes[cause][1]:,.1f})" for cause in causes)]
            for cell in report.cells
        ],
        best=_best_rows(report),
        notes=[f"{cause.label}: {cause.meaning}" for cause in causes],
    )


def _calibration_section(report: Report) -> Section:
    return Section(
        "Calibration",
        "Confidence is the winner's share of the pool; calibrated on the validation questions that the knowledge base "
        "can answer, if there are any.",
        ["cell", "ECE", "calibrated", "confidence when right", "when wrong", "outside the knowledge base", "AUROC"],
        [
            [
                figures.cell.label,
                f"{figures.error:.3f}",
                "-" if figures.calibrated_error is None else f"{figures.calibrated_error:.3f}",
                f"{figures.when_right:.2f}",
                f"{figures.when_wrong:.2f}",
                f"{figures.outside:.2f}",
                f"{figures.auroc:.3f}",
            ]
            for figures in calibration_figures(report.run)
        ],
        best=_best_rows(report),
        notes=[
            "ECE: expected calibration error in ten bins, lower is better",
            "outside the knowledge base: mean confidence when the gold subject is removed from the pool, "
            "so that no answer is right",
            "AUROC: how well confidence separates right answers from wrong ones and questions outside; 0.5 is chance",
        ],
    )


def abstention_section(report: Report) -> Section:
    """Return the effect of withholding answers of the best cell below a confidence."""
    cell = report.best.cell
    outcomes, fitted = report.run.cells[cell], run_calibration(report.run, cell)
    confidence, outside = outcomes["confidence"], outcomes["confidence_without"]
    # Thresholds apply to confidence as users see it, calibrated if possible.
    if fitted is not None:
        confidence, outside = fitted.apply(confidence), fitted.apply(outside)
    rows = []
    for least in _LEAST:
        answered = (confidence >= least) & (outcomes["pool"] > 0)
        right = float(outcomes["strict"][answered].mean()) if answered.any() else float("nan")
        shares = (answered.mean(), right, (outside < least).mean())
        rows.append([f"{least:.1f}", *(f"{100 * share:.1f}" for share in shares)])
    how = "calibrated" if fitted is not None else "not calibrated, since there are no validation questions"
    return Section(
        "Abstention",
        f"{cell.label} without answers below a confidence of P; confidence is {how}.",
        ["P", "answered", "of them right", "refused outside the knowledge base"],
        rows,
        notes=["outside the knowledge base: every question with its gold subject removed from the pool"],
    )


def examples_sections(report: Report) -> list[Section]:
    """Return a section of lost questions of the best cell, if kbtools compare --errors wrote some."""
    cell = report.best.cell
    rows = [
        [example["cause"], example["question"], _pair_text(example["gold"]), _pair_text(example["found"])]
        for example in read_examples(report.run.folder, cell)
    ]
    lead = f"{cell.label}: some of each cause, drawn at random; the folder {EXAMPLES} has those of every cell."
    return [Section("Lost questions", lead, ["cause", "question", "gold", "won"], rows, words=4)] if rows else []


def _pair_text(pair: dict[str, Any] | None) -> str:
    """Return the subject and relation of an example as text."""
    if pair is None:
        return "no candidates"
    return f"{pair['name'] or 'no name'} ({pair['subject']}), {pair['relation']}"


def taggers_sections(report: Report) -> list[Section]:
    """Return a table of taggers by the share of questions whose mention they rank first."""
    rows = []
    for name, marks in report.run.taggers.items():
        labelled, right = int(marks["labelled"].sum()), int(marks["right"].sum())
        rows.append([name, f"{100 * right / labelled:.1f} ({right:,} of {labelled:,})" if labelled else "-"])
    lead = (
        "The share of questions whose most probable mention is exactly right, among those that contain a name of the "
        "gold subject; the longest one is the mention."
    )
    return [Section("Taggers: mentions found", lead, ["tagger", "mentions found"], rows)] if rows else []
