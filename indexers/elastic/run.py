"""One run of a loader over its part: what is not confirmed yet is sent, what is confirmed is noted."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kbtools.errors import BulkFailed
from kbtools.indexers.build import BuildProgress
from kbtools.indexers.column_files import release_pages
from kbtools.indexers.elastic.bulk import Rejected, Sender, Sent, read_largest
from kbtools.indexers.elastic.claims import Build, Claim, Progress
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.documents import Document, EntityReader, catalog_documents
from kbtools.indexers.elastic.forms import form_documents
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES
from kbtools.indexers.elastic.options import LoadOptions
from kbtools.indexers.elastic.versions import index_name
from kbtools.indexers.embedded import EmbeddedKB

NOTED = 1.0
"""Seconds between two notes of progress: what a killed load does again."""

RELEASED = 20_000
"""Documents after which the pages of the source are given back."""


class Run:
    """One run of a loader over its part."""

    def __init__(
        self, kb: EmbeddedKB, cluster: Cluster, build: Build, held: Claim, options: LoadOptions, watch: BuildProgress
    ) -> None:
        self.kb, self.cluster, self.build, self.held = kb, cluster, build, held
        self.options, self.watch = options, watch
        self.sender = Sender(
            cluster,
            patience=options.patience,
            in_flight=options.in_flight,
            most=options.batch,
            largest=read_largest(cluster),
        )
        self.progress: Progress = held.progress
        self.noted = time.monotonic()
        self.read = 0
        self.rejected_file = options.rejected or Path(f"{build.kb}.rejected.jsonl")

    def confirmed(self) -> dict[str, Any]:
        """Give what a note tells of the progress."""
        told = self.progress
        return {name: getattr(told, name) for name in ("entities", "names", "documents", "rejected", "kinds")}

    def load(self) -> None:
        """Send what is not confirmed yet; raise BulkFailed at the end if documents were rejected."""
        if self.progress.rejected:
            self.progress = replace(self.progress, entities=0, names=0, documents=0, rejected=0, kinds={})
        manifest, part, parts = self.kb.manifest, self.options.part, self.options.parts
        entities, forms = manifest.counts["entities"].unique, manifest.statistics["forms"]
        if part == 1:
            self.send(ENTITIES, catalog_documents(self.kb), lambda sent: {})
        first, last = part_of(entities, part, parts)
        begun = max(first, self.progress.entities)
        self.send(ENTITIES, EntityReader(self.kb).documents(begun, last), lambda sent: {"entities": sent.done})
        self.watch.done("load entities", f"{max(0, last - begun):,} of {entities:,} entities")
        first, last = part_of(forms, part, parts)
        begun = max(first, self.progress.names)
        self.send(NAMES, form_documents(self.kb, begun, last), lambda sent: {"names": sent.done})
        self.watch.done("load names", f"{max(0, last - begun):,} of {forms:,} forms of names")
        if self.progress.rejected:
            kinds = "; ".join(f"{kind}: {reason}" for kind, reason in self.progress.kinds.items())
            raise BulkFailed(
                f"{self.cluster.connection.where}: {self.progress.rejected:,} documents were rejected, the first of "
                f"each kind: {kinds}; all of them are in {self.rejected_file}, the knowledge base before stays",
                rejected=self.progress.rejected,
                kinds=self.progress.kinds,
            )

    def send(self, role: str, documents: Iterable[Document], place: Callable[[Sent], dict[str, int]]) -> None:
        """Send documents into the index of a role, noting what is confirmed."""

        def confirm(sent: Sent) -> None:
            self.keep(sent.rejected)
            kinds = dict(self.progress.kinds)
            for rejected in sent.rejected:
                kinds.setdefault(rejected.kind, f"document {rejected.key}: {rejected.reason}")
            self.progress = replace(
                self.progress,
                **place(sent),  # type: ignore[arg-type]
                documents=self.progress.documents + sent.documents,
                rejected=self.progress.rejected + len(sent.rejected),
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
        """Put on the cluster what is confirmed so far."""
        self.held.write(**self.confirmed())
        self.noted = time.monotonic()

    def keep(self, rejected: Iterable[Rejected]) -> None:
        """Append rejected documents to their file."""
        lines = [
            json.dumps({"_id": one.key, "reason": one.reason, "document": one.source.decode()}, ensure_ascii=False)
            for one in rejected
        ]
        if lines:
            with self.rejected_file.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


def part_of(rows: int, part: int, parts: int) -> tuple[int, int]:
    """Give the rows of part k of n."""
    return rows * (part - 1) // parts, rows * part // parts
