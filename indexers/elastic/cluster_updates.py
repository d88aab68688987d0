"""Updates of a knowledge base on a cluster: made in a copy of the current version, checked, then switched to.

In the copy, the documents of changed entities and of the forms of their names are written or deleted.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kbtools.answering.records import UpdateResult
from kbtools.indexers.elastic.build_lock import BuildLock, update_lock
from kbtools.indexers.elastic.bulk import Sender, read_largest
from kbtools.indexers.elastic.catalog import head_document, write_lists
from kbtools.indexers.elastic.cluster import Cluster, Patience, connected
from kbtools.indexers.elastic.documents import Document, form_documents, key_of_form
from kbtools.indexers.elastic.entity_changes import EntityChanges, StoredKB, change_entities
from kbtools.indexers.elastic.inventory import drop_deleted
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import PATIENCE
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES, VECTORS
from kbtools.indexers.elastic.searches import cut
from kbtools.indexers.elastic.versions import (
    Version,
    check_name,
    copy_version,
    count_documents,
    count_held,
    current_version,
    require_counts,
)
from kbtools.indexers.readers.reading import ReadOptions
from kbtools.indexers.readers.sources import check_source
from kbtools.indexers.updates.draft import Draft
from kbtools.indexers.updates.update_sources import UpdateSource, read_into
from kbtools.indexers.updates.updating import account, change_manifest, result_of
from kbtools.kb.language_tags import stored_text
from kbtools.kb.manifest import Manifest
from kbtools.linking.near_ranking import Bearer, bearers_with_most_names
from kbtools.text.rungs import Form
from kbtools.text.variants import name_forms

_MODULUS = 1 << 256
"""Sums of checksums are taken modulo the number of possible checksums."""

_ROWS_AT_ONCE = 10_000
"""Changed entities counted in one request; the cluster's limit is 65,536 terms."""


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """Options of an update on a cluster: read options, and the number of older versions kept."""

    reading: ReadOptions
    keep: int = 1
    take_over: bool = False
    patience: Patience = PATIENCE


def update_on_cluster(
    cluster: Cluster, name: str, sources: Sequence[UpdateSource], *, options: UpdateOptions
) -> UpdateResult:
    """Apply changes from sources to a knowledge base on a cluster, one after the other.

    Open readers are not affected, and new ones see the previous version until the new one is complete. Raises
    InputError for a source that cannot be used, KBMissing for a name that the cluster does not have, BuildLocked while
    it is loaded or updated, and ServerError otherwise; the previous version stays current unless the update succeeds.
    """
    check_name(name)
    for part in sources:
        check_source(part.source.path)
    cluster = cluster.as_patient_as(options.patience)
    current_version(cluster, name)
    with update_lock(cluster, name, take_over=options.take_over) as lock:
        kb = StoredKB(name, cluster)
        draft = Draft(kb)
        skips = tuple(read_into(draft, part, options.reading) for part in sources)
        draft.settle()
        job = UpdateJob(kb, draft, lock=lock)
        manifest = job.run([part.source.name for part in sources], keep=options.keep)
    if manifest is None:
        return result_of(name, draft, skips, {}, kb.manifest.digest)
    return result_of(name, draft, skips, manifest.history[-1].counts, manifest.digest)


def update_given(kb: str | Path, sources: Sequence[UpdateSource], *, options: ReadOptions) -> UpdateResult:
    """Update a knowledge base on the cluster configured by the environment."""
    with connected() as cluster:
        return update_on_cluster(cluster, str(kb), sources, options=UpdateOptions(options))


def compact_given(kb: str | Path, *, memory: str) -> None:
    """Purge a knowledge base's deleted documents from the cluster's disks; `memory` does not apply to it."""
    del memory
    with connected() as cluster:
        drop_deleted(cluster, str(kb))


class UpdateJob:
    """The job of one update: writes the changes of a draft into a copy of the version that it began with."""

    def __init__(self, kb: StoredKB, draft: Draft, *, lock: BuildLock) -> None:
        self.kb, self.draft = kb, draft
        self.lock, self.cluster = lock, lock.cluster
        self.sender = Sender(lock.cluster, patience=lock.cluster.patience, largest=read_largest(lock.cluster))
        self.bytes = 0

    def run(self, sources: Sequence[str], *, keep: int) -> Manifest | None:
        """Write the new version and switch to it; None if nothing changed."""
        draft, kb, head = self.draft, self.kb, dict(self.kb.head)
        if not draft.made():
            return None
        changes = change_entities(draft, kb)
        fingerprint = (int(head.get("fingerprint", "0"), 16) + changes.fingerprint + self.renamed()) % _MODULUS
        base_digest = head.get("base", kb.manifest.digest)
        digest = hashlib.sha256(f"{base_digest} {fingerprint:x}".encode()).hexdigest() if fingerprint else base_digest
        if digest == kb.manifest.digest:
            return None
        before = count_documents(self.cluster, kb.version)
        version = copy_version(self.cluster, kb.version, self.lock.note.version)
        self.send(version, ENTITIES, [*changes.documents, *write_lists(self.labels())])
        if VECTORS in version.indexes and changes.deleted:
            self.send(version, VECTORS, [Document(str(row), b"", 0) for row in changes.deleted])
        new_kb = ElasticKB(kb.name, self.cluster, version=version)
        forms = _change_forms(kb, new_kb, changes.texts)
        self.send(version, NAMES, forms.documents)
        manifest = change_manifest(kb.manifest, draft, digest, sources, lengths=forms.lengths, size=self.bytes)
        manifest = account(manifest, draft, kb, new_kb, forms=kb.manifest.statistics["forms"] + forms.stored)
        never = [row for row in draft.new_rows() if row in draft.deleted]
        deleted = sorted({*kb.gone.tolist(), *changes.deleted, *never})
        head |= {
            "manifest": manifest.to_record(),
            "merged": head["merged"] + len(draft.redirects),
            "rows": draft.end,
            "base": base_digest,
            "fingerprint": f"{fingerprint:x}",
        }
        self.send(version, ENTITIES, [head_document(head), *write_lists({"gone": map(str, deleted)})])
        self.check(before, changes, forms, version)
        self.lock.make_current(version, keep=keep, base=kb.version)
        return manifest

    def renamed(self) -> int:
        """Return the change of the fingerprint from new names of relations."""
        draft, total = self.draft, 0
        former = dict(zip(self.kb.relations, (stored_text(name) for name in self.kb.relation_names), strict=True))
        for relation, name in zip(draft.relations, (stored_text(name) for name in draft.relation_names), strict=True):
            for text, sign in ((former.get(relation), -1), (name, 1)):
                if text and former.get(relation) != name:
                    total += sign * int.from_bytes(hashlib.sha256(f"{relation}\0{text}".encode()).digest())
        return total

    def labels(self) -> dict[str, Sequence[str]]:
        """Return the lists of relations and types, to which an update only appends."""
        lists: dict[str, Sequence[str]] = {"relations": self.draft.relations, "types": self.draft.types}
        if any(self.draft.relation_names):
            lists["relation-names"] = [stored_text(name) for name in self.draft.relation_names]
        return lists

    def send(self, version: Version, role: str, documents: Iterable[Document]) -> None:
        """Write documents into an index of the new version."""
        _, size = self.sender.store(version.indexes[role], documents)
        self.bytes += size

    def check(self, before: Mapping[str, int], changes: EntityChanges, forms: "_FormChanges", version: Version) -> None:
        """Compare the content of the new version with the expected counts.

        Unchanged documents are in files shared with the previous version, so they are only counted: sums over all of
        them would take longer the larger a knowledge base is.
        """
        held = changes.held
        facts = dict.fromkeys(("facts", "facts of subjects"), "facts")
        facts |= dict.fromkeys(("incoming facts", "facts of objects"), "facts_in")
        kinds = {kind: kind for kind in ("documents", "entities", "names", "types")} | facts
        expected = {f"{kind} of changed entities": held[name] for kind, name in kinds.items()}
        expected["documents of entities"] = before[ENTITIES] + changes.more
        expected["forms"] = before[NAMES] + forms.normal
        after = count_documents(self.cluster, version)
        stored = Counter({"documents of entities": after[ENTITIES], "forms": after[NAMES]})
        for chunk in cut(changes.rows, _ROWS_AT_ONCE):
            counts = count_held(self.cluster, version, {"terms": {"row": list(chunk)}})
            stored.update({f"{kind} of changed entities": count for kind, count in counts.items()})
        require_counts(
            f"the new version of {version.kb!r}",
            stored,
            expected,
            "the previous version is still current; run the same command again",
        )


@dataclass(slots=True)
class _FormChanges:
    """The documents of forms that an update writes and deletes, and the resulting changes of counts.

    `normal` is the change in the number of normal forms, `stored` that of forms of every kind; `lengths` are the
    numbers of words of the current forms.
    """

    documents: list[Document] = field(default_factory=list)
    lengths: set[int] = field(default_factory=set)
    normal: int = 0
    stored: int = 0


def _change_forms(before: ElasticKB, after: ElasticKB, texts: Iterable[str]) -> _FormChanges:
    """Compare the forms of names in two versions; the second has new documents of entities only."""
    forms = sorted({form for text in texts for form in name_forms(text)})
    old, new = (kb.lookup(forms) for kb in (before, after))
    was, is_now = (
        {form for form, matches in matches_by_form.items() if any(match.form is Form.NORMAL for match in matches)}
        for matches_by_form in (old, new)
    )
    bearers = {form: [row for match in new[form] for row in match.entities.tolist()] for form in sorted(is_now)}
    written = form_documents(
        (form, bearer, 0) for form, bearer in zip(bearers, _most_named(after, list(bearers.values())), strict=True)
    )
    deleted = [Document(key_of_form(form), b"", 0) for form in sorted(was - is_now)]
    lengths = {form.count(" ") + 1 for form in new}
    return _FormChanges([*deleted, *written], lengths, len(is_now) - len(was), len(new) - len(old))


def _most_named(kb: ElasticKB, groups: Sequence[Sequence[int]]) -> list[Bearer]:
    """Return the entity with the most names and aliases of each group of rows."""
    rows = [row for group in groups for row in group]
    if not rows:
        return []
    parts = kb.parts(list(set(rows)), ["named"])
    named = {row: sum(part.get("named", 0) for part in own) for row, own in parts.items()}
    counts = np.array([named[row] for row in rows], dtype=np.int64)
    return bearers_with_most_names(np.array(rows, dtype=np.uint32), counts, list(map(len, groups)))
