"""kbtools info and check: the contents of a knowledge base, its build, and whether its files are undamaged."""

import sys
from dataclasses import asdict
from typing import Any

import click

from kbtools.answering.results import JSON_VERSION
from kbtools.cli.commands import Command
from kbtools.cli.display import echo, echo_json
from kbtools.cli.homes import Elasticsearch, Home, kb_argument
from kbtools.cli.options import json_option
from kbtools.errors import VectorsMissing
from kbtools.indexers.folder.faiss_index import read_vectors_record
from kbtools.indexers.folder.folder_kb import FolderKB
from kbtools.indexers.folder.kb_folder import find_damage, read_manifest
from kbtools.indexers.updates.overlay import open_folder
from kbtools.kb.manifest import (
    Manifest,
    counts_report,
    history_report,
    languages_report,
    size_text,
    skipped_report,
    statistics_report,
)
from kbtools.ranking.taught import taught_file
from kbtools.text.printable import plural


@click.command(
    "info", cls=Command, examples=("kbtools info sample.kb", "kbtools info --elasticsearch http://localhost:9200")
)
@kb_argument(required=False)
@json_option
def command(home: Home | None, as_json: bool, elasticsearch: Elasticsearch | None) -> None:
    """Show the counts, sizes, versions and sources of a knowledge base, and the lines that its build left out.

    With --elasticsearch and no name, list all knowledge bases of the cluster.
    """
    if elasticsearch is not None:
        _show_cluster(elasticsearch, None if home is None else str(home.path), as_json)
        return
    if home is None:
        raise click.UsageError("give the folder of a knowledge base, or --elasticsearch")
    kb = open_folder(home.path)
    manifest, vectors, teaching = kb.manifest, _vectors_record(kb), taught_file(kb)
    taught = len(teaching.read()) if teaching else 0
    if as_json:
        record = _manifest_record(manifest) | {"vectors": vectors, "taught": taught, "json_version": JSON_VERSION}
        echo_json(record)
        return
    size = size_text(sum(manifest.files.values()))
    echo(f"{home.path}: built {manifest.built}, {size}, content {manifest.digest}")
    _show_manifest(manifest)
    # The eight largest; the others are small columns.
    for file, length in sorted(manifest.files.items(), key=lambda entry: -entry[1])[:8]:
        echo(f"file {file}: {size_text(length)}")
    if vectors:
        size = size_text(vectors["bytes"])
        echo(f"vectors: {vectors['count']:,} of {vectors['dim']} dimensions, {vectors['kind']}, {size}")
    if teaching and taught:
        echo(f"taught by {plural(taught, 'question')}: {teaching.path}")
    _show_versions(manifest)


@click.command("check", cls=Command, examples=("kbtools check sample.kb", "kbtools check sample.kb --json"))
@kb_argument(cluster=False)
@json_option
def check(home: Home, as_json: bool) -> None:
    """Compare every file of a knowledge base, including its vectors, with its stored checksum.

    For each damaged file, the command that restores it is printed, and the exit code is 1.
    """
    path = home.path
    manifest = read_manifest(path)
    damages = list(find_damage(path, manifest))
    checked, count, size = bool(manifest.checksums), len(manifest.files), sum(manifest.files.values())
    if as_json:
        record = {"kb": str(path), "files": count, "bytes": size, "checksums": checked, "damages": damages}
        echo_json(record | {"json_version": JSON_VERSION})
    else:
        echo(*(f"Error: {damage}" for damage in damages), err=True)
    if damages:
        sys.exit(1)
    if not checked and not as_json:
        echo(f"{path}: all files have the right size; the build stored no checksums, index again to add them", err=True)
    elif not as_json:
        echo(f"{path}: all files are intact, {count} files, {size_text(size)}")


def _vectors_record(kb: FolderKB) -> dict[str, Any] | None:
    """Return the record of the vectors of a knowledge base, None if there are none."""
    try:
        record = read_vectors_record(kb.path, kb.manifest)
    except VectorsMissing:
        return None
    facts = {name: record[name] for name in ("kind", "dim", "count", "subject")}
    return facts | {"bytes": sum(record["files"].values())}


def _manifest_record(manifest: Manifest) -> dict[str, object]:
    """Return a manifest as JSON types, including counts of duplicates."""
    counts = {kind: asdict(count) | {"duplicate": count.duplicate} for kind, count in manifest.shown_counts.items()}
    return manifest.to_record() | {"counts": counts}


def _show_manifest(manifest: Manifest) -> None:
    """Print counts, sources and what was left out."""
    echo(*counts_report(manifest).split("\n"))
    echo(*statistics_report(manifest).split("\n"))
    echo(*languages_report(manifest).splitlines())
    echo(*history_report(manifest).splitlines())
    for source in manifest.sources:
        size = f"{size_text(source.bytes)}, {source.lines:,} lines"
        echo(f"source {source.path} ({source.kind}): {size}, sha256 {source.sha256}")
    echo(*skipped_report(manifest).splitlines())


def _show_versions(manifest: Manifest) -> None:
    written_by = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    echo(f"written by {written_by}; normaliser version {manifest.normaliser}")


def _show_cluster(elasticsearch: Elasticsearch, name: str | None, as_json: bool) -> None:
    """Print the content of a cluster: one knowledge base with its manifest, or all."""
    from kbtools.indexers.elastic.inventory import cluster_status

    with elasticsearch.connect() as cluster:
        status = cluster_status(cluster, name)
    if as_json:
        record = asdict(status) | {"json_version": JSON_VERSION}
        record["manifest"] = _manifest_record(status.manifest) if status.manifest else None
        echo_json(record)
        return
    echo(f"{status.where}: Elasticsearch {status.server}, {status.health}, {status.nodes} data nodes")
    for version in status.versions:
        label = f"{version.kb} version {version.version}, {version.state}, mapping version {version.mapping}"
        echo(f"{label}, {size_text(version.bytes)}")
        for index in version.indexes:
            missing = f" ({index.copies_missing} copies still to be made)" if index.copies_missing else ""
            shape = f"{index.shards} shards, {index.replicas} replicas{missing}"
            size = f"{size_text(index.bytes)}, {size_text(index.primary_bytes)} without copies"
            echo(f"  {index.index}: {index.health}, {index.documents:,} documents, {shape}, {size}")
    for build in status.builds:
        echo(f"  build of {build.kb} version {build.version}: {build.progress}")
    if not status.versions:
        echo("no knowledge base here")
    if status.manifest:
        echo(f"content {status.manifest.digest}, built {status.manifest.built}")
        _show_manifest(status.manifest)
        _show_versions(status.manifest)
