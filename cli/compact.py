"""kbtools compact: the updates of a knowledge base become part of what was built."""

from pathlib import Path

import click

from kbtools.cli.display import echo
from kbtools.cli.options import kb_folder_option, memory_option
from kbtools.cli.progress import shown, stoppable
from kbtools.indexers.updates.compacting import compact
from kbtools.kb.manifest_report import counts_report


@click.command("compact")
@kb_folder_option
@memory_option
@click.option("--quiet", is_flag=True, help="Print the final counts alone.")
def command(path: Path, memory: str, quiet: bool) -> None:
    """Build a knowledge base again from all that it holds, its updates merged.

    It takes as long as kbtools index, without reading files; who reads the knowledge base meanwhile sees it as it was.
    Entities are numbered anew, so that models with a vector for each entity are trained again.
    """
    with stoppable(), shown([], quiet) as watch:
        manifest = compact(path, watch=watch, memory=memory)
    if manifest is None:
        echo(f"{path} has no updates, nothing to do")
        return
    echo(*counts_report(manifest).split("\n"))
    echo(f"{path}: {sum(manifest.files.values()):,} bytes, content {manifest.digest[:16]}")
