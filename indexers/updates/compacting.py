"""Merge the updates of a knowledge base into its base: all that it holds by now is built again."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.errors import KBUnusable, VectorsMissing
from kbtools.indexers.building.build import BuildProgress, check, require_address_space, write_tables
from kbtools.indexers.building.language_writer import list_terms
from kbtools.indexers.building.staging import MEMORY, Staging
from kbtools.indexers.folder.checksums import INDEX_AGAIN
from kbtools.indexers.folder.column_files import StringTable
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import write_vectors
from kbtools.indexers.folder.kb_folder import MANIFEST, read_manifest
from kbtools.indexers.readers.batches import ALIAS, LAST_RANK, SCHEMAS, Kind
from kbtools.indexers.updates.live_vectors import LiveVectors
from kbtools.indexers.updates.updated_kb import NAMES, UpdatedKB
from kbtools.indexers.updates.updating import replacing
from kbtools.kb.language_tags import UND
from kbtools.kb.manifest import FORMAT_NAME, FORMAT_VERSION, MERGE, Change, Count, Manifest
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import EntityVectors
from kbtools.record_files import write_record

logger = logging.getLogger(__name__)

AT_ONCE = 200_000
"""Entities that are copied in one piece, with a million facts where each has five."""


def compact(path: Path, *, watch: BuildProgress, memory: str = MEMORY) -> Manifest | None:
    """Build a knowledge base again from what it holds with its updates; nothing where it has none.

    Who has it open is answered as before. Raises as `build` does; the knowledge base stays as it was unless all goes
    well. Vectors go with their entities.
    """
    if not read_manifest(path).is_updated:
        return None
    require_address_space()
    with replacing(path) as (folder, kb):
        assert isinstance(kb, UpdatedKB)
        written = write_tables(lambda tables: fill(tables, kb), folder, watch=watch, memory=memory)
        manifest = merged_manifest(kb.manifest, written)
        check(folder, manifest)
        write_record(folder / MANIFEST, manifest.to_record(), name=FORMAT_NAME, version=FORMAT_VERSION)
        move_vectors(kb, folder, manifest)
        watch.done("check", "every file and count as written")
    return manifest


def merged_manifest(old: Manifest, written: Manifest) -> Manifest:
    """Say of a build of what there was that its sources and history are those of before, and that it merged them."""
    change = Change(MERGE, written.built, old.digest, written.digest, bytes=sum(written.files.values()))
    counts = {kind: Count(before.duplicate + written.counts[kind].unique, written.counts[kind].unique)
              for kind, before in old.counts.items()}  # fmt: skip
    return replace(written, counts=counts, sources=old.sources, options=old.options, history=(*old.history, change))


def fill(tables: Staging, kb: UpdatedKB) -> None:
    """Put all that a knowledge base holds into the work tables of a build."""
    tables.require_memory(sum(kb.manifest.files.values()))
    ids = pa.concat_arrays([checked(kb, strings_of(table)) for table in (kb.entity_ids, kb.own_ids)])
    relations, types = (pa.array(labels, pa.string()) for labels in (kb.relations, kb.types))
    for first in range(0, len(kb.marks), AT_ONCE):
        rows = np.arange(first, min(first + AT_ONCE, len(kb.marks)), dtype=np.uint32)
        facts = kb.facts_between(first, first + len(rows))
        add(tables, "facts", ids.take(facts[:, 0]), relations.take(facts[:, 1]), ids.take(facts[:, 2]))
        kinds = kb.types_of(rows)
        add(tables, "types", ids.take(np.repeat(rows, np.diff(kinds.starts))), types.take(kinds.values))
        described = [(row, text) for row, text in zip(rows.tolist(), kb.descriptions(rows), strict=True) if text]
        if described:
            owners, lines = zip(*described, strict=True)
            add(
                tables,
                "descriptions",
                ids.take(as_rows(owners)),
                pa.array([0] * len(lines), pa.uint8()),
                pa.array(lines),
            )
        for entities, ranks, texts, languages in names_of(kb, rows):
            add(tables, "names", ids.take(entities), ranks, texts, languages)
    named = [(relation, name) for relation, name in zip(kb.relations, kb.relation_names, strict=True) if name]
    tables.run("CREATE TABLE relation_labels (relation VARCHAR, text VARCHAR)")
    add(tables, "relations", *columns_of(named), to="relation_labels")
    redirects = [(old, kb.row_of(old)) for table in (kb.redirects, kb.own_redirects) for old in table or ()]
    merged = {old: row for old, row in redirects if row is not None and kb.ids(as_rows([row])) != [old]}
    add(tables, "redirects", pa.array(merged, pa.string()), ids.take(as_rows(list(merged.values()))), to="merged")
    counted = kb.columns["count.entity"].copy()
    for old, row in kb.survivors.items():
        counted[counted == old] = row
    alive = ~np.isin(counted, kb.own["gone.row"])
    key, count = (pa.array(kb.columns[f"count.{name}"][alive], pa.uint64()) for name in ("key", "count"))
    add(tables, "counts", ids.take(counted[alive]), key, count)


def names_of(kb: UpdatedKB, rows: EntityRows) -> Iterator[tuple[NDArray[Any], Any, Any, Any]]:
    """Yield rows of entities, ranks, texts and languages of their names, those of the base together.

    A name in several languages comes once for each.
    """
    base = rows[rows < kb.base_entities].astype(np.int64)
    first = (
        kb.columns["alias.first"][base[0] : base[-1] + 2].astype(np.int64) if len(base) else np.zeros(1, dtype=np.int64)
    )
    texts = checked(kb, strings_of(kb.alias_texts).slice(first[0], first[-1] - first[0]))
    flags = kb.columns["alias.is_alias"][first[0] : first[-1]].astype(bool)
    entities = np.repeat(base, np.diff(first))
    # Aliases of several languages, whose order is kept by ranks.
    falls = np.zeros(len(texts), dtype=bool)
    if len(texts) > 1:
        falls[1:] = pc.less(texts.slice(1), texts.slice(0, len(texts) - 1)).to_numpy(zero_copy_only=False)
        falls[1:] &= flags[1:] & flags[:-1] & (entities[1:] == entities[:-1])
    singly = np.union1d(entities[falls], rows[(kb.marks[rows] & NAMES) > 0])
    together = ~np.isin(entities, singly)
    places, is_alias, tags = list_terms(kb.languages, first[0] + np.flatnonzero(together), flags[together])
    flags, kept = flags[together][places], np.flatnonzero(together)[places]
    ranks = pa.array(np.where(is_alias, ALIAS, np.where(flags, LAST_RANK, 0)), pa.uint8())
    yield entities[kept], ranks, texts.take(pa.array(kept)), tags
    ranked = [
        (row, ALIAS if is_alias else rank, name.text, "" if tag == UND else tag)
        for row, names in zip(singly.tolist(), kb.names_of(singly.astype(np.uint32)), strict=True)
        for name, (_, rank) in zip(names, kb.ranked_names(row), strict=True)
        for tag, is_alias in name.parts.items()
    ]
    if ranked:
        owners, own_ranks, own_texts, own_tags = zip(*ranked, strict=True)
        types = (pa.uint8(), pa.string(), pa.string())
        yield (
            as_rows(owners),
            *(pa.array(*column) for column in zip((own_ranks, own_texts, own_tags), types, strict=True)),
        )


def move_vectors(kb: UpdatedKB, folder: Path, manifest: Manifest) -> None:
    """Give the vectors of entities to the rows that those have now."""
    try:
        live = kb.vectors()
    except VectorsMissing:
        return
    except KBUnusable as error:
        logger.warning("%s; those that are there now are deleted", error)
        return
    assert isinstance(live, LiveVectors)
    old = np.setdiff1d(live.index.rows, live.gone)
    new_kb = EmbeddedKB(folder, manifest=manifest)
    new = np.array(new_kb.rows(kb.ids(old)), dtype=np.uint32)
    order = np.argsort(new)
    former = dict(zip(new.tolist(), old.tolist(), strict=True))
    vectors = EntityVectors(
        new[order],
        live.dim,
        lambda rows: live.index.read(as_rows([former[row] for row in rows.tolist()])),
        live.origin,
    )
    write_vectors(folder, new_kb, vectors, kind=live.index.kind)


def add(tables: Staging, kind: Kind, *columns: Any, to: str = "") -> None:
    """Append columns of a kind to a work table, by default that of its name."""
    schema = SCHEMAS[kind]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    if len(arrays[0]):
        tables.add(to or kind, pa.Table.from_arrays(arrays, schema=schema))


def columns_of(pairs: list[tuple[str, str]]) -> tuple[Any, Any]:
    return pa.array([first for first, _ in pairs], pa.string()), pa.array([second for _, second in pairs], pa.string())


def as_rows(rows: Sequence[int]) -> EntityRows:
    return np.array(rows, dtype=np.uint32)


def checked(kb: EmbeddedKB, strings: Any) -> Any:
    """Return strings of a knowledge base; raise KBUnusable where Arrow would read beyond their bytes."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        raise KBUnusable(f"{kb.path}: a string lies beyond its file; {INDEX_AGAIN}", path=str(kb.path)) from error
    return strings


def strings_of(table: StringTable) -> Any:
    """Give a table of strings to Arrow without reading it."""
    return pa.LargeStringArray.from_buffers(len(table), pa.py_buffer(table.starts), pa.py_buffer(table.bytes))
