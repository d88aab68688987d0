"""kbtools index: from a knowledge base's files to a folder that answers questions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from kbtools.cli import index_vectors
from kbtools.cli.display import echo
from kbtools.cli.homes import Elasticsearch, elasticsearch_options
from kbtools.cli.load import COUNTS_STAY, check_target, load_folder
from kbtools.cli.options import FILE, memory_option
from kbtools.cli.progress import shown, stoppable
from kbtools.cli.reading_options import reading_options
from kbtools.indexers.building.build import build
from kbtools.indexers.readers.batches import SourceKind
from kbtools.indexers.readers.lines import lines_of
from kbtools.indexers.readers.reading import WIDE, WIKIDATA, Keep, ReadOptions, Source, Wide
from kbtools.indexers.readers.sources import read_blocks
from kbtools.kb.manifest_report import counts_report, skipped_report
from kbtools.storage import temporary_folder
from kbtools.text.owner_variants import read_variants


def listed(ids: tuple[str, ...], option: str) -> frozenset[str]:
    """Read ids of Wikidata, several with commas between."""
    listed = frozenset(entity_id.strip() for text in ids for entity_id in text.split(","))
    if strange := sorted(entity_id for entity_id in listed if not re.fullmatch(r"[QP][1-9]\d*", entity_id)):
        raise click.BadParameter(f"found {strange[0]!r}, expected ids such as Q5 or P19", param_hint=option)
    return listed


def columns_in(text: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Read names of columns with commas between; the usual ones where none are named."""
    return usual if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def read_ids(path: Path) -> frozenset[str]:
    """Read the ids of a file, one a line."""
    ids = (line.strip() for block in read_blocks(path) for _, line in lines_of(block))
    return frozenset(entity_id.decode(errors="replace") for entity_id in ids if entity_id)


@contextmanager
def folder_for(out: Path | None) -> Iterator[Path]:
    """Give the folder to build in: the one that was asked for, else one that is gone afterwards."""
    if out is not None:
        yield out
        return
    with temporary_folder() as folder:
        yield folder / "loaded.kb"


def check_home(out: Path | None, name: str | None, elasticsearch: Elasticsearch | None) -> None:
    """Refuse options that do not go together."""
    if elasticsearch is None:
        if name:
            raise click.UsageError("--kb needs --elasticsearch; for a folder, give --out")
        if out is None:
            raise click.UsageError("give --out FOLDER, or --elasticsearch and --kb NAME")
    elif name is None:
        raise click.UsageError("--elasticsearch needs --kb NAME")


@click.group("index", invoke_without_command=True)
@click.option(
    "--facts",
    multiple=True,
    type=FILE,
    help="Facts: the release's format, N-Triples, TSV, CSV, JSON Lines, Parquet, Arrow.",
)
@click.option("--names", multiple=True, type=FILE, help="Names and aliases, in the same formats.")
@click.option("--types", multiple=True, type=FILE, help="Types of entities, in the same formats.")
@click.option("--relations", multiple=True, type=FILE, help="Names of relations: tables of relation and name.")
@click.option("--variants", type=FILE, help="Ways to write the same: two columns, such as Boulevard and Blvd.")
@click.option("--redirects", multiple=True, type=FILE, help="Merged ids: tables of old and new.")
@click.option(
    "--counts",
    multiple=True,
    type=FILE,
    help="How often names mean entities: name TAB id TAB count, or id TAB count.",
)
@click.option(
    "--rdf", multiple=True, type=FILE, help="RDF of facts, names and types alike: .nt .nq .ttl .trig .rdf .owl .jsonld."
)
@click.option(
    "--table", multiple=True, type=FILE, help="Table of an entity a row: Parquet, Arrow, CSV, SQLite, DuckDB."
)
@click.option("--subject", default="id", show_default=True, help="Column of --table with the ids of entities.")
@click.option(
    "--name",
    "name_column",
    help="Columns of --table with names, commas between; label_de@de is in German. name and label if not given.",
)
@click.option("--alias", help="Columns of --table with aliases; alias and aliases if not given.")
@click.option("--description", help="Columns of --table with descriptions; description if not given.")
@click.option("--type", "type_column", help="Columns of --table with types; type and types if not given.")
@click.option(
    "--query", default="", metavar="SQL", help="What to take from a --table that is an SQLite or DuckDB file."
)
@click.option("--wikidata", multiple=True, type=FILE, help="Wikidata's dump: all of it in JSON, or truthy N-Triples.")
@click.option(
    "--min-sitelinks", type=click.IntRange(min=0), default=0, help="Wikidata: pages that an entity has at least."
)
@click.option("--keep-type", multiple=True, metavar="ID", help="Wikidata: type of entities to keep, as Q5; or Q5,Q515.")
@click.option("--keep-property", multiple=True, metavar="ID", help="Wikidata: property of facts to keep; or P19,P20.")
@click.option("--keep-ids", type=FILE, help="Wikidata: file of the ids of entities to keep, one a line.")
@click.option("--closure", is_flag=True, help="Give entities the superclasses of their types: P279, rdfs:subClassOf.")
@click.option("--out", type=FILE, help="The folder to write; an older knowledge base there is replaced.")
@reading_options
@memory_option
@click.option("--force", is_flag=True, help="Build again even if the sources have not changed.")
@click.option("--quiet", is_flag=True, help="Print the final counts alone.")
@click.option("--kb", "name", help="With --elasticsearch: the name of the knowledge base on the cluster.")
@elasticsearch_options
def command(
    facts: tuple[Path, ...],
    names: tuple[Path, ...],
    types: tuple[Path, ...],
    relations: tuple[Path, ...],
    variants: Path | None,
    redirects: tuple[Path, ...],
    counts: tuple[Path, ...],
    rdf: tuple[Path, ...],
    table: tuple[Path, ...],
    subject: str,
    name_column: str | None,
    alias: str | None,
    description: str | None,
    type_column: str | None,
    query: str,
    wikidata: tuple[Path, ...],
    min_sitelinks: int,
    keep_type: tuple[str, ...],
    keep_property: tuple[str, ...],
    keep_ids: Path | None,
    closure: bool,
    out: Path | None,
    options: ReadOptions,
    memory: str,
    force: bool,
    quiet: bool,
    name: str | None,
    elasticsearch: Elasticsearch | None,
) -> None:
    """Build a knowledge base from its files. Every input option may be given several times.

    Files may be compressed (.gz, .bz2, .xz, .zst). A second run over unchanged files does nothing.

    With --elasticsearch and --kb NAME it is loaded into a cluster too, as kbtools load does by default; without --out
    its folder is gone afterwards.
    """
    if click.get_current_context().invoked_subcommand:
        return
    by_kind: dict[SourceKind, tuple[Path, ...]] = {
        "facts": facts, "names": names, "types": types, "relations": relations, "redirects": redirects,
        "counts": counts, "any": rdf,
    }  # fmt: skip
    sources = [Source(path, kind) for kind, paths in by_kind.items() for path in paths]
    sources += [Source(path, "any", format=WIDE) for path in table]
    sources += [Source(path, "any", format=WIKIDATA) for path in wikidata]
    keep = Keep(
        sitelinks=min_sitelinks,
        types=listed(keep_type, "--keep-type"),
        properties=listed(keep_property, "--keep-property"),
        ids=read_ids(keep_ids) if keep_ids else frozenset(),
    )
    check_home(out, name, elasticsearch)
    if not facts and not names and not rdf and not table and not wikidata:
        raise click.UsageError("give at least one --facts, --names, --rdf, --table or --wikidata file")
    if keep != Keep() and not wikidata:
        raise click.UsageError(
            "--min-sitelinks, --keep-type, --keep-property and --keep-ids choose from a --wikidata file; give one"
        )
    # Before a build of hours, not after it.
    if elasticsearch and name:
        check_target(name, elasticsearch)
        if counts:
            echo(COUNTS_STAY, err=True)
    usual_columns = Wide()
    options = replace(
        options,
        variants=read_variants(variants) if variants else (),
        keep=keep,
        wide=Wide(
            subject=subject,
            name=columns_in(name_column, usual_columns.name),
            alias=columns_in(alias, usual_columns.alias),
            type=columns_in(type_column, usual_columns.type),
            description=columns_in(description, usual_columns.description),
            query=query,
        ),
        closure=closure,
    )
    files = [source.path for source in sources]
    with stoppable(), folder_for(out) as folder, shown(files, quiet) as watch:
        built = build(sources, folder, options=options, watch=watch, force=force, memory=memory)
        if not built.fresh:
            echo(f"{out} already holds these sources, nothing to do (--force builds it again)")
        echo(*counts_report(built.manifest).split("\n"))
        echo(*skipped_report(built.manifest).splitlines())
        if out:
            echo(f"{out}: {sum(built.manifest.files.values()):,} bytes, content {built.manifest.digest[:16]}")
        if elasticsearch and name:
            from kbtools.indexers.elastic.load_job import LoadOptions

            echo(load_folder(folder, name, elasticsearch, LoadOptions(force=force), watch))


command.add_command(index_vectors.command)
