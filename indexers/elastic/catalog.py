"""The catalog of a knowledge base on a cluster: its manifest, and its relations and types by row.

They are documents of the index of entities, written first and read when the knowledge base is opened.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.documents import Document, encode
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.kb.manifest import Manifest

CHUNK_BYTES = 1_000_000
"""Ids in one document: a quarter of a bulk request."""


def catalog_documents(kb: EmbeddedKB) -> Iterator[Document]:
    """Yield the manifest, and the ids of relations and types in chunks."""
    yield catalog_document("manifest", {"manifest": replace(kb.manifest, files={}).to_record()})
    for name, ids in (("relations", kb.relations), ("types", kb.types)):
        chunks = list(chunked(ids))
        for number, chunk in enumerate(chunks):
            yield catalog_document(f"{name}-{number}", {"ids": chunk, "of": len(chunks)})


def catalog_document(name: str, content: Mapping[str, Any]) -> Document:
    return Document(name, encode({"catalog": content}).encode(), 0)


def chunked(ids: Iterable[str]) -> Iterator[list[str]]:
    """Cut ids into lists of a bounded size, one at least."""
    chunk: list[str] = []
    size = 0
    for name in ids:
        chunk.append(name)
        size += len(name) + 4
        if size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    yield chunk


class Catalog:
    """Reads the catalog from the index of entities."""

    def __init__(self, cluster: Cluster, kb: str, index: str) -> None:
        self.cluster, self.kb, self.index = cluster, kb, index

    def read(self, document: str) -> dict[str, Any]:
        answer = self.cluster.ask("GET", f"/{self.index}/_doc/{document}", to=f"open {self.kb}", missing_ok=True)
        if not answer or not answer.get("found"):
            raise KBUnusable(f"{self.kb}: {self.index} has no {document}; load it again", name=self.kb)
        return dict(answer["_source"]["catalog"])

    def manifest(self) -> Manifest:
        return Manifest.from_record(self.read("manifest")["manifest"])

    def ids(self, name: str) -> tuple[str, ...]:
        """Read the ids of relations or of types, by row."""
        first = self.read(f"{name}-0")
        ids = list(first["ids"])
        for number in range(1, first["of"]):
            ids += self.read(f"{name}-{number}")["ids"]
        return tuple(ids)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return self.ids("relations")

    @cached_property
    def types(self) -> tuple[str, ...]:
        return self.ids("types")

    @cached_property
    def relation_rows(self) -> dict[str, int]:
        return {relation: row for row, relation in enumerate(self.relations)}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {kind: row for row, kind in enumerate(self.types)}
