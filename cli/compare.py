"""kbtools compare and report: measure pruners and scorers against each other, and report the results."""

import sys
from pathlib import Path
from typing import Any

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import echo, echo_document, overwrite
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import FILE, inverse_option, json_option, lang_option, models_option
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Grid, split_names
from kbtools.comparison.report_files import report_json, write_page, write_page_with_pictures, write_tables
from kbtools.comparison.run_folder import open_run
from kbtools.comparison.stages import StageProgress
from kbtools.comparison.summary import Report, make_report, terminal_table
from kbtools.errors import MissingDependency
from kbtools.pruning import UNGUIDED
from kbtools.ranking.models import LEXICAL
from kbtools.ranking.parts import DEFAULT_TAGGER
from kbtools.ranking.system import POPULARITY


def _shown(quiet: bool) -> StageProgress:
    """Show the current stage on standard error, with its progress on a terminal."""
    begun: set[str] = set()

    def watch(stage: str, done: int, total: int) -> None:
        if quiet:
            return
        if sys.stderr.isatty():
            overwrite(f"{stage}: {done:,} of {total:,}", last=done >= total)
        # In a log a stage is one line, at its beginning.
        elif stage not in begun:
            begun.add(stage)
            echo(f"{stage}: {total:,} questions", err=True)

    return watch


def _names(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Read names separated by commas."""
    listed = split_names(value)
    if not listed:
        raise click.BadParameter("expected at least one name, separated by commas")
    return listed


@click.command(
    "compare",
    cls=Command,
    examples=(
        "kbtools compare sample.kb --questions test.txt --valid valid.txt --out runs/sample",
        "kbtools compare sample.kb --questions test.txt --out runs/sample --models models --scorer bigru,lexical",
    ),
)
@kb_argument()
@click.option("--questions", required=True, type=FILE, help="Questions with gold answers.")
@click.option("--out", required=True, type=FILE, help="The folder of the run; an existing run is resumed.")
@click.option(
    "--pruning",
    default=",".join(UNGUIDED),
    callback=_names,
    help="Pruners; also focused, focused-kb, focused-k and focused-idf, with --tagger, dense and dense-last, with "
    "vectors.",
)
@click.option(
    "--scorer",
    default=LEXICAL,
    callback=_names,
    help="Relation scorers: plugins, or module:Class; a&b is the average of two.",
)
@click.option(
    "--subject",
    default=POPULARITY,
    callback=_names,
    help="Subject scorers: plugins, popularity (the default of kbtools query), or none.",
)
@click.option(
    "--ranker",
    callback=lambda context, parameter, value: value and _names(context, parameter, value),
    help="Learned rankers to compare with the weighted sum, from kbtools train ranking.  [default: all fitted ones]",
)
@click.option("--tagger", default=DEFAULT_TAGGER, help="The tagger of the focused pruners.")
@inverse_option
@lang_option
@models_option
@click.option("--valid", type=FILE, help="Validation questions for calibrating confidence.")
@click.option("--tune", is_flag=True, help="Choose the weights of every cell on the validation questions.")
@click.option("--limit", type=click.IntRange(1), help="Use only the first N questions.")
@click.option(
    "--errors", default=0, type=click.IntRange(0), help="Write this number of lost questions per cell and cause."
)
@click.option("--quiet", is_flag=True, help="Print only the table.")
@json_option
def command(
    home: Home,
    questions: Path,
    out: Path,
    pruning: tuple[str, ...],
    scorer: tuple[str, ...],
    subject: tuple[str, ...],
    ranker: tuple[str, ...] | None,
    tagger: str,
    inverse: bool | None,
    lang: str | None,
    models: Path | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare every pruner with every scorer on questions with known answers; separate names with commas.

    Controls are always included: n-gram-idf with the untrained scorer, and subject scorers that see nothing or only
    count. Results are kept: run the command again to resume a stopped run, or to add other names to it.
    """
    if options["tune"] and not options["valid"]:
        raise click.UsageError("--tune chooses weights on validation questions; name their file with --valid")
    answerer = home.open_intact(models=models, tagger=tagger, lang=lang)
    request = Request(questions, out, Grid(pruning, scorer, subject, ranker), home.path, **options)
    report_of_run = make_report(compare(answerer.both_ways() if inverse else answerer, request, watch=_shown(quiet)))
    write_tables(report_of_run)
    _show_report(report_of_run, as_json)


@click.command(
    "report", cls=Command, examples=("kbtools report runs/sample", "kbtools report runs/sample --json > figures.json")
)
@click.argument("run", type=FILE)
@json_option
def report(run: Path, as_json: bool) -> None:
    """Write tables, pictures and one HTML page into RUN, the folder of kbtools compare, and print the table.

    Nothing is recomputed; neither the knowledge base nor the questions are needed.
    """
    report_of_run = make_report(open_run(run))
    write_tables(report_of_run)
    try:
        page = write_page_with_pictures(report_of_run)
    except MissingDependency as error:
        page = write_page(report_of_run)
        echo(f"{error}; the page has no pictures", err=True)
    _show_report(report_of_run, as_json)
    echo(f"{page} written", err=True)


def _show_report(report: Report, as_json: bool) -> None:
    """Print the table of a run, or its figures as JSON."""
    if as_json:
        echo_document(report_json(report))
    else:
        echo(*terminal_table(report).split("\n"))
