"""The catalog of a knowledge base on a cluster: its manifest, its relations with their names, and its types, by row.

They are documents of the index of entities, written first and read when the knowledge base is opened.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.documents import Document, encode
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import Manifest

CHUNK_BYTES = 1_000_000
"""Characters in one document: a quarter of the bytes of a bulk request."""


def catalog_documents(kb: EmbeddedKB) -> Iterator[Document]:
    """Yield the manifest, and the ids of relations and types and the names of relations in chunks."""
    # Files are those of the folder, which the cluster does not have.
    manifest = replace(kb.manifest, files={}, checksums={})
    merged = len(kb.redirects) if kb.redirects else 0
    lists = {"relations": kb.relations, "types": kb.types}
    if any(kb.relation_names):
        lists["relation-names"] = [name or "" for name in kb.relation_names]
    language = next(iter(kb.manifest.languages), UND)
    yield head_document({"manifest": manifest.to_record(), "merged": merged, "language": language})
    yield from write_lists(lists)


def head_document(head: Mapping[str, Any]) -> Document:
    """Return the document of the manifest, and of what else is known of a version as a whole."""
    return catalog_document("manifest", head)


def write_lists(lists: Mapping[str, Iterable[str]]) -> Iterator[Document]:
    """Yield the documents of lists, in chunks."""
    for name, texts in lists.items():
        chunks = list(chunked(texts))
        for number, chunk in enumerate(chunks):
            yield catalog_document(f"{name}-{number}", {"ids": chunk, "of": len(chunks)})


def catalog_document(name: str, content: Mapping[str, Any]) -> Document:
    return Document(name, encode({"catalog": content}).encode(), 0)


def chunked(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut texts into lists of a bounded size, one at least."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text) + 4  # two quotes, a comma and a space
        if size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    yield chunk


class Catalog:
    """The catalog of a version, read from the index of entities; updates only append relations and types."""

    def __init__(self, cluster: Cluster, kb: str, index: str) -> None:
        self.cluster, self.kb, self.index = cluster, kb, index

    def find(self, document: str) -> dict[str, Any] | None:
        answer = self.cluster.ask("GET", f"/{self.index}/_doc/{document}", to=f"open {self.kb}", missing_ok=True)
        return dict(answer["_source"]["catalog"]) if answer and answer.get("found") else None

    def read(self, document: str) -> dict[str, Any]:
        content = self.find(document)
        if content is None:
            raise KBUnusable(f"{self.kb}: {self.index} has no {document}; load it again", name=self.kb)
        return content

    @cached_property
    def head(self) -> dict[str, Any]:
        return self.read("manifest")

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.from_record(self.head["manifest"])

    @property
    def language(self) -> str:
        """Return the language of the names whose documents hold none, the commonest."""
        return str(self.head["language"])

    @property
    def has_merged_ids(self) -> bool:
        """Return whether ids were merged into others."""
        return bool(self.head["merged"])

    def texts(self, name: str) -> tuple[str, ...]:
        """Read a list whole, by row."""
        first = self.read(f"{name}-0")
        texts = list(first["ids"])
        for number in range(1, first["of"]):
            texts += self.read(f"{name}-{number}")["ids"]
        return tuple(texts)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return self.texts("relations")

    @cached_property
    def relation_names(self) -> tuple[str | None, ...]:
        if self.find("relation-names-0") is None:
            return (None,) * len(self.relations)
        return tuple(name or None for name in self.texts("relation-names"))

    @cached_property
    def types(self) -> tuple[str, ...]:
        return self.texts("types")

    @property
    def rows(self) -> int:
        """Return the number of rows that entities have had; those of deleted ones stay unused."""
        return int(self.head.get("rows", self.manifest.counts["entities"].unique))

    @cached_property
    def gone(self) -> frozenset[int]:
        """Return the rows of deleted entities."""
        return frozenset(map(int, self.texts("gone"))) if "rows" in self.head else frozenset()

    @cached_property
    def relation_rows(self) -> dict[str, int]:
        return {relation: row for row, relation in enumerate(self.relations)}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {kind: row for row, kind in enumerate(self.types)}
