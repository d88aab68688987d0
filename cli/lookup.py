"""kbtools lookup and link: find the entities meant by a name or in running text."""

from collections.abc import Iterator
from functools import partial

import click

from kbtools.answering.limits import TOP
from kbtools.answering.records import LinkedText, LookupResult
from kbtools.answering.running_text import CANDIDATES, THRESHOLD
from kbtools.cli.commands import Command
from kbtools.cli.display import ResultPrinter, named
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import Between, lang_option, output_option, require_text
from kbtools.cli.query import texts


def _lines(result: LookupResult, *, explain: bool) -> Iterator[str]:
    """Format a look-up with one match per line."""
    yield result.text
    if not result.matches:
        yield "  no entity has this name" + (f" and the type {result.type}" if result.type else "")
    if result.other_languages:
        yield f"  no name in {', '.join(result.languages)} is similar; in other languages:"
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
@click.option("--explain", is_flag=True, help="Explain the order of the entities.")
@output_option()
def command(
    home: Home, text: str | None, of_type: str | None, lang: str | None, limit: int, explain: bool, output: str | None
) -> None:
    """Find the entities called NAME, best first; `-` reads names from standard input.

    Names that differ in case, accents or punctuation count as the same; if there are none, similar names are found. The
    score, 0 to 100, ranks by similarity first, then by how likely the name is to mean this entity.
    """
    name = require_text(text, "a NAME")
    answerer = home.open()
    printer = ResultPrinter(output, partial(_lines, explain=explain))
    for result in answerer.lookup_many(texts(name, None), type=of_type, lang=lang, limit=limit):
        printer.print(result)


def _mention_lines(linked: LinkedText, *, explain: bool) -> Iterator[str]:
    """Format a linked text, one mention per line with its first candidate, or with all candidates and the reasons."""
    yield linked.text
    if not linked.mentions:
        yield "  no mention"
    for mention in linked.mentions:
        first, *others = mention.candidates
        place = f"{mention.start}-{mention.end}"
        yield f"{place:>9}  {mention.score:.3f}  {mention.text}: {named(first.id, first.name)}" + (
            f" or {len(others)} more" if others and not explain else ""
        )
        for candidate in mention.candidates if explain else ():
            yield f"{'':>13}{candidate.score:6.2f}  {named(candidate.id, candidate.name)}"
            yield from (f"{'':>21}{reason}" for reason in candidate.reasons)


@click.command(
    "link",
    cls=Command,
    examples=(
        "kbtools link sample.kb J. K. Rowling lives in Edinburgh",
        "kbtools link sample.kb - --json < articles.txt",
    ),
)
@kb_argument("TEXT...")
@click.option(
    "--threshold",
    default=THRESHOLD,
    type=Between(0, 1),
    help="Leave out mentions with a lower score; a higher threshold links less, but more reliably.",
)
@click.option("--limit", default=CANDIDATES, type=click.IntRange(0), help="Candidates of each mention; 0 prints all.")
@lang_option
@click.option("--context", is_flag=True, help="Use the surrounding text to choose between entities with the same name.")
@click.option("--explain", is_flag=True, help="Print all candidates, and explain their order.")
@output_option()
def link(
    home: Home,
    text: str | None,
    threshold: float,
    limit: int,
    lang: str | None,
    context: bool,
    explain: bool,
    output: str | None,
) -> None:
    """Find the entities that TEXT mentions, or each line of standard input if TEXT is `-`.

    Mentions do not overlap. Each has candidates, best first, and a score from 0 to 1: how likely it is to mean the
    first candidate.
    """
    text = require_text(text, "a TEXT")
    answerer = home.open()
    printer = ResultPrinter(output, partial(_mention_lines, explain=explain))
    for running in texts(text, None):
        linked = answerer.link(running, threshold=threshold, limit=limit, lang=lang, context=context)
        printer.print(linked)
