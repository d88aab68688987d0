"""kbtools report: tables, pictures and a page of a comparison, from what is on disk."""

from pathlib import Path

import click

from kbtools.cli.display import echo, echo_document
from kbtools.cli.options import json_option
from kbtools.comparison.report.report_files import report_json, write_page, write_page_with_pictures, write_tables
from kbtools.comparison.report.summary import Report, make_report, terminal_table
from kbtools.comparison.run_folder import open_run
from kbtools.errors import MissingDependency


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@json_option
def command(run: Path, as_json: bool) -> None:
    """Write tables, pictures and one HTML page into RUN, the folder of kbtools compare, and print the table.

    Nothing is computed again, and neither the knowledge base nor the questions are needed.
    """
    report = make_report(open_run(run))
    write_tables(report)
    try:
        page = write_page_with_pictures(report)
    except MissingDependency as error:
        page = write_page(report)
        echo(f"{error}; the page is without them", err=True)
    show_report(report, as_json)
    echo(f"{page} written", err=True)


def show_report(report: Report, as_json: bool) -> None:
    """Print the table of a run, or its figures as JSON."""
    if as_json:
        echo_document(report_json(report))
    else:
        echo(*terminal_table(report).split("\n"))
