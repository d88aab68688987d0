"""kbtools check: compare the files of a knowledge base with what its build wrote."""

import sys
from pathlib import Path

import click

from kbtools.answering.results import JSON_VERSION
from kbtools.cli.display import echo, echo_json
from kbtools.cli.options import json_option
from kbtools.indexers.folder.kb_folder import find_damage, read_manifest
from kbtools.kb.manifest_report import size_text


@click.command("check")
@click.argument("path", metavar="KB", type=click.Path(path_type=Path))
@json_option
def command(path: Path, as_json: bool) -> None:
    """Compare every file of a knowledge base, its vectors too, with the checksum that was kept when it was written.

    Each damaged file is named with what makes it again, and the exit code is 1.
    """
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
        echo(f"{path}: every file has its size; its build kept no checksums, index again to have them", err=True)
    elif not as_json:
        echo(f"{path}: every file is as it was written, {count} files, {size_text(size)}")
