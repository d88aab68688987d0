"""kbtools compact: merges the updates of a knowledge base into its build."""

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, Home, kb_argument
from kbtools.cli.options import chosen_jobs, chosen_memory
from kbtools.cli.progress import shown, stoppable
from kbtools.indexers.updates.compacting import compact
from kbtools.kb.manifest import counts_report, size_text


@click.command(
    "compact", cls=Command, examples=("kbtools compact sample.kb", "kbtools compact --elasticsearch --kb fb5m")
)
@kb_argument(changed=True)
@click.option("--quiet", is_flag=True, help="Print only the final counts.")
def command(home: Home, quiet: bool) -> None:
    """Rebuild a knowledge base with its updates merged.

    This takes as long as kbtools index without reading files, and does not disturb readers. Entities get new rows, so
    models with a vector per entity must be trained again. On a cluster, updates are already part of the indexes:
    compact only frees the disk space of deleted documents, and rows stay the same.
    """
    if home.elasticsearch is not None:
        with stoppable():
            echo(_compact_version(str(home.path), home.elasticsearch))
        return
    with stoppable(), shown([], quiet) as watch:
        manifest = compact(home.path, watch=watch, memory=chosen_memory(), jobs=chosen_jobs())
    if manifest is None:
        echo(f"{home.path} has no updates, nothing to do")
        return
    echo(*counts_report(manifest).split("\n"))
    echo(f"{home.path}: {sum(manifest.files.values()):,} bytes, content {manifest.digest[:16]}")


def _compact_version(name: str, elasticsearch: Elasticsearch) -> str:
    """Purge deleted documents of a knowledge base on a cluster; return the outcome in a sentence."""
    from kbtools.indexers.elastic.inventory import drop_deleted

    with elasticsearch.connect() as cluster:
        dropped = drop_deleted(cluster, name)
    where = f"{name} on {cluster.connection.where}"
    if dropped is None:
        return f"{where} has no deleted documents, nothing to do"
    size = f"{size_text(dropped.after)}, {size_text(dropped.before)} before"
    return f"{where}: {dropped.count:,} deleted documents dropped; {size}, without copies of shards"
