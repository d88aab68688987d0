"""A load job: the documents of one part that are not confirmed yet are sent, and progress is noted on the cluster."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kbtools.errors import BulkFailed
from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.build_notes import Build, PartProgress
from kbtools.indexers.elastic.bulk import IN_FLIGHT, MOST_DOCUMENTS, Rejected, Sender, Sent, read_largest
from kbtools.indexers.elastic.catalog import catalog_documents
from kbtools.indexers.elastic.claims import Claim
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.documents import Document
from kbtools.indexers.elastic.entity_documents import EntityReader
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES, IndexSettings, index_name
from kbtools.indexers.elastic.name_documents import name_documents
from kbtools.indexers.folder.column_files import release_pages
from kbtools.indexers.folder.embedded import EmbeddedKB

PATIENCE = 300.0
"""Seconds for which a load stands a cluster that refuses or is away: a node starts again in less."""

NOTED = 1.0
"""Seconds between two notes of progress: what a killed load does again."""

RELEASED = 20_000
"""Documents after which the pages of the source are given back, to hold its memory flat."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of a load: part k of n, the settings of the indexes, how many older versions stay."""

    part: int = 1
    parts: int = 1
    settings: IndexSettings = field(default_factory=IndexSettings)
    keep: int = 1
    force: bool = False
    in_flight: int = IN_FLIGHT
    batch: int = MOST_DOCUMENTS
    segments: int | None = None
    rejected: Path | None = None
    patience: Patience = field(default_factory=lambda: Patience(total=PATIENCE))


class LoadJob:
    """The job of one loader: its part of a knowledge base."""

    def __init__(
        self,
        kb: EmbeddedKB,
        cluster: Cluster,
        build: Build,
        *,
        claim: Claim,
        options: LoadOptions,
        watch: BuildProgress,
    ) -> None:
        self.kb, self.cluster, self.build, self.claim = kb, cluster, build, claim
        self.options, self.watch = options, watch
        self.sender = Sender(
            cluster,
            patience=options.patience,
            in_flight=options.in_flight,
            most=options.batch,
            largest=read_largest(cluster),
        )
        self.confirmed: PartProgress = claim.progress
        self.noted = time.monotonic()
        self.read = 0
        self.rejected_file = options.rejected or Path(f"{build.kb}.rejected.jsonl")

    def note_fields(self) -> dict[str, Any]:
        """Give the fields of a note that tell what is confirmed."""
        return {name: getattr(self.confirmed, name) for name in ("entities", "names", "documents", "rejected", "kinds")}

    def load(self) -> None:
        """Send the documents that are not confirmed yet; raise BulkFailed at the end if some were rejected."""
        # Rejected documents stand before what is confirmed: the next run sends all of them again.
        if self.confirmed.rejected:
            self.confirmed = replace(self.confirmed, entities=0, names=0, documents=0, rejected=0, kinds={})
        manifest, part, parts = self.kb.manifest, self.options.part, self.options.parts
        entities, forms = manifest.counts["entities"].unique, manifest.statistics["forms"]
        # The catalog belongs to no row; the loader of the first part writes it.
        if part == 1:
            self.send(ENTITIES, catalog_documents(self.kb), lambda sent: {})
        first, last = part_of(entities, part, parts)
        begun = max(first, self.confirmed.entities)
        self.send(ENTITIES, EntityReader(self.kb).documents(begun, last), lambda sent: {"entities": sent.done})
        self.watch.done("load entities", f"{max(0, last - begun):,} of {entities:,} entities")
        first, last = part_of(forms, part, parts)
        begun = max(first, self.confirmed.names)
        self.send(NAMES, name_documents(self.kb, begun, last), lambda sent: {"names": sent.done})
        self.watch.done("load names", f"{max(0, last - begun):,} of {forms:,} forms of names")
        if self.confirmed.rejected:
            kinds = "; ".join(f"{kind}: {reason}" for kind, reason in self.confirmed.kinds.items())
            raise BulkFailed(
                f"{self.cluster.connection.where}: {self.confirmed.rejected:,} documents were rejected, the first of "
                f"each kind: {kinds}; all of them are in {self.rejected_file}, the knowledge base before stays",
                rejected=self.confirmed.rejected,
                kinds=self.confirmed.kinds,
            )

    def send(self, role: str, documents: Iterable[Document], place: Callable[[Sent], dict[str, int]]) -> None:
        """Send documents into the index of a role, and note how far they are confirmed; `place` gives the rows."""

        def confirm(sent: Sent) -> None:
            self.keep(sent.rejected)
            kinds = dict(self.confirmed.kinds)
            for rejected in sent.rejected:
                kinds.setdefault(rejected.kind, f"document {rejected.key}: {rejected.reason}")
            self.confirmed = replace(
                self.confirmed,
                **place(sent),  # type: ignore[arg-type]
                documents=self.confirmed.documents + sent.documents,
                rejected=self.confirmed.rejected + len(sent.rejected),
                kinds=kinds,
            )
            self.read += sent.documents
            if self.read > RELEASED:
                self.read = 0
                release_pages(self.kb.path)
            if sent.rejected or time.monotonic() - self.noted > NOTED:
                self.note()
            self.watch.progress(role, sent.done)

        self.sender.send_all(index_name(self.build.kb, self.build.version, role), documents, confirm)
        self.note()

    def note(self) -> None:
        """Note on the cluster how far everything is confirmed."""
        self.claim.write(**self.note_fields())
        self.noted = time.monotonic()

    def keep(self, rejected: Iterable[Rejected]) -> None:
        """Append rejected documents to their file."""
        lines = [
            json.dumps(
                {"_id": document.key, "reason": document.reason, "document": document.source.decode()},
                ensure_ascii=False,
            )
            for document in rejected
        ]
        if lines:
            with self.rejected_file.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


def part_of(rows: int, part: int, parts: int) -> tuple[int, int]:
    """Give the rows of part k of n."""
    return rows * (part - 1) // parts, rows * part // parts
