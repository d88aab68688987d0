"""kbtools index: builds the folder of a knowledge base from its files."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from kbtools.cli import index_vectors
from kbtools.cli.commands import Command, CommandWithParts
from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options
from kbtools.cli.load import COUNTS_STAY, check_target, load_folder
from kbtools.cli.options import FILE, chosen_memory, files_options, take_options
from kbtools.cli.options import Command as Function
from kbtools.cli.progress import shown, stoppable
from kbtools.cli.reading_options import (
    CLOSURE,
    COLUMN,
    LANG,
    LIST_SEPARATOR,
    MAX_BAD,
    SPELLINGS,
    gather_options,
    read_pairs,
    reading_options,
)
from kbtools.indexers.building.build import build
from kbtools.indexers.readers.batches import lines_of
from kbtools.indexers.readers.detection import detect
from kbtools.indexers.readers.reading import WIDE, WIKIDATA, Keep, ReadOptions, Source
from kbtools.indexers.readers.sources import read_blocks
from kbtools.kb.manifest import counts_report, skipped_report
from kbtools.storage import temporary_folder
from kbtools.text.readings import read_variants

_KINDS = ("facts", "names", "types", "relations", "redirects", "counts", "rdf")
"""The kinds of files by option."""

_ALL_KINDS = (*_KINDS, "table", "wikidata", "variants")
"""Also those with a command of their own, and spelling variants."""

_ROUTES = {
    f"--{option}": part
    for part, options in {
        "table": "table subject id name alias description type link-column sheet query encoding",
        "wikidata": "wikidata min-sitelinks keep-type keep-property keep-ids",
    }.items()
    for option in options.split()
}
"""Options that imply one of these commands."""

_FILES = click.argument("files", nargs=-1, type=FILE, metavar="FILE...")
_OUT = click.option("--out", type=FILE, help="The folder to write; it replaces an older knowledge base.")
_NAME = click.option("--kb", "name", help="With --elasticsearch: the name of the knowledge base on the cluster.")
_FORCE = click.option("--force", is_flag=True, help="Build again even if the sources have not changed.")
SHEET = click.option("--sheet", help="Sheet of a spreadsheet; by default, the first.")
ENCODING = click.option("--encoding", help="Encoding of text, such as cp1252; by default, detected.")
_QUIET = click.option("--quiet", is_flag=True, help="Print only the final counts.")
_ALSO = click.option(
    "--also",
    multiple=True,
    metavar="KIND=FILE",
    help=f"Another file; KIND is {', '.join(_KINDS)}, variants, table or wikidata, like the options of kbtools index.",
)


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a build: a folder, a name on a cluster or both; whether to build again, and what to print."""

    out: Path | None
    name: str | None
    elasticsearch: Elasticsearch | None
    force: bool
    quiet: bool

    def check(self) -> None:
        """Raise UsageError for options that contradict each other."""
        if self.elasticsearch is None:
            if self.name:
                raise click.UsageError("--kb needs --elasticsearch; for a folder, give --out")
            if self.out is None:
                raise click.UsageError("give --out FOLDER, or --elasticsearch and --kb NAME")
        elif self.name is None:
            raise click.UsageError("--elasticsearch needs --kb NAME")

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield the folder to build in: the given one, else a temporary one."""
        if self.out is not None:
            yield self.out
            return
        with temporary_folder() as folder:
            yield folder / "loaded.kb"


def _target_options(command: Function) -> Function:
    """Pass the target of a build as `target`."""

    @wraps(command)
    def gathered(*args: Any, **kwargs: Any) -> object:
        target = _Target(**{field.name: kwargs.pop(field.name) for field in fields(_Target)})
        return command(*args, target=target, **kwargs)

    return cast(Function, take_options(gathered, [_OUT, _NAME, elasticsearch_options, _FORCE, _QUIET]))


def _also_spellings(kind: str) -> dict[str, str]:
    """Return the spellings of a command whose arguments are files of one kind; other kinds are given by --also."""
    return {f"--{other}": "{}" if other == kind else f"--also {other}={{}}" for other in _ALL_KINDS}


def _listed(ids: tuple[str, ...], option: str) -> frozenset[str]:
    """Return Wikidata ids separated by commas."""
    listed = frozenset(entity_id.strip() for text in ids for entity_id in text.split(","))
    if strange := sorted(entity_id for entity_id in listed if not re.fullmatch(r"[QP][1-9]\d*", entity_id)):
        raise click.BadParameter(f"found {strange[0]!r}, expected ids such as Q5 or P19", param_hint=option)
    return listed


def _read_ids(path: Path) -> frozenset[str]:
    """Return the ids in a file, one per line."""
    ids = (line.strip() for block in read_blocks(path) for _, line in lines_of(block))
    return frozenset(entity_id.decode(errors="replace") for entity_id in ids if entity_id)


def _in_order(sources: list[Source]) -> list[Source]:
    """Sort files by kind, so that the order of kinds on the command line does not matter."""
    kinds, places = (*_KINDS, "any"), {WIDE: 1, WIKIDATA: 2}
    return sorted(sources, key=lambda source: (kinds.index(source.kind), places.get(source.format or "", 0)))


def _build_at(target: _Target, sources: Sequence[Source], options: ReadOptions) -> None:
    """Build a knowledge base and print the result."""
    if not any(source.kind in ("facts", "names", "any") for source in sources):
        raise click.UsageError("give at least one file of facts, names, RDF, a table or Wikidata's dump")
    out, name, elasticsearch = target.out, target.name, target.elasticsearch
    # Before a build of hours, not after it.
    if elasticsearch and name:
        check_target(name, elasticsearch)
        if any(source.kind == "counts" for source in sources):
            echo(COUNTS_STAY, err=True)
    files = [source.path for source in sources]
    with stoppable(), target.folder() as folder, shown(files, target.quiet) as watch:
        built = build(sources, folder, options=options, watch=watch, force=target.force, memory=chosen_memory())
        if not built.fresh:
            echo(f"{out} already has these sources, nothing to do (--force builds it again)")
        echo(*counts_report(built.manifest).split("\n"))
        echo(*skipped_report(built.manifest).splitlines())
        if out:
            echo(f"{out}: {sum(built.manifest.files.values()):,} bytes, content {built.manifest.digest[:16]}")
        if elasticsearch and name:
            from kbtools.indexers.elastic.loading import LoadOptions

            echo(load_folder(folder, name, elasticsearch, LoadOptions(force=target.force, jobs=options.jobs), watch))


@click.group(
    "index",
    cls=CommandWithParts,
    spellings=SPELLINGS,
    routes=_ROUTES,
    examples=(
        "kbtools index dump.nt.gz --lang en,mul --out dump.kb",
        "kbtools index --facts facts.csv --names names.tsv --column subject=head --out mine.kb",
    ),
)
@_FILES
@files_options(
    {
        "facts": "Facts: the release's format, N-Triples, TSV, CSV, JSON Lines, Parquet, Arrow.",
        "names": "Names and aliases, in the same formats.",
        "types": "Types of entities, in the same formats.",
        "rdf": "RDF with facts, names and types: .nt .nq .ttl .trig .rdf .owl .jsonld.",
        "relations": "Names of relations: tables with the columns relation and name.",
        "redirects": "Merged ids: tables with the columns old and new.",
        "counts": "How often names mean entities: name TAB id TAB count, or id TAB count.",
    }
)
@click.option("--variants", type=FILE, help="Spelling variants: two columns, such as Boulevard and Blvd.")
@reading_options
@CLOSURE
@_target_options
def command(
    files: tuple[Path, ...],
    variants: Path | None,
    options: ReadOptions,
    closure: bool,
    target: _Target,
    **by_option: tuple[Path, ...],
) -> None:
    """Build a knowledge base from files; the format of each FILE is detected and printed.

    Use an option for a file whose content cannot be detected. File options may be repeated, and files may be compressed
    (.gz, .bz2, .xz, .zst). A second run over unchanged files does nothing.

    With --elasticsearch and --kb NAME, the knowledge base is also loaded into a cluster; without --out, the folder is
    temporary.
    """
    target.check()
    sources = [Source.given(kind, path) for kind in _KINDS for path in by_option[kind]]
    for path in files:
        detected = detect(path)
        echo(str(detected), err=True)
        sources.append(detected.source)
    sources = _in_order(sources)
    options = replace(options, variants=read_variants(variants) if variants else (), closure=closure)
    _build_at(target, sources, options)


def _read_also(
    files: tuple[Path, ...], kind: str, also: tuple[str, ...], options: ReadOptions
) -> tuple[list[Source], ReadOptions]:
    """Return the sources of a command's files and of --also, and the options with their variants."""
    pairs = [*read_pairs(also, parts=_ALL_KINDS, option="--also", expected="KIND=FILE, such as names=more.tsv")]
    for _, path in (pair for pair in pairs if pair[0] == "variants"):
        options = replace(options, variants=(*options.variants, *read_variants(Path(path))))
    if not files:
        raise click.UsageError(
            f"name the {kind} that these options are for"
            if kind == "table"
            else "name the dump of Wikidata that these options choose from"
        )
    named = [(kind, path) for path in files] + [(other, Path(path)) for other, path in pairs if other != "variants"]
    return _in_order([Source.given(other, path) for other, path in named]), options


@command.command(
    "table",
    cls=Command,
    short_help="Build from tables with one entity per row.",
    spellings=_also_spellings("table"),
    examples=(
        "kbtools index table proteins.parquet --name label --alias synonyms --list-separator '|' --out proteins.kb",
        "kbtools index table proteins.sqlite --query 'SELECT id, label, gene FROM proteins' --out proteins.kb",
    ),
)
@_FILES
@_ALSO
@click.option("--id", "--subject", "subject_column", help="Column with the ids of entities.")
@click.option(
    "--name",
    "name_columns",
    help="Columns with names, separated by commas; label_de@de is German. May include the column of --id.",
)
@click.option("--alias", "alias_columns", help="Columns with aliases.")
@click.option("--description", "description_columns", help="Columns with descriptions.")
@click.option("--type", "type_columns", help="Columns with types.")
@click.option(
    "--link-column", "link_columns", help="Columns whose cells name entities, by id or name; other columns hold values."
)
@SHEET
@ENCODING
@click.option("--query", metavar="SQL", help="Query for the rows of an SQLite or DuckDB database.")
@gather_options
@LANG
@COLUMN
@LIST_SEPARATOR
@MAX_BAD
@CLOSURE
@_target_options
def table(
    files: tuple[Path, ...],
    also: tuple[str, ...],
    encoding: str | None,
    options: ReadOptions,
    closure: bool,
    target: _Target,
    **wide: str | None,
) -> None:
    """Build a knowledge base from tables with one entity per row: spreadsheets, CSV, Parquet, Arrow, JSON Lines,
    databases.

    The roles of columns are guessed and printed, unless options name them. Columns without ids, names, aliases,
    descriptions or types become relations; a cell is a value, or an entity if it is the id of one. Without ids, rows
    are numbered.
    """
    target.check()
    sources, options = _read_also(files, "table", also, options)
    parts: dict[str, Any] = {}
    for name, value in wide.items():
        if value is not None:
            several = tuple(filter(None, map(str.strip, value.split(","))))
            parts[name.partition("_")[0]] = several if name.endswith("_columns") else value
    options = replace(options, wide=replace(options.wide, **parts), encoding=encoding or "", closure=closure)
    _build_at(target, sources, options)


@command.command(
    "wikidata",
    cls=Command,
    short_help="Build from Wikidata's dump.",
    spellings=SPELLINGS | _also_spellings("wikidata"),
    examples=(
        "kbtools index wikidata latest-all.json.gz --lang en,de --min-sitelinks 1 --out wikidata.kb",
        "kbtools index wikidata latest-all.json.gz --keep-type Q5,Q515 --keep-property P19,P20 --out people.kb",
    ),
)
@_FILES
@_ALSO
@click.option("--min-sitelinks", type=click.IntRange(min=0), default=0, help="Minimum number of an entity's sitelinks.")
@click.option("--keep-type", multiple=True, metavar="ID", help="Types of entities to keep, such as Q5 or Q5,Q515.")
@click.option(
    "--keep-property", multiple=True, metavar="ID", help="Properties of facts to keep, such as P19 or P19,P20."
)
@click.option("--keep-ids", type=FILE, help="File with the ids of entities to keep, one per line.")
@CLOSURE
@reading_options
@_target_options
def wikidata(
    files: tuple[Path, ...],
    also: tuple[str, ...],
    min_sitelinks: int,
    keep_type: tuple[str, ...],
    keep_property: tuple[str, ...],
    keep_ids: Path | None,
    closure: bool,
    options: ReadOptions,
    target: _Target,
) -> None:
    """Build a knowledge base from Wikidata's dump: the JSON dump, or truthy N-Triples."""
    keep = Keep(
        sitelinks=min_sitelinks,
        types=_listed(keep_type, "--keep-type"),
        properties=_listed(keep_property, "--keep-property"),
        ids=_read_ids(keep_ids) if keep_ids else frozenset(),
    )
    target.check()
    sources, options = _read_also(files, "wikidata", also, options)
    options = replace(options, keep=keep, closure=closure)
    _build_at(target, sources, options)


command.add_command(index_vectors.command)
