"""Compaction: an updated knowledge base is rebuilt from its content by the writer of builds."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kbtools.errors import KBUnusable, VectorsMissing
from kbtools.indexers.building.build import BuildProgress, check, require_address_space, write_tables
from kbtools.indexers.building.staging import MEMORY, Staging
from kbtools.indexers.folder.checksums import INDEX_AGAIN
from kbtools.indexers.folder.column_files import StringTable, spread
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FaissVectors, write_vectors
from kbtools.indexers.folder.folder_kb import FolderKB
from kbtools.indexers.folder.kb_folder import read_manifest, require_intact, write_manifest
from kbtools.indexers.folder.language_sets import LanguageSets, spoken
from kbtools.indexers.readers.batches import ALIAS, LAST_RANK, SCHEMAS, Kind, repeated
from kbtools.indexers.updates.overlay import NAMES, Overlay
from kbtools.indexers.updates.updating import replacing
from kbtools.kb.language_tags import UND, SpokenText, stored_text, usual_language
from kbtools.kb.manifest import MERGE, Change, Count, Manifest
from kbtools.kb.vector_index import EntityVectors
from kbtools.processes import default_jobs

logger = logging.getLogger(__name__)

_ENTITIES_AT_ONCE = 200_000
"""Entities copied at once, with a million facts if each has five."""


def compact(path: Path, *, watch: BuildProgress, memory: str = MEMORY, jobs: int | None = None) -> Manifest | None:
    """Rebuild a knowledge base from its content with updates; return None if it has none.

    Processes that have it open are not affected. Raises as `build` does; the knowledge base stays as it was unless all
    succeeds. Vectors move with their entities.
    """
    before = read_manifest(path)
    if not before.is_updated:
        require_intact(path, before)  # "Nothing to do" means that all is well.
        return None
    require_address_space()
    with replacing(path) as (folder, kb):
        assert isinstance(kb, Overlay)
        written = write_tables(
            lambda tables: _fill(tables, kb), folder, watch=watch, memory=memory, jobs=jobs or default_jobs()
        )
        manifest = _merged_manifest(kb.manifest, written)
        check(folder, manifest)
        write_manifest(folder, manifest)
        _move_vectors(kb, folder, manifest)
        watch.done("check", "every file and count as written")
    return manifest


def _merged_manifest(old: Manifest, written: Manifest) -> Manifest:
    """Return the manifest of a merge, with the sources, options and history of the old one."""
    change = Change(MERGE, written.built, old.digest, written.digest, bytes=sum(written.files.values()))
    counts = {kind: Count(before.duplicate + written.counts[kind].unique, written.counts[kind].unique)
              for kind, before in old.counts.items()}  # fmt: skip
    return replace(written, counts=counts, sources=old.sources, options=old.options, history=(*old.history, change))


def _fill(tables: Staging, kb: Overlay) -> None:
    """Copy the content of a knowledge base into the work tables of a build."""
    tables.require_memory(sum(kb.manifest.files.values()))
    ids = pa.concat_arrays([_checked(kb, _strings_of(kb.base.entity_ids)), pa.array(kb.added_ids(), pa.large_string())])
    relations, types = (pa.array(labels, pa.string()) for labels in (kb.relations, kb.types))
    every, usual = kb.entity_rows(), usual_language(kb.manifest.languages)
    for first in range(0, len(every), _ENTITIES_AT_ONCE):
        rows = every[first : first + _ENTITIES_AT_ONCE]
        facts = kb.facts_of(rows)
        _add(tables, "facts", ids.take(facts[:, 0]), relations.take(facts[:, 1]), ids.take(facts[:, 2]))
        kinds = kb.types_of(rows)
        _add(tables, "types", ids.take(np.repeat(rows, np.diff(kinds.starts))), types.take(kinds.values))
        described = [
            (row, rank, line, tag)
            for row, text in zip(rows.tolist(), kb.descriptions(rows), strict=True)
            if text
            for rank, (tag, line) in enumerate(text.by_tag.items() if isinstance(text, SpokenText) else [(usual, text)])
        ]
        owners, places, lines, tags = _columns_of(described, pa.uint32(), pa.uint8(), pa.string(), pa.string())
        _add(tables, "descriptions", ids.take(owners), places, lines, tags)
        is_own, others, places = kb.split(rows, NAMES)
        for part, own_rows, entities in ((kb.base, others, others), (kb.segment, places, rows[is_own])):
            owners, ranks, texts, tags = _name_rows(part, own_rows)
            _add(tables, "names", ids.take(entities[owners]), ranks, texts, tags)
    named = [
        (relation, stored_text(name)) for relation, name in zip(kb.relations, kb.relation_names, strict=True) if name
    ]
    tables.run("CREATE TABLE relation_labels (relation VARCHAR, text VARCHAR)")
    if named:
        tables.add("relation_labels", pa.table(_columns_of(named), names=["relation", "text"]))
    survivors = {
        old: row for old in chain(kb.base.redirects, kb.segment.redirects) if (row := kb.row_of(old)) is not None
    }
    merged = [(old, row) for old, row in survivors.items() if kb.ids(np.array([row], dtype=np.uint32)) != [old]]
    former, rows = _columns_of(merged, pa.string(), pa.uint32())
    _add(tables, "redirects", former, ids.take(rows), to="merged")
    keys, entities, counts = kb.counts_about(every)
    _add(tables, "counts", ids.take(entities), pa.array(keys), pa.array(counts))


def _name_rows(kb: EmbeddedKB, entities: NDArray[Any]) -> tuple[NDArray[np.int64], pa.Array, pa.Array, pa.Array]:
    """Return the places of some entities, and the ranks, texts and languages of their names, one row per language."""
    bounds, names = spread(kb.columns["alias.first"], entities, len(kb.alias_texts))
    owners = np.repeat(np.arange(len(entities)), np.diff(bounds))
    first, flags = int(names[0]) if len(names) else 0, kb.columns["alias.is_alias"][names].astype(bool)
    span = _strings_of(kb.alias_texts).slice(first, int(names[-1]) + 1 - first if len(names) else 0)
    texts = _checked(kb, span).take(names - first)
    # Aliases are ordered by language, then text: where texts stop ascending, the next language begins.
    falls = np.zeros(len(names), dtype=np.int64)
    if len(names) > 1:
        falls[1:] = pc.less(texts.slice(1), texts.slice(0, len(texts) - 1)).to_numpy(zero_copy_only=False)
        falls[1:] &= flags[1:] & flags[:-1] & (owners[1:] == owners[:-1])
    before = falls.cumsum()
    group = np.minimum(1 + before - before[bounds[owners]] if len(names) else before, LAST_RANK)
    places, is_alias, tags = _list_terms(kb.languages, names, flags)
    ranks = pa.array(np.where(is_alias, ALIAS, np.where(flags, group, 0)[places]), pa.uint8())
    return owners[places], ranks, texts.take(places), tags


def _list_terms(
    languages: LanguageSets, names: NDArray[np.int64], is_alias: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], pa.Array]:
    """Return names as in sources, one row for each of their languages.

    For each row: the place of the name, whether it is an alias, and the tag, empty if it has none: (terms,).
    """
    if languages.numbers is None:
        return np.arange(len(names)), is_alias, repeated(languages.sets[0].replace(UND, ""), len(names))
    numbers, set_of = np.unique(languages.numbers[names], return_inverse=True)
    of_set = [spoken("", languages.sets[number]).parts for number in numbers.tolist()]
    starts = np.cumsum([0, *map(len, of_set)])
    counts = np.diff(starts)[set_of]
    places = np.repeat(np.arange(len(names)), counts)
    # The place of every name and language of its set, without a loop over the names.
    pairs = np.arange(len(places)) + np.repeat(starts[set_of] - np.cumsum(counts) + counts, counts)
    tags = pa.array(["" if tag == UND else tag for parts in of_set for tag in parts], pa.string())
    flags = np.array([alias for parts in of_set for alias in parts.values()], dtype=bool)
    return places, flags[pairs], tags.take(pairs)


def _move_vectors(kb: Overlay, folder: Path, manifest: Manifest) -> None:
    """Write the vectors of entities under their new rows."""
    try:
        live = kb.vectors()
    except VectorsMissing:
        return
    except KBUnusable as error:
        logger.warning("%s; the existing ones are deleted", error)
        return
    assert isinstance(live, FaissVectors)
    old = np.setdiff1d(live.rows, live.gone)
    new_kb = EmbeddedKB(folder, manifest=manifest)
    new = np.array(new_kb.rows(kb.ids(old)), dtype=np.uint32)
    order = np.argsort(new)
    former = dict(zip(new.tolist(), old.tolist(), strict=True))
    vectors = EntityVectors(
        new[order],
        live.dim,
        lambda rows: live.read(np.array([former[row] for row in rows.tolist()], dtype=np.uint32)),
        live.origin,
    )
    write_vectors(folder, new_kb, vectors, kind=live.kind)


def _add(tables: Staging, kind: Kind, *columns: Any, to: str = "") -> None:
    """Append columns of a kind to a work table, by default the table of that name."""
    schema = SCHEMAS[kind]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    if len(arrays[0]):
        tables.add(to or kind, pa.Table.from_arrays(arrays, schema=schema))


def _columns_of(rows: Sequence[tuple[Any, ...]], *types: pa.DataType) -> list[pa.Array]:
    """Convert rows to columns, pairs of texts unless `types` are given."""
    columns = zip(*rows, strict=True) if rows else [()] * max(2, len(types))
    return [pa.array(column, kind) for column, kind in zip(columns, (*types, pa.string(), pa.string()), strict=False)]


def _checked(kb: FolderKB, strings: Any) -> Any:
    """Return strings of a knowledge base; raise KBUnusable if Arrow would read beyond their bytes."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        raise KBUnusable.at(kb.path, f"a string lies beyond its file; {INDEX_AGAIN}") from error
    return strings


def _strings_of(table: StringTable) -> Any:
    """Return a table of strings as an Arrow array, without reading it."""
    return pa.LargeStringArray.from_buffers(len(table), pa.py_buffer(table.starts), pa.py_buffer(table.bytes))
