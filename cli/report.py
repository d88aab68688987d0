"""kbtools report: tables, pictures and a page of a comparison, from what is on disk."""

from pathlib import Path

import click

from kbtools.cli.options import json_option
from kbtools.comparison.report.report_files import report_json, write_page, write_page_with_pictures, write_tables
from kbtools.comparison.report.summary import make_report, terminal_table
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
        click.echo(f"{error}; the page is without them", err=True)
    click.echo(report_json(report) if as_json else terminal_table(report))
    click.echo(f"{page} written", err=True)
