"""From the forms of an embedded knowledge base to documents: one for each normal form, with those who bear it.

So what fuzzy recall finds need not be looked up again.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from kbtools.forms import name_forms
from kbtools.indexers.elastic.documents import LONGEST_TERM, Document, encode
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.indexers.forms import form_key, is_normal, read_groups
from kbtools.indexers.pages import release_pages
from kbtools.knowledge import EntityRows, NameMatch
from kbtools.normalise import normal_form
from kbtools.similarity import LONGEST_NAME

MOST_BEARING = 500
"""Bearers, with their relations and types, that a document lists; a form of more is looked up like any other."""

BLOCK = 2_000

RELEASED = 200_000
"""Entries after which the pages of the exact index are given back."""

Read = TypeVar("Read")


def form_documents(kb: EmbeddedKB, first: int, last: int) -> Iterator[Document]:
    """Yield a document for each normal form of the names, among the stored forms `first` to `last - 1`."""
    forms = enumerate(islice(stored_forms(kb), first, last), first)
    while block := list(islice(forms, BLOCK)):
        matches = {
            place: read_groups(value, kb.alias_texts)
            for place, (form, value) in block
            if is_normal(value) and len(form) <= LONGEST_NAME and len(value) <= 4 * MOST_BEARING
        }
        release_pages(kb.path)
        bearers = read_bearers(kb, [match.entities for found in matches.values() for match in found])
        for place, (form, value) in block:
            if is_normal(value):
                document = form_document(form) | linked(kb, matches.get(place, ()), bearers)
                yield Document(str(place), encode(document).encode(), place + 1)


def form_document(form: str) -> dict[str, Any]:
    """Write a form: whole, so that it can be found fuzzily, unless it is too long; then its words, to be counted."""
    if len(form) <= LONGEST_NAME:
        return {"form": form}
    return {"words": " ".join(word_term(word) for word in form.split(" ") if len(word.encode()) <= LONGEST_TERM)}


def linked(kb: EmbeddedKB, matches: Sequence[NameMatch], bearers: Mapping[int, list[Any]]) -> dict[str, Any]:
    """Write what a form links to, unless it is too much: names by kind and spelling, their bearers, their words."""
    found = [bearers[row] for row in sorted({row for match in matches for row in match.entities.tolist()})]
    if not 0 < sum(1 + len(relations) + len(types) for _, _, _, relations, types, _ in found) <= MOST_BEARING:
        return {}
    words = sorted({word for match in matches for word in normal_form(match.name).split(" ")})
    return {
        "matches": [[int(match.form), match.name, match.entities.tolist()] for match in matches],
        "bearers": found,
        "counts": [[word, count] for word, count in zip(words, kb.name_frequency(words), strict=True)],
    }


def read_bearers(kb: EmbeddedKB, rows: Sequence[EntityRows]) -> dict[int, list[Any]]:
    """Read row, id, name, relations, types and number of facts of entities, giving back pages file by file."""
    if not rows:
        return {}
    every: EntityRows = np.unique(np.concatenate(rows))

    def read(column: Callable[[EntityRows], Read]) -> Read:
        values = column(every)
        release_pages(kb.path)
        return values

    relations, types = (
        [run.tolist() for run in np.split(grouped.values, grouped.starts[1:-1])]
        for grouped in (read(kb.relations_of), read(kb.types_of))
    )
    columns = (every.tolist(), read(kb.ids), read(kb.names), relations, types, read(kb.fact_counts).tolist())
    return {row[0]: list(row) for row in zip(*columns, strict=True)}


def word_term(word: str) -> str:
    """Give the term that a word is counted by; the whitespace tokenizer cuts what is longer than 255 characters."""
    return word if len(word) <= LONGEST_NAME else hashlib.sha256(word.encode()).hexdigest()


def count_normal_forms(kb: EmbeddedKB) -> int:
    """Count the normal forms of the names."""
    return sum(is_normal(value) for _, value in read_forms(kb))


def stored_forms(kb: EmbeddedKB) -> Iterator[tuple[str, bytes]]:
    """Yield every form once, in the order of the keys, with what is stored under it."""
    for key, value in read_forms(kb):
        if b"\0" in key:
            name = kb.alias_texts[int.from_bytes(value[4:8], "little")]
            yield next(form for form in name_forms(name) if form_key(form) == key), value
        else:
            yield key.decode(), value


def read_forms(kb: EmbeddedKB) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the exact index, giving back what was read."""
    for place, entry in enumerate(kb.forms.entries()):
        if place % RELEASED == 0:
            release_pages(kb.path)
        yield entry
