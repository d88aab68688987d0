"""kbtools rollback: point a knowledge base on a cluster at the version before."""

import click

from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options


@click.command("rollback")
@click.option("--kb", "name", required=True, help="The knowledge base, by its name on the cluster.")
@elasticsearch_options
def command(name: str, elasticsearch: Elasticsearch | None) -> None:
    """Point a knowledge base on a cluster at its newest complete version before the current one, in one call."""
    if elasticsearch is None:
        raise click.UsageError("give --elasticsearch; only a cluster keeps older versions")
    from kbtools.indexers.elastic.versions import roll_back

    version = roll_back(elasticsearch.connect(), name)
    echo(f"{name} is version {version.number} again; kbtools remove --version deletes the newer one")
