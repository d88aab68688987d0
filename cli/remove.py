"""kbtools remove: delete from a cluster what kbtools put there."""

import click

from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options


@click.command("remove")
@click.option("--kb", "name", required=True, help="The knowledge base, by its name on the cluster.")
@click.option("--version", "number", type=click.IntRange(1), help="Delete this version only; the current one stays.")
@click.option("--unfinished", is_flag=True, help="Delete only what killed or failed builds left.")
@click.option("--yes", is_flag=True, help="Do not ask before a whole knowledge base is deleted.")
@elasticsearch_options
def command(name: str, number: int | None, unfinished: bool, yes: bool, elasticsearch: Elasticsearch | None) -> None:
    """Delete a knowledge base from a cluster, one version of it, or the leftovers of builds.

    An index that kbtools did not make is never deleted.
    """
    if elasticsearch is None:
        raise click.UsageError("give --elasticsearch; a folder is removed like any other folder")
    if number is not None and unfinished:
        raise click.UsageError("give --version or --unfinished, not both")
    from kbtools.indexers.elastic.inventory import choose_versions, remove_versions

    cluster = elasticsearch.connect()
    chosen = choose_versions(cluster, name, number=number, unfinished=unfinished)
    if number is None and not unfinished and not yes:
        click.confirm(f"Delete {name} with its {len(chosen)} versions from {cluster.connection.where}?", abort=True)
    for index in remove_versions(cluster, name, chosen):
        echo(f"deleted {index}")
    if not chosen:
        echo("nothing to delete")
