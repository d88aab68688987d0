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

from kbtools.indexers.column_files import release_pages
from kbtools.indexers.elastic.documents import LONGEST_TERM, Document, word_term
from kbtools.indexers.embedded import EmbeddedKB
from kbtools.indexers.form_store import form_key, is_normal, read_group_lists
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

BLOCK, STRETCH = 4_000, 250
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
    forms = enumerate(islice(stored_forms(kb), first, last), first)
    while block := list(islice(forms, BLOCK)):
        matches = {
            place: read_group_lists(value, kb.alias_texts)
            for place, (form, value) in block
            if is_normal(value) and len(form) <= LONGEST_NAME and len(value) <= 4 * MOST_BEARING
        }
        bearers = read_bearers(kb, {row for groups in matches.values() for _, _, rows in groups for row in rows})
        words = {place: words_of(form, matches[place]) for place, (form, _) in block if place in matches}
        counted = list({word for of_form in words.values() for word in of_form})
        counts = dict(zip(counted, kb.name_frequency(counted), strict=True))
        for place, (form, value) in block:
            if is_normal(value):
                linked, popularity = None, 0
                if place in matches:
                    frequencies = [(word, counts[word]) for word in sorted(words[place])]
                    listed = [
                        bearers[row] for row in dict.fromkeys(row for _, _, rows in matches[place] for row in rows)
                    ]
                    popularity = max([bearer[-1] for bearer in listed])
                    linked = link(matches[place], listed, frequencies)
                elif len(form) <= LONGEST_NAME:
                    (popularity,) = kb.names_of_bearers([form])
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


def words_of(form: str, matches: Sequence[Match]) -> set[str]:
    """Gather the words of the names under a form."""
    words = set()
    for name, kind, _ in matches:
        words.update((form if kind <= MOST_NORMAL else normal_form(name)).split(" "))
    return words


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
