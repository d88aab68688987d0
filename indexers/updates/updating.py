"""Update a knowledge base: its changes are read, written as a segment beside the base, and put in place at once."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from kbtools.answering.records import Missing, Skipped, UpdateResult
from kbtools.errors import BuildLocked
from kbtools.indexers.building.build import keep_vectors
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import MANIFEST, is_ours, read_manifest, require_intact
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.indexers.readers.skips import Skips
from kbtools.indexers.readers.sources import check_source
from kbtools.indexers.updates.draft import Draft
from kbtools.indexers.updates.segment_writer import SegmentAccount, SegmentWriter
from kbtools.indexers.updates.update_sources import UpdateSource, read_into
from kbtools.indexers.updates.updated_kb import UpdatedKB, open_folder
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import FORMAT_NAME, FORMAT_VERSION, SEGMENT, UPDATE, Change, Count, Manifest
from kbtools.kb.rows import EntityRows
from kbtools.record_files import file_digest, write_record
from kbtools.storage import built_folder, link_or_copy

NOBODY = np.empty(0, dtype=np.uint32)


class NothingChanged(Exception):
    """The end of an update that leaves the knowledge base as it is."""


def update(path: Path, sources: Sequence[UpdateSource], *, options: ReadOptions) -> UpdateResult:
    """Change a knowledge base as its sources say, one after the other.

    Who has it open is answered as before. Raises InputError for a source that cannot be used, BuildLocked while another
    process builds or updates the folder, and BuildError otherwise; the knowledge base stays as it was unless the update
    succeeds.
    """
    read_manifest(path)
    for part in sources:
        check_source(part.source.path)
    with ExitStack() as locks:
        try:
            with replacing(path) as (folder, kb):
                link_base(kb, folder)
                draft = Draft(kb)
                skips = tuple(read_into(draft, part, options) for part in sources)
                draft.settle()
                manifest = write_update(draft, kb, folder, [part.source.name for part in sources])
                keep_vectors(path, folder, manifest, locks)
        except NothingChanged:
            return result_of(path, draft, skips, {}, kb.manifest.digest)
    return result_of(path, draft, skips, manifest.history[-1].counts, manifest.digest)


def result_of(
    kb: str | Path, draft: Draft, skips: Sequence[Skips], changes: dict[str, int], digest: str
) -> UpdateResult:
    """Tell what an update did, what was not there, and what was left out of its files."""
    return UpdateResult(
        kb=str(kb),
        changes=changes,
        missing=tuple(Missing(kind, count, first) for kind, (count, first) in draft.missing.items()),
        skipped=tuple(
            Skipped(of_file.path, skip.kind, skip.count, of_file.lines, skip.example)
            for of_file in skips
            for skip in of_file.kinds.values()
        ),
        notes=tuple(note for of_file in skips for note in of_file.notes),
        digest=digest,
    )


@contextmanager
def replacing(path: Path) -> Iterator[tuple[Path, EmbeddedKB]]:
    """Yield a folder that takes the place of a knowledge base when the block ends well, and the knowledge base.

    Raises KBUnusable where a file of it is not as it was written, BuildLocked while another process changes it.
    """
    try:
        with built_folder(path, ours=is_ours) as folder:
            # What is damaged would be written again with checksums that fit.
            require_intact(path, read_manifest(path))
            yield folder, open_folder(path)
    except BuildLocked as error:
        raise BuildLocked(
            f"{path}: another process is building or updating it; run the command again when that one is done",
            path=str(path),
        ) from error


def link_base(kb: EmbeddedKB, folder: Path) -> None:
    """Link what the build of a knowledge base wrote into another folder."""
    for name in base_files(kb.manifest):
        (folder / name).parent.mkdir(exist_ok=True)
        link_or_copy(kb.path / name, folder / name)


def base_files(manifest: Manifest) -> list[str]:
    """List the files that the build wrote."""
    return [name for name in manifest.files if not name.startswith(f"{SEGMENT}/")]


def write_update(draft: Draft, kb: EmbeddedKB, folder: Path, sources: Sequence[str]) -> Manifest:
    """Write the segment of a draft and its manifest; raise NothingChanged where both are as before."""
    counts = draft.made()
    if not counts:
        raise NothingChanged
    segment = SegmentWriter(draft, kb, folder / SEGMENT).write()
    old = kb.manifest
    digest = hashlib.sha256(f"{old.lineage[0]} {segment.digest}".encode()).hexdigest()
    if digest == old.digest:
        raise NothingChanged
    written = {str(file.relative_to(folder)): file for file in sorted((folder / SEGMENT).rglob("*")) if file.is_file()}
    sizes = {name: file.stat().st_size for name, file in written.items()}
    when = datetime.now(UTC).isoformat(timespec="seconds")
    change = Change(UPDATE, when, old.digest, digest, tuple(sources), counts, sum(sizes.values()))
    base = base_files(old)
    manifest = replace(
        old,
        digest=digest,
        counts=count(old, segment),
        lengths=tuple(sorted({*old.lengths, *segment.lengths})),
        statistics=old.statistics | segment.statistics,
        files={name: old.files[name] for name in base} | sizes,
        checksums={name: old.checksums[name] for name in base if name in old.checksums}
        | {name: file_digest(file) for name, file in written.items()},
        history=(*old.history, change),
        languages=count_languages(draft, kb),
    )
    updated = UpdatedKB(folder, manifest=manifest)
    touched = np.array(draft.touched(), dtype=np.uint32)
    before, after = count_entities(kb, touched), count_entities(updated, touched)
    differences = {name: old.statistics[name] + after[name] - before[name] for name in after}
    manifest = replace(manifest, statistics=manifest.statistics | differences)
    write_record(folder / MANIFEST, manifest.to_record(), name=FORMAT_NAME, version=FORMAT_VERSION)
    return manifest


def count(old: Manifest, segment: SegmentAccount) -> dict[str, Count]:
    """Count what there is now; what the build read twice stays counted as such."""
    unique = segment.counts | {"types": segment.counts["types"] + old.statistics["types_of_unknown_entities"]}
    return {kind: Count(before.duplicate + unique[kind], unique[kind]) for kind, before in old.counts.items()}


def count_languages(draft: Draft, kb: EmbeddedKB) -> dict[str, int]:
    """Count the names in each language now; nothing where none has one."""
    old, new = kb.manifest, draft.languages()
    if not old.languages and new <= {UND}:
        return {}
    counts = Counter(old.languages or {UND: old.counts["names"].unique})
    for row, parts in draft.parts.items():
        if draft.is_known(row):
            (names,) = kb.names_of(np.array([row], dtype=np.uint32))
            counts.subtract(tag for name in names for tag in name.languages)
        counts.update(tag for own in parts.values() for tag in own)
    present = +counts
    return {} if present.keys() <= {UND} else dict(present.most_common())


def count_entities(kb: EmbeddedKB, rows: EntityRows) -> dict[str, int]:
    """Count the subjects, objects and so on among some rows, of those that a knowledge base has."""
    known, gone = (len(kb.marks), kb.own["gone.row"]) if isinstance(kb, UpdatedKB) else (len(kb.entity_ids), NOBODY)
    alive = rows[(rows < known) & ~np.isin(rows, gone)]
    has_facts, is_object = kb.fact_counts(alive) > 0, kb.incoming_counts(alive) > 0
    is_named, has_types = kb.alias_counts(alive) > 0, np.diff(kb.types_of(alive).starts) > 0
    flags = {
        "subjects": has_facts,
        "objects": is_object,
        "subjects_of_no_fact": ~has_facts,
        "entities_without_facts": ~has_facts & ~is_object,
        "entities_without_names": ~is_named,
        "entities_without_types": ~has_types,
    }
    return {name: int(np.count_nonzero(flag)) for name, flag in flags.items()}
