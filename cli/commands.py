"""Classes of commands: options in sections, examples, other spellings of options, commands with parts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

_SECTIONS = {
    "Knowledge base": "path paths name elasticsearch models lang inverse out",
    "Files": "facts names types rdf table wikidata relations redirects counts variants add remove also questions train "
    "valid vectors ids",
    "Reading": "languages column predicate list_separator file_format max_bad subject_column name_columns "
    "alias_columns description_columns type_columns link_columns sheet encoding query min_sitelinks keep_type "
    "keep_property keep_ids closure",
    "System": "pruning scorer subject ranker tagger in_doubt of_type properties threshold",
    "Output": "extend top limit answers abstain calibration explain output as_json timing quiet errors",
}
"""Sections of a help page with their parameters; all others are in the last section."""


class Command(click.Command):
    """A command with its options in sections, two examples, and other spellings of its options.

    `spellings` maps a spelling to arguments, with `{}` for its value: `{"--epochs": "--set epochs={}"}`.
    """

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), spellings: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples, self.spellings = tuple(examples), spellings or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return click.Command.parse_args(self, ctx, [*respelt(args, self.spellings)])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {section: [] for section in (*_SECTIONS, "Options")}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            section = next((name for name, names in _SECTIONS.items() if parameter.name in names.split()), "Options")
            if record:
                listed[section].append(record)
        for section, records in listed.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class CommandWithParts(Command, click.Group):
    """A command with parts, which also works alone: the first word after its name decides.

    `routes` maps options of a part to its name: any of them implies the part.
    """

    collect_usage_pieces = click.Command.collect_usage_pieces
    allow_interspersed_args = True

    def __init__(self, *args: Any, routes: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, invoke_without_command=True, **kwargs)
        self.routes = routes or {}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        routed = [self.routes[name] for name in (word.partition("=")[0] for word in args) if name in self.routes]
        if routed and args[0] not in self.commands:
            args = [routed[0], *args]
        if args and (part := self.commands.get(args[0])):
            return part.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        return click.Command.invoke(self, ctx)


def respelt(arguments: Iterable[str], spellings: Mapping[str, str]) -> Iterator[str]:
    """Yield arguments with other spellings replaced by the options."""
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument == "--":
            yield argument
            yield from rest
        elif name not in spellings:
            yield argument
        else:
            if "{}" in spellings[name] and not equals:
                value = next(rest, "")
            yield from (word.replace("{}", value) for word in spellings[name].split(" "))


def own_first(arguments: Iterable[str], own: Mapping[str, bool]) -> list[str]:
    """Move options of `own`, at any position, before all other arguments; the values tell which are flags."""
    first, others, rest = [], [], iter(arguments)
    for argument in rest:
        if argument == "--":
            others += [argument, *rest]
        elif (name := argument.partition("=")[0]) not in own:
            others.append(argument)
        else:
            first.append(argument)
            if name == argument and not own[name]:
                first += [value for value in (next(rest, None),) if value is not None]
    return first + others
