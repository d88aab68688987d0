"""kbtools index: from a knowledge base's files to a folder that answers questions."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kbtools.cli import vectors
from kbtools.cli.homes import Elasticsearch, elasticsearch_options
from kbtools.cli.loading import Loading, check_home, folder_for, load_folder, loading_options
from kbtools.indexers.build import Phase, Watch, build
from kbtools.indexers.readers.ntriples import Predicates
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.readers.tables import USUAL
from kbtools.kb.manifest_report import counts_report, skipped_report

FILE = click.Path(path_type=Path)


def columns_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read `--column subject=head` options."""
    columns = dict(pair.partition("=")[::2] for pair in pairs)
    if not all(columns.values()):
        raise click.BadParameter("expected NAME=HEADER, such as subject=head", param_hint="--column")
    if unknown := sorted(set(columns) - set(USUAL)):
        known = ", ".join(USUAL)
        raise click.BadParameter(f"found {unknown[0]!r}, expected one of {known}", param_hint="--column")
    return columns


def size(context: click.Context, option: click.Parameter, value: str) -> str:
    """Check an amount of memory."""
    if not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", value, re.IGNORECASE):
        raise click.BadParameter(f"found {value!r}, expected an amount such as 2GB")
    return value


def added(usual: frozenset[str], given: tuple[str, ...]) -> frozenset[str]:
    """Take the predicates given instead of the usual ones, if any are."""
    return frozenset(given) or usual


@contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal that ends the process unwind the build, so that it leaves nothing behind."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def shown(sources: list[Source], quiet: bool) -> Iterator[Watch]:
    """Show phases as lines and the reading of the sources as a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=quiet or not console.is_terminal,
    )  # fmt: skip
    sizes = {str(source.path): source.path.stat().st_size for source in sources if source.path.is_file()}
    tasks = {path: bar.add_task(Path(path).name, total=size, visible=False) for path, size in sizes.items()}

    def progress(path: str, done: int) -> None:
        if path in tasks:
            bar.update(tasks[path], completed=done, visible=done < sizes[path])

    def phase(done: Phase) -> None:
        if not quiet:
            with_bar = f"{done.name}: {done.counts} ({done.seconds:.1f} s)"
            click.echo(with_bar)

    with bar:
        yield Watch(phase=phase, progress=progress)


@click.group("index", invoke_without_command=True)
@click.option("--facts", multiple=True, type=FILE, help="Facts: the release's format, N-Triples, TSV, CSV, JSON Lines.")
@click.option("--names", multiple=True, type=FILE, help="Names and aliases, in the same formats.")
@click.option("--types", multiple=True, type=FILE, help="Types of entities, in the same formats.")
@click.option("--rdf", multiple=True, type=FILE, help="N-Triples that hold facts, names and types alike.")
@click.option("--out", type=FILE, help="The folder to write; an older knowledge base there is replaced.")
@click.option("--lang", default="en", show_default=True, help="Language of names in tagged sources; '' takes all.")
@click.option("--name-predicate", multiple=True, help="RDF predicate of names, in place of the usual ones.")
@click.option("--alias-predicate", multiple=True, help="RDF predicate of aliases, in place of the usual ones.")
@click.option("--type-predicate", multiple=True, help="RDF predicate of types, in place of the usual ones.")
@click.option("--column", multiple=True, metavar="NAME=HEADER", help="Column of a table, such as subject=head.")
@click.option(
    "--max-bad",
    default=0.001,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of lines that may be unreadable.",
)
@click.option(
    "--memory",
    default="1GB",
    show_default=True,
    callback=size,
    help="Memory of the work tables; the disk takes the rest.",
)
@click.option("--force", is_flag=True, help="Build again even if the sources have not changed.")
@click.option("--quiet", is_flag=True, help="Print the final counts alone.")
@loading_options
@elasticsearch_options
def command(
    facts: tuple[Path, ...],
    names: tuple[Path, ...],
    types: tuple[Path, ...],
    rdf: tuple[Path, ...],
    out: Path | None,
    lang: str,
    name_predicate: tuple[str, ...],
    alias_predicate: tuple[str, ...],
    type_predicate: tuple[str, ...],
    column: tuple[str, ...],
    max_bad: float,
    memory: str,
    force: bool,
    quiet: bool,
    source: Path | None,
    name: str | None,
    elasticsearch: Elasticsearch | None,
    **loading: Any,
) -> None:
    """Build a knowledge base from its files. Every input option may be given several times.

    Files may be compressed (.gz, .bz2, .xz, .zst). A second run over unchanged files does nothing.

    With --elasticsearch and --kb NAME it is loaded into a cluster, from files or --from a folder. Readers of NAME see
    it when it is complete. A killed load goes on where it stopped when the same command is run again.
    """
    if click.get_current_context().invoked_subcommand:
        return
    sources = [Source(path, "facts") for path in facts] + [Source(path, "names") for path in names]
    sources += [Source(path, "types") for path in types] + [Source(path, "any") for path in rdf]
    check_home(out, source, name, elasticsearch, sources)
    if elasticsearch and name:
        elasticsearch.connect().close()
    if source and elasticsearch and name:
        with stoppable(), shown([], quiet) as watch:
            click.echo(load_folder(source, name, elasticsearch, Loading(**loading), watch, force=force))
        return
    if not facts and not rdf:
        raise click.UsageError("give at least one --facts or --rdf file")
    usual = Predicates()
    options = ReadOptions(
        language=lang,
        predicates=Predicates(
            name=added(usual.name, name_predicate),
            alias=added(usual.alias, alias_predicate),
            type=added(usual.type, type_predicate),
        ),
        columns=columns_of(column),
        max_bad=max_bad,
    )
    with stoppable(), folder_for(out) as folder, shown(sources, quiet) as watch:
        built = build(sources, folder, options=options, watch=watch, force=force, memory=memory)
        if not built.fresh:
            click.echo(f"{out} already holds these sources, nothing to do (--force builds it again)")
        click.echo(counts_report(built.manifest))
        click.echo(skipped_report(built.manifest), nl=False)
        if out:
            click.echo(f"{out}: {sum(built.manifest.files.values()):,} bytes, content {built.manifest.digest[:16]}")
        if elasticsearch and name:
            click.echo(load_folder(folder, name, elasticsearch, Loading(**loading), watch, force=force))


command.add_command(vectors.command)
