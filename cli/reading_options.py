"""Options of reading files, which kbtools index and kbtools update share."""

from functools import wraps
from typing import Any, cast

import click

from kbtools.cli.options import Command, take_options
from kbtools.indexers.readers.labels import DEFAULT_LANGUAGES
from kbtools.indexers.readers.reading import Predicates, ReadOptions
from kbtools.kb.table_heads import USUAL


def reading_options(command: Command) -> Command:
    """Take languages, predicates, columns, format and the share of bad lines as one argument, `options`."""

    @wraps(command)
    def gathered(
        *args: Any,
        lang: str,
        name_predicate: tuple[str, ...],
        alias_predicate: tuple[str, ...],
        description_predicate: tuple[str, ...],
        type_predicate: tuple[str, ...],
        column: tuple[str, ...],
        list_separator: str | None,
        format: str | None,
        max_bad: float,
        **kwargs: Any,
    ) -> object:
        usual = Predicates()
        options = ReadOptions(
            language=lang,
            predicates=Predicates(
                name=predicates(usual.name, name_predicate),
                alias=predicates(usual.alias, alias_predicate),
                description=predicates(usual.description, description_predicate),
                type=predicates(usual.type, type_predicate),
            ),
            columns=columns_of(column),
            max_bad=max_bad,
            list_separator=list_separator or None,
            format=format,
        )
        return command(*args, options=options, **kwargs)

    options = [
        click.option(
            "--lang",
            default=DEFAULT_LANGUAGES,
            show_default=True,
            help="Languages of names, the preferred first; 'de,' takes German before all others, '' the default before "
            "all.",
        ),
        click.option("--name-predicate", multiple=True, help="RDF predicate of names, in place of the usual ones."),
        click.option("--alias-predicate", multiple=True, help="RDF predicate of aliases, in place of the usual ones."),
        click.option(
            "--description-predicate", multiple=True, help="RDF predicate of descriptions, in place of the usual ones."
        ),
        click.option("--type-predicate", multiple=True, help="RDF predicate of types, in place of the usual ones."),
        click.option("--column", multiple=True, metavar="NAME=HEADER", help="Column of a table, such as subject=head."),
        click.option("--list-separator", metavar="TEXT", help="What divides the values of a cell, such as |."),
        click.option(
            "--format", metavar="NAME", help="Reader of all sources, or module:Class; found by suffix if not given."
        ),
        click.option(
            "--max-bad",
            default=0.001,
            show_default=True,
            type=click.FloatRange(0, 1),
            help="Share of lines that may be unreadable.",
        ),
    ]
    return cast(Command, take_options(gathered, options))


def columns_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read `--column subject=head` options."""
    # A header may hold an equals sign itself: only the first one divides.
    columns = dict(pair.partition("=")[::2] for pair in pairs)
    if not all(columns.values()):
        raise click.BadParameter("expected NAME=HEADER, such as subject=head", param_hint="--column")
    if unknown := sorted(set(columns) - set(USUAL)):
        known = ", ".join(USUAL)
        raise click.BadParameter(f"found {unknown[0]!r}, expected one of {known}", param_hint="--column")
    return columns


def predicates(usual: frozenset[str], named: tuple[str, ...]) -> frozenset[str]:
    """Take the predicates that the command line names, if there are any, in place of the usual ones."""
    return frozenset(named) or usual
