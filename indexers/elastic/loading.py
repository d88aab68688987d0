"""Load an embedded knowledge base into a cluster: a new version is filled, checked, then switched to in one call."""

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kbtools.errors import BulkFailed, Unreachable
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.build_lock import BuildLock, BuildNote, free_note
from kbtools.indexers.elastic.bulk import IN_FLIGHT, MOST_DOCUMENTS, Rejected, Sender, Sent, note_kinds, read_largest
from kbtools.indexers.elastic.catalog import catalog_documents
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.documents import Document, form_documents
from kbtools.indexers.elastic.folder_contents import FolderEntities, count_normal_forms, normal_forms
from kbtools.indexers.elastic.mapping import ENTITIES, MAPPING_VERSION, NAMES, ROLES, IndexSettings, final_settings
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    check_name,
    count_documents,
    count_held,
    create_version,
    list_versions,
    require_counts,
)
from kbtools.indexers.folder.column_files import release_pages
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import require_intact
from kbtools.kb.manifest import Manifest
from kbtools.processes import default_jobs

logger = logging.getLogger(__name__)

PATIENCE = Patience(total=300.0)
"""Seconds for which a load retries while a cluster refuses or is unreachable: a node restarts in less time."""

_NOTED = 1.0
"""Seconds between two records of progress; a killed load sends again what came after the last."""

_RELEASED = 20_000
"""Documents after which the pages of the source are released, so that memory does not grow."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of a load; `keep` is the number of older versions kept.

    With `take_over` the lock of a killed load or update is taken without waiting.
    """

    settings: IndexSettings = field(default_factory=IndexSettings)
    keep: int = 1
    force: bool = False
    take_over: bool = False
    in_flight: int = IN_FLIGHT
    batch: int = MOST_DOCUMENTS
    segments: int | None = None
    rejected: Path | None = None
    patience: Patience = PATIENCE
    jobs: int = field(default_factory=default_jobs)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load: the version, whether it is new, and the number of missing copies of shards."""

    manifest: Manifest
    version: int
    fresh: bool
    documents: int = 0
    copies_missing: int = 0


def load(kb: EmbeddedKB, cluster: Cluster, name: str, *, options: LoadOptions, watch: BuildProgress) -> Loaded:
    """Load a knowledge base under a name; resume a killed load of the same content.

    Readers of the name see the previous version until this one is complete and its counts match. Raises BuildLocked
    while another process loads or updates the name, BulkFailed for rejected documents and for counts that do not match.
    """
    check_name(name)
    cluster = cluster.as_patient_as(options.patience)
    check_alias(cluster, name)
    current = next((version for version in list_versions(cluster, name) if version.current), None)
    if current and not options.force and _holds(cluster, current, kb.manifest):
        return Loaded(kb.manifest, current.number, fresh=False)
    # Every byte is checked once here: otherwise a damaged folder would be loaded for hours before its counts differ.
    require_intact(kb.path, kb.manifest)
    lock = _begin(cluster, name, kb.manifest.digest, options)
    try:
        version = _require_version(cluster, lock, options.settings)
        _LoadJob(kb, version, lock=lock, options=options, watch=watch).load()
        _check_counts(kb, version, lock)
        missing = _finish(version, lock, options, watch)
    except BaseException:
        lock.give_back()
        raise
    lock.drop()
    return Loaded(kb.manifest, version.number, True, lock.note.documents, missing)


def _holds(cluster: Cluster, version: Version, manifest: Manifest) -> bool:
    """Return whether a load of this content would repeat the same version."""
    if version.mapping != MAPPING_VERSION or not set(ROLES) <= version.indexes.keys():
        return False
    path = f"/{version.indexes[ENTITIES]}/_doc/manifest"
    answer = cluster.ask("GET", path, to="read the manifest", missing_ok=True)
    record = ((answer or {}).get("_source") or {}).get("catalog", {}).get("manifest", {})
    return bool(record.get("digest") == manifest.digest and record.get("languages", {}) == manifest.languages)


def _begin(cluster: Cluster, kb: str, digest: str, options: LoadOptions) -> BuildLock:
    """Take the lock to resume an unfinished load of this content, or to make a new version."""
    left, condition = free_note(cluster, kb, take_over=options.take_over)
    versions = list_versions(cluster, kb)
    same = [version for version in versions if left and version.number == left.version and not version.current]
    if left and (left.digest, left.mapping) == (digest, MAPPING_VERSION) and any(map(_is_whole, same)):
        # Rejected documents precede the confirmed ones: everything is sent again.
        note = replace(left, entities=0, forms=0, documents=0, rejected=0, kinds={}) if left.rejected else left
    else:
        note = BuildNote(1 + max((version.number for version in versions), default=0), digest)
    return BuildLock.take(cluster, kb, note, condition)


def _is_whole(version: Version) -> bool:
    return set(ROLES) <= version.indexes.keys()


def _require_version(cluster: Cluster, lock: BuildLock, settings: IndexSettings) -> Version:
    """Return the version of a note, or create it, under a later number if something else has its name."""
    known = [version for version in list_versions(cluster, lock.kb) if version.number == lock.note.version]
    if known and _is_whole(known[0]):
        return known[0]
    number = lock.note.version
    while (version := create_version(cluster, lock.kb, number, settings)) is None:
        number += 1
        lock.note = replace(lock.note, version=number)
        lock.write()
    return version


class _LoadJob:
    """The job of a load: sends the documents not yet confirmed, and records progress on the cluster."""

    def __init__(
        self, kb: EmbeddedKB, version: Version, *, lock: BuildLock, options: LoadOptions, watch: BuildProgress
    ) -> None:
        self.kb, self.version, self.lock, self.watch = kb, version, lock, watch
        self.sender = Sender(
            lock.cluster,
            patience=options.patience,
            in_flight=options.in_flight,
            most=options.batch,
            largest=read_largest(lock.cluster),
        )
        self.jobs = options.jobs
        self.noted = time.monotonic()
        self.read = 0
        self.rejected_file = options.rejected or Path(f"{lock.kb}.rejected.jsonl")

    def load(self) -> None:
        """Send the documents not yet confirmed; raise BulkFailed at the end if some were rejected."""
        manifest, left = self.kb.manifest, self.lock.note
        entities, forms = manifest.counts["entities"].unique, manifest.statistics["forms"]
        self.send(ENTITIES, catalog_documents(self.kb), lambda sent: {})
        documents = FolderEntities(self.kb).documents(left.entities, jobs=self.jobs)
        self.send(ENTITIES, documents, lambda sent: {"entities": sent.done})
        self.watch.done("load entities", f"{entities - left.entities:,} of {entities:,} entities")
        self.send(NAMES, form_documents(normal_forms(self.kb, left.forms)), lambda sent: {"forms": sent.done})
        self.watch.done("load names", f"{forms - left.forms:,} of {forms:,} forms of names")
        note = self.lock.note
        if note.rejected:
            kinds = "; ".join(f"{kind}: {reason}" for kind, reason in note.kinds.items())
            raise BulkFailed(
                f"{self.lock.cluster.connection.where}: {note.rejected:,} documents were rejected, the first of each "
                f"kind: {kinds}; all are listed in {self.rejected_file}, the previous knowledge base is unchanged",
                rejected=note.rejected,
                kinds=note.kinds,
            )

    def send(self, role: str, stream: Iterable[Document], place: Callable[[Sent], dict[str, int]]) -> None:
        """Send documents into the index of a role and record what is confirmed; `place` returns the rows."""

        def confirm(sent: Sent) -> None:
            self.keep(sent.rejected)
            note = self.lock.note
            kinds = dict(note.kinds)
            note_kinds(kinds, sent.rejected)
            self.lock.note = replace(
                note,
                **place(sent),  # type: ignore[arg-type]  # mypy does not see the names of the fields
                documents=note.documents + sent.documents,
                rejected=note.rejected + len(sent.rejected),
                kinds=kinds,
            )
            self.read += sent.documents
            if self.read > _RELEASED:
                self.read = 0
                release_pages(self.kb.path)
            if sent.rejected or time.monotonic() - self.noted > _NOTED:
                self.note()
            self.watch.progress(role, sent.done)

        self.sender.send_all(self.version.indexes[role], stream, confirm)
        self.note()

    def note(self) -> None:
        """Record on the cluster how far everything is confirmed."""
        self.lock.write()
        self.noted = time.monotonic()

    def keep(self, rejected: Iterable[Rejected]) -> None:
        """Append rejected documents to their file."""
        records = (
            {"_id": document.key, "reason": document.reason, "document": document.source.decode()}
            for document in rejected
        )
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        if lines:
            with self.rejected_file.open("a", encoding="utf-8") as file:
                file.writelines(lines)


def _finish(version: Version, lock: BuildLock, options: LoadOptions, watch: BuildProgress) -> int:
    """Restore the settings of a loaded version, switch to it, and delete older ones beyond `keep`.

    Returns the number of missing copies of shards.
    """
    cluster, both = lock.cluster, ",".join(version.indexes.values())
    watch.done("check", "every count as in the source")
    cluster.ask("PUT", f"/{both}/_settings", final_settings(options.settings), to="restore the settings")
    if options.segments:
        cluster.ask(
            "POST", f"/{both}/_forcemerge", to="merge segments",
            params={"max_num_segments": options.segments, "wait_for_completion": "false"},
        )  # fmt: skip
    missing = _wait_for_copies(cluster, version.kb, both, options)
    deleted = lock.make_current(version, keep=options.keep)
    also = f", deleted {', '.join(deleted)}" if deleted else ""
    watch.done("switch", f"{version.kb} is version {version.number}{also}")
    return missing


def _check_counts(kb: EmbeddedKB, version: Version, lock: BuildLock) -> None:
    """Compare the counts of a version with the source; if they differ, the next run loads everything again."""
    counts, statistics = kb.manifest.counts, kb.manifest.statistics
    facts = counts["facts"].unique
    expected = {
        "entities": counts["entities"].unique,
        **dict.fromkeys(("facts", "facts of subjects", "incoming facts", "facts of objects"), facts),
        "names": counts["names"].unique,
        "types": counts["types"].unique - statistics["types_of_unknown_entities"],
        "forms": count_normal_forms(kb),
    }
    lock.cluster.ask("POST", f"/{','.join(version.indexes.values())}/_refresh", to="refresh the indexes")
    stored = count_held(lock.cluster, version) | {"forms": count_documents(lock.cluster, version)[NAMES]}
    try:
        cure = "run the same command to load again, and kbtools remove --unfinished to drop the rest"
        require_counts(f"version {version.number} of {version.kb!r}", stored, expected, cure)
    except BulkFailed:
        lock.drop()
        raise


def _wait_for_copies(cluster: Cluster, kb: str, indexes: str, options: LoadOptions) -> int:
    """Wait for the copies of shards; return how many are missing when patience ends or if there are too few nodes.

    Raises Unreachable if a primary shard is missing by then.
    """

    def is_settled(health: dict[str, Any]) -> bool:
        too_few_nodes = int(health["number_of_data_nodes"]) <= (options.settings.replicas or 0)
        return health["status"] == "green" or (too_few_nodes and health["status"] == "yellow")

    health = cluster.health(indexes, until=is_settled, patience=options.patience)
    if health is None or health["status"] == "red":
        raise Unreachable(
            f"{cluster.connection.where}: shards of {indexes} are missing, the cluster's health is red; start the "
            "missing nodes, then run the same command to resume",
            index=indexes,
        )
    missing = int(health["initializing_shards"] + health["unassigned_shards"])
    if missing:
        logger.warning("%s: %d copies of shards are still to be made", kb, missing)
    return missing
