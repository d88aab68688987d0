"""From the entities of an embedded knowledge base to documents: one each, in the order of their rows.

An entity that is too large for one document goes on in further parts: part 0 is the entity, and tells how many
follow; part k is found under the same row. Every value stands in exactly one part.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbtools.indexers.elastic.documents import LONGEST_ID, Document, encode, id_hash, term_of
from kbtools.indexers.elastic.name_languages import language_sets
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.language_tags import UND
from kbtools.text.name_forms import name_forms

MOST_VALUES = 20_000
MOST_BYTES = 4_000_000
"""The content of one document of an entity: names, types, relations, objects and subjects, and their bytes.

As many bytes as a bulk request has; a cluster takes 100 MB if nothing else is set.
"""

BLOCK = 2_000
"""Entities whose columns are read together: enough to make NumPy's cost for each call small."""

FACTS = (("objects", "relations", "held"), ("subjects", "relations_in", "held_in"))
"""The facts that an entity is the subject and the object of: their other ends by relation, ids of objects and rows of
subjects; their relations; how many a part holds."""


EntityValue = tuple[str, str | None, str | int]
"""A value of an entity: its field, the relation of an object or a subject or the languages of a name, and the value."""


class EntityReader:
    """A reader of an embedded knowledge base that gives entities as documents."""

    def __init__(self, kb: EmbeddedKB) -> None:
        self.kb = kb
        self.is_alias = kb.columns["alias.is_alias"]
        self.language = next(iter(kb.manifest.languages), UND)
        self.language_sets = list(kb.languages.sets)
        merged = kb.columns.get("redirect.row", np.empty(0, dtype=np.uint32))
        # By row, so that the ids merged into a block of rows lie together.
        self.merged_order = np.argsort(merged, kind="stable")
        self.merged_rows = merged[self.merged_order]

    def merged_ids(self, first: int, last: int) -> dict[int, list[str]]:
        """List the hashes of the ids that were merged into entities of rows `first` to `last - 1`."""
        ids: dict[int, list[str]] = {}
        if self.kb.redirects is not None:
            begin, end = np.searchsorted(self.merged_rows, [first, last]).tolist()
            for place in self.merged_order[begin:end].tolist():
                row = int(self.kb.columns["redirect.row"][place])
                ids.setdefault(row, []).append(id_hash(self.kb.redirects[place]))
        return ids

    def documents(self, first: int, last: int) -> Iterator[Document]:
        """Yield the documents of rows `first` to `last - 1`."""
        for start in range(first, last, BLOCK):
            yield from self.block(start, min(start + BLOCK, last))

    def block(self, first: int, last: int) -> Iterator[Document]:
        """Yield the documents of a few rows.

        It stands for `parts` row by row, which gives the same documents: columns are read once for the block, as
        Python lists, and positions in them are counted from the block's first.
        """
        columns, kb = self.kb.columns, self.kb
        relations, types, ids, texts = kb.relations, kb.types, kb.entity_ids, kb.alias_texts
        pair_of, alias_of, type_of = (
            columns[f"{kind}.first"][first : last + 1].tolist() for kind in ("fact", "alias", "type")
        )
        pair_relation = columns["fact.relation"][pair_of[0] : pair_of[-1]].tolist()
        object_of = columns["fact.first_object"][pair_of[0] : pair_of[-1] + 1].tolist()
        objects = columns["fact.object"][object_of[0] : object_of[-1]]
        incoming_of = columns["incoming.first"][first : last + 1].tolist()
        incoming_relations = columns["incoming.relation"][incoming_of[0] : incoming_of[-1]].tolist()
        subjects = columns["incoming.subject"][incoming_of[0] : incoming_of[-1]].tolist()
        type_rows = columns["type.type"][type_of[0] : type_of[-1]].tolist()
        is_alias = self.is_alias[alias_of[0] : alias_of[-1]].tolist()
        sets = None
        if kb.languages.numbers is not None:
            sets = list(map(self.language_sets.__getitem__, kb.languages.numbers[alias_of[0] : alias_of[-1]].tolist()))
        merged = self.merged_ids(first, last)
        descriptions = kb.descriptions(np.arange(first, last, dtype=np.uint32))
        for place, row in enumerate(range(first, last)):
            pairs = range(pair_of[place] - pair_of[0], pair_of[place + 1] - pair_of[0])
            begin, end = object_of[pairs.start] - object_of[0], object_of[pairs.stop] - object_of[0]
            aliases = range(alias_of[place], alias_of[place + 1])
            own_types = type_rows[type_of[place] - type_of[0] : type_of[place + 1] - type_of[0]]
            incoming = range(incoming_of[place] - incoming_of[0], incoming_of[place + 1] - incoming_of[0])
            # An incoming fact has a value for itself, and at most one for its relation; a name may have its languages.
            named = (1 if sets is None else 2) * len(aliases)
            if len(pairs) + end - begin + named + len(own_types) + 2 * len(incoming) > MOST_VALUES:
                yield from self.parts(row)
                continue
            content: dict[str, Any] = {"row": row, "part": 0, "id": ids[row]}
            content |= {"facts": end - begin, "facts_in": len(incoming)}
            for alias in aliases:
                kind = "aliases" if is_alias[alias - alias_of[0]] else "names"
                content.setdefault(kind, []).append(texts[alias])
            if sets and aliases:
                content["languages"] = sets[aliases.start - alias_of[0] : aliases.stop - alias_of[0]]
            if description := descriptions[place]:
                content["description"] = description
            if own_types:
                content["types"] = [types[type_row] for type_row in own_types]
            if pairs:
                targets = [ids[target] for target in objects[begin:end].tolist()]
                starts = [object_of[pair] - object_of[0] - begin for pair in pairs] + [len(targets)]
                content["objects"] = [
                    [relations[pair_relation[pair]], targets[starts[k] : starts[k + 1]]] for k, pair in enumerate(pairs)
                ]
            if incoming:
                content["subjects"] = by_relation(
                    relations,
                    incoming_relations[incoming.start : incoming.stop],
                    subjects[incoming.start : incoming.stop],
                )
            source = encode(completed(content, merged=merged.get(row, ()), language=self.language)).encode()
            if len(source) > MOST_BYTES:
                yield from self.parts(row)
            else:
                yield Document(str(row), source, row + 1)

    def parts(self, row: int) -> Iterator[Document]:
        """Yield a large entity in parts, the first one last: while it is not there, the entity is not."""
        rows = np.array([row], dtype=np.uint32)
        counts = {"facts": int(self.kb.fact_counts(rows)[0]), "facts_in": int(self.kb.incoming_counts(rows)[0])}
        head = {"row": row, "part": 0, "id": self.kb.entity_ids[row]} | counts
        if description := self.kb.descriptions(rows)[0]:
            head["description"] = description
        merged = self.merged_ids(row, row + 1).get(row, ())
        return entity_parts(head, self.values(row), merged=merged, language=self.language)

    def values(self, row: int) -> Iterator[EntityValue]:
        """Yield the values of an entity one by one."""
        kb, columns = self.kb, self.kb.columns
        first, last = columns["alias.first"][row : row + 2].tolist()
        numbers = kb.languages.numbers
        for alias in range(first, last):
            languages = None if numbers is None else self.language_sets[int(numbers[alias])]
            yield "aliases" if self.is_alias[alias] else "names", languages, kb.alias_texts[alias]
        first, last = columns["type.first"][row : row + 2].tolist()
        for position in range(first, last):
            yield "types", None, kb.types[int(columns["type.type"][position])]
        first, last = columns["fact.first"][row : row + 2].tolist()
        for pair in range(first, last):
            relation = kb.relations[int(columns["fact.relation"][pair])]
            begin, end = columns["fact.first_object"][pair : pair + 2].tolist()
            for position in range(begin, end):
                yield "objects", relation, kb.entity_ids[int(columns["fact.object"][position])]
        (incoming,) = kb.subjects_of(np.array([row], dtype=np.uint32))
        for relation_row, subject in zip(incoming.relations.tolist(), incoming.subjects.tolist(), strict=True):
            yield "subjects", kb.relations[relation_row], subject


def entity_parts(
    head: dict[str, Any], values: Iterable[EntityValue], *, merged: Sequence[str], language: str
) -> Iterator[Document]:
    """Yield an entity in as many documents as its values need, by what the first of them begins with; it comes last."""
    row = head["row"]
    pieces = fill_pieces(values)
    main = next(pieces)
    count = 0
    for count, piece in enumerate(pieces, 1):
        source = encode(completed({"row": row, "part": count} | piece.content, language=language)).encode()
        yield Document(f"{row}-{count}", source, row)
    content = head | main.content
    if count:
        content["parts"] = count
    yield Document(str(row), encode(completed(content, merged=merged, language=language)).encode(), row + 1)


def fill_pieces(values: Iterable[EntityValue]) -> Iterator["Piece"]:
    """Fill pieces with the values of an entity, one at least."""
    piece = Piece()
    for name, label, value in values:
        if piece.full():
            yield piece
            piece = Piece()
        if label is None:
            piece.add(name, value)
        elif name in ("names", "aliases"):
            piece.add(name, value)
            piece.add("languages", label)
        else:
            piece.add_related(name, label, value)
    yield piece


@dataclass(slots=True)
class Piece:
    """A part of a large entity while it grows."""

    content: dict[str, Any] = field(default_factory=dict)
    values: int = 0
    bytes: int = 0

    def add(self, name: str, value: str | int) -> None:
        self.content.setdefault(name, []).append(value)
        self.grow(value)

    def add_related(self, name: str, relation: str, value: str | int) -> None:
        pairs = self.content.setdefault(name, [])
        if not pairs or pairs[-1][0] != relation:
            pairs.append([relation, []])
            self.grow(relation)
        pairs[-1][1].append(value)
        self.grow(value)

    def grow(self, value: str | int) -> None:
        """Count a value and its bytes, at most; quotes and a comma come with each."""
        text = str(value)
        self.values += 1
        self.bytes += len(text) + 4 if text.isascii() else 4 * len(text)

    def full(self) -> bool:
        return self.values >= MOST_VALUES or self.bytes >= MOST_BYTES


def by_relation(names: Sequence[str], relations: Sequence[int], subjects: Sequence[int]) -> list[Any]:
    """Group the subjects of incoming facts, which come by relation."""
    groups: dict[int, list[int]] = {}
    for relation, subject in zip(relations, subjects, strict=True):
        groups.setdefault(relation, []).append(subject)
    return [[names[relation], group] for relation, group in groups.items()]


def completed(content: dict[str, Any], *, language: str, merged: Sequence[str] = ()) -> dict[str, Any]:
    """Add to a part what it is found and counted by: terms of its names, relations of its facts, hashes of ids.

    `merged` are the hashes of the ids that were merged into the entity. Languages of names are left out where they are
    but the one that a document stands for without them.
    """
    texts = content.get("names", []) + content.get("aliases", [])
    if texts:
        if "languages" in content and content["languages"] == language_sets(content | {"languages": None}, language):
            del content["languages"]
        content["named"] = len(texts)
        content["forms"] = list(dict.fromkeys(term_of(form) for text in texts for form in name_forms(text)))
    for related, relations, held in FACTS:
        if related in content:
            content[relations] = [relation for relation, _ in content[related]]
            content[held] = sum([len(values) for _, values in content[related]])
    hashed = [*merged, id_hash(content["id"])] if len(content.get("id", "")) > LONGEST_ID else list(merged)
    if hashed:
        content["hashed_id"] = hashed
    return content
