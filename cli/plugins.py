"""kbtools plugins: what can be plugged in, and whether it keeps its contract."""

import json

import click

from kbtools.cli.options import json_option
from kbtools.plugins import list_offers


@click.group("plugins", invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List scorers and backends by name, with the distribution that offers each and what it needs."""
    if context.invoked_subcommand:
        return
    for offer in list_offers():
        if as_json:
            record = {name: getattr(offer, name) for name in ("name", "kind", "distribution", "target", "needs")}
            click.echo(json.dumps(record))
        else:
            needs = f"needs {', '.join(offer.needs)}" if offer.needs else ""
            click.echo(f"{offer.name:<14} {offer.kind:<16} {offer.distribution:<24} {needs}".rstrip())


@command.command("check")
@click.argument("name")
def check(name: str) -> None:
    """Run the contract suite of relation scorers on NAME, a plugin or module:Class."""
    from kbtools.scorers.check import check_scorer

    for claim in check_scorer(name):
        click.echo(f"ok: {claim}")
