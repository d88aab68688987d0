"""kbtools info: what a knowledge base holds, and how it was built."""

import json
from pathlib import Path

import click

from kbtools.cli.options import json_option
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.reporting import counts_report, size_text, skipped_report, statistics_report
from kbtools.results import JSON_VERSION


@click.command("info")
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def command(path: Path, as_json: bool) -> None:
    """Show the counts, sizes, versions and sources of a knowledge base, and what its build left out."""
    manifest = EmbeddedKB(path).manifest
    if as_json:
        record = manifest.to_record()
        for kind, count in manifest.counts.items():
            record["counts"][kind]["duplicate"] = count.duplicate
        click.echo(json.dumps(record | {"json_version": JSON_VERSION}, ensure_ascii=False).encode())
        return
    click.echo(f"{path}: built {manifest.built}, {size_text(sum(manifest.files.values()))}, content {manifest.digest}")
    click.echo(counts_report(manifest))
    click.echo(statistics_report(manifest))
    for source in manifest.sources:
        size = f"{size_text(source.bytes)}, {source.lines:,} lines"
        click.echo(f"source {source.path} ({source.kind}): {size}, sha256 {source.sha256}")
    click.echo(skipped_report(manifest), nl=False)
    for name, length in sorted(manifest.files.items(), key=lambda file: -file[1])[:8]:
        click.echo(f"file {name}: {size_text(length)}")
    written_by = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    click.echo(f"written by {written_by}; normaliser version {manifest.normaliser}")
