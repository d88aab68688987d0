"""kbtools remove and rollback: the versions of a knowledge base on a cluster."""

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.cli.homes import Home, kb_argument


@click.command(
    "remove",
    cls=Command,
    examples=("kbtools remove fb5m --elasticsearch", "kbtools remove fb5m --elasticsearch --unfinished"),
)
@kb_argument()
@click.option(
    "--version", "number", type=click.IntRange(1), help="Delete only this version, which must not be the current one."
)
@click.option("--unfinished", is_flag=True, help="Delete only the leftovers of killed or failed builds.")
@click.option("--yes", is_flag=True, help="Delete a whole knowledge base without confirmation.")
def command(home: Home, number: int | None, unfinished: bool, yes: bool) -> None:
    """Delete a knowledge base from a cluster, one version of it, or the leftovers of builds.

    Indexes that kbtools did not create are never deleted.
    """
    name = str(home.path)
    if home.elasticsearch is None:
        raise click.UsageError("give --elasticsearch; a folder is removed like any other folder")
    if number is not None and unfinished:
        raise click.UsageError("give --version or --unfinished, not both")
    from kbtools.indexers.elastic.inventory import choose_versions, remove_versions

    with home.elasticsearch.connect() as cluster:
        chosen = choose_versions(cluster, name, number=number, unfinished=unfinished)
        if number is None and not unfinished and not yes:
            click.confirm(f"Delete {name} with its {len(chosen)} versions from {cluster.connection.where}?", abort=True)
        for index in remove_versions(cluster, name, chosen):
            echo(f"deleted {index}")
    if not chosen:
        echo("nothing to delete")


@click.command(
    "rollback",
    cls=Command,
    examples=("kbtools rollback fb5m --elasticsearch", "kbtools rollback --kb fb5m --elasticsearch http://search:9200"),
)
@kb_argument()
def rollback(home: Home) -> None:
    """Return a knowledge base on a cluster to the newest complete version before the current one, in one call."""
    if home.elasticsearch is None:
        raise click.UsageError("give --elasticsearch; only a cluster keeps older versions")
    from kbtools.indexers.elastic.versions import roll_back

    with home.elasticsearch.connect() as cluster:
        version = roll_back(cluster, str(home.path))
    echo(f"{home.path} is version {version.number} again; kbtools remove --version deletes the newer one")
