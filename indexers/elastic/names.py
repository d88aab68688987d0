"""Names: the entities behind forms, and how many names hold a word, together in one request; remembered."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kbtools.indexers.elastic.cache import Cache
from kbtools.indexers.elastic.documents import term_of
from kbtools.indexers.elastic.entities import Entities, Entity
from kbtools.indexers.elastic.forms import unpack
from kbtools.indexers.elastic.queries import TERMS_AT_ONCE, count_search, cut, is_counted, terms_search
from kbtools.kb.contract import NameMatch
from kbtools.text.name_forms import name_forms
from kbtools.text.rungs import Form

FORMS_REMEMBERED = 50_000
WORDS_REMEMBERED = 100_000

forms_of = lru_cache(50_000)(name_forms)


class Names:
    """Find the names under forms, and count those that hold a word, in the index of names."""

    def __init__(self, entities: Entities, index: str) -> None:
        self.entities, self.searches, self.index = entities, entities.searches, index
        self.matches: Cache[str, Sequence[NameMatch]] = Cache(FORMS_REMEMBERED)
        self.frequencies: Cache[str, int] = Cache(WORDS_REMEMBERED)

    def fetch(self, forms: Sequence[str]) -> dict[str, Sequence[NameMatch]]:
        """Find the names under forms, none for some: those remembered, and the others in one request."""
        found: dict[str, Sequence[NameMatch]] = {}
        unknown = []
        for form in dict.fromkeys(forms):
            matches = self.matches.get(form)
            if matches is not None:
                found[form] = matches
            elif form:
                unknown.append(form)
        if not unknown:
            return found
        words = self.frequencies.missing(word for form in unknown for word in form.split(" ") if is_counted(word))
        searches = [terms_search("forms", terms) for terms in cut([term_of(form) for form in unknown], TERMS_AT_ONCE)]
        counts = [(self.index, count_search(chunk)) for chunk in cut(words, TERMS_AT_ONCE)]
        answers = self.searches.run([(self.entities.index, body) for body in searches] + counts)
        hits = [hit for answer, body in zip(answers, searches, strict=False) for hit in self.all_hits(answer, body)]
        self.note_counts(answers[len(searches) :])
        found |= self.note_matches(unknown, hits)
        return found

    def all_hits(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Yield the hits of a search by row, further pages too."""
        while True:
            hits = answer["hits"]["hits"]
            yield from hits
            if len(hits) < body["size"]:
                return
            body = body | {"search_after": hits[-1]["sort"]}
            (answer,) = self.searches.run([(self.entities.index, body)])

    def note_matches(self, forms: list[str], hits: list[dict[str, Any]]) -> dict[str, Sequence[NameMatch]]:
        """Group hits by form, kind and spelling, as the embedded index keeps them; remember them and the entities."""
        asked = set(forms)
        groups: dict[str, dict[tuple[Form, str], list[int]]] = {}
        for hit in hits:
            source = hit["_source"]
            row = source["row"]
            if source["part"] == 0:
                self.entities.remember(source)
            for text in source.get("names", []) + source.get("aliases", []):
                for form, kind in forms_of(text).items():
                    if form in asked:
                        groups.setdefault(form, {}).setdefault((kind, text), []).append(row)
        found: dict[str, Sequence[NameMatch]] = {}
        for form in forms:
            found[form] = tuple(
                NameMatch(text, kind, np.array(sorted(set(rows)), dtype=np.uint32))
                for (kind, text), rows in sorted(groups.get(form, {}).items())
            )
            self.matches.put(form, found[form])
        return found

    def frequency(self, words: Sequence[str]) -> list[int]:
        """Count the names that hold each word."""
        found = {word: self.frequencies.get(word) for word in words if is_counted(word)}
        unknown = [word for word, count in found.items() if count is None]
        if unknown:
            counts = [(self.index, count_search(chunk)) for chunk in cut(unknown, TERMS_AT_ONCE)]
            found |= self.note_counts(self.searches.run(counts))
        return [found.get(word) or 0 for word in words]

    def note_counts(self, answers: Iterable[dict[str, Any]]) -> dict[str, int]:
        """Read how many names hold each word, and remember it."""
        counts = {
            word: int(bucket["doc_count"])
            for answer in answers
            for word, bucket in answer["aggregations"]["words"]["buckets"].items()
        }
        for word, count in counts.items():
            self.frequencies.put(word, count)
        return counts

    def note_linked(self, source: dict[str, Any]) -> None:
        """Remember what the document of a form says of its bearers; it says nothing where they are many."""
        if "linked" not in source:
            return
        matches, bearers, counts = unpack(source["linked"])
        for row, entity_id, name, relations, types, facts in bearers:
            self.entities.known.put(row, Entity(entity_id, name, tuple(relations), tuple(types), facts))
        for word, count in counts:
            self.frequencies.put(word, count)
        found = (NameMatch(text, Form(kind), np.array(rows, dtype=np.uint32)) for kind, text, rows in matches)
        self.matches.put(source["form"], tuple(found))
