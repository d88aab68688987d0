"""kbtools similar: the entities whose vectors are nearest to that of another."""

from pathlib import Path

import click
import numpy as np

from kbtools.answering.name_candidates import find_entity
from kbtools.cli.commands import Command
from kbtools.cli.display import ResultPrinter, echo, echo_json
from kbtools.cli.homes import Elasticsearch, elasticsearch_options, open_home
from kbtools.cli.options import kb_argument, lang_option, models_option, output_option, require_text
from kbtools.kb.vector_neighbours import indexed_nearest


@click.command(
    "similar",
    cls=Command,
    examples=("kbtools similar fbsq.kb harry potter", "kbtools similar fbsq.kb m.078ffw --models models --top 3"),
)
@kb_argument("ENTITY...")
@elasticsearch_options
@models_option
@click.option("--top", default=10, type=click.IntRange(1), help="Entities to show.")
@lang_option
@output_option()
def command(
    path: Path,
    elasticsearch: Elasticsearch | None,
    models: Path | None,
    text: str | None,
    top: int,
    lang: str | None,
    output: str | None,
) -> None:
    """Show the entities nearest to ENTITY, an id or a name, by the cosine of their vectors.

    The vectors are those that kbtools index vectors put beside the knowledge base, or with --models those of kbtools
    train transe, one by one.
    """
    text = require_text(text, "an id or a name")
    answerer = open_home(path, elasticsearch)
    kb = answerer.kb
    named = kb if lang is None else answerer.in_languages(lang).kb
    row = find_entity(named, text)
    if models:
        from kbtools.scorers.entities.transe import nearest

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
