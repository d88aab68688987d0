"""kbtools lookup: from a name to the entities that it may mean."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from kbtools.answering.limits import TOP
from kbtools.answering.records import LookupResult
from kbtools.cli.commands import Command
from kbtools.cli.display import ResultPrinter, named
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import kb_argument, lang_option, output_option, require_text
from kbtools.cli.query import texts


def lines(result: LookupResult, *, explain: bool) -> Iterator[str]:
    """Lay a look-up out, a match a line."""
    yield result.text
    if not result.matches:
        yield "  no entity has that name" + (f" and the type {result.type}" if result.type else "")
    if result.other_languages:
        yield f"  no name in {', '.join(result.languages)} is like it; in other languages:"
    for place, match in enumerate(result.matches, 1):
        types = ", ".join(kind.name or kind.id for kind in match.types)
        found_by = f"[{match.rung}: {match.matched_name}]"
        shown = named(match.id, match.name) + (f", {match.description}" if match.description else "")
        yield f"{place:>3}  {match.score:6.2f}  {shown}  {found_by}  {types}".rstrip()
        if explain:
            yield from (f"      {reason}" for reason in match.reasons)


@click.command(
    "lookup",
    cls=Command,
    examples=(
        "kbtools lookup sample.kb pirates of the carribean --type film.film",
        "kbtools lookup sample.kb - --format csv < names.txt",
    ),
)
@kb_argument("NAME...")
@click.option("--type", "of_type", metavar="ID", help="Only entities of this type.")
@lang_option
@click.option("--limit", default=TOP, type=click.IntRange(0), help="Entities to print; 0 prints all.")
@click.option("--explain", is_flag=True, help="Print why each entity has its place.")
@output_option()
@elasticsearch_options
def command(
    path: Path,
    text: str | None,
    of_type: str | None,
    lang: str | None,
    limit: int,
    explain: bool,
    output: str | None,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Find the entities that bear NAME, or each line of standard input if NAME is `-`, best first.

    Where no name is the same up to case, accents, punctuation and the like, names that resemble it are found. The
    score, 0 to 100, tells how well the name fits, then how likely it means this entity.
    """
    name = require_text(text, "a NAME")
    answerer = open_home(path, elasticsearch)
    printer = ResultPrinter(output, partial(lines, explain=explain))
    for result in answerer.lookup_many(texts(name, None), type=of_type, lang=lang, limit=limit):
        printer.print(result)
