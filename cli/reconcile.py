"""kbtools reconcile: finds the entities named in the rows of a table."""

from dataclasses import replace
from pathlib import Path

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import counted, echo
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.index import ENCODING, SHEET
from kbtools.cli.options import FILE, Between, lang_option, require_text
from kbtools.indexers.readers.reading import ReadOptions, Wide


@click.command(
    "reconcile",
    cls=Command,
    examples=(
        "kbtools reconcile films.csv --column title --kb sample.kb --out films-with-ids.csv",
        "kbtools reconcile sample.kb films.xlsx --column Title --extend directed_by --out films.csv",
    ),
)
@kb_argument("FILE")
@click.option("--column", required=True, metavar="HEADER", help="Column with the names, or ids, to reconcile.")
@click.option("--out", type=FILE, required=True, help="File to write: .csv, .tsv or .jsonl.")
@click.option("--type", "of_type", multiple=True, metavar="ID", help="Type that entities should have.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="COLUMN=RELATION",
    help="Column with values that entities should have for a relation.",
)
@click.option("--extend", multiple=True, metavar="RELATION", help="Relation whose values are added as a column.")
@click.option(
    "--threshold",
    type=Between(0, 100),
    metavar="SCORE",
    help="Also accept uncertain matches from this score on; ties never match.",
)
@lang_option
@SHEET
@ENCODING
@click.option("--query", metavar="SQL", help="Query for the rows of an SQLite or DuckDB database.")
@click.option("--max-bad", default=0.0, type=Between(0, 1), help="Share of unreadable rows to tolerate.")
def command(
    home: Home,
    text: str | None,
    column: str,
    out: Path,
    of_type: tuple[str, ...],
    properties: tuple[str, ...],
    extend: tuple[str, ...],
    threshold: float | None,
    lang: str | None,
    sheet: str | None,
    encoding: str | None,
    query: str | None,
    max_bad: float,
) -> None:
    """Find the entity named in each row of FILE, and add its id, name, score and match to the table.

    FILE is a table in any format that kbtools index reads. A row is a match if the name is the entity's own and no
    other entity fits as well; other rows show their best candidate for review. Separate several values of a cell with ;
    or |.
    """
    from kbtools.indexers.readers.plain_tables import read_plain_table
    from kbtools.serve.table_reconciliation import TableQuery, reconcile_table

    path = Path(require_text(text, "a FILE"))
    if path.exists() and out.exists() and out.samefile(path):
        raise click.BadParameter(f"{out} is the table itself, which would be lost", param_hint="--out")
    pairs = [pair.rpartition("=") for pair in properties]
    for pair, (head, _, relation) in zip(properties, pairs, strict=True):
        if not head or not relation:
            raise click.BadParameter(f"found {pair!r}, expected COLUMN=RELATION", param_hint="--property")
    wide = replace(Wide(), name=(column,), sheet=sheet or "", query=query or "")
    table = read_plain_table(path, ReadOptions(wide=wide, encoding=encoding or "", max_bad=max_bad))
    echo(*table.notes, err=True)
    table_query = TableQuery(
        column=column,
        types=of_type,
        properties={head: relation for head, _, relation in pairs},
        extend=extend,
        threshold=threshold,
    )
    with counted(path.name, lambda: len(table), beside_output=False) as count:
        summary = reconcile_table(home.open(lang=lang), table, table_query, out, count=count)
    echo(f"{out}: {summary}", err=True)
