"""Build an embedded knowledge base: read, intern, sort, write, check, and put it in place at once."""

import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from queue import Queue
from threading import Event, Thread

import numpy as np
import pyarrow as pa

from kbtools.errors import KBMissing, KBUnusable, NothingBuilt, OutputUnusable
from kbtools.forms import name_forms
from kbtools.indexers import staging
from kbtools.indexers.arrays import ColumnWriter, StringWriter
from kbtools.indexers.embedded import COLUMNS, FILES, FORMS, FUZZY, MANIFEST, EmbeddedKB, read_manifest
from kbtools.indexers.forms import KIND_SHIFT, FormWriter, group_forms
from kbtools.indexers.fuzzy import FuzzyWriter
from kbtools.indexers.readers.reading import Reading, ReadOptions, Source
from kbtools.indexers.readers.records import Batch
from kbtools.indexers.readers.sources import check_source, file_digest
from kbtools.indexers.staging import Staging
from kbtools.manifest import FORMAT_NAME, FORMAT_VERSION, Count, Manifest, SourceFile
from kbtools.rungs import Form
from kbtools.storage import built_folder, write_record

logger = logging.getLogger(__name__)

AHEAD = 2
"""Batches that a reader may be ahead of the database."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One finished step of a build: its name, what it counted, and seconds."""

    name: str
    counts: str
    seconds: float


@dataclass(slots=True)
class Watch:
    """Who is told of a build: `phase` at the end of each step, `progress` with the bytes and lines of a source."""

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
    """What a build gave; `fresh` is false where the folder already held the same sources."""

    manifest: Manifest
    fresh: bool


def build(sources: Sequence[Source], out: Path, *, options: ReadOptions, watch: Watch, force: bool = False) -> Built:
    """Build a knowledge base from sources; do nothing where the folder holds them already.

    Raises InputError for a source that cannot be used and BuildError otherwise; the old knowledge base stays as it
    was, and nothing is left beside it, unless the build succeeds.
    """
    for source in sources:
        check_source(source.path)
    check_target(out)
    if not force and (old := unchanged(sources, out, options)):
        return Built(old, fresh=False)
    with built_folder(out) as folder:
        manifest = write_knowledge(sources, folder, options=options, watch=watch)
        check(folder, manifest)
        write_record(folder / MANIFEST, manifest.to_record(), name=FORMAT_NAME, version=FORMAT_VERSION)
        watch.done("check", "every file and count as written")
    return Built(manifest, fresh=True)


def check_target(out: Path) -> None:
    """Refuse to replace anything but an empty folder, or a knowledge base that nothing else was put into."""
    try:
        found = set(os.listdir(out))
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise OutputUnusable(f"{out}: is a file or inside one; choose a new folder for --out", path=str(out)) from error
    except OSError as error:
        raise OutputUnusable(f"{out}: cannot be opened ({error.strerror})", path=str(out)) from error
    if found and (MANIFEST not in found or found - FILES):
        other = min(found - FILES or found)
        raise OutputUnusable(
            f"{out}: holds {other!r}, which would be lost; choose a new folder for --out", path=str(out)
        )


def option_record(options: ReadOptions) -> dict[str, object]:
    """Record the options that change what is read, or whether it is refused."""
    predicates = options.predicates
    return {
        "language": options.language,
        "columns": dict(sorted(options.columns.items())),
        "name_predicates": sorted(predicates.name),
        "alias_predicates": sorted(predicates.alias),
        "type_predicates": sorted(predicates.type),
        "max_bad": options.max_bad,
    }


def unchanged(sources: Sequence[Source], out: Path, options: ReadOptions) -> Manifest | None:
    """Give the old manifest where the same files, by checksum, were read in the same way by the same versions."""
    try:
        old = read_manifest(out)
        EmbeddedKB(out)
    except (KBMissing, KBUnusable):
        return None
    same = old.options == option_record(options) and old.versions == versions()
    before = Counter((source.kind, source.bytes) for source in old.sources)
    if not same or before != Counter((source.kind, source.path.stat().st_size) for source in sources):
        return None
    hashes = Counter((source.kind, file_digest(source.path)) for source in sources)
    return old if hashes == Counter((source.kind, source.sha256) for source in old.sources) else None


def versions() -> dict[str, str]:
    """Name the versions that decide what is on disk."""
    return {name: version(name) for name in ("kbtools", "tantivy", "lmdb")}


def write_knowledge(sources: Sequence[Source], folder: Path, *, options: ReadOptions, watch: Watch) -> Manifest:
    """Write every file of a knowledge base but its manifest, which is given back."""
    work = folder / "work"
    work.mkdir()
    threads = os.cpu_count() or 1
    with Staging(work, threads=threads) as tables, ExitStack() as files:
        read = [stage(tables, source, options, watch) for source in sources]
        raw = {kind: tables.count(kind) for kind in ("facts", "names", "types")}
        require(raw["facts"], "no fact was read", sources)
        tables.intern()
        writer = Writer(folder, tables, files)
        entities = writer.write_ids()
        watch.done("entities", f"{entities:,} entities, {tables.count('relations'):,} relations")
        joined = tables.count("(SELECT 1 FROM names SEMI JOIN facts ON names.entity = facts.subject LIMIT 1)")
        require(joined, "no name belongs to the subject of a fact", sources)
        facts, pairs = writer.write_facts(entities)
        mentions = 2 * raw["facts"] + raw["names"]
        tables.drop("facts")
        watch.done("facts", f"{facts:,} facts, {pairs:,} subject-relation pairs")
        names = writer.write_names(entities)
        tables.drop("names")
        watch.done("names", f"{names:,} names and aliases")
        types = writer.write_types(entities)
        strangers = tables.count(
            "(SELECT DISTINCT entity, type FROM types ANTI JOIN entities ON entities.id = types.entity)"
        )
        tables.drop("types")
        watch.done("types", f"{types:,} types of entities")
        lengths, forms = writer.write_forms(threads=max(1, threads - 1))
        watch.done("forms", f"{forms:,} forms of names, exact and fuzzy")
        statistics = writer.statistics | {
            "relations": tables.count("relations"),
            "types": tables.count("kinds"),
            "pairs": pairs,
            "forms": forms,
            "types_of_unknown_entities": strangers,
        }
    shutil.rmtree(work)
    return Manifest(
        digest=writer.digest(),
        counts={
            "facts": Count(raw["facts"], facts),
            "names": Count(raw["names"], names),
            "types": Count(raw["types"], types + strangers),
            "entities": Count(mentions, entities),
        },
        sources=tuple(read),
        lengths=tuple(sorted(lengths)),
        statistics=statistics,
        files={
            str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()
        },
        options=option_record(options),
        versions=versions(),
        built=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def require(count: int, problem: str, sources: Sequence[Source]) -> None:
    """Fail a stage that produced nothing."""
    if not count:
        paths = ", ".join(str(source.path) for source in sources)
        raise NothingBuilt(f"{problem}; check that {paths} belong together and are given to the right options")


def stage(tables: Staging, source: Source, options: ReadOptions, watch: Watch) -> SourceFile:
    """Read one source into the work tables."""
    name = source.path.name
    reading = Reading(source, options, progress=lambda done: watch.progress(str(source.path), done))
    rows: Counter[str] = Counter()
    for batch in read_ahead(reading.batches()):
        tables.add(batch.kind, batch.table)
        rows[batch.kind] += batch.table.num_rows
    skips = reading.skips
    if not rows:
        raise NothingBuilt(f"{source.path}: no {source.kind} among its {skips.lines:,} lines; is it the right file?")
    counted = ", ".join(f"{count:,} {kind}" for kind, count in sorted(rows.items()))
    watch.done(f"read {name}", f"{skips.lines:,} lines, {counted}")
    skipped = tuple((skip.kind, skip.count, skip.example) for skip in skips.kinds.values())
    size = source.path.stat().st_size
    path = os.fsencode(source.path).decode(errors="backslashreplace")
    return SourceFile(path, source.kind, size, reading.digest, skips.lines, skipped)


def read_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Read batches in a thread of their own, a few ahead; its errors are raised here."""
    queue: Queue[Batch | BaseException | None] = Queue(AHEAD)
    stopped = Event()

    def read() -> None:
        last: BaseException | None = None
        try:
            for batch in batches:
                queue.put(batch)
                if stopped.is_set():
                    return
        except BaseException as error:  # carried to the thread that asked, and raised there
            last = error
        queue.put(last)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        while (batch := queue.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        stopped.set()
        while thread.is_alive():
            if not queue.empty():
                queue.get()
            thread.join(0.01)


class Writer:
    """Write the files of a knowledge base from the sorted work tables, hashing the content on the way."""

    def __init__(self, folder: Path, tables: Staging, files: ExitStack) -> None:
        self.folder = folder
        self.tables = tables
        self.files = files
        self.hashes: dict[str, str] = {}
        self.statistics: dict[str, int] = {}

    def digest(self) -> str:
        """Hash the content: ids, facts, names and types, in the order of their rows."""
        return sha256("".join(f"{name}={value}\n" for name, value in sorted(self.hashes.items())).encode()).hexdigest()

    def write_ids(self) -> int:
        """Write the ids of entities, relations and types; give the number of entities."""
        for table, name in (("relations", "relation.id"), ("kinds", "type.id"), ("entities", "entity.id")):
            writer = self.strings(name)
            for ids in self.tables.ids(table):
                writer.write(ids)
            self.hashes[name] = writer.close()
        return writer.starts.count - 1

    def column(self, name: str) -> ColumnWriter:
        writer = ColumnWriter(self.folder / name, COLUMNS[name])
        self.files.callback(writer.close)
        return writer

    def strings(self, name: str) -> StringWriter:
        writer = StringWriter(self.folder / name)
        self.files.callback(writer.close)
        return writer

    def write_starts(self, name: str, counts: np.ndarray) -> None:
        """Write where the run of each row starts, from the lengths of the runs."""
        writer = self.column(name)
        writer.write(np.concatenate([[0], np.cumsum(counts)]))
        self.hashes[name] = writer.close()

    def write_facts(self, entities: int) -> tuple[int, int]:
        """Write pairs and objects; give the numbers of facts and of pairs."""
        relations, firsts, objects = (self.column(f"fact.{name}") for name in ("relation", "first_object", "object"))
        pairs_of = np.zeros(entities, dtype=np.int64)
        is_object = np.zeros(entities, dtype=bool)
        last = (-1, -1)
        for batch in self.tables.stream(staging.FACTS):
            subject, relation, target = (batch.column(column).to_numpy() for column in range(3))
            new = np.ones(len(subject), dtype=bool)
            new[1:] = (subject[1:] != subject[:-1]) | (relation[1:] != relation[:-1])
            new[0] = last != (int(subject[0]), int(relation[0]))
            relations.write(relation[new])
            firsts.write(np.flatnonzero(new) + objects.count)
            objects.write(target)
            pairs_of += np.bincount(subject[new], minlength=entities)
            is_object[target] = True
            last = (int(subject[-1]), int(relation[-1]))
        firsts.write(np.array([objects.count]))
        for name, writer in (("relation", relations), ("first_object", firsts), ("object", objects)):
            self.hashes[f"fact.{name}"] = writer.close()
        self.write_starts("fact.first", pairs_of)
        self.statistics["subjects"] = int(np.count_nonzero(pairs_of))
        self.statistics["objects"] = int(np.count_nonzero(is_object))
        self.statistics["entities_without_facts"] = int(np.count_nonzero((pairs_of == 0) & ~is_object))
        self.statistics["subjects_of_no_fact"] = int(np.count_nonzero(pairs_of == 0))
        return objects.count, relations.count

    def write_names(self, entities: int) -> int:
        """Write the names of every entity, names before aliases, and put their forms into the work tables."""
        texts = self.strings("alias.text")
        is_alias = self.column("alias.is_alias")
        names_of = np.zeros(entities, dtype=np.int64)
        row = 0
        for batch in self.tables.stream(staging.NAMES):
            entity, alias, text = batch.column(0), batch.column(1), batch.column(2).to_pylist()
            texts.write(text)
            is_alias.write(alias.to_numpy(zero_copy_only=False))
            names_of += np.bincount(entity.to_numpy(), minlength=entities)
            self.tables.add("forms", form_rows(text, entity, first=row))
            row += len(text)
        self.hashes["alias.text"] = texts.close()
        self.hashes["alias.is_alias"] = is_alias.close()
        self.write_starts("alias.first", names_of)
        self.statistics["entities_without_names"] = int(np.count_nonzero(names_of == 0))
        return row

    def write_types(self, entities: int) -> int:
        """Write the types of every entity."""
        types = self.column("type.type")
        types_of = np.zeros(entities, dtype=np.int64)
        for batch in self.tables.stream(staging.TYPES):
            types.write(batch.column(1).to_numpy())
            types_of += np.bincount(batch.column(0).to_numpy(), minlength=entities)
        self.hashes["type.type"] = types.close()
        self.write_starts("type.first", types_of)
        self.statistics["entities_without_types"] = int(np.count_nonzero(types_of == 0))
        return types.count

    def write_forms(self, *, threads: int) -> tuple[set[int], int]:
        """Write the exact and the fuzzy index; give the lengths of the forms in words, and their number."""
        exact = self.files.enter_context(FormWriter(self.folder / FORMS))
        fuzzy = self.files.enter_context(FuzzyWriter(self.folder / FUZZY, threads=threads))

        def groups() -> Iterator[tuple[str, bytes]]:
            for form, value in group_forms(self.tables.stream(staging.FORMS)):
                header, alias = np.frombuffer(value, dtype="<u4", count=2).tolist()
                if header >> KIND_SHIFT == Form.NORMAL:
                    fuzzy.add(form, alias)
                yield form, value

        exact.write_forms(groups())
        fuzzy.close()
        exact.write_words(self.tables.stream(staging.WORDS))
        exact.close()
        return exact.lengths, exact.forms


def form_rows(texts: list[str], entities: pa.Array, *, first: int) -> pa.Table:
    """List the forms of names whose rows begin at `first`."""
    forms, kinds, positions = [], [], []
    for position, text in enumerate(texts):
        for form, kind in name_forms(text).items():
            forms.append(form)
            kinds.append(int(kind))
            positions.append(position)
    at = pa.array(positions, pa.int64())
    return pa.table(
        {
            "form": pa.array(forms, pa.string()),
            "kind": pa.array(kinds, pa.uint8()),
            "text": pa.array(texts, pa.string()).take(at),
            "entity": entities.take(at),
            "alias": pa.array(np.array(positions, dtype=np.uint32) + np.uint32(first)),
        }
    )


def check(folder: Path, manifest: Manifest) -> None:
    """Open what was written and compare it with what was counted."""
    written = EmbeddedKB(folder, manifest=manifest)
    found = {
        "entities": len(written.entity_ids),
        "facts": len(written.columns["fact.object"]),
        "names": len(written.alias_texts),
    }
    expected = {kind: manifest.counts[kind].unique for kind in found}
    found["forms"], expected["forms"] = len(written.forms), manifest.statistics["forms"]
    if found != expected:
        raise NothingBuilt(f"{folder}: wrote {found}, expected {expected}; the disk or the memory may be faulty")
