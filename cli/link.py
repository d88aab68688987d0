"""kbtools link: from running text to the entities that it mentions."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from kbtools.answering.records import LinkedText
from kbtools.answering.running_text import CANDIDATES, THRESHOLD
from kbtools.cli.commands import Command
from kbtools.cli.display import ResultPrinter, named
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import Between, kb_argument, lang_option, output_option, require_text
from kbtools.cli.query import texts


def lines(linked: LinkedText, *, explain: bool) -> Iterator[str]:
    """Lay a linked text out, a mention a line with its first candidate, or with all of them and the reasons."""
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
    help="Leave out mentions that score lower: higher links less, and more surely.",
)
@click.option("--limit", default=CANDIDATES, type=click.IntRange(0), help="Candidates of each mention; 0 prints all.")
@lang_option
@click.option("--explain", is_flag=True, help="Print all candidates, and why each has its place.")
@output_option()
@elasticsearch_options
def command(
    path: Path,
    text: str | None,
    threshold: float,
    limit: int,
    lang: str | None,
    explain: bool,
    output: str | None,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Find the entities that TEXT mentions, or each line of standard input if TEXT is `-`.

    Mentions do not overlap; each has its candidates, best first, and a score from 0 to 1: how likely its words mean the
    first of them.
    """
    text = require_text(text, "a TEXT")
    answerer = open_home(path, elasticsearch)
    printer = ResultPrinter(output, partial(lines, explain=explain))
    for running in texts(text, None):
        linked = answerer.link(running, threshold=threshold, limit=limit, lang=lang)
        printer.print(linked)
