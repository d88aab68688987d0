"""The build of an embedded knowledge base: read, intern, sort, write, check, and put in place at once."""

import functools
import logging
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import msgspec
import pyarrow as pa

from kbtools.errors import KBMissing, KBUnusable, MemoryExhausted, NothingBuilt, OutputUnusable, VectorsMissing
from kbtools.indexers.building.derived_rows import (
    lend_labels,
    link_cells,
    merge_ids,
    name_ids,
    name_relations,
    name_units,
    widen_types,
)
from kbtools.indexers.building.staging import BATCH, MEMORY, FactPiece, Staging
from kbtools.indexers.building.writing import write_content
from kbtools.indexers.folder.checksums import compare_files
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FOLDER, INDEX, RECORD, ROWS, read_vectors_record
from kbtools.indexers.folder.kb_folder import MANIFEST, WORK, is_ours, read_manifest, write_manifest
from kbtools.indexers.readers.batches import SCHEMAS, Kind, RecordBatch, gathered
from kbtools.indexers.readers.reading import WIDE, ReadOptions, Source, with_own_rows
from kbtools.indexers.readers.sources import check_source
from kbtools.indexers.readers.sources import file_digest as source_digest
from kbtools.indexers.readers.table_files import check_columns, open_reading
from kbtools.kb.manifest import Count, Manifest, SourceFile
from kbtools.read_ahead import map_ahead, read_ahead
from kbtools.storage import built_folder, find_stranger, link_or_copy, locked
from kbtools.text.printable import plural
from kbtools.text.readings import variant_table

logger = logging.getLogger(__name__)

_NAMED = """
(SELECT 1 FROM names SEMI JOIN (SELECT id FROM fact_ids WHERE is_subject {limit}) ON id = names.entity LIMIT 1)
"""
_MOST_TRIED = 10_000
"""Subjects of facts that are first looked up among the names."""

_ADDRESS_SPACE = 2_000_000_000
"""Least address space of a build, in bytes: with the sample and two threads, some failed at 1.6 GB, none at 1.7."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A finished step of a build: its name, its counts, and seconds."""

    name: str
    counts: str
    seconds: float


@dataclass(slots=True)
class BuildProgress:
    """The callbacks of a build: `phase` after each step, `progress` with the bytes and lines read of a source."""

    phase: Callable[[Phase], None] = lambda phase: None
    progress: Callable[[str, int], None] = lambda name, done: None
    started: float = field(default_factory=time.monotonic)

    def done(self, name: str, counts: str) -> None:
        now = time.monotonic()
        phase = Phase(name, counts, now - self.started)
        self.started = now
        logger.info("%s: %s in %.1f s", phase.name, phase.counts, phase.seconds)
        self.phase(phase)


@dataclass(frozen=True, slots=True)
class Built:
    """The result of a build; `fresh` is false if the folder already had the same sources."""

    manifest: Manifest
    fresh: bool


def build(
    sources: Sequence[Source],
    out: Path,
    *,
    options: ReadOptions,
    watch: BuildProgress,
    force: bool = False,
    memory: str = MEMORY,
) -> Built:
    """Build a knowledge base from sources, unless the folder was built from them.

    Raises InputError for a source that cannot be used and BuildError otherwise; unless the build succeeds, the old
    knowledge base stays as it was and no other files are left. Vectors of the old one are kept if both have the same
    content. The work tables take at most `memory`, and the rest goes to disk.
    """
    require_address_space()
    for source in sources:
        check_source(source.path)
    check_columns(sources, options)
    _check_target(out)
    if not force and (old := _unchanged(sources, out, options)):
        return Built(old, fresh=False)
    with ExitStack() as locks, built_folder(out, ours=is_ours) as folder:
        # The manifest comes last, after every file that it names.
        manifest = write_knowledge(sources, folder, options=options, watch=watch, memory=memory)
        check(folder, manifest)
        write_manifest(folder, manifest)
        keep_vectors(out, folder, manifest, locks)
        watch.done("check", "every file and count as written")
    return Built(manifest, fresh=True)


def require_address_space() -> None:
    """Raise MemoryExhausted under a limit of address space with which libraries would end the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
        raise MemoryExhausted(
            f"a build needs {_ADDRESS_SPACE:,} bytes of address space, found a limit of {limit:,}; "
            "raise it with ulimit -v"
        )


def _check_target(out: Path) -> None:
    """Raise an error unless the path is free, an empty folder, or a knowledge base without other files."""
    place = os.fsencode(os.path.realpath(out))
    try:
        place.decode()
    except UnicodeDecodeError as error:
        raise OutputUnusable(
            f"{place.decode(errors='backslashreplace')}: the path is not UTF-8, which DuckDB and tantivy "
            "require; choose another folder for --out",
            path=str(out),
        ) from error
    try:
        names = set(os.listdir(out))
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise OutputUnusable.at(out, "is a file or inside one; choose a new folder for --out") from error
    except OSError as error:
        raise OutputUnusable.at(out, f"cannot be opened ({error.strerror})") from error
    stranger = find_stranger(out.resolve(), is_ours)
    if names and (MANIFEST not in names or stranger):
        content = repr(str(stranger or min(names)))
        raise OutputUnusable.at(out, f"contains {content}, which would be overwritten; choose a new folder for --out")


def keep_vectors(old: Path, new: Path, manifest: Manifest, locks: ExitStack) -> None:
    """Link the vectors of the old folder into the new one if both have the same content, else log their deletion.

    The `locks` keep others from writing vectors into the old folder until the new one is in its place.
    """
    if not (old / FOLDER).is_dir():
        return
    locks.enter_context(locked(old.resolve() / FOLDER))
    try:
        read_vectors_record(old, manifest)
    except VectorsMissing:
        return
    except KBUnusable as error:
        logger.warning("%s; the existing ones are deleted", error)
        return
    (new / FOLDER).mkdir()
    for name in (RECORD, INDEX, ROWS):
        link_or_copy(old / FOLDER / name, new / FOLDER / name)


def _option_record(options: ReadOptions, sources: Sequence[Source]) -> dict[str, object]:
    """Return the options that affect what is read or refused; the ids to keep are recorded as a hash."""
    ids = sha256("\n".join(sorted(options.keep.ids)).encode()).hexdigest()  # A hash, as there may be millions of ids.
    whole = replace(options, keep=replace(options.keep, ids=frozenset({ids})))
    record: dict[str, object] = msgspec.json.decode(msgspec.json.encode(whole, order="sorted"))
    del record["jobs"]
    return record | {
        "wide": record["wide"] if any(source.format == WIDE for source in sources) else {},
        "variants": variant_table(options.variants),
        "formats": sorted({source.format for source in sources if source.format}),
    }


def _unchanged(sources: Sequence[Source], out: Path, options: ReadOptions) -> Manifest | None:
    """Return the old manifest if the same files, by checksum, were read in the same way by the same versions.

    None if a file of the old knowledge base is damaged, so that it is built again.
    """
    try:
        old = read_manifest(out)
        if old.history:
            logger.warning("%s: rebuilding from its sources, which lack %d updates", out, len(old.history))
            return None
        EmbeddedKB(out)
    except (KBMissing, KBUnusable):
        return None
    # Sizes before checksums: they reveal most changed sources without reading any.
    same = old.options == _option_record(options, sources) and old.versions == versions()
    before = Counter((source.kind, source.bytes) for source in old.sources)
    if not same or before != Counter((source.kind, source.path.stat().st_size) for source in sources):
        return None
    hashes = Counter((source.kind, source_digest(source.path)) for source in sources)
    if hashes != Counter((source.kind, source.sha256) for source in old.sources):
        return None
    damage = next((line for line in compare_files(out, old.files, old.checksums, "it is built again")), None)
    if damage:
        logger.warning(damage)
    return None if damage else old


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of the libraries that determine the files, cached since reading them takes 5 ms."""
    return {name: version(name) for name in ("kbtools", "tantivy", "lmdb")}


def write_knowledge(
    sources: Sequence[Source], folder: Path, *, options: ReadOptions, watch: BuildProgress, memory: str
) -> Manifest:
    """Read sources and write every file of a knowledge base except its manifest, which is returned."""
    read: list[SourceFile] = []

    def fill(tables: Staging) -> None:
        tables.require_memory(sum(source.path.stat().st_size for source in sources))
        read.extend(_stage(tables, source, options, watch) for source in with_own_rows(sources))
        if any(source.format == WIDE for source in sources):
            link_cells(tables)
        for derive in (merge_ids, widen_types, name_units, lend_labels, name_relations):
            derive(tables)
        # Names without facts are a knowledge base for look-ups.
        wanted = any(source.kind == "facts" for source in sources) or not tables.count("names")
        _require(tables.pieces.facts or not wanted, "no fact was read", sources)
        if tables.pieces.facts:
            _require_names(tables, sources, read)
        else:
            logger.warning("no facts were given: look-ups work, but no question has an answer")
        if counted := tables.count("counts"):
            known = any(
                tables.count(f"(SELECT 1 FROM {table} SEMI JOIN counts ON counts.entity = {table}.{column} LIMIT 1)")
                for table, column in (("fact_ids", "id"), ("names", "entity"))
            )
            _require(known, f"none of {counted:,} counts belongs to an entity with a fact or a name", sources)

    manifest = write_tables(fill, folder, watch=watch, memory=memory, jobs=options.jobs)
    return replace(manifest, sources=tuple(read), options=_option_record(options, sources))


def write_tables(
    fill: Callable[[Staging], None], folder: Path, *, watch: BuildProgress, memory: str, jobs: int
) -> Manifest:
    """Write every file of a knowledge base from work tables that `fill` fills; return the manifest, without sources."""
    work = folder / WORK
    work.mkdir()
    with Staging(work, threads=jobs, memory=memory) as tables:
        fill(tables)
        raw = {"facts": tables.pieces.facts} | {kind: tables.count(kind) for kind in ("names", "types")}
        tables.intern()
        content = write_content(tables, folder, done=watch.done, jobs=jobs)
    shutil.rmtree(work)
    return Manifest(
        digest=content.digest,
        counts={kind: Count(raw.get(kind, unique), unique) for kind, unique in content.counts.items()},
        sources=(),
        lengths=content.lengths,
        statistics=content.statistics,
        files=content.files,
        checksums=content.checksums,
        versions=versions(),
        built=datetime.now(UTC).isoformat(timespec="seconds"),
        languages=content.languages,
    )


def _require_names(tables: Staging, sources: Sequence[Source], read: Sequence[SourceFile]) -> None:
    """Name entities by their ids if no names were read; raise an error if no subject of a fact has a name.

    The error shows ids from both sides, or what was left out.
    """
    # One of the first subjects usually has a name, which shows without a table of all subjects.
    if not any(tables.count(_NAMED.format(limit=limit)) for limit in (f"LIMIT {_MOST_TRIED}", "")):
        subject, entity = tables.first("fact_ids WHERE is_subject", "id"), tables.first("names", "entity")
        left_out = {f"left out: {kind}" for file in read for kind, _, _ in file.skipped}
        nothing = "; ".join(["no name was read", *sorted(left_out), *(note for file in read for note in file.notes)])
        if not entity and all(source.format == WIDE for source in sources):
            raise NothingBuilt(f"no column contains names; choose one with --name ({nothing})")
        foreign = any("in a language other than" in kind for kind in left_out)
        if not entity and not foreign and (named := name_ids(tables)):
            logger.warning("no names were given, so ids are names: %r is %r; --names gives others", *named)
            return
        spelt = f"facts are of {subject!r}, names of {entity!r}" if entity else nothing
        cure = "" if entity else f"; give the names of {subject!r} and others with --names"
        _require(0, "no name belongs to the subject of a fact", sources, because=f" ({spelt}){cure}")


def _require(count: bool | int, problem: str, sources: Sequence[Source], *, because: str = "") -> None:
    """Raise BuildError if a stage produced nothing."""
    if not count:
        paths = ", ".join(source.name for source in sources)
        together = "belong together and are" if len(sources) > 1 else "is"
        raise NothingBuilt(f"{problem}; check that {paths} {together} passed to the right options{because}")


def _stage(tables: Staging, source: Source, options: ReadOptions, watch: BuildProgress) -> SourceFile:
    name = source.label or source.path.name
    reading = open_reading(source, options, progress=lambda done: watch.progress(str(source.path), done))
    if source.directed:
        earlier = tables.stream("SELECT old, new FROM redirects")
        reading.redirects = pa.Table.from_batches(earlier, schema=SCHEMAS["redirects"])
    rows: Counter[str] = Counter()
    gathering = gathered(read_ahead(reading.batches()), BATCH)
    with closing(map_ahead(numbered, gathering, threads=max(1, options.jobs - 1))) as batches:
        for batch, piece in batches:
            if piece:
                tables.add_piece(piece)
            else:
                tables.add(_work_table(source, batch.kind), batch.table)
            rows[batch.kind] += batch.table.num_rows
    skips = reading.skips
    if not rows:
        wanted = "rows" if source.kind == "any" else source.kind
        raise NothingBuilt(f"{source.name}: no {wanted} among its {plural(skips.lines, 'line')}; is it the right file?")
    counted = ", ".join(f"{count:,} {kind}" for kind, count in sorted(rows.items()))
    watch.done(f"read {name}", f"{plural(skips.lines, 'line')}, {counted}")
    skipped = tuple((skip.kind, skip.count, skip.example) for skip in skips.kinds.values())
    size = source.path.stat().st_size
    path = os.fsencode(source.name).decode(errors="backslashreplace")
    return SourceFile(path, source.kind, size, reading.digest, skips.lines, skipped, tuple(skips.notes))


def numbered(batch: RecordBatch) -> tuple[RecordBatch, FactPiece | None]:
    """Number the ids of a batch of facts; other batches stay as they are."""
    return batch, FactPiece.of(batch.table) if batch.kind == "facts" else None


def _work_table(source: Source, kind: Kind) -> str:
    """Return the work table of a kind of rows; statements of identity in a graph are not redirects."""
    if kind == "redirects":
        return "redirects" if source.directed else "same"
    return "relation_names" if kind == "relations" else kind


def check(folder: Path, manifest: Manifest) -> None:
    """Open the files that were written and compare them with the counts."""
    kb = EmbeddedKB(folder, manifest=manifest)
    counted = {
        "entities": len(kb.entity_ids),
        "facts": len(kb.columns["fact.object"]),
        "incoming facts": len(kb.columns["incoming.subject"]),
        "names": len(kb.alias_texts),
    }
    expected = {kind: manifest.counts[kind.removeprefix("incoming ")].unique for kind in counted}
    counted["forms"], expected["forms"] = len(kb.forms), manifest.statistics["forms"]
    if counted != expected:
        raise NothingBuilt(f"{folder}: wrote {counted}, expected {expected}; the disk or the memory may be faulty")
