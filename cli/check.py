"""kbtools check: whether the files of a knowledge base are as its build wrote them."""

import sys
from pathlib import Path

import click

from kbtools.indexers.kb_folder import find_damage, read_manifest
from kbtools.kb.manifest_report import size_text


@click.command("check")
@click.argument("path", metavar="KB", type=click.Path(path_type=Path))
def command(path: Path) -> None:
    """Compare every file of a knowledge base, its vectors too, with the checksum that was kept when it was written.

    Each damaged file is named with what makes it again, and the exit code is 1.
    """
    manifest = read_manifest(path)
    damages = list(find_damage(path, manifest))
    for damage in damages:
        click.echo(f"Error: {damage}", err=True)
    if damages:
        sys.exit(1)
    if not manifest.checksums:
        click.echo(f"{path}: every file has its size; its build kept no checksums, index again to have them", err=True)
        return
    size = size_text(sum(manifest.files.values()))
    click.echo(f"{path}: every file is as it was written, {len(manifest.files)} files, {size}")
