"""kbtools plugins: the installed plugins, and the contract suites for their authors."""

from pathlib import Path

import click

from kbtools.cli.commands import Command, CommandWithParts
from kbtools.cli.display import echo, echo_json
from kbtools.cli.options import FILE, json_option
from kbtools.entry_points import KINDS, list_offers


@click.group("plugins", cls=CommandWithParts, examples=("kbtools plugins", "kbtools plugins --json"))
@json_option
def command(as_json: bool) -> None:
    """List plugins of every kind, with the distribution and the requirements of each."""
    for offer in list_offers():
        if as_json:
            record = {name: getattr(offer, name) for name in ("name", "kind", "distribution", "target", "needs")}
            echo_json(record)
        else:
            needs = f"needs {', '.join(offer.needs)}" if offer.needs else ""
            echo(f"{offer.name:<15} {offer.kind:<16} {offer.distribution:<24} {needs}".rstrip())


@command.command(
    "check",
    cls=Command,
    examples=("kbtools plugins check bigru", "kbtools plugins check my_module:MyReader --sample small.txt"),
)
@click.argument("name")
@click.option("--kind", type=click.Choice(list(KINDS.values())), help="The kind, if it is not clear from the name.")
@click.option(
    "--sample",
    type=FILE,
    help="A small file for a reader, or a small knowledge base for a backend.",
)
def check(name: str, kind: str | None, sample: Path | None) -> None:
    """Run the contract tests on NAME, a plugin or module:Class."""
    from kbtools.suites import check_plugin

    for claim in check_plugin(name, kind=kind, sample=sample):
        echo(f"ok: {claim}")
