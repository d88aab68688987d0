"""From the entities of an embedded knowledge base to documents: one each, in the order of their rows.

An entity that is too large for one document goes on in further parts: part 0 is the entity, and tells how many
follow; part k is found under the same row. Every value stands in exactly one part.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kbtools.indexers.embedded import EmbeddedKB
from kbtools.text.name_forms import name_forms

LONGEST_TERM = 480
"""Bytes of a form that is a term as it is; of a longer one the term is a hash. The cluster's own limit is 32,766."""

LONGEST_ID = 8000
"""Characters of an id that is a term as it is."""

MOST_VALUES = 20_000
MOST_BYTES = 4_000_000
"""What one document holds of an entity: names, types, relations and objects, and their bytes."""

CATALOG_BYTES = 1_000_000
BLOCK = 2_000

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Document:
    """A document by its id, as JSON; once it is stored, everything before row `done` is."""

    key: str
    source: bytes
    done: int

    def lines(self) -> bytes:
        """Write the two lines of a bulk request."""
        return b'{"index":{"_id":"%s"}}\n%s\n' % (self.key.encode(), self.source)


def term_of(form: str) -> str:
    """Give the term that a form is looked up by."""
    if len(form) * 4 > LONGEST_TERM:
        data = form.encode()
        if len(data) > LONGEST_TERM:
            return "\0" + hashlib.sha256(data).hexdigest()
    return form


def id_field(entity_id: str) -> tuple[str, str]:
    """Give the field and the term that an id is looked up by."""
    if len(entity_id) <= LONGEST_ID:
        return "id", entity_id
    return "hashed_id", hashlib.sha256(entity_id.encode()).hexdigest()


@dataclass(slots=True)
class Piece:
    """Part of an entity's document while it grows."""

    content: dict[str, Any] = field(default_factory=dict)
    values: int = 0
    bytes: int = 0
    held: int = 0

    def add(self, name: str, value: str) -> None:
        self.content.setdefault(name, []).append(value)
        self.grow(value)

    def add_object(self, relation: str, target: str) -> None:
        pairs = self.content.setdefault("objects", [])
        if not pairs or pairs[-1][0] != relation:
            pairs.append([relation, []])
            self.grow(relation)
        pairs[-1][1].append(target)
        self.held += 1
        self.grow(target)

    def grow(self, value: str) -> None:
        self.values += 1
        self.bytes += len(value) + 4 if value.isascii() else 4 * len(value)

    def full(self) -> bool:
        return self.values >= MOST_VALUES or self.bytes >= MOST_BYTES


class EntityReader:
    """Read entities of an embedded knowledge base as documents."""

    def __init__(self, kb: EmbeddedKB) -> None:
        self.kb = kb
        self.is_alias = kb.columns["alias.is_alias"]

    def documents(self, first: int, last: int) -> Iterator[Document]:
        """Yield the documents of rows `first` to `last - 1`."""
        for start in range(first, last, BLOCK):
            yield from self.block(start, min(start + BLOCK, last))

    def block(self, first: int, last: int) -> Iterator[Document]:
        """Yield the documents of a few rows, their columns read at once."""
        columns, kb = self.kb.columns, self.kb
        relations, types, ids, texts = kb.relations, kb.types, kb.entity_ids, kb.alias_texts
        pair_of, alias_of, type_of = (
            columns[f"{kind}.first"][first : last + 1].tolist() for kind in ("fact", "alias", "type")
        )
        pair_relation = columns["fact.relation"][pair_of[0] : pair_of[-1]].tolist()
        object_of = columns["fact.first_object"][pair_of[0] : pair_of[-1] + 1].tolist()
        objects = columns["fact.object"][object_of[0] : object_of[-1]]
        typed = columns["type.type"][type_of[0] : type_of[-1]].tolist()
        is_alias = self.is_alias[alias_of[0] : alias_of[-1]].tolist()
        for at, row in enumerate(range(first, last)):
            pairs = range(pair_of[at] - pair_of[0], pair_of[at + 1] - pair_of[0])
            begin, end = object_of[pairs.start] - object_of[0], object_of[pairs.stop] - object_of[0]
            named = range(alias_of[at], alias_of[at + 1])
            if len(pairs) + end - begin + len(named) + type_of[at + 1] - type_of[at] > MOST_VALUES:
                yield from self.parts(row)
                continue
            document: dict[str, Any] = {"row": row, "part": 0, "id": ids[row], "facts": end - begin}
            if named:
                names: list[str] = []
                aliases: list[str] = []
                forms: set[str] = set()
                for alias in named:
                    text = texts[alias]
                    (aliases if is_alias[alias - alias_of[0]] else names).append(text)
                    forms.update(name_forms(text))
                put_names(document, names, aliases, forms)
            if type_of[at + 1] > type_of[at]:
                own = typed[type_of[at] - type_of[0] : type_of[at + 1] - type_of[0]]
                document["types"] = [types[kind] for kind in own]
            if pairs:
                asked = [relations[pair_relation[pair]] for pair in pairs]
                targets = [ids[target] for target in objects[begin:end].tolist()]
                starts = [object_of[pair] - object_of[0] - begin for pair in pairs] + [len(targets)]
                document["relations"] = asked
                document["held"] = end - begin
                document["objects"] = [[name, targets[starts[k] : starts[k + 1]]] for k, name in enumerate(asked)]
            if len(document["id"]) > LONGEST_ID:
                document["hashed_id"] = id_field(document["id"])[1]
            source = encode(document).encode()
            if len(source) > MOST_BYTES:
                yield from self.parts(row)
            else:
                yield Document(str(row), source, row + 1)

    def parts(self, row: int) -> Iterator[Document]:
        """Yield a large entity in parts, the first one last: while it is not there, the entity is not."""
        kb = self.kb
        pieces = self.pieces(row)
        main = next(pieces)
        count = 0
        for count, piece in enumerate(pieces, 1):
            source = encode({"row": row, "part": count} | finished(piece)).encode()
            yield Document(f"{row}-{count}", source, row)
        facts = int(kb.fact_counts(np.array([row], dtype=np.uint32))[0])
        content: dict[str, Any] = {"row": row, "part": 0, "id": kb.entity_ids[row], "facts": facts} | finished(main)
        if len(content["id"]) > LONGEST_ID:
            content["hashed_id"] = id_field(content["id"])[1]
        if count:
            content["parts"] = count
        yield Document(str(row), encode(content).encode(), row + 1)

    def pieces(self, row: int) -> Iterator[Piece]:
        """Fill pieces with the values of an entity, one at least."""
        piece = Piece()
        for name, relation, value in self.values(row):
            if piece.full():
                yield piece
                piece = Piece()
            if relation is None:
                piece.add(name, value)
            else:
                piece.add_object(relation, value)
        yield piece

    def values(self, row: int) -> Iterator[tuple[str, str | None, str]]:
        """Yield the values of an entity one by one: names, aliases, types, facts."""
        kb, columns = self.kb, self.kb.columns
        first, last = columns["alias.first"][row : row + 2].tolist()
        for alias in range(first, last):
            yield "aliases" if self.is_alias[alias] else "names", None, kb.alias_texts[alias]
        first, last = columns["type.first"][row : row + 2].tolist()
        for position in range(first, last):
            yield "types", None, kb.types[int(columns["type.type"][position])]
        first, last = columns["fact.first"][row : row + 2].tolist()
        for pair in range(first, last):
            relation = kb.relations[int(columns["fact.relation"][pair])]
            begin, end = columns["fact.first_object"][pair : pair + 2].tolist()
            for position in range(begin, end):
                yield "objects", relation, kb.entity_ids[int(columns["fact.object"][position])]


def put_names(document: dict[str, Any], names: list[str], aliases: list[str], forms: set[str]) -> None:
    """Put names into a document, with the terms they are found by."""
    if names:
        document["names"] = names
    if aliases:
        document["aliases"] = aliases
    document["named"] = len(names) + len(aliases)
    document["forms"] = [term_of(form) for form in forms]


def finished(piece: Piece) -> dict[str, Any]:
    """Complete a piece: the terms of its names, the relations of its objects, the facts it holds."""
    content = dict(piece.content)
    texts = content.get("names", []) + content.get("aliases", [])
    if texts:
        content["named"] = len(texts)
        content["forms"] = sorted({term_of(form) for text in texts for form in name_forms(text)})
    if "objects" in content:
        content["relations"] = [relation for relation, _ in content["objects"]]
        content["held"] = piece.held
    return content


def catalog_documents(kb: EmbeddedKB) -> Iterator[Document]:
    """Yield what belongs to the whole knowledge base: its manifest, and the ids of relations and types by row."""
    yield catalog_document("manifest", {"manifest": replace(kb.manifest, files={}).to_record()})
    for name, ids in (("relations", kb.relations), ("types", kb.types)):
        chunks = list(chunked(ids))
        for number, chunk in enumerate(chunks):
            yield catalog_document(f"{name}-{number}", {"ids": chunk, "of": len(chunks)})


def catalog_document(name: str, content: Mapping[str, Any]) -> Document:
    return Document(name, encode({"catalog": content}).encode(), 0)


def chunked(ids: Any) -> Iterator[list[str]]:
    """Cut ids into lists of a bounded size, one at least."""
    chunk: list[str] = []
    size = 0
    for entity_id in ids:
        chunk.append(entity_id)
        size += len(entity_id) + 4
        if size > CATALOG_BYTES:
            yield chunk
            chunk, size = [], 0
    yield chunk
