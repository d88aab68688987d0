"""The contents of the entities of an embedded knowledge base, and the normal forms of its names, for a load."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from kbtools.indexers.building.form_rows import form_rows
from kbtools.indexers.elastic.documents import Document, EntityContent, documents, drop_usual, id_hash
from kbtools.indexers.folder.column_files import release_pages
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.form_store import ENTITIES, form_key, is_normal
from kbtools.kb.language_tags import UND, stored_text
from kbtools.linking.near_ranking import Bearer, bearers_with_most_names
from kbtools.processes import in_order
from kbtools.text.variants import name_forms

_BLOCK = 2_000
"""Entities or forms read together: enough to make NumPy's overhead per call small."""

_MANY = 200_000
"""Least number of entities for which processes pay: their documents take 8 CPU seconds."""

_RELEASED = 200_000
"""Forms after which the pages of the exact index are released."""

_RESIDENT = 160_000_000
"""Bytes of mapped files beyond which pages are released: libraries take 110 MB, a small knowledge base the rest."""


class FolderEntities:
    """The entities of an embedded knowledge base, as contents for documents."""

    def __init__(self, kb: EmbeddedKB) -> None:
        self.kb = kb
        self.language = next(iter(kb.manifest.languages), UND)
        self.language_sets = list(kb.languages.sets)
        merged = kb.columns.get("redirect.row", np.empty(0, dtype=np.uint32))
        # By row, so that the ids merged into a block of rows are adjacent.
        self.merged_order = np.argsort(merged, kind="stable")
        self.merged_rows = merged[self.merged_order]

    def __call__(self, rows: range) -> list[Document]:
        """Return the documents of a range of rows; in a separate process, release the pages read."""
        release_pages(self.kb.path, beyond=_RESIDENT)
        return list(documents(self.block(rows.start, rows.stop), self.language))

    def documents(self, first: int, *, jobs: int) -> Iterator[Document]:
        """Yield the documents of the entities from a row on, made by several processes if there are many."""
        rows = range(first, len(self.kb.entity_ids))
        blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
        return chain.from_iterable(in_order(self, blocks, jobs=jobs if len(rows) >= _MANY else 1))

    def contents(self, rows: Sequence[int]) -> Iterator[EntityContent]:
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            yield from self.block(block[0], block[-1] + 1)

    def merged_ids(self, first: int, last: int) -> dict[int, list[str]]:
        """Return the hashes of the ids merged into the entities of rows `first` to `last - 1`."""
        ids: dict[int, list[str]] = {}
        if self.kb.redirects is not None:
            begin, end = np.searchsorted(self.merged_rows, [first, last]).tolist()
            for place in self.merged_order[begin:end].tolist():
                row = int(self.kb.columns["redirect.row"][place])
                ids.setdefault(row, []).append(id_hash(self.kb.redirects[place]))
        return ids

    def block(self, first: int, last: int) -> Iterator[EntityContent]:
        """Yield the contents of rows `first` to `last - 1`.

        Columns are read once for the block, as Python lists, and positions in them are counted from the block's first.
        """
        columns, kb = self.kb.columns, self.kb
        relations, types, ids = kb.relations, kb.types, kb.entity_ids
        pair_of, alias_of, type_of, incoming_of = (
            columns[f"{kind}.first"][first : last + 1].tolist() for kind in ("fact", "alias", "type", "incoming")
        )
        pair_relation = columns["fact.relation"][pair_of[0] : pair_of[-1]].tolist()
        object_of = columns["fact.first_object"][pair_of[0] : pair_of[-1] + 1].tolist()
        objects = columns["fact.object"][object_of[0] : object_of[-1]]
        incoming_relations = columns["incoming.relation"][incoming_of[0] : incoming_of[-1]].tolist()
        subjects = columns["incoming.subject"][incoming_of[0] : incoming_of[-1]].tolist()
        type_rows = columns["type.type"][type_of[0] : type_of[-1]].tolist()
        is_alias = columns["alias.is_alias"][alias_of[0] : alias_of[-1]].tolist()
        texts = kb.alias_texts.take(range(alias_of[0], alias_of[-1]))
        forms, form_of = _forms_of(texts)
        sets = None
        if kb.languages.numbers is not None:
            sets = list(map(self.language_sets.__getitem__, kb.languages.numbers[alias_of[0] : alias_of[-1]].tolist()))
        merged = self.merged_ids(first, last)
        descriptions = kb.descriptions(np.arange(first, last, dtype=np.uint32))
        for place, row in enumerate(range(first, last)):
            pairs = range(pair_of[place] - pair_of[0], pair_of[place + 1] - pair_of[0])
            begin, end = object_of[pairs.start] - object_of[0], object_of[pairs.stop] - object_of[0]
            aliases = range(alias_of[place] - alias_of[0], alias_of[place + 1] - alias_of[0])
            incoming = range(incoming_of[place] - incoming_of[0], incoming_of[place + 1] - incoming_of[0])
            content: EntityContent = {"row": row, "id": ids[row], "facts": end - begin, "facts_in": len(incoming)}
            for alias in aliases:
                content.setdefault("aliases" if is_alias[alias] else "names", []).append(texts[alias])
            if aliases:
                content["forms"] = forms[form_of[aliases.start] : form_of[aliases.stop]]
            if sets and aliases:
                content["languages"] = sets[aliases.start : aliases.stop]
                drop_usual(content, self.language)
            if description := descriptions[place]:
                content["description"] = stored_text(description)
            if own_types := type_rows[type_of[place] - type_of[0] : type_of[place + 1] - type_of[0]]:
                content["types"] = [types[type_row] for type_row in own_types]
            if pairs:
                targets = [ids[target] for target in objects[begin:end].tolist()]
                starts = [object_of[pair] - object_of[0] - begin for pair in pairs] + [len(targets)]
                content["objects"] = [
                    [relations[pair_relation[pair]], targets[starts[k] : starts[k + 1]]] for k, pair in enumerate(pairs)
                ]
            if incoming:
                groups: dict[int, list[int]] = {}
                for position in incoming:
                    groups.setdefault(incoming_relations[position], []).append(subjects[position])
                content["subjects"] = [[relations[relation], group] for relation, group in groups.items()]
            if row in merged:
                content["merged"] = merged[row]
            yield content


def _forms_of(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the forms of names, as `name_forms` lists them name by name, and the start of each name's forms."""
    count = len(texts)
    rows = form_rows(
        pa.array(texts, pa.string()), pa.array(np.zeros(count, bool)), pa.array(np.zeros(count, np.uint32)), first=0
    )
    names = rows["alias"].to_numpy()
    order = np.argsort(names, kind="stable")
    return rows["form"].take(order).to_pylist(), names[order].searchsorted(np.arange(count + 1)).tolist()


def normal_forms(kb: EmbeddedKB, first: int = 0) -> Iterator[tuple[str, Bearer, int]]:
    """Yield each normal form of the names, from a stored form on, with its entity with the most names and the place
    after it.
    """
    stored = islice(_read_forms(kb), first, None)
    place = first
    while entries := list(islice(stored, _BLOCK)):
        block = [
            (_form_of(kb, key, value), value, at)
            for at, (key, value) in enumerate(entries, place + 1)
            if is_normal(value)
        ]
        place += len(entries)
        groups = [_bearers_in(value) for _, value, _ in block]
        if block:
            rows = np.array([row for group in groups for row in group], dtype=np.uint32)
            bearers = bearers_with_most_names(rows, kb.alias_counts(rows), list(map(len, groups)))
            yield from ((form, bearer, at) for (form, _, at), bearer in zip(block, bearers, strict=True))
        release_pages(kb.path, beyond=_RESIDENT)


def _bearers_in(value: bytes) -> list[int]:
    """Return the rows of the entities in a value of the exact index; see `read_groups` for its layout."""
    numbers = memoryview(value).cast("I").tolist()
    rows: list[int] = []
    position = 0
    while position < len(numbers):
        end = position + 2 + (numbers[position] & ENTITIES)
        rows += numbers[position + 2 : end]
        position = end
    return rows


def count_normal_forms(kb: EmbeddedKB) -> int:
    """Count the normal forms of the names."""
    return sum(is_normal(value) for _, value in _read_forms(kb))


def _form_of(kb: EmbeddedKB, key: bytes, value: bytes) -> str:
    """Return the form of an entry; a long one is derived from its name."""
    if b"\0" not in key:
        return key.decode()
    name = kb.alias_texts[int.from_bytes(value[4:8], "little")]
    return next(form for form in name_forms(name) if form_key(form) == key)


def _read_forms(kb: EmbeddedKB) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the exact index, releasing the pages read."""
    for place, entry in enumerate(kb.forms.entries()):
        if place % _RELEASED == 0:
            release_pages(kb.path)
        yield entry
