"""kbtools show and similar: an entity with its names, types and facts, and the entities nearest to it."""

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from kbtools.answering.answerer import Answerer
from kbtools.answering.name_candidates import find_entity
from kbtools.answering.records import Entity, Facts
from kbtools.cli.commands import Command
from kbtools.cli.display import ResultPrinter, echo, echo_json, named
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import lang_option, models_option, output_option, require_text
from kbtools.errors import UnknownEntity
from kbtools.kb.contract import indexed_nearest
from kbtools.text.printable import plural

_SHOWN = 20
"""Facts shown in each direction: both fit on a screen."""


def _lines(entity: Entity, outgoing: Facts, incoming: Facts | None) -> Iterator[str]:
    """Format an entity: names and types, then facts; those with it as object have a backward arrow."""
    yield named(entity.id, entity.name) + _languages_of(entity.name, entity)
    if entity.description:
        yield f"  {entity.description}"
    if entity.prior is not None:
        yield f"  prior {entity.prior:.3f}, the probability that its name means it"
    if entity.aliases:
        yield f"  also {', '.join(name + _languages_of(name, entity) for name in entity.aliases)}"
    if entity.types:
        yield f"  types {', '.join(kind.name or kind.id for kind in entity.types)}"
    yield f"  subject of {plural(outgoing.total, 'fact')}"
    for fact in outgoing.facts:
        yield f"    {fact.relation.name or fact.relation.id}  {named(fact.object.id, fact.object.name)}"
    yield from _more(outgoing)
    if incoming is None:
        yield "  object of facts that this backend does not index"
        return
    yield f"  object of {plural(incoming.total, 'fact')}"
    for fact in incoming.facts:
        yield f"    {named(fact.subject.id, fact.subject.name)}  {fact.relation.name or fact.relation.id}"
    yield from _more(incoming)


def _languages_of(name: str | None, entity: Entity) -> str:
    """Return the languages of a name in brackets if its entity has names in several, else an empty text."""
    several = len(set(entity.languages.values())) > 1
    return f" [{' '.join(entity.languages.get(name or '', ())) or '-'}]" if several else ""


def _more(facts: Facts) -> Iterator[str]:
    if facts.total > len(facts.facts):
        yield f"    and {facts.total - len(facts.facts):,} more (--limit)"


@click.command(
    "show",
    cls=Command,
    examples=("kbtools show sample.kb Harry Potter", "kbtools show sample.kb m.078ffw --limit 0 --format csv"),
)
@kb_argument("ENTITY...")
@click.option("--limit", default=_SHOWN, type=click.IntRange(0), help="Facts in each direction; 0 prints all.")
@lang_option
@output_option()
def command(home: Home, text: str | None, limit: int, lang: str | None, output: str | None) -> None:
    """Show ENTITY, an id or a name: its names, types, and facts in both directions.

    If several entities have the name, the likeliest is shown; kbtools lookup lists them all.
    """
    text = require_text(text, "an id or a name")
    answerer = home.open(lang=lang)
    shown = _entity_of(answerer, text)
    outgoing = answerer.facts(shown.id, limit=limit)
    incoming = None if shown.facts_in is None else answerer.facts(shown.id, reverse=True, limit=limit)
    if output == "json":
        facts = {"facts": outgoing.to_dict(), "incoming": incoming.to_dict() if incoming else None}
        echo_json(shown.to_json() | facts)
    elif output:
        printer = ResultPrinter(output)
        for facts_found in (outgoing, incoming):
            if facts_found is not None:
                printer.print(facts_found)
    else:
        echo(*_lines(shown, outgoing, incoming))


def _entity_of(answerer: Answerer, text: str) -> Entity:
    """Return the entity with an id, else with a name; raise UnknownEntity if there is none."""
    try:
        return answerer.entity(text)
    except UnknownEntity:
        matches = answerer.lookup(text, limit=2).matches
        if not matches:
            raise UnknownEntity(f"no entity has the id or the name {text!r}", entity=text) from None
    if len(matches) > 1:
        echo(f"other entities have the name {text!r} or a similar one; kbtools lookup lists them", err=True)
    return answerer.entity(matches[0].id)


@click.command(
    "similar",
    cls=Command,
    examples=("kbtools similar fbsq.kb harry potter", "kbtools similar fbsq.kb m.078ffw --models models --top 3"),
)
@kb_argument("ENTITY...")
@models_option
@click.option("--top", default=10, type=click.IntRange(1), help="Entities to show.")
@lang_option
@output_option()
def similar(home: Home, models: Path | None, text: str | None, top: int, lang: str | None, output: str | None) -> None:
    """Show the entities nearest to ENTITY, an id or a name, by the cosine of their vectors.

    The vectors come from kbtools index vectors, or, with --models, from kbtools train transe (a slower, exhaustive
    search).
    """
    text = require_text(text, "an id or a name")
    answerer = home.open()
    kb, named = answerer.kb, answerer.in_languages(lang).kb
    row = find_entity(named, text)
    if models:
        from kbtools.scorers.subjects.transe import nearest

        neighbours = nearest(kb, row, models=models, top=top)
    else:
        neighbours = indexed_nearest(kb, row, top=top)
    rows = np.array([near.entity_row for near in neighbours], dtype=np.uint32)
    cosines = [near.cosine for near in neighbours]
    table = [*zip(kb.ids(rows), named.names(rows), cosines, strict=True)]
    header = ("id", "name", "cosine")
    if output in ("csv", "tsv"):
        ResultPrinter(output).print_rows(header, table)
        return
    for entity_id, name, cosine in table:
        if output:
            echo_json(dict(zip(header, (entity_id, name, cosine), strict=True)))
        else:
            echo(f"{cosine:.4f}  {entity_id}  {name or '(no name)'}")
