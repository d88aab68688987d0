"""A comparison as a compact table for a terminal, and how values are written wherever people read them."""

import math
from collections.abc import Iterable, Sequence

from kbtools.comparison.figures import Figure
from kbtools.comparison.report.summary import Report, is_control
from kbtools.comparison.run import Run

PER_CENT = {
    "accuracy": "accuracy",
    "object_accuracy": "object",
    "recall": "recall",
    "single_subject": "single",
    "multi_subject": "multi",
    "relation_given_subject": "rel|subj",
    "ambiguity_bound": "bound",
    "oracle": "oracle",
    "ties_first_by_id": "id first",
    "ties_last_by_id": "id last",
}
PLAIN = {"pool_mean": "pool", "pool_median": "median", "pool_p95": "p95", "milliseconds": "ms"}
COLUMNS = PER_CENT | PLAIN
"""The figures by the heads of their columns; those of PER_CENT are shares."""


def show(name: str, figure: Figure) -> str:
    """Write one value: shares in per cent, a dash where there is nothing to divide by."""
    if math.isnan(figure.value):
        return "-"
    return f"{100 * figure.value:.1f}" if name in PER_CENT else f"{figure.value:.{0 if 'median' in name else 1}f}"


def show_interval(name: str, figure: Figure) -> str:
    if math.isnan(figure.low):
        return "-"
    scale = 100 if name in PER_CENT else 1
    return f"{scale * figure.low:.1f}-{scale * figure.high:.1f}"


def aligned(rows: Sequence[Sequence[str]], words: int) -> Iterable[str]:
    """Lay out rows, the first columns to the left and the rest to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.ljust(width) if at < words else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def excluded_text(run: Run) -> str:
    """Say how many questions no system can answer."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in run.excluded().items())
    return f"n = {len(run):,}, of which no system can answer: {counts}; they count as wrong"


def terminal_table(report: Report) -> str:
    """Lay out a run for a terminal: the most telling figures, controls marked with a star."""
    names = [name for name in COLUMNS if name not in ("oracle", "pool_median")]
    rows = [["pruning", "scorer", "subject", "accuracy", "95 %", *(COLUMNS[name] for name in names[1:])]]
    for found in report.cells:
        star = "*" if is_control(found.cell) else ""
        accuracy = found.figures["accuracy"]
        rows.append(
            [
                *found.cell[:2],
                found.cell.subject + star,
                show("accuracy", accuracy),
                show_interval("accuracy", accuracy),
            ]
            + [show(name, found.figures[name]) for name in names[1:]]
        )
    lines = [*aligned(rows, 3), excluded_text(report.run), "* control; best: " + best_text(report)]
    return "\n".join(lines)


def best_text(report: Report) -> str:
    """Name the best cell and the strongest one that it is not certainly better than."""
    text = f"{report.best.cell.label}, {show('accuracy', report.best.figures['accuracy'])}"
    level = [one.other.label for one in report.against_best if one.low <= 0]
    return text + (f"; not certainly better than {', '.join(level)}" if level else "; better than every other cell")
