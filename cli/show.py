"""kbtools show: an entity with its names, types and facts."""

from collections.abc import Iterator
from pathlib import Path

import click

from kbtools.answering.records import Entity, Facts
from kbtools.cli.display import echo, echo_json, named
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import json_option, kb_option, lang_option

SHOWN = 20
"""Facts of each direction: both fit on a screen."""


def lines(entity: Entity, outgoing: Facts, incoming: Facts | None) -> Iterator[str]:
    """Lay an entity out: names and types, then facts, those that it is the object of with an arrow back."""
    yield named(entity.id, entity.name) + languages_of(entity.name, entity)
    if entity.description:
        yield f"  {entity.description}"
    if entity.prior is not None:
        yield f"  prior {entity.prior:.3f}, how likely its name means it"
    if entity.aliases:
        yield f"  also {', '.join(name + languages_of(name, entity) for name in entity.aliases)}"
    if entity.types:
        yield f"  types {', '.join(kind.name or kind.id for kind in entity.types)}"
    yield f"  subject of {outgoing.total:,} facts"
    for fact in outgoing.facts:
        yield f"    {fact.relation.name or fact.relation.id}  {named(fact.object.id, fact.object.name)}"
    yield from more(outgoing)
    if incoming is None:
        yield "  object of facts that this backend does not index"
        return
    yield f"  object of {incoming.total:,} facts"
    for fact in incoming.facts:
        yield f"    {named(fact.subject.id, fact.subject.name)}  {fact.relation.name or fact.relation.id}"
    yield from more(incoming)


def languages_of(name: str | None, entity: Entity) -> str:
    """Write the languages of a name behind it, where its entity has names in several."""
    several = len(set(entity.languages.values())) > 1
    return f" [{' '.join(entity.languages.get(name or '', ())) or '-'}]" if several else ""


def more(facts: Facts) -> Iterator[str]:
    if facts.total > len(facts.facts):
        yield f"    and {facts.total - len(facts.facts):,} more (--limit)"


@click.command("show")
@kb_option
@click.argument("entity")
@click.option(
    "--limit", default=SHOWN, show_default=True, type=click.IntRange(0), help="Facts of each direction; 0 gives all."
)
@lang_option
@json_option
@elasticsearch_options
def command(
    path: Path, entity: str, limit: int, lang: str | None, as_json: bool, elasticsearch: Elasticsearch | None
) -> None:
    """Show ENTITY, an id: its names and types, the facts about it, and those that it is the object of.

    kbtools lookup finds the id of a name.
    """
    answerer = open_home(path, elasticsearch)
    answerer = answerer if lang is None else answerer.in_languages(lang)
    shown = answerer.entity(entity)
    outgoing = answerer.facts(entity, limit=limit)
    incoming = None if shown.facts_in is None else answerer.facts(entity, reverse=True, limit=limit)
    if as_json:
        facts = {"facts": outgoing.to_dict(), "incoming": incoming.to_dict() if incoming else None}
        echo_json(shown.to_json() | facts)
    else:
        echo(*lines(shown, outgoing, incoming))
