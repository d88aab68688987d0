"""What a report says, table by table, before it is Markdown or HTML."""

from collections.abc import Sequence

from kbtools.comparison.calibration import CalibrationFigures, calibration_figures, run_calibration
from kbtools.comparison.causes import Cause
from kbtools.comparison.figures import MEANINGS
from kbtools.comparison.report.paper import paper_sections
from kbtools.comparison.report.section import Section
from kbtools.comparison.report.summary import Report, is_control
from kbtools.comparison.report.tables import COLUMNS, show, show_interval
from kbtools.comparison.significance import Difference

LEAST = (0.0, 0.3, 0.5, 0.7, 0.9)
"""Confidences below which no answer is given."""


def make_sections(report: Report) -> list[Section]:
    """Lay out everything that is said about a run."""
    return [
        figures_section(report),
        significance_section(report.against_best),
        causes_section(report),
        calibration_section(calibration_figures(report.run)),
        abstention_section(report),
        *paper_sections(report),
    ]


def figures_section(report: Report) -> Section:
    return Section(
        "Figures",
        "Shares in per cent with 95 % bootstrap intervals; a star marks a control.",
        ["pruning", "scorer", "subject", *COLUMNS.values()],
        [
            [*found.cell[:2], found.cell.subject + (" *" if is_control(found.cell) else "")]
            + [f"{show(name, found.figures[name])} ({show_interval(name, found.figures[name])})" for name in COLUMNS]
            for found in report.cells
        ],
        words=3,
        notes=[f"{COLUMNS[name]}: {meaning}" for name, meaning in MEANINGS.items()],
    )


def significance_section(differences: Sequence[Difference]) -> Section:
    return Section(
        "Significance",
        "The best cell against every other on the same questions: answers won and lost, McNemar's exact test over "
        "them, and the paired bootstrap; significance.csv has every two cells.",
        ["cell", "against", "points", "95 %", "won", "lost", "McNemar p", "bootstrap p"],
        [
            [
                one.one.label,
                one.other.label,
                f"{100 * one.difference:+.2f}",
                f"{100 * one.low:+.2f} to {100 * one.high:+.2f}",
                f"{one.won:,.1f}",
                f"{one.lost:,.1f}",
                show_probability(one.mcnemar),
                show_probability(one.bootstrap),
            ]
            for one in differences
        ],
        words=2,
    )


def show_probability(probability: float) -> str:
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"


def causes_section(report: Report) -> Section:
    causes = [cause for cause in Cause if cause is not Cause.NONE]
    return Section(
        "Lost questions by cause",
        "How many questions, and how many answers they cost: of a tie, the share that chance would lose.",
        ["cell", *(cause.label for cause in causes)],
        [
            [found.cell.label, *(f"{found.causes[cause][0]:,} ({found.causes[cause][1]:,.1f})" for cause in causes)]
            for found in report.cells
        ],
        notes=[f"{cause.label}: {cause.meaning}" for cause in causes],
    )


def calibration_section(found: Sequence[CalibrationFigures]) -> Section:
    return Section(
        "Calibration",
        "Confidence is the winner's share of the pool; calibrated on the validation questions that the knowledge base "
        "can answer, where there are some.",
        ["cell", "ECE", "calibrated", "confidence when right", "when wrong", "outside the knowledge base", "AUROC"],
        [
            [
                one.cell.label,
                f"{one.error:.3f}",
                "-" if one.calibrated_error is None else f"{one.calibrated_error:.3f}",
                f"{one.when_right:.2f}",
                f"{one.when_wrong:.2f}",
                f"{one.outside:.2f}",
                f"{one.auroc:.3f}",
            ]
            for one in found
        ],
        notes=[
            "ECE: expected calibration error in ten bins, lower is better",
            "outside the knowledge base: mean confidence when the gold subject is taken out of the pool, "
            "so that no answer is right",
            "AUROC: how well confidence tells right answers from wrong ones and from questions outside; 0.5 is chance",
        ],
    )


def abstention_section(report: Report) -> Section:
    """Say what the best cell gains and loses by giving no answer below a confidence."""
    cell = report.best.cell
    outcomes, fitted = report.run.cells[cell], run_calibration(report.run, cell)
    confidence, outside = outcomes["confidence"], outcomes["confidence_without"]
    if fitted is not None:
        confidence, outside = fitted.apply(confidence), fitted.apply(outside)
    rows = []
    for least in LEAST:
        answered = (confidence >= least) & (outcomes["pool"] > 0)
        right = float(outcomes["strict"][answered].mean()) if answered.any() else float("nan")
        shares = (answered.mean(), right, (outside < least).mean())
        rows.append([f"{least:.1f}", *(f"{100 * share:.1f}" for share in shares)])
    how = "calibrated" if fitted is not None else "not calibrated, for want of validation questions"
    return Section(
        "Abstention",
        f"{cell.label}, where nothing is answered below a confidence of P; confidence is {how}.",
        ["P", "answered", "of them right", "refused outside the knowledge base"],
        rows,
        notes=["outside the knowledge base: every question again, with its gold subject taken out of the pool"],
    )
