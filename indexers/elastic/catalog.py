"""The catalog of a knowledge base on a cluster: its manifest, its relations with their names, and its types, by row.

They are documents in the index of entities, written first and read when the knowledge base is opened.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from kbtools.errors import KBUnusable
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.documents import Document, encode
from kbtools.indexers.elastic.searches import WHOLE
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.language_tags import UND, read_text, stored_text
from kbtools.kb.manifest import Manifest
from kbtools.kb.rows import EntityRows

_T = TypeVar("_T")

_LISTS = ("relations", "types", "relation-names", "gone")
"""The lists of a catalog; those of relation names and of rows of deleted entities may be missing."""

_CHUNK_BYTES = 1_000_000
"""Characters in one document: a quarter of the bytes of a bulk request."""


def catalog_documents(kb: EmbeddedKB) -> Iterator[Document]:
    """Yield the manifest, and the ids of relations and types and the names of relations in chunks."""
    # The cluster does not have the files of the folder.
    manifest = replace(kb.manifest, files={}, checksums={})
    merged = len(kb.redirects) if kb.redirects else 0
    lists = {"relations": kb.relations, "types": kb.types}
    if any(kb.relation_names):
        lists["relation-names"] = [stored_text(name) for name in kb.relation_names]
    language = next(iter(kb.manifest.languages), UND)
    yield head_document({"manifest": manifest.to_record(), "merged": merged, "language": language})
    yield from write_lists(lists)


def head_document(head: Mapping[str, Any]) -> Document:
    """Return the document with the manifest and other facts about a version as a whole."""
    return _catalog_document("manifest", head)


def write_lists(lists: Mapping[str, Iterable[str]]) -> Iterator[Document]:
    """Yield the documents of lists, in chunks."""
    for name, texts in lists.items():
        chunks = list(chunked(texts))
        for number, chunk in enumerate(chunks):
            yield _catalog_document(f"{name}-{number}", {"ids": chunk, "of": len(chunks)})


def _catalog_document(name: str, content: Mapping[str, Any]) -> Document:
    return Document(name, encode({"catalog": content}).encode(), 0)


def chunked(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut texts into lists of a bounded size, at least one."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text) + 4  # Two quotes, a comma and a space.
        if size > _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    yield chunk


class Catalog:
    """The catalog of a version, read from the index of entities; updates only append relations and types."""

    def __init__(self, cluster: Cluster, name: str, index: str) -> None:
        self.cluster, self.name, self.index = cluster, name, index

    def read_catalog(self, documents: Sequence[str]) -> list[dict[str, Any] | None]:
        """Read documents of the catalog, None for one that does not exist."""
        # A search rather than a look-up by id: it fails as a whole if a shard does not answer, and is then repeated.
        body = {"size": len(documents), "query": {"ids": {"values": documents}}, "_source": ["catalog"]}
        path, to = f"/{self.index}/_search", f"open {self.name}"
        answer = self.cluster.ask("POST", path, body, to=to, missing_ok=True, params=WHOLE)
        contents = {hit["_id"]: hit["_source"]["catalog"] for hit in answer["hits"]["hits"]} if answer else {}
        return [contents.get(document) for document in documents]

    def require(self, name: str, content: _T | None) -> _T:
        if content is None:
            raise KBUnusable(f"{self.name}: {self.index} has no {name}; load it again", name=self.name)
        return content

    @cached_property
    def head(self) -> dict[str, Any]:
        return self.require("manifest", self.read_catalog(["manifest"])[0])

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.from_record(self.head["manifest"])

    @property
    def language(self) -> str:
        """The language of names in documents without languages: the most frequent one."""
        return str(self.head["language"])

    @cached_property
    def lists(self) -> dict[str, tuple[str, ...]]:
        """The lists of the catalog, read together."""
        lists: dict[str, tuple[str, ...]] = {}
        for name, first in zip(_LISTS, self.read_catalog([f"{name}-0" for name in _LISTS]), strict=True):
            if first is not None:
                keys = [f"{name}-{number}" for number in range(1, first["of"])]
                chunks = [first, *map(self.require, keys, self.read_catalog(keys) if keys else ())]
                lists[name] = tuple(text for chunk in chunks for text in chunk["ids"])
        return lists

    @cached_property
    def relations(self) -> tuple[str, ...]:
        return self.require("relations", self.lists.get("relations"))

    @cached_property
    def relation_names(self) -> tuple[str | None, ...]:
        return tuple(read_text(name) for name in self.lists.get("relation-names", ("",) * len(self.relations)))

    @cached_property
    def types(self) -> tuple[str, ...]:
        return self.require("types", self.lists.get("types"))

    @property
    def row_count(self) -> int:
        """The number of rows assigned to entities; those of deleted ones stay unused."""
        return int(self.head.get("rows", self.manifest.counts["entities"].unique))

    @cached_property
    def gone(self) -> EntityRows:
        """The rows of deleted entities."""
        return np.array(self.lists.get("gone", ()), dtype=np.uint32)

    @cached_property
    def present_rows(self) -> EntityRows:
        return np.setdiff1d(np.arange(self.row_count, dtype=np.uint32), self.gone, assume_unique=True)

    def entity_rows(self) -> EntityRows:
        return self.present_rows

    @cached_property
    def relation_rows(self) -> dict[str, int]:
        return {relation: row for row, relation in enumerate(self.relations)}

    @cached_property
    def type_rows(self) -> dict[str, int]:
        return {kind: row for row, kind in enumerate(self.types)}
