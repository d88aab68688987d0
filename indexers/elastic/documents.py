"""Documents of a cluster: those of entities and of the forms of names, and the terms by which they are found.

A load and an update write the same documents: `documents` and `form_documents` take content read from a folder or
computed from changes. `read_content` does the reverse.

An entity too large for one document is continued in further parts: part 0 has the number of further ones; all parts are
found under the same row. Every value is in exactly one part.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

import msgspec

from kbtools.indexers.folder.language_sets import set_text, spoken
from kbtools.kb.language_tags import SpokenName
from kbtools.linking.near_ranking import Bearer
from kbtools.linking.similarity import LONGEST_NAME
from kbtools.text.variants import name_forms

_LONGEST_TERM = 480
"""Most bytes of a form used as a term; a longer one is replaced by a hash.

The cluster's limit is 32,766. 480 is about the key length of LMDB, 511, beyond which the embedded index hashes too.
"""

_LONGEST_ID = 8000
"""Most characters of an id used as a term: with at most four bytes each they fit in 32,766 bytes."""

MOST_VALUES = 20_000
MOST_BYTES = 4_000_000
"""Most values (names, types, relations, objects and subjects) in one document of an entity, and most bytes.

As many bytes as a bulk request has; a cluster accepts 100 MB by default.
"""

OUTGOING, INCOMING = ("objects", "relations"), ("subjects", "relations_in")
_RELATED = ((*OUTGOING, "held"), (*INCOMING, "held_in"))
"""The fields of an entity's facts as subject and as object: the other ends, a list for each relation; the relations;
and the number of facts in a part.
"""

_HEAD = ("row", "id", "facts", "facts_in", "description", "ranks")
"""The fields of the first part only."""

EntityContent = dict[str, Any]
"""The content of an entity by field, without empty fields: its row and id, its numbers of facts as subject and as
object, `names` and `aliases`, `languages` (a set for each of these, unless they are the default for documents without
sets), the `ranks` of names, `description`, `types`, `objects` (ids) and `subjects` (rows) as pairs of a relation and a
list, `merged`, the hashes of ids merged into it, and the `forms` of its names if already known.
"""

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Document:
    """A document as JSON, empty to delete it, with its id; once stored, everything before `done` is stored too."""

    key: str
    source: bytes
    done: int

    def lines(self) -> bytes:
        """Return its lines in a bulk request: two, or one that deletes the document."""
        if not self.source:
            return b'{"delete":{"_id":"%s"}}\n' % self.key.encode()
        return b'{"index":{"_id":"%s"}}\n%s\n' % (self.key.encode(), self.source)


def documents(contents: Iterable[EntityContent], language: str) -> Iterator[Document]:
    """Yield the documents of entities; `language` is that of names in documents without languages."""
    for content in contents:
        if _size_of(content) <= MOST_VALUES:
            source = msgspec.json.encode(_completed({"part": 0} | content, language))
            if len(source) <= MOST_BYTES:
                yield Document(str(content["row"]), source, content["row"] + 1)
                continue
        yield from parts(content, language)


def _size_of(content: EntityContent) -> int:
    """Count the values of an entity; all languages of a name count as one."""
    named = len(content.get("names", ())) + len(content.get("aliases", ())) + len(content.get("languages", ()))
    related = [len(values) + 1 for name, *_ in _RELATED for _, values in content.get(name, ())]
    return named + len(content.get("types", ())) + sum(related)


def parts(content: EntityContent, language: str) -> Iterator[Document]:
    """Yield the parts of an entity, the first one last: until it is stored, the entity does not exist for readers."""
    row, pieces = content["row"], _fill_pieces(content)
    main = next(pieces)
    count = 0
    for count, piece in enumerate(pieces, 1):
        source = msgspec.json.encode(_completed({"row": row, "part": count} | piece, language))
        yield Document(f"{row}-{count}", source, row)
    head = {name: content[name] for name in (*_HEAD, "merged") if name in content}
    head |= {"part": 0, **({"parts": count} if count else {})}
    yield Document(str(row), msgspec.json.encode(_completed(head | main, language)), row + 1)


def _fill_pieces(content: EntityContent) -> Iterator[EntityContent]:
    """Cut the values of an entity into pieces, at least one, by number and bytes."""
    piece: EntityContent = {}
    count = size = 0
    for name, relation, value, languages in _values_of(content):
        if count >= MOST_VALUES or size >= MOST_BYTES:
            yield piece
            piece, count, size = {}, 0, 0
        run, added = piece.setdefault(name, []), [str(value)]
        if relation is None:
            run.append(value)
        else:
            if not run or run[-1][0] != relation:
                run.append([relation, []])
                added.append(relation)
            run[-1][1].append(value)
        if languages is not None:
            piece.setdefault("languages", []).append(languages)
            added.append(languages)
        count += len(added)
        # An upper bound of the bytes; each text has quotes and a comma.
        size += sum([len(text) + 4 if text.isascii() else 4 * len(text) for text in added])
    yield piece


def _values_of(content: EntityContent) -> Iterator[tuple[str, str | None, str | int, str | None]]:
    """Yield the values of an entity: the field, the relation of a fact, the value, the languages of a name."""
    sets = iter(content.get("languages", ()))
    for name in ("names", "aliases"):
        for text in content.get(name, ()):
            yield name, None, text, next(sets, None)
    for kind in content.get("types", ()):
        yield "types", None, kind, None
    for name, *_ in _RELATED:
        for relation, values in content.get(name, ()):
            for value in values:
                yield name, relation, value, None


def _completed(part: EntityContent, language: str) -> EntityContent:
    """Convert the content of a part into a document: terms of its names and relations, counts, and hashes of ids."""
    texts = part.get("names", []) + part.get("aliases", [])
    if texts:
        drop_usual(part, language)
        part["named"] = len(texts)
        forms = part.get("forms") or [form for text in texts for form in name_forms(text)]
        part["forms"] = list(dict.fromkeys(map(term_of, forms)))
    for related, relations, count in _RELATED:
        if related in part:
            groups = part[related]
            part[relations] = [relation for relation, _ in groups]
            part[related] = ends = [values for _, values in groups]
            part[count] = sum(map(len, ends))
    hashed = part.pop("merged", [])
    if len(part.get("id", "")) > _LONGEST_ID:
        hashed = [*hashed, id_hash(part["id"])]
    if hashed:
        part["hashed_id"] = hashed
    return part


def read_content(stored: Sequence[Mapping[str, Any]], language: str) -> EntityContent:
    """Return the content of an entity from its documents, part 0 first."""
    main = stored[0]
    content: EntityContent = {name: main[name] for name in _HEAD if name in main}
    for name in ("names", "aliases", "types"):
        if values := [value for part in stored for value in part.get(name, ())]:
            content[name] = values
    content["languages"] = [languages for _, languages in _names_with_sets(stored, language)]
    for name, relations, _ in _RELATED:
        groups: dict[str, list[Any]] = {}
        for part in stored:
            for relation, values in facts_in(part, name, relations):
                groups.setdefault(relation, []).extend(values)
        if groups:
            content[name] = [list(group) for group in groups.items()]
    if merged := [term for term in main.get("hashed_id", ()) if term != id_hash(main["id"])]:
        content["merged"] = merged
    return drop_usual(content, language)


def facts_in(document: Mapping[str, Any], ends: str, relations: str) -> Iterator[tuple[str, list[Any]]]:
    """Return the relations in a document with the other ends of their facts, given the fields of both."""
    return zip(document.get(relations, ()), document.get(ends, ()), strict=True)


def drop_usual(content: EntityContent, language: str) -> EntityContent:
    """Omit the languages of names if they are the default for documents without languages."""
    if "languages" in content and content["languages"] == _usual_sets(content, language):
        del content["languages"]
    return content


def _usual_sets(document: Mapping[str, Any], language: str) -> list[str]:
    """Return the set of each name and alias of a document without languages."""
    names, aliases = len(document.get("names", ())), len(document.get("aliases", ()))
    return [set_text({language: False})] * names + [set_text({language: True})] * aliases


def _names_with_sets(stored: Sequence[Mapping[str, Any]], language: str) -> list[tuple[str, str]]:
    """Return the names of an entity with the set of languages of each, aliases last."""
    names: list[tuple[str, str]] = []
    aliases: list[tuple[str, str]] = []
    for document in stored:
        sets = document.get("languages") or _usual_sets(document, language)
        part_names = document.get("names", ())
        names += zip(part_names, sets, strict=False)
        aliases += zip(document.get("aliases", ()), sets[len(part_names) :], strict=True)
    return names + aliases


def names_in(stored: Sequence[Mapping[str, Any]], language: str) -> list[SpokenName]:
    """Return the names of an entity with their languages, aliases last."""
    return [spoken(text, languages) for text, languages in _names_with_sets(stored, language)]


def form_documents(forms: Iterable[tuple[str, Bearer, int]]) -> Iterator[Document]:
    """Yield the document of each normal form, given with its bearer and the row after it.

    The popularity is the number of names of the bearer, the form's entity with the most. The JSON is formatted by hand,
    since an encoder would double the time.
    """
    for form, bearer, done in forms:
        if len(form) > LONGEST_NAME:
            # Fuzzy search does not find it; only its words are counted.
            words = " ".join(word_term(word) for word in form.split(" ") if len(word.encode()) <= _LONGEST_TERM)
            source = f'{{"words":{encode_basestring(words)}}}'
        else:
            source = f'{{"form":{encode_basestring(form)},"popularity":{bearer.names},"bearer":{bearer.row}}}'
        yield Document(key_of_form(form), source.encode(), done)


def key_of_form(form: str) -> str:
    """Return the id of the document of a form: a hash, which the cluster stores in 12 bytes."""
    return urlsafe_b64encode(hashlib.blake2b(form.encode(), digest_size=12).digest()).decode()


def term_of(form: str) -> str:
    """Return the term under which a form is looked up."""
    if len(form) * 4 > _LONGEST_TERM:  # A character takes at most four bytes: short forms need no encoding.
        form_bytes = form.encode()
        if len(form_bytes) > _LONGEST_TERM:
            return "\0" + hashlib.sha256(form_bytes).hexdigest()
    return form


def id_field(entity_id: str) -> tuple[str, str]:
    """Return the field and the term under which an id is looked up."""
    if len(entity_id) <= _LONGEST_ID:
        return "id", entity_id
    return "hashed_id", id_hash(entity_id)


def id_hash(entity_id: str) -> str:
    """Return the term of an id that is too long or was merged into another."""
    return hashlib.sha256(entity_id.encode()).hexdigest()


def word_term(word: str) -> str:
    """Return the term under which a word is counted; the whitespace tokenizer cuts after 255 characters."""
    return word if len(word) <= LONGEST_NAME else hashlib.sha256(word.encode()).hexdigest()


def is_counted(word: str) -> bool:
    """Return whether names with this word are counted."""
    return bool(word) and len(word.encode()) <= _LONGEST_TERM
