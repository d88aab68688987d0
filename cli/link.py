"""kbtools link: from running text to the entities that it mentions."""

from collections.abc import Iterator
from pathlib import Path

import click

from kbtools.answering.records import LinkedText
from kbtools.answering.running_text import CANDIDATES, THRESHOLD
from kbtools.cli.display import echo, echo_json, named
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import Between, json_option, kb_option, lang_option
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


@click.command("link")
@kb_option
@click.argument("text")
@click.option(
    "--threshold",
    default=THRESHOLD,
    show_default=True,
    type=Between(0, 1),
    help="Leave out mentions that score lower: higher links less, and more surely.",
)
@click.option(
    "--limit",
    default=CANDIDATES,
    show_default=True,
    type=click.IntRange(0),
    help="Candidates of each mention; 0 gives all.",
)
@lang_option
@click.option("--explain", is_flag=True, help="Show all candidates, and why each stands where it does.")
@json_option
@elasticsearch_options
def command(
    path: Path,
    text: str,
    threshold: float,
    limit: int,
    lang: str | None,
    explain: bool,
    as_json: bool,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Find the entities that TEXT mentions, or each line of standard input if TEXT is `-`.

    Mentions do not overlap; each has its candidates, best first, and a score from 0 to 1: how likely its words mean the
    first of them.
    """
    if not text.strip():
        raise click.UsageError("the text is empty")
    answerer = open_home(path, elasticsearch)
    for running in texts(text, None):
        linked = answerer.link(running, threshold=threshold, limit=limit, lang=lang)
        if as_json:
            echo_json(linked.to_json())
        else:
            echo(*lines(linked, explain=explain))
