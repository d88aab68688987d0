"""Updates of a knowledge base on a cluster: made in a copy of the current version, checked, then switched to."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kbtools.answering.records import UpdateResult
from kbtools.errors import BulkFailed, ServerError
from kbtools.indexers.elastic.build_notes import ensure_control
from kbtools.indexers.elastic.bulk import Sender, Sent, read_largest
from kbtools.indexers.elastic.catalog import LABELS, write_catalog
from kbtools.indexers.elastic.claims import Claim
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.documents import LONGEST_ID, Document
from kbtools.indexers.elastic.entity_changes import EntityChanges, change_entities
from kbtools.indexers.elastic.form_changes import FormChanges, change_forms
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.load_job import PATIENCE
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES, VECTORS
from kbtools.indexers.elastic.stored_entities import StoredEntities
from kbtools.indexers.elastic.update_account import (
    change_entry,
    count_changed,
    count_documents,
    expected_counts,
    statistics_differences,
    update_manifest,
)
from kbtools.indexers.elastic.update_claims import claim_update
from kbtools.indexers.elastic.version_copies import copy_version, mark_copy
from kbtools.indexers.elastic.versions import (
    Version,
    check_alias,
    check_name,
    current_version,
    delete_versions,
    list_versions,
    switch,
)
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.indexers.readers.sources import check_source
from kbtools.indexers.updates.draft import Draft
from kbtools.indexers.updates.update_sources import UpdateSource, read_into
from kbtools.indexers.updates.updating import result_of
from kbtools.kb.manifest import Manifest

MODULUS = 1 << 256
"""Sums of checksums are taken modulo this, the number of checksums that there are."""


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """Options of an update on a cluster: how the sources are read, how many older versions stay."""

    reading: ReadOptions
    keep: int = 1
    patience: Patience = field(default_factory=lambda: Patience(total=PATIENCE))


def update_on_cluster(
    cluster: Cluster, name: str, sources: Sequence[UpdateSource], *, options: UpdateOptions
) -> UpdateResult:
    """Change a knowledge base on a cluster as its sources say, one after the other.

    Who has it open is answered as before, and who opens it sees the version before until the new one is whole. Raises
    InputError for a source that cannot be used, KBMissing for a name that the cluster does not have, BuildLocked while
    it is loaded or updated, and ServerError otherwise; the version before stays current unless the update succeeds.
    """
    check_name(name)
    for part in sources:
        check_source(part.source.path)
    cluster = cluster.as_patient_as(options.patience)
    current_version(cluster, name)
    ensure_control(cluster)
    with claim_update(cluster, name) as (own_claim, number):
        kb = ElasticKB(name, cluster)
        stored = StoredEntities(kb)
        draft = Draft(stored)
        skips = tuple(read_into(draft, part, options.reading) for part in sources)
        draft.settle()
        job = UpdateJob(kb, stored, draft, cluster=cluster, claim=own_claim)
        manifest = job.run(number, [part.source.name for part in sources], keep=options.keep)
    if manifest is None:
        return result_of(name, draft, skips, {}, kb.manifest.digest)
    return result_of(name, draft, skips, manifest.history[-1].counts, manifest.digest)


def update_by_name(name: str, sources: Sequence[UpdateSource], *, options: ReadOptions) -> UpdateResult:
    """Change a knowledge base on the cluster that the environment names."""
    cluster = Cluster(read_connection())
    try:
        cluster.greet()
        return update_on_cluster(cluster, str(name), sources, options=UpdateOptions(options))
    finally:
        cluster.close()


class UpdateJob:
    """The job of one update: what a draft leaves behind goes into a copy of the version that it began with."""

    def __init__(self, kb: ElasticKB, stored: StoredEntities, draft: Draft, *, cluster: Cluster, claim: Claim) -> None:
        self.kb, self.stored, self.draft = kb, stored, draft
        self.cluster, self.claim = cluster, claim
        self.sender = Sender(cluster, patience=cluster.patience, largest=read_largest(cluster))
        self.bytes = 0

    def run(self, number: int, sources: Sequence[str], *, keep: int) -> Manifest | None:
        """Write the new version and switch to it; nothing where all is as before."""
        draft, kb = self.draft, self.kb
        if not draft.made():
            return None
        changes = change_entities(draft, self.stored)
        head = kb.catalog.head
        fingerprint = (int(head.get("fingerprint", "0"), 16) + changes.fingerprint + self.renamed()) % MODULUS
        base_digest = head.get("base", kb.manifest.digest)
        digest = hashlib.sha256(f"{base_digest} {fingerprint:x}".encode()).hexdigest() if fingerprint else base_digest
        if digest == kb.manifest.digest:
            return None
        before = count_documents(self.cluster, kb.version.indexes)
        version = copy_version(self.cluster, kb.version, number)
        stored_lists = self.write_entities(version, changes)
        new_kb = ElasticKB(kb.name, self.cluster, version=version)
        forms = change_forms(kb, new_kb, changes.texts)
        self.send(version, NAMES, forms.documents)
        unused = self.unused(new_kb, changes)
        entry = change_entry(kb.manifest, digest, sources=sources, counts=draft.made(), size=self.bytes)
        manifest = update_manifest(
            kb.manifest,
            entry,
            changes,
            forms,
            labels={kind: len(stored_lists[kind]) - len(unused[kind]) for kind in LABELS},
            statistics=statistics_differences(draft, self.stored),
        )
        gone = sorted(kb.catalog.gone.union(changes.deleted))
        new_head = {
            **head,
            "manifest": manifest.to_record(),
            "merged": head.get("merged", 0) + len(draft.redirects),
            "rows": draft.first_row + len(draft.new_ids),
            "base": base_digest,
            "fingerprint": f"{fingerprint:x}",
            "unused": unused,
        }
        never = [row for row in draft.new_rows() if row in draft.deleted]
        lists = {"gone": map(str, sorted({*gone, *never})), "recounted": sorted(kb.catalog.recounted | forms.recounted)}
        self.send(version, ENTITIES, write_catalog(new_head, lists))
        self.check(before, changes, forms, version)
        self.finish(version, keep=keep)
        return manifest

    def renamed(self) -> int:
        """Give what new names of relations add to the fingerprint, less that of the former."""
        draft, total = self.draft, 0
        former = dict(zip(self.kb.relations, self.kb.relation_names, strict=True))
        for relation, name in zip(draft.relations, draft.relation_names, strict=True):
            for text, sign in ((former.get(relation), -1), (name, 1)):
                if text is not None and former.get(relation) != name:
                    total += sign * int.from_bytes(hashlib.sha256(f"{relation}\0{text}".encode()).digest())
        return total

    def write_entities(self, version: Version, changes: EntityChanges) -> dict[str, list[str]]:
        """Write the documents of entities and the ids that they speak of; give the stored lists of those."""
        draft, catalog = self.draft, self.kb.catalog
        lists: dict[str, list[str]] = {}
        for kind, labels in (("relations", draft.relations), ("types", draft.types)):
            known = set(catalog.stored[kind])
            new = [label for label in labels if label not in known and label in changes.labels[kind]]
            lists[kind] = [*catalog.stored[kind], *new]
        names = dict(zip(draft.relations, draft.relation_names, strict=True))
        former = dict(zip(self.kb.relations, self.kb.relation_names, strict=True))
        texts = [names.get(relation) or "" for relation in lists["relations"]]
        written: dict[str, Sequence[str]] = dict(lists)
        if any(texts) or any(former.values()):
            written["relation-names"] = texts
        # The version is not updated yet to itself: rows are those of the stored lists until its head is written.
        head = {name: value for name, value in catalog.head.items() if name != "rows"}
        self.send(version, ENTITIES, [*changes.documents, *write_catalog(head, written)])
        if VECTORS in version.indexes and changes.deleted:
            self.send(version, VECTORS, [Document(str(row), b"", 0) for row in changes.deleted])
        return lists

    def unused(self, new_kb: ElasticKB, changes: EntityChanges) -> dict[str, list[str]]:
        """List the relations and types that no entity has any more."""
        former = self.kb.catalog.head.get("unused", {"relations": [], "types": []})
        unused = {}
        for kind, labels in changes.labels.items():
            asked = sorted(label for label in labels - changes.kept_labels[kind] if len(label) <= LONGEST_ID)
            searches = [{"size": 0, "terminate_after": 1, "query": {"term": {kind: label}}} for label in asked]
            answers = new_kb.searches.run([(new_kb.entities.index, search) for search in searches])
            empty = {label for label, hit in zip(asked, answers, strict=True) if not hit["hits"]["total"]["value"]}
            unused[kind] = sorted(set(former[kind]).difference(labels) | empty)
        return unused

    def send(self, version: Version, role: str, documents: Any) -> None:
        """Write documents into an index of the new version and refresh it; raise BulkFailed where one is rejected."""
        index, kinds = version.indexes[role], dict[str, str]()

        def confirm(sent: Sent) -> None:
            for rejected in sent.rejected:
                kinds.setdefault(rejected.kind, f"document {rejected.key}: {rejected.reason}")

        def measured() -> Iterator[Document]:
            for document in documents:
                self.bytes += len(document.source)
                yield document

        self.sender.send_all(index, measured(), confirm)
        if kinds:
            reasons = "; ".join(f"{kind}: {reason}" for kind, reason in kinds.items())
            raise BulkFailed(f"{self.cluster.connection.where}: documents were rejected, {reasons}", kinds=kinds)
        self.cluster.ask("POST", f"/{index}/_refresh", to=f"refresh {index}")

    def check(self, before: dict[str, int], changes: EntityChanges, forms: FormChanges, version: Version) -> None:
        """Compare what the new version holds with what it should hold."""
        expected = expected_counts(before, changes, forms)
        stored = count_documents(self.cluster, version.indexes)
        stored |= count_changed(self.cluster, version.indexes, changes.rows)
        if differ := {kind: (stored[kind], count) for kind, count in expected.items() if stored[kind] != count}:
            shares = ", ".join(f"{there:,} of {here:,} {kind}" for kind, (there, here) in differ.items())
            raise BulkFailed(
                f"{self.cluster.connection.where}: the new version of {version.kb!r} holds {shares}; a node may have "
                "lost its data; the version before stays, run the same command again",
                counts=differ,
            )

    def finish(self, version: Version, *, keep: int) -> None:
        """Switch to a version that is whole, and delete the older ones beyond `keep`."""
        cluster, base = self.cluster, self.kb.version
        mark_copy(cluster, base, version)
        versions = list_versions(cluster, version.kb)
        current = next((other for other in versions if other.current), None)
        if current is None or current.number != base.number:
            raise ServerError(f"{version.kb}: another version became current meanwhile; run the same command again")
        check_alias(cluster, version.kb)
        # The last moment at which another process could have taken over; it raises where one has.
        self.claim.write()
        switch(cluster, version.kb, version, versions)
        # What came after the version that this one was made of was rolled back: nobody goes back to it.
        undone = [other for other in versions if other.complete and base.number < other.number < version.number]
        older = [other for other in versions if other.complete and other.number <= base.number]
        delete_versions(cluster, undone + older[: max(0, len(older) - keep)])
