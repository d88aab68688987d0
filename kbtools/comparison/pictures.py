"""Pictures of a comparison, drawn with matplotlib (the extra `report`)."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kbtools.comparison.calibration import reliability, risk_coverage, run_calibration
from kbtools.comparison.grid import Cell
from kbtools.comparison.summary import Report
from kbtools.entry_points import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FREQUENCIES = ((1, 1), (2, 3), (4, 10), (11, 30), (31, 100), (101, None))
"""Ranges of the number of questions with the same gold relation, growing by a factor of about three."""

_LINES = 6
"""The number of cells drawn as lines, the most accurate first; more colours are hard to distinguish."""

_ROOM = 30
"""Characters of 8 points below a picture 5 inches wide, beside the row labels."""

_LEGEND = 36
"""Characters of 7 points in half of that width."""


def draw_pictures(report: Report) -> dict[str, "Figure"]:
    """Return every picture of a report; raise MissingDependency without matplotlib."""
    return {name: draw_one(draw, report) for name, draw in PICTURES.items()}


def draw_one(draw: Callable[[Report, "Axes"], None], report: Report) -> "Figure":
    """Return a figure with one picture; raise MissingDependency without matplotlib."""
    figure = new_figure()
    draw(report, figure.add_subplot())
    return figure


def new_figure() -> "Figure":
    """Return an empty figure that needs no window system; raise MissingDependency without matplotlib."""
    # Small enough that labels stay readable at the width of a phone.
    figure: Figure = import_optional("matplotlib.figure", "drawing pictures").Figure(
        figsize=(5, 3.75), layout="constrained"
    )
    return figure


def _draw_recall(report: Report, axes: "Axes") -> None:
    """Draw recall against pool size, one point per pruner."""
    from matplotlib.ticker import LogLocator, NullFormatter

    sizes = [cell.figures["pool_mean"].value for cell in report.cells]
    for pruning in dict.fromkeys(cell.cell.pruning for cell in report.cells):
        figures = next(cell.figures for cell in report.cells if cell.cell.pruning == pruning)
        pool, recall = figures["pool_mean"], figures["recall"]
        bars = ([100 * (recall.value - recall.low)], [100 * (recall.high - recall.value)])
        axes.errorbar([pool.value], [100 * recall.value], yerr=bars, fmt="o", capsize=3, label=pruning)
    axes.set(xscale="log" if min(sizes) > 0 else "linear")
    if min(sizes) > 0:
        # Labels only at 1, 2, 5, 10, 20, 50 ...; more would overlap.
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(top=min(axes.get_ylim()[1], 100.5))
    axes.set(xlabel="candidate pairs per question, mean", ylabel="gold pair in the pool, per cent")
    axes.set_title("Recall against pool size")
    _legend_below(axes)


def _draw_heat_map(report: Report, axes: "Axes") -> None:
    """Draw accuracy as colours, with scorers as rows and pruners as columns."""
    rows = list(dict.fromkeys(cell.cell.names[1:] for cell in report.cells))
    columns = list(dict.fromkeys(cell.cell.pruning for cell in report.cells))
    grid = np.full((len(rows), len(columns)), np.nan)
    for cell in report.cells:
        grid[rows.index(cell.cell.names[1:]), columns.index(cell.cell.pruning)] = 100 * cell.figures["accuracy"].value
    labels = [" / ".join(row) for row in rows]
    width = 1.2 + 0.06 * max(map(len, labels)) + 0.4 * len(columns)
    size = (max(5.0, width), max(3.75, 1.5 + 0.25 * len(rows)))
    axes.get_figure(root=True).set_size_inches(size)  # type: ignore[union-attr]
    image = axes.imshow(grid, aspect="auto", cmap="viridis")
    # Long names of pruners are vertical so that they do not overlap.
    upright = max(map(len, columns)) * len(columns) > _ROOM
    axes.set_xticks(range(len(columns)), columns, fontsize=8, rotation=90 if upright else 0)
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    middle = (np.nanmin(grid) + np.nanmax(grid)) / 2
    for (row, column), value in np.ndenumerate(grid):
        if not np.isnan(value):
            # Low values are dark in viridis.
            colour = "white" if value < middle else "black"
            axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=7, color=colour)
    axes.set_title("Subject and relation right, per cent")
    image.axes.figure.colorbar(image, ax=axes)


def _draw_calibration(report: Report, axes: "Axes") -> None:
    """Draw how often answers of similar confidence are right, raw and calibrated if possible."""
    cell = report.best.cell
    outcomes, fitted = report.run.cells[cell], run_calibration(report.run, cell)
    lines = {"as ranked": outcomes["confidence"]}
    if fitted is not None:
        lines["calibrated on validation"] = fitted.apply(outcomes["confidence"])
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="honest")
    for label, confidence in lines.items():
        bins = reliability(confidence, outcomes["strict"])
        axes.plot([bar.confidence for bar in bins], [bar.correct for bar in bins], marker="o", label=label)
    axes.set(xlabel="confidence", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    axes.set_title(f"Calibration of {cell.label}")
    _legend_below(axes)


def _draw_risk(report: Report, axes: "Axes") -> None:
    """Draw the share of wrong answers against the share of answered questions."""
    for cell in _best_cells(report):
        outcomes = report.run.cells[cell]
        coverage, risk = risk_coverage(outcomes["confidence"], outcomes["strict"])
        axes.plot(100 * coverage, 100 * risk, label=cell.label)
    axes.set(xlabel="questions answered, per cent", ylabel="of them wrong, per cent", xlim=(0, 100), ylim=(0, 100))
    axes.set_title("Risk and coverage")
    _legend_below(axes)


def _draw_frequency(report: Report, axes: "Axes") -> None:
    """Draw accuracy by how often the gold relation occurs among the questions."""
    frequency = report.run.gold["relation_frequency"]
    groups = [(frequency >= low) & (frequency <= (high or frequency.max())) for low, high in _FREQUENCIES]
    filled = [at for at, group in enumerate(groups) if group.any()]
    for cell in _best_cells(report):
        strict = report.run.strict(cell)
        axes.plot(filled, [100 * strict[groups[at]].mean() for at in filled], marker="o", label=cell.label)
    names = [f"{low}-{high}" if high and high > low else f"{low}" if high else f"{low}+" for low, high in _FREQUENCIES]
    axes.set_xticks(filled, [f"{names[at]}\nn = {groups[at].sum():,}" for at in filled])
    axes.set(xlabel="questions with the same gold relation", ylabel="right, per cent")
    axes.set_title("Accuracy by relation frequency")
    _legend_below(axes)


def _legend_below(axes: "Axes") -> None:
    """Put the legend under the picture, where it hides no line."""
    figure = axes.get_figure(root=True)
    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    figure.legend(loc="outside lower center", ncols=1 if longest > _LEGEND else 2, fontsize=7)  # type: ignore[union-attr]


def _best_cells(report: Report) -> list[Cell]:
    """Return the most accurate cells, best first."""
    ranked = sorted(report.cells, key=lambda cell: -cell.figures["accuracy"].value)
    return [cell.cell for cell in ranked[:_LINES]]


PICTURES: dict[str, Callable[[Report, "Axes"], None]] = {
    "recall": _draw_recall,
    "accuracy": _draw_heat_map,
    "calibration": _draw_calibration,
    "risk": _draw_risk,
    "frequency": _draw_frequency,
}


def picture_bytes(figure: "Figure", kind: str) -> bytes:
    """Return a figure as png or svg, the same bytes each time."""
    import matplotlib

    content = io.BytesIO()
    # Omit the date and random ids that matplotlib would write.
    with matplotlib.rc_context({"svg.hashsalt": "kbtools"}):
        figure.savefig(content, format=kind, dpi=180, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()
