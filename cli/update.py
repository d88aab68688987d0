"""kbtools update: changes a knowledge base in place while others read it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from kbtools.answering.records import UpdateResult
from kbtools.cli.commands import Command
from kbtools.cli.display import echo, echo_json
from kbtools.cli.homes import Home, kb_argument
from kbtools.cli.options import files_options, json_option
from kbtools.cli.progress import stoppable
from kbtools.cli.query import open_standard_input
from kbtools.cli.reading_options import SPELLINGS, reading_options
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.update_sources import Role, UpdateSource
from kbtools.indexers.updates.updating import update
from kbtools.kb.manifest import changes_text, skipped_text
from kbtools.storage import temporary_folder

_REMOVED = ("facts", "names", "types")
"""Kinds of rows that an update can remove."""


@click.command(
    "update",
    cls=Command,
    spellings=SPELLINGS | {f"--remove-{kind}": f"--remove {kind}={{}}" for kind in _REMOVED},
    examples=(
        "kbtools update sample.kb --add new.jsonl --remove gone.txt",
        "kbtools update sample.kb --remove facts=old.tsv --facts corrected.tsv",
    ),
)
@kb_argument(changed=True)
@files_options(
    {"add": "Changes as JSON Lines, one record per entity; see docs/updating.md. Any file may be - for standard input."}
)
@click.option(
    "--remove",
    multiple=True,
    metavar="[KIND=]FILE",
    help="Ids of entities to delete, one per line; with KIND (facts, names or types), rows to remove.",
)
@files_options(
    {
        "facts": "Facts to add, in any format that kbtools index reads.",
        "names": "Names and aliases to add.",
        "types": "Types of entities to add.",
        "rdf": "RDF of facts, names and types to add.",
        "table": "Tables with one entity per row to add, such as spreadsheets.",
        "wikidata": "Wikidata entities in JSON to add.",
        "relations": "Names of relations: tables with the columns relation and name.",
        "redirects": "Entities to merge: tables with the columns old and new.",
    }
)
@click.option("--take-over", is_flag=True, help="Take over the lock of a killed load or update without waiting.")
@reading_options
@json_option
def command(
    home: Home,
    add: tuple[Path, ...],
    remove: tuple[str, ...],
    take_over: bool,
    options: ReadOptions,
    as_json: bool,
    **added: tuple[Path, ...],
) -> None:
    """Add, remove or rename entities, facts, names and types of a knowledge base.

    Removals are applied first, then merges, then additions, file by file and line by line. Programs that have the
    knowledge base open see no change; opening it again shows all changes. In a folder, updates are kept separately
    until kbtools compact merges them; on a cluster, an update creates a version, which kbtools rollback undoes.
    """
    removed = [_removed_source(text) for text in remove]
    parts: list[tuple[Role, str, Iterable[Path]]] = [
        ("gone", "any", [path for kind, path in removed if kind is None]),
        *(("remove", kind, [path for named, path in removed if named == kind]) for kind in _REMOVED),
        ("add", "redirects", added["redirects"]),
        ("changes", "any", add),
        *(("add", kind, added[kind]) for kind in (*_REMOVED, "rdf", "table", "wikidata", "relations")),
    ]
    with stoppable(), _standard_input_file() as at_hand:
        sources = [
            UpdateSource(Source.given(kind, at_hand(file), "standard input" if str(file) == "-" else ""), role)
            for role, kind, files in parts
            for file in files
        ]
        if not sources:
            raise click.UsageError("give at least one file of changes, such as --add new.jsonl or --remove gone.txt")
        if home.elasticsearch is None:
            updated = update(home.path, sources, options=options)
        else:
            from kbtools.indexers.elastic.cluster_updates import UpdateOptions, update_on_cluster

            settings = UpdateOptions(options, take_over=take_over)
            with home.elasticsearch.connect() as cluster:
                updated = update_on_cluster(cluster, str(home.path), sources, options=settings)
    if as_json:
        echo_json(updated.to_json())
    else:
        echo(*_update_report(updated))


@contextmanager
def _standard_input_file() -> Iterator[Callable[[Path], Path]]:
    """Yield a function that returns the path of a file, or for `-` that of a copy of standard input."""
    with ExitStack() as stack:

        def at_hand(path: Path) -> Path:
            if str(path) != "-":
                return path
            copy = stack.enter_context(temporary_folder()) / "standard_input"
            with copy.open("wb") as file:
                file.writelines(open_standard_input())
            return copy

        yield at_hand


def _removed_source(text: str) -> tuple[str | None, Path]:
    """Return the kind, if any, and the path of `--remove [KIND=]FILE`."""
    kind, equals, path = text.partition("=")
    return (kind, Path(path)) if equals and kind in _REMOVED else (None, Path(text))


def _update_report(updated: UpdateResult) -> Iterator[str]:
    """Format the changes made, the removals of what does not exist, and the lines left out."""
    yield f"{updated.kb}: {changes_text(updated.changes) or 'nothing changed'}; content {updated.digest[:16]}"
    for missing in updated.missing:
        yield f"not there: {changes_text({missing.kind: missing.count})}; first: {missing.first}"
    for skip in updated.skipped:
        yield f"{skipped_text(skip.kind, skip.count, skip.lines)}; first: {skip.first}"
    yield from (f"noticed at {note}" for note in updated.notes)
