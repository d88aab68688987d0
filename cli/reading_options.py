"""Options for reading files, shared by kbtools index and kbtools update."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any, cast

import click

from kbtools.cli.options import Command, chosen_jobs, take_options
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES
from kbtools.indexers.readers.reading import Predicates, ReadOptions, wide_of
from kbtools.kb.table_heads import USUAL

_PREDICATES = ("name", "alias", "description", "type")
"""Parts of an entity whose RDF predicates can be named."""

SPELLINGS = {f"--{part}-predicate": f"--predicate {part}={{}}" for part in _PREDICATES}

LANG = click.option(
    "--lang",
    "languages",
    default=DEFAULT_LANGUAGES,
    help="Languages of names, preferred first; 'de,' reads German, then all others, '' the default, then all others.",
)
LIST_SEPARATOR = click.option(
    "--list-separator", metavar="TEXT", help="Separator of several values in a cell, such as |."
)
MAX_BAD = click.option(
    "--max-bad", default=0.001, type=click.FloatRange(0, 1), help="Share of unreadable lines to tolerate."
)
CLOSURE = click.option(
    "--closure", is_flag=True, help="Add the superclasses of types (P279, rdfs:subClassOf) to entities."
)
COLUMN = click.option(
    "--column",
    multiple=True,
    metavar="PART=HEADER",
    help="Column of a table, such as subject=head; with link=HEADER its cells are linked by name.",
)
_LINK = "link"
"""The part of columns with names of entities; several columns may have it."""
_PREDICATE = click.option(
    "--predicate",
    multiple=True,
    metavar="PART=IRI",
    help=f"Predicate of RDF, replacing the usual ones; PART is {', '.join(_PREDICATES[:-1])} or {_PREDICATES[-1]}.",
)
_FORMAT = click.option(
    "--format",
    "file_format",
    metavar="NAME",
    help="Reader for all files, or module:Class; by default, chosen by suffix.",
)


def reading_options(command: Command) -> Command:
    """Pass languages, columns and predicates, list separator, format and share of bad lines as `options`."""
    return take_options(gather_options(command), [LANG, COLUMN, _PREDICATE, LIST_SEPARATOR, _FORMAT, MAX_BAD])


def gather_options(command: Command) -> Command:
    """Gather the read options of a command into one argument, `options`."""

    @wraps(command)
    def gathered(
        *args: Any,
        languages: str,
        max_bad: float,
        column: tuple[str, ...] = (),
        predicate: tuple[str, ...] = (),
        list_separator: str | None = None,
        file_format: str | None = None,
        **kwargs: Any,
    ) -> object:
        pairs = _columns_of(column)
        options = ReadOptions(
            language=languages,
            predicates=_predicates_of(predicate),
            columns=(columns := {part: header for part, header in pairs if part != _LINK}),
            wide=wide_of(columns | {_LINK: [header for part, header in pairs if part == _LINK]}),
            max_bad=max_bad,
            list_separator=list_separator or None,
            format=file_format,
            jobs=chosen_jobs(),
        )
        return command(*args, options=options, **kwargs)

    return cast(Command, gathered)


def _columns_of(pairs: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the pairs of `--column subject=head` options."""
    parts = (*USUAL, "id", _LINK)
    named = read_pairs(pairs, parts=parts, option="--column", expected="PART=HEADER, such as subject=head")
    return [("entity" if part == "id" else part, header) for part, header in named]


def _predicates_of(pairs: tuple[str, ...]) -> Predicates:
    """Return the predicates of `--predicate name=IRI` options; other parts keep their usual predicates."""
    named: dict[str, set[str]] = {}
    expected = "PART=IRI, such as name=http://schema.org/name"
    for part, iri in read_pairs(pairs, parts=_PREDICATES, option="--predicate", expected=expected):
        named.setdefault(part, set()).add(iri)
    return replace(Predicates(), **{part: frozenset(iris) for part, iris in named.items()})


def read_pairs(
    pairs: tuple[str, ...], *, parts: Collection[str], option: str, expected: str
) -> Iterator[tuple[str, str]]:
    """Yield the two sides of the first equals sign in each text; raise BadParameter for an unknown part."""
    for text in pairs:
        part, _, value = text.partition("=")
        if not value:
            raise click.BadParameter(f"found {text!r}, expected {expected}", param_hint=option)
        if part not in parts:
            raise click.BadParameter(f"found {part!r}, expected one of {', '.join(parts)}", param_hint=option)
        yield part, value
