"""A comparison for programs: CSV and JSON; docs/compare.md describes them."""

import csv
import io
import json
import math
from dataclasses import asdict
from typing import Any

from kbtools.comparison.bootstrap import Resamples
from kbtools.comparison.report.summary import Report, is_control
from kbtools.comparison.run import Run
from kbtools.comparison.significance import compare_cells

JSON_VERSION = 1


def figures_csv(report: Report) -> str:
    """Write the figures, a row per cell and figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["pruning", "scorer", "subject", "figure", "value", "low", "high", "part", "whole"])
    for found in report.cells:
        for name, figure in found.figures.items():
            writer.writerow([*found.cell, name, *(map(plain, asdict(figure).values()))])
    return text.getvalue()


def significance_csv(run: Run) -> str:
    """Write the difference of every two cells, a row each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ["difference", "low", "high", "won", "lost", "mcnemar", "bootstrap"]
    writer.writerow(["one", "other", *names])
    for one in compare_cells({cell: run.strict(cell) for cell in run.cells}, Resamples(len(run))):
        writer.writerow([one.one.label, one.other.label, *(getattr(one, name) for name in names)])
    return text.getvalue()


def report_json(report: Report) -> str:
    """Write the figures as one JSON document; what is no number is null."""
    run = report.run
    record: dict[str, Any] = {
        "json_version": JSON_VERSION,
        **asdict(run.origin),
        "questions_counted": len(run),
        "excluded": run.excluded(),
        "best": list(report.best.cell),
        "cells": [
            {
                **found.cell._asdict(),
                "control": is_control(found.cell),
                "unanswered": found.unanswered,
                "figures": {
                    name: {key: plain(value) for key, value in asdict(figure).items()}
                    for name, figure in found.figures.items()
                },
                "causes": {
                    cause.label: {"questions": count, "lost": lost} for cause, (count, lost) in found.causes.items()
                },
            }
            for found in report.cells
        ],
        "against_best": [asdict(one) | {"one": list(one.one), "other": list(one.other)} for one in report.against_best],
    }
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
