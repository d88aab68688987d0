"""The part of kbtools index that loads a knowledge base into a cluster."""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kbtools.cli.homes import Elasticsearch
from kbtools.indexers.build import Watch
from kbtools.indexers.embedded import EmbeddedKB

FILE = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class Loading:
    """How to load, as the command line says it."""

    shard: tuple[int, int]
    keep: int
    shards: int
    replicas: int | None
    refresh: str
    codec: str
    in_flight: int
    batch: int
    segments: int | None
    patience: float
    rejected: Path | None


def read_shard(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, int]:
    """Read `--shard k/n`."""
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
    if not found or int(found[1]) > int(found[2]):
        raise click.BadParameter(f"found {text!r}, expected k/n such as 1/2, k at most n")
    return int(found[1]), int(found[2])


def loading_options(command: Callable[..., object]) -> Callable[..., object]:
    """Take the options of a load; they reach the command by their own names."""
    options = [
        click.option("--from", "source", type=FILE, help="With --elasticsearch: the folder to copy up."),
        click.option("--kb", "name", help="With --elasticsearch: the name of the knowledge base on the cluster."),
        click.option("--shard", default="1/1", show_default=True, callback=read_shard, help="Load only part k of n."),
        click.option("--keep", default=1, show_default=True, type=click.IntRange(0), help="Older versions that stay."),
        click.option("--shards", default=1, show_default=True, type=click.IntRange(1), help="Shards of each index."),
        click.option("--replicas", type=click.IntRange(0, 32), help="Copies of each shard; one if a node can take it."),
        click.option("--refresh", default="1s", show_default=True, help="Refresh interval once loaded; -1 for never."),
        click.option(
            "--codec", default="default", show_default=True, type=click.Choice(["default", "best_compression"]),
            help="How the cluster compresses documents.",
        ),
        click.option("--batch", default=1000, show_default=True, type=click.IntRange(1), help="Documents a request."),
        click.option("--in-flight", default=4, show_default=True, type=click.IntRange(1, 64), help="Requests at once."),
        click.option("--segments", type=click.IntRange(1), help="Merge each shard to so many segments, afterwards."),
        click.option(
            "--patience", default=300.0, show_default=True, type=click.FloatRange(0),
            help="Seconds to go on trying while the cluster refuses or is away.",
        ),
        click.option("--rejected", type=FILE, help="File for rejected documents, KB.rejected.jsonl if not given."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def folder_for(out: Path | None) -> Iterator[Path]:
    """Give the folder to build in: the one that was asked for, else one that is gone afterwards."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="kbtools-") as folder:
        yield Path(folder) / "loaded.kb"


def load_folder(
    path: Path, name: str, elasticsearch: Elasticsearch, loading: Loading, watch: Watch, *, force: bool
) -> str:
    """Load a folder into a cluster; tell what came of it."""
    from kbtools.indexers.elastic.cluster import Patience
    from kbtools.indexers.elastic.load import LoadOptions, load
    from kbtools.indexers.elastic.mapping import Settings

    options = LoadOptions(
        part=loading.shard[0],
        parts=loading.shard[1],
        settings=Settings(loading.shards, loading.replicas, loading.refresh, loading.codec),
        keep=loading.keep,
        force=force,
        in_flight=loading.in_flight,
        batch=loading.batch,
        segments=loading.segments,
        rejected=loading.rejected,
        patience=Patience(total=loading.patience),
    )
    cluster = elasticsearch.connect()
    try:
        loaded = load(EmbeddedKB(path), cluster, name, options=options, watch=watch)
    finally:
        cluster.close()
    where = f"{name} on {cluster.connection.where}"
    if not loaded.fresh:
        return f"{where} already holds this content as version {loaded.version}, nothing to do (--force loads it again)"
    if not loaded.current:
        part, parts = loading.shard
        return f"{where}: part {part} of {parts} of version {loaded.version} is loaded; readers see it when all are"
    return f"{where}: version {loaded.version}, {loaded.documents:,} documents, content {loaded.manifest.digest[:16]}"


def check_home(
    out: Path | None, source: Path | None, name: str | None, elasticsearch: Elasticsearch | None, files: list[Any]
) -> None:
    """Refuse options that do not go together."""
    if elasticsearch is None:
        if source or name:
            raise click.UsageError("--from and --kb need --elasticsearch; for a folder, give --out")
        if out is None:
            raise click.UsageError("give --out FOLDER, or --elasticsearch and --kb NAME")
    elif name is None:
        raise click.UsageError("--elasticsearch needs --kb NAME")
    elif source and (files or out):
        raise click.UsageError("give --from or files, not both")
