"""From the names of an embedded knowledge base to documents: one for each normal form, with those who bear it.

So a name that fuzzy recall finds need not be looked up again.
"""

import base64
from binascii import b2a_base64
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from json.encoder import encode_basestring
from typing import Any

import msgpack
import numpy as np

from kbtools.indexers.elastic.documents import LONGEST_TERM, Document, word_term
from kbtools.indexers.folder.column_files import release_pages
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.form_store import form_key, is_normal, read_all_groups
from kbtools.kb.contract import match_kind
from kbtools.kb.rows import Grouped
from kbtools.linking.similarity import LONGEST_NAME
from kbtools.text.name_forms import name_forms
from kbtools.text.normaliser import normal_form
from kbtools.text.rungs import Form

Match = tuple[str, int, list[int]]
"""A name, the form that it is found by, and the rows of those who bear it."""

MOST_BEARING = 500
"""Bearers, with their relations and types, that a document lists; a form of more is looked up like any other."""

BLOCK, STRETCH = 2_000, 250
"""Forms read together, and bearers read between two looks at the memory that their pages take."""

RESIDENT = 160_000_000
"""Bytes of mapped files beyond which pages are given back: libraries take 110 MB, a small knowledge base the rest."""

MOST_NORMAL = match_kind(Form.NORMAL, is_alias=True)
"""The last of the kinds of matches whose names have the form itself as their normal one."""

RELEASED = 200_000
"""Entries after which the pages of the exact index are given back."""

PACKER = msgpack.Packer()
"""One for all documents, in place of one that `packb` makes for each."""


def name_documents(kb: EmbeddedKB, first: int, last: int) -> Iterator[Document]:
    """Yield a document for each normal form of the names, among the stored forms `first` to `last - 1`."""
    stored = islice(read_forms(kb), first, last)
    for start in range(first, last, BLOCK):
        entries = enumerate(islice(stored, BLOCK), start)
        block = [(place, form_of(kb, key, value), value) for place, (key, value) in entries if is_normal(value)]
        listed = [entry for entry in block if len(entry[1]) <= LONGEST_NAME and len(entry[2]) <= 4 * MOST_BEARING]
        groups = read_all_groups([value for _, _, value in listed], kb.alias_texts)
        matches = {place: own for (place, _, _), own in zip(listed, groups, strict=True)}
        bearers = read_bearers(kb, {row for own in groups for _, _, rows in own for row in rows})
        words = {place: words_of(form, matches[place]) for place, form, _ in listed}
        counted = list({word for of_form in words.values() for word in of_form})
        counts = dict(zip(counted, kb.name_frequency(counted), strict=True))
        for place, form, _ in block:
            linked, popularity = None, 0
            if place in matches:
                own = matches[place]
                rows = own[0][2] if len(own) == 1 else dict.fromkeys(row for _, _, rows in own for row in rows)
                bearing = [bearers[row] for row in rows]
                popularity = max([bearer[-1] for bearer in bearing])
                linked = link(own, bearing, [(word, counts[word]) for word in words[place]])
            elif len(form) <= LONGEST_NAME:
                (popularity,) = kb.popularity([form])
            yield Document(str(place), form_source(form, popularity, linked), place + 1)
        release_pages(kb.path, beyond=RESIDENT)


def form_source(form: str, popularity: int = 0, linked: str | None = None) -> bytes:
    """Write a form: whole, so that it can be found fuzzily, unless it is too long; then its words, to be counted.

    Its popularity is the number of names of that of its bearers that has most. The text stands for an encoder of JSON,
    which would take as long as all the rest.
    """
    if len(form) > LONGEST_NAME:
        words = " ".join(word_term(word) for word in form.split(" ") if len(word.encode()) <= LONGEST_TERM)
        return f'{{"words":{encode_basestring(words)}}}'.encode()
    end = "}" if linked is None else f',"linked":"{linked}"}}'
    return f'{{"form":{encode_basestring(form)},"popularity":{popularity}{end}'.encode()


def words_of(form: str, matches: Sequence[Match]) -> list[str]:
    """List the words of the names under a form."""
    words = set()
    for _, kind, _ in matches:
        if kind <= MOST_NORMAL:
            words.update(form.split(" "))
            break
    for name, kind, _ in matches:
        if kind > MOST_NORMAL:
            words.update(normal_form(name).split(" "))
    return sorted(words)


def link(matches: Sequence[Match], bearers: Sequence[tuple[Any, ...]], counts: Sequence[tuple[str, int]]) -> str | None:
    """Write what a form links to, unless it is too much: names by kind and spelling, their bearers, their words."""
    if sum([1 + len(bearer[3]) + len(bearer[4]) for bearer in bearers]) > MOST_BEARING:
        return None
    return pack([[(kind, name, rows) for name, kind, rows in matches], bearers, counts])


def pack(linked: list[Any]) -> str:
    """Write what a form links to as one value, which costs the cluster nothing to take apart."""
    return b2a_base64(PACKER.pack(linked), newline=False).decode()


def unpack(packed: str) -> list[Any]:
    """Read what a form links to: matches, bearers and counts of words."""
    return list(msgpack.unpackb(base64.b64decode(packed), unicode_errors="surrogatepass"))


def read_bearers(kb: EmbeddedKB, rows: Collection[int]) -> dict[int, tuple[Any, ...]]:
    """Read row, id, name, relations, types, numbers of facts and of incoming facts, description, number of names.

    They are read stretch by stretch, to hold few pages.
    """
    bearers: dict[int, tuple[Any, ...]] = {}
    ascending = np.sort(np.fromiter(rows, dtype=np.uint32, count=len(rows)))
    for start in range(0, len(ascending), STRETCH):
        stretch = ascending[start : start + STRETCH]
        runs = map(runs_of, (kb.relations_of(stretch), kb.types_of(stretch)))
        facts, facts_in, names = (
            count(stretch).tolist() for count in (kb.fact_counts, kb.incoming_counts, kb.alias_counts)
        )
        known = (*runs, facts, facts_in, kb.descriptions(stretch))
        columns = (stretch.tolist(), kb.ids(stretch), kb.names(stretch), *known, names)
        bearers.update(zip(columns[0], zip(*columns, strict=True), strict=True))
        release_pages(kb.path, beyond=RESIDENT)
    return bearers


def runs_of(grouped: Grouped) -> list[list[int]]:
    values = grouped.values.tolist()
    return [values[start:end] for start, end in pairwise(grouped.starts.tolist())]


def count_normal_forms(kb: EmbeddedKB) -> int:
    """Count the normal forms of the names."""
    return sum(is_normal(value) for _, value in read_forms(kb))


def form_of(kb: EmbeddedKB, key: bytes, value: bytes) -> str:
    """Give the form of an entry; that of a long one from the name that it is of."""
    if b"\0" not in key:
        return key.decode()
    name = kb.alias_texts[int.from_bytes(value[4:8], "little")]
    return next(form for form in name_forms(name) if form_key(form) == key)


def read_forms(kb: EmbeddedKB) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the exact index, giving back what was read."""
    for place, entry in enumerate(kb.forms.entries()):
        if place % RELEASED == 0:
            release_pages(kb.path)
        yield entry
