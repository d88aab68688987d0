"""kbtools lookup: from a name to the entities that it may mean."""

from collections.abc import Iterator
from pathlib import Path

import click

from kbtools.answering.limits import TOP
from kbtools.answering.records import LookupResult
from kbtools.cli.display import echo, echo_json, named
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import json_option, kb_option, lang_option
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


@click.command("lookup")
@kb_option
@click.argument("name")
@click.option("--type", "of_type", metavar="ID", help="Entities of this type alone.")
@lang_option
@click.option("--limit", default=TOP, show_default=True, type=click.IntRange(0), help="Entities to give; 0 gives all.")
@click.option("--explain", is_flag=True, help="Say why each entity stands where it does.")
@json_option
@elasticsearch_options
def command(
    path: Path,
    name: str,
    of_type: str | None,
    lang: str | None,
    limit: int,
    explain: bool,
    as_json: bool,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Find the entities that bear NAME, or each line of standard input if NAME is `-`, best first.

    Where no name is the same up to case, accents, punctuation and the like, names that resemble it are found. The
    score, 0 to 100, tells how well the name fits, then how likely it means this entity.
    """
    if not name.strip():
        raise click.UsageError("the name is empty")
    answerer = open_home(path, elasticsearch)
    for result in answerer.lookup_many(texts(name, None), type=of_type, lang=lang, limit=limit):
        if as_json:
            echo_json(result.to_json())
        else:
            echo(*lines(result, explain=explain))
