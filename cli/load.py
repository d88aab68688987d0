"""kbtools load: loads the folder of a knowledge base into a cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbtools.cli.commands import Command
from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, cluster_options
from kbtools.cli.options import FILE, chosen_jobs
from kbtools.cli.progress import shown, stoppable
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import read_manifest

if TYPE_CHECKING:
    from kbtools.indexers.elastic.loading import LoadOptions

COUNTS_STAY = "counts are not loaded: on a cluster, the number of facts decides how likely a name is to mean an entity"


@click.command(
    "load",
    cls=Command,
    examples=(
        "kbtools load fb5m.kb --kb fb5m",
        "kbtools load fb5m.kb --kb fb5m --elasticsearch https://search.example.org --replicas 1",
    ),
)
@click.argument("folder", type=FILE)
@click.option("--kb", "name", required=True, help="The name of the knowledge base on the cluster.")
@click.option("--keep", default=1, type=click.IntRange(0), help="Older versions to keep.")
@click.option("--shards", default=1, type=click.IntRange(1), help="Shards of each index.")
@click.option(
    "--replicas", type=click.IntRange(0, 32), help="Copies of each shard; by default one if there is a node for it."
)
@click.option("--refresh", default="1s", help="Refresh interval once loaded; -1 for never.")
@click.option(
    "--codec",
    default="default",
    type=click.Choice(["default", "best_compression", "legacy_best_compression"]),
    help="How the cluster compresses documents: LZ4, Zstandard (if its distribution has it) or DEFLATE.",
)
@click.option("--batch", default=1000, type=click.IntRange(1), help="Documents per request.")
@click.option("--in-flight", default=4, type=click.IntRange(1, 64), help="Requests at once.")
@click.option("--segments", type=click.IntRange(1), help="Merge each shard to this number of segments at the end.")
@click.option(
    "--patience",
    default=300.0,
    type=click.FloatRange(0),
    help="Seconds to keep retrying while the cluster refuses or is unreachable, and to wait for copies at the end.",
)
@click.option("--rejected", type=FILE, help="File for rejected documents; by default NAME.rejected.jsonl.")
@click.option("--force", is_flag=True, help="Load again even if the cluster has this content.")
@click.option("--take-over", is_flag=True, help="Take over the lock of a killed load or update without waiting.")
@click.option("--quiet", is_flag=True, help="Print only the result.")
@cluster_options
def command(
    folder: Path,
    name: str,
    shards: int,
    replicas: int | None,
    refresh: str,
    codec: str,
    patience: float,
    quiet: bool,
    elasticsearch: Elasticsearch,
    **options: Any,
) -> None:
    """Load the knowledge base in FOLDER, made by kbtools index, into a cluster.

    Readers see it once it is complete. To resume a killed load, run the same command again; a second run with the same
    content does nothing. Only one process at a time can load or update a name: the lock of a killed one expires after
    two minutes, or at once with --take-over.
    """
    from kbtools.indexers.elastic.cluster import Patience
    from kbtools.indexers.elastic.loading import LoadOptions
    from kbtools.indexers.elastic.mapping import IndexSettings

    settings = IndexSettings(shards, replicas, refresh, codec)
    load_options = LoadOptions(settings=settings, patience=Patience(total=patience), jobs=chosen_jobs(), **options)
    if read_manifest(folder).files.get("count.key"):
        echo(COUNTS_STAY, err=True)
    with stoppable(), shown([], quiet) as watch:
        echo(load_folder(folder, name, elasticsearch, load_options, watch))


def check_target(name: str, elasticsearch: Elasticsearch) -> None:
    """Raise an error, before any work, for a name that the cluster does not allow or a cluster that does not answer."""
    from kbtools.indexers.elastic.versions import check_alias, check_name

    check_name(name)
    with elasticsearch.connect() as cluster:
        check_alias(cluster, name)


def load_folder(
    path: Path, name: str, elasticsearch: Elasticsearch, options: "LoadOptions", watch: BuildProgress
) -> str:
    """Load a folder into a cluster; return the outcome in a sentence."""
    from kbtools.indexers.elastic.loading import load

    with elasticsearch.connect() as cluster:
        loaded = load(EmbeddedKB(path), cluster, name, options=options, watch=watch)
    where = f"{name} on {cluster.connection.where}"
    if not loaded.fresh:
        return f"{where} already has this content as version {loaded.version}, nothing to do (--force loads it again)"
    # Readers have it already; copies only guard against the loss of a node.
    copies = f"; {loaded.copies_missing} copies of shards are still to be made" if loaded.copies_missing else ""
    content = f"{loaded.documents:,} documents, content {loaded.manifest.digest[:16]}"
    return f"{where}: version {loaded.version}, {content}{copies}"
