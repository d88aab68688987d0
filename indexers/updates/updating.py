"""The update of a knowledge base: changes are read, written as a segment over the base, and put in place at once."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from kbtools.answering.records import Missing, Skipped, UpdateResult
from kbtools.errors import BuildLocked
from kbtools.indexers.building.build import keep_vectors
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import is_ours, part_manifest, read_manifest, require_intact, write_manifest
from kbtools.indexers.readers.batches import Skips
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.indexers.readers.sources import check_source
from kbtools.indexers.updates.draft import Draft, as_rows
from kbtools.indexers.updates.overlay import Overlay, open_folder
from kbtools.indexers.updates.segment import write_segment
from kbtools.indexers.updates.update_sources import UpdateSource, read_into
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.ids import is_literal
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import SEGMENT, UPDATE, Change, Count, Manifest
from kbtools.kb.rows import EntityRows
from kbtools.storage import built_folder, link_or_copy


class _NothingChanged(Exception):
    """Ends an update that changes nothing."""


def update(path: Path, sources: Sequence[UpdateSource], *, options: ReadOptions) -> UpdateResult:
    """Apply changes from sources to a knowledge base, one after the other.

    Processes that have it open are not affected. Raises InputError for a source that cannot be used, BuildLocked while
    another process builds or updates the folder, and BuildError otherwise; the knowledge base stays as it was unless
    the update succeeds.
    """
    read_manifest(path)
    for part in sources:
        check_source(part.source.path)
    with ExitStack() as locks:
        try:
            with replacing(path) as (folder, kb):
                for name in part_manifest(kb.manifest, "").files:  # what the build wrote
                    (folder / name).parent.mkdir(exist_ok=True)
                    link_or_copy(kb.path / name, folder / name)
                draft = Draft(kb)
                skips = tuple(read_into(draft, part, options) for part in sources)
                draft.settle()
                manifest = _write_update(draft, kb, folder, [part.source.name for part in sources])
                keep_vectors(path, folder, manifest, locks)
        except _NothingChanged:
            return result_of(path, draft, skips, {}, kb.manifest.digest)
    return result_of(path, draft, skips, manifest.history[-1].counts, manifest.digest)


def result_of(
    kb: str | Path, draft: Draft, skips: Sequence[Skips], changes: dict[str, int], digest: str
) -> UpdateResult:
    """Return the result of an update: changes made, removals of what does not exist, and lines left out."""
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
def replacing(path: Path) -> Iterator[tuple[Path, EmbeddedKB | Overlay]]:
    """Yield a folder that replaces a knowledge base if the block succeeds, and the knowledge base.

    Raises KBUnusable if one of its files is damaged, BuildLocked while another process changes it.
    """
    try:
        with built_folder(path, ours=is_ours) as folder:
            # Damaged content would be written again with valid checksums.
            require_intact(path, read_manifest(path))
            yield folder, open_folder(path)
    except BuildLocked as error:
        raise BuildLocked.at(
            path, "another process is building or updating it; run the command again when it has finished"
        ) from error


def _write_update(draft: Draft, kb: EmbeddedKB | Overlay, folder: Path, sources: Sequence[str]) -> Manifest:
    """Write the segment of a draft and the manifest; raise NothingChanged if both are unchanged."""
    if not draft.made():
        raise _NothingChanged
    written = write_segment(draft, kb, folder / SEGMENT)
    segment, old = written.content, kb.manifest
    digest = hashlib.sha256(f"{old.lineage[0]} {segment.digest}".encode()).hexdigest()
    if digest == old.digest:
        raise _NothingChanged
    base = part_manifest(old, "")
    manifest = replace(
        change_manifest(old, draft, digest, sources, lengths=segment.lengths, size=sum(segment.files.values())),
        files=base.files | {f"{SEGMENT}/{name}": size for name, size in segment.files.items()},
        checksums=base.checksums | {f"{SEGMENT}/{name}": digest for name, digest in segment.checksums.items()},
    )
    manifest = account(manifest, draft, kb, Overlay(folder, manifest), forms=written.forms)
    write_manifest(folder, manifest)
    return manifest


def change_manifest(
    old: Manifest, draft: Draft, digest: str, sources: Sequence[str], *, lengths: Iterable[int], size: int
) -> Manifest:
    """Return a manifest with an update of `size` bytes added to its history; counts are unchanged."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    change = Change(UPDATE, when, old.digest, digest, tuple(sources), draft.made(), size)
    lengths = tuple(sorted({*old.lengths, *lengths}))
    return replace(old, digest=digest, lengths=lengths, history=(*old.history, change))


def account(manifest: Manifest, draft: Draft, before: KnowledgeBase, after: KnowledgeBase, *, forms: int) -> Manifest:
    """Return a manifest with the counts after an update; counts only the entities that it changed."""
    old, touched = manifest.statistics, draft.touched()
    more = _tally(after, as_rows(row for row in touched if row not in draft.deleted))
    more.subtract(_tally(before, as_rows(row for row in touched if draft.is_known(row))))
    # Languages are counted once any name has one; until then all names count as having none.
    languages = Counter(manifest.languages or {UND: manifest.counts["names"].unique})
    languages.update({tag.removeprefix(_LANGUAGE): more[tag] for tag in more if tag.startswith(_LANGUAGE)})
    return replace(
        manifest,
        counts={
            kind: Count(count.raw + more[kind], count.unique + more[kind]) for kind, count in manifest.counts.items()
        },
        statistics=old
        | {name: old[name] + more[name] for name in _STATISTICS}
        | {"relations": len(draft.relations), "types": len(draft.types), "forms": forms},
        languages={} if (present := +languages).keys() <= {UND} else dict(present.most_common()),
    )


_STATISTICS = (
    "values", "pairs", "descriptions", "subjects", "objects", "subjects_of_no_fact", "entities_without_facts",
    "entities_without_names", "entities_without_types",
)  # fmt: skip
_LANGUAGE = "language "
"""Prefix of a language's tag in a tally."""


def _tally(kb: KnowledgeBase, rows: EntityRows) -> Counter[str]:
    """Count the facts, names, and languages of names of some entities."""
    spoken, incoming = kb.names_of(rows), kb.incoming_counts(rows)
    facts, names = kb.fact_counts(rows), np.array([len(names_of) for names_of in spoken], dtype=np.int64)
    types, is_object = (
        np.diff(kb.types_of(rows).starts),
        np.zeros(len(rows), bool) if incoming is None else incoming > 0,
    )
    is_entity = np.array([not is_literal(entity_id) for entity_id in kb.ids(rows)], dtype=bool)
    sums = {
        "entities": len(rows),
        "values": np.count_nonzero(~is_entity),
        "facts": facts.sum(),
        "names": names.sum(),
        "types": types.sum(),
        "pairs": len(kb.relations_of(rows).values),
        "descriptions": sum(map(bool, kb.descriptions(rows))),
        "subjects": np.count_nonzero(facts),
        "objects": np.count_nonzero(is_object),
        "subjects_of_no_fact": np.count_nonzero(is_entity & (facts == 0)),
        "entities_without_facts": np.count_nonzero((facts == 0) & ~is_object),
        "entities_without_names": np.count_nonzero(is_entity & (names == 0)),
        "entities_without_types": np.count_nonzero(is_entity & (types == 0)),
    }
    counts = Counter({name: int(count) for name, count in sums.items()})
    counts.update(_LANGUAGE + tag for names_of in spoken for name in names_of for tag in name.languages)
    return counts
