"""kbtools similar: the entities whose vectors are nearest to that of another."""

from pathlib import Path

import click
import numpy as np

from kbtools.answering.bearers import find_entity
from kbtools.cli.display import echo, echo_json
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import json_option, kb_option, lang_option, models_option
from kbtools.kb.vector_neighbours import indexed_nearest


@click.command("similar")
@kb_option
@elasticsearch_options
@models_option
@click.argument("entity")
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="Entities to show.")
@lang_option
@json_option
def command(
    path: Path,
    elasticsearch: Elasticsearch | None,
    models: Path | None,
    entity: str,
    top: int,
    lang: str | None,
    as_json: bool,
) -> None:
    """Show the entities nearest to ENTITY, an id or a name, by the cosine of their vectors.

    The vectors are those that kbtools index vectors put beside the knowledge base, or with --models those of kbtools
    train transe, one by one.
    """
    answerer = open_home(path, elasticsearch)
    kb = answerer.kb
    named = kb if lang is None else answerer.in_languages(lang).kb
    row = find_entity(named, entity)
    if models:
        from kbtools.scorers.entities.neighbours import nearest

        neighbours = nearest(kb, row, models=models, top=top)
    else:
        neighbours = indexed_nearest(kb, row, top=top)
    rows = np.array([near.entity for near in neighbours], dtype=np.uint32)
    for near, entity_id, name in zip(neighbours, kb.ids(rows), named.names(rows), strict=True):
        if as_json:
            echo_json({"id": entity_id, "name": name, "cosine": near.cosine})
        else:
            echo(f"{near.cosine:.4f}  {entity_id}  {name or '(no name)'}")
