"""From names that an update changed to documents: of every normal form of theirs, with those who bear it by now."""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from typing import Any

from kbtools.indexers.elastic.documents import Document
from kbtools.indexers.elastic.entity_cache import Entity
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.mapping import NAMES
from kbtools.indexers.elastic.name_documents import MOST_BEARING, Match, form_source, link, words_of
from kbtools.indexers.elastic.searches import PAGE, cut
from kbtools.kb.contract import NameMatch, match_kind
from kbtools.linking.similarity import LONGEST_NAME
from kbtools.text.name_forms import name_forms
from kbtools.text.rungs import Form

Matches = Mapping[str, Sequence[NameMatch]]


@dataclass(slots=True)
class FormChanges:
    """The documents of forms that an update writes and deletes, and the differences that they make.

    `recounted` are the words of the normal forms that came or went; `stored` counts the forms of every kind.
    """

    documents: list[Document] = field(default_factory=list)
    recounted: set[str] = field(default_factory=set)
    lengths: set[int] = field(default_factory=set)
    normal: int = 0
    stored: int = 0


def change_forms(before: ElasticKB, after: ElasticKB, texts: Iterable[str]) -> FormChanges:
    """Compare the forms of names in two versions, the second of which has new documents of entities alone."""
    forms = sorted({form for text in texts for form in name_forms(text)})
    old, new = ({form: own for form, own in kb.named.find(forms).items() if own} for kb in (before, after))
    changes = FormChanges(normal=0, stored=len(new) - len(old))
    was, is_now = (
        {form for form, matches in found.items() if any(match.form is Form.NORMAL for match in matches)}
        for found in (old, new)
    )
    came, stay, went = sorted(is_now - was), sorted(is_now & was), sorted(was - is_now)
    changes.normal = len(came) - len(went)
    changes.recounted.update(word for form in came + went for word in form.split(" "))
    changes.lengths.update(form.count(" ") + 1 for form in new)
    keys = {form: f"form-{sha256(form.encode()).hexdigest()}" for form in came} | find_keys(before, stay + went)
    changes.documents += [Document(keys[form], b"", 0) for form in went]
    changes.documents += write_forms(
        after, {form: new[form] for form in came + stay}, keys, stale=before.catalog.recounted | changes.recounted
    )
    return changes


def find_keys(kb: ElasticKB, forms: Sequence[str]) -> dict[str, str]:
    """Find the ids of the documents of forms."""
    index = kb.version.indexes[NAMES]
    keys: dict[str, str] = {}
    bodies = [
        {"size": PAGE, "_source": ["form"], "query": {"terms": {"form": chunk}}, "track_total_hits": False}
        for chunk in cut([form for form in forms if len(form) <= LONGEST_NAME], PAGE)
    ]
    for answer in kb.searches.run([(index, body) for body in bodies]):
        keys |= {hit["_source"]["form"]: hit["_id"] for hit in answer["hits"]["hits"]}
    for form in forms:
        if len(form) > LONGEST_NAME:
            keys[form] = find_key_by_words(kb, form)
    return keys


def find_key_by_words(kb: ElasticKB, form: str) -> str:
    """Find the document of a form that is too long to be a term; any of equal ones will do."""
    words = json.loads(form_source(form))["words"]
    query = {"bool": {"filter": [{"term": {"words": word}} for word in dict.fromkeys(words.split(" ")) if word]}}
    body = {"size": PAGE, "_source": ["words"], "query": query, "track_total_hits": False}
    (answer,) = kb.searches.run([(kb.version.indexes[NAMES], body)])
    return next(str(hit["_id"]) for hit in answer["hits"]["hits"] if hit["_source"].get("words") == words)


def write_forms(kb: ElasticKB, matches_of: Matches, keys: Mapping[str, str], *, stale: Set[str]) -> Iterable[Document]:
    """Yield the documents of normal forms, with those who bear them where they are not too many.

    Words that are `stale` are counted anew by who asks for them.
    """
    rows = {form: list(dict.fromkeys(chain(*(match.entities.tolist() for match in matches))))
            for form, matches in matches_of.items() if len(form) <= LONGEST_NAME}  # fmt: skip
    every = list(dict.fromkeys(chain(*rows.values())))
    names = count_names(kb, every)
    few = [form for form, bearers in rows.items() if len(bearers) + 2 * len(matches_of[form]) <= MOST_BEARING]
    known = list(dict.fromkeys(row for form in few for row in rows[form]))
    bearers = dict(zip(known, kb.entities.at(known), strict=True))
    groups: dict[str, list[Match]] = {
        form: [
            (match.name, match_kind(match.form, is_alias=match.is_alias), match.entities.tolist())
            for match in matches_of[form]
        ]
        for form in few
    }
    words = {form: [word for word in words_of(form, groups[form]) if word not in stale] for form in few}
    counted = list({word for of_form in words.values() for word in of_form})
    counts = dict(zip(counted, kb.name_frequency(counted), strict=True))
    places = Places(kb)
    for form in matches_of:
        linked = None
        if form in groups:
            listed = [places.record(row, bearers[row], names[row]) for row in rows[form]]
            linked = link(groups[form], listed, [(word, counts[word]) for word in words[form]])
        popularity = max((names[row] for row in rows.get(form, ())), default=0)
        yield Document(keys[form], form_source(form, popularity, linked), 0)


class Places:
    """The places of relations and types in the stored lists, by which documents of forms tell them."""

    def __init__(self, kb: ElasticKB) -> None:
        stored = kb.catalog.stored
        places = {kind: {label: place for place, label in enumerate(labels)} for kind, labels in stored.items()}
        self.relations = [places["relations"][relation] for relation in kb.relations]
        self.types = [places["types"][kind] for kind in kb.types]

    def record(self, row: int, entity: Entity, names: int) -> tuple[Any, ...]:
        """Write a bearer as a document of a form lists it."""
        relations = [self.relations[relation] for relation in entity.relations]
        types = [self.types[kind] for kind in entity.types]
        return row, entity.id, entity.name, relations, types, entity.facts, entity.facts_in, entity.description, names


def count_names(kb: ElasticKB, rows: Sequence[int]) -> dict[int, int]:
    """Count the names and aliases of entities."""
    counts = dict.fromkeys(rows, 0)
    for chunk in cut(rows, PAGE):
        for source in kb.entities.sources(chunk, "named"):
            counts[source["row"]] += source.get("named", 0)
    return counts
