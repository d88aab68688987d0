"""The embedded knowledge base: one folder, opened through the memory map, shared by any number of processes."""

import os
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbtools.errors import KBMissing, KBUnusable
from kbtools.indexers.column_files import StringTable, read_column
from kbtools.indexers.faiss_index import FOLDER, FaissVectors
from kbtools.indexers.form_store import FormStore
from kbtools.indexers.fuzzy_index import FuzzyIndex
from kbtools.kb.contract import BackendDefaults, NameMatch, SimilarName
from kbtools.kb.manifest import FORMAT_NAME, FORMAT_VERSION, Manifest
from kbtools.kb.rows import EntityRows, Grouped
from kbtools.linking.similarity import LONGEST_NAME, rescore
from kbtools.storage import beside, is_being_built, read_record

MANIFEST = "manifest.msgpack"
FORMS = "forms.lmdb"
FUZZY = "fuzzy"
COLUMNS = {
    "alias.first": "<u8",
    "alias.is_alias": "u1",
    "fact.first": "<u8",
    "fact.relation": "<u4",
    "fact.first_object": "<u8",
    "fact.object": "<u4",
    "type.first": "<u8",
    "type.type": "<u4",
}
"""Per entity: where its aliases, its pairs and its types start. Per pair: its relation, where its objects start."""

STRINGS = ("alias.text", "entity.id", "relation.id", "type.id")
FILES = {MANIFEST, FORMS, FUZZY, *COLUMNS, *(f"{n}.{p}" for n in STRINGS for p in ("utf8", "starts"))}
FILES |= {FOLDER, *(beside(Path(FOLDER), role).name for role in ("lock", "building", "old"))}
"""What lies in the folder of a knowledge base."""

PREFIXED = 50


def read_manifest(path: Path) -> Manifest:
    """Read what a knowledge base says of itself; raise KBMissing or KBUnusable."""
    try:
        found = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        next_step = f"build it with kbtools index --out {path}"
        if is_being_built(path):
            next_step = "another process is building it, ask again when that one is done"
        problem = "not a folder" if path.exists() else "no such knowledge base"
        raise KBMissing(f"{path}: {problem}; {next_step}", path=str(path)) from error
    except OSError as error:
        raise KBUnusable(f"{path}: cannot be opened ({error.strerror}); check who may read it") from error
    if MANIFEST not in found:
        raise KBMissing(
            f"{path}: not a knowledge base (it has no {MANIFEST}); name the folder that kbtools index --out made",
            path=str(path),
        )
    record = read_record(path / MANIFEST, name=FORMAT_NAME, version=FORMAT_VERSION, cure="index again")
    try:
        return Manifest.from_record(record)
    except KBUnusable as error:
        raise KBUnusable(f"{path}: {error}", path=str(path), **error.facts) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KBUnusable(f"{path / MANIFEST}: damaged ({error!r}); index again", path=str(path)) from error


def folder_identity(path: Path) -> tuple[int, int] | None:
    """Tell one folder from the one that takes its place."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def size_of(path: Path) -> int | None:
    """Give the bytes of a file; nothing if it is none or cannot be reached."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def gather(starts: NDArray[Any], values: NDArray[Any], rows: EntityRows) -> Grouped:
    """Collect the runs of several rows of a table that is stored one run after the other."""
    begin, end = starts[rows].astype(np.int64), starts[rows.astype(np.int64) + 1].astype(np.int64)
    bounds = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(end - begin, out=bounds[1:])
    positions = np.arange(bounds[-1]) + np.repeat(begin - bounds[:-1], end - begin)
    return Grouped(bounds, values[positions])


class EmbeddedKB(BackendDefaults):
    """A knowledge base in a folder; see `KnowledgeBase` for what each method promises.

    Every file is opened at once, so that a folder that is replaced meanwhile answers as before to who has it open.
    """

    def __init__(self, path: str | Path, *, manifest: Manifest | None = None) -> None:
        """Open a folder; a build gives the manifest that it has yet to write."""
        self.path = Path(path)
        while True:
            before = folder_identity(self.path)
            try:
                self.open(manifest or read_manifest(self.path))
            except KBUnusable:
                if folder_identity(self.path) == before:
                    raise
            if folder_identity(self.path) == before:
                return

    def open(self, manifest: Manifest) -> None:
        """Open every file; raise KBUnusable where one is not as it was written, or the folder was just replaced."""
        self.manifest = manifest
        self.vector_index: FaissVectors | None = None
        for name, size in self.manifest.files.items():
            file = self.path / name
            if size_of(file) != size:
                raise KBUnusable(
                    f"{file}: missing or not the {size:,} bytes that the build wrote; "
                    "the knowledge base is damaged, index again",
                    path=str(file),
                )
        self.columns = {name: read_column(self.path / name, dtype) for name, dtype in COLUMNS.items()}
        self.entity_ids = StringTable(self.path / "entity.id")
        self.relation_ids = StringTable(self.path / "relation.id")
        self.type_ids = StringTable(self.path / "type.id")
        self.alias_texts = StringTable(self.path / "alias.text")
        self.forms = FormStore.open(self.path / FORMS)
        self.fuzzy = FuzzyIndex(self.path / FUZZY, texts=self.alias_texts)

    @cached_property
    def relations(self) -> Sequence[str]:
        return tuple(self.relation_ids)

    @cached_property
    def types(self) -> Sequence[str]:
        return tuple(self.type_ids)

    def lookup(self, forms: Sequence[str]) -> Mapping[str, Sequence[NameMatch]]:
        return self.forms.lookup(forms, self.alias_texts)

    def similar(self, form: str, *, limit: int = 20, cutoff: float = 80.0) -> list[SimilarName]:
        if not form or len(form) > LONGEST_NAME:
            return []
        recalled = self.fuzzy.recall(form)
        recalled.update(self.forms.forms_with_prefix(form, limit=PREFIXED))
        return rescore(form, recalled, limit=limit, cutoff=cutoff)

    def name_frequency(self, words: Sequence[str]) -> list[int]:
        return self.forms.name_frequency(words)

    def relations_of(self, entities: EntityRows) -> Grouped:
        return gather(self.columns["fact.first"], self.columns["fact.relation"], entities)

    def objects_of(self, entity: int, relation: int) -> EntityRows:
        first, last = (int(row) for row in self.columns["fact.first"][entity : entity + 2])
        pair = first + int(np.searchsorted(self.columns["fact.relation"][first:last], relation))
        if pair == last or self.columns["fact.relation"][pair] != relation:
            return np.empty(0, dtype=np.uint32)
        begin, end = (int(row) for row in self.columns["fact.first_object"][pair : pair + 2])
        return self.columns["fact.object"][begin:end]

    def facts_between(self, first: int, last: int) -> NDArray[np.int64]:
        pairs = self.columns["fact.first"][first : last + 1].astype(np.int64)
        objects = self.columns["fact.first_object"][pairs[0] : pairs[-1] + 1].astype(np.int64)
        subjects = np.repeat(np.arange(first, last), np.diff(pairs))
        relations = self.columns["fact.relation"][pairs[0] : pairs[-1]]
        found = self.columns["fact.object"][objects[0] : objects[-1]]
        counts = np.diff(objects)
        columns = (np.repeat(subjects, counts), np.repeat(relations, counts), found)
        return np.stack(columns, axis=1).astype(np.int64)

    def types_of(self, entities: EntityRows) -> Grouped:
        return gather(self.columns["type.first"], self.columns["type.type"], entities)

    def fact_counts(self, entities: EntityRows) -> NDArray[np.int64]:
        first, objects = self.columns["fact.first"], self.columns["fact.first_object"]
        rows = entities.astype(np.int64)
        counts: NDArray[np.int64] = (objects[first[rows + 1]] - objects[first[rows]]).astype(np.int64)
        return counts

    def ids(self, entities: EntityRows) -> list[str]:
        return [self.entity_ids[row] for row in entities.tolist()]

    def names(self, entities: EntityRows) -> list[str | None]:
        firsts = self.columns["alias.first"][entities].tolist()
        ends = self.columns["alias.first"][entities.astype(np.int64) + 1].tolist()
        return [self.alias_texts[first] if first < end else None for first, end in zip(firsts, ends, strict=True)]

    def aliases(self, entity: int) -> list[str]:
        first, last = self.columns["alias.first"][entity : entity + 2].tolist()
        return [self.alias_texts[row] for row in range(first, last)]

    def vectors(self) -> FaissVectors:
        if self.vector_index is None:
            self.vector_index = FaissVectors(self.path, self)
        return self.vector_index

    def rows(self, ids: Sequence[str]) -> list[int | None]:
        return [self.entity_ids.find(entity_id) for entity_id in ids]
