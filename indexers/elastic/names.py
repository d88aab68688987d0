"""Names on a cluster: who bears a form, and how many names hold a word, together in one request and remembered."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kbtools.indexers.elastic.documents import is_counted, term_of
from kbtools.indexers.elastic.entity_cache import Entities, Entity
from kbtools.indexers.elastic.name_documents import unpack
from kbtools.indexers.elastic.searches import TERMS_AT_ONCE, Cache, count_search, cut, terms_search
from kbtools.kb.contract import NameMatch, match_kind
from kbtools.text.name_forms import name_forms

FORMS_REMEMBERED = 50_000
WORDS_REMEMBERED = 100_000
"""Forms and words that are kept, twice as many at most: those of some thousand questions of 40 n-grams."""

forms_of = lru_cache(FORMS_REMEMBERED)(name_forms)


class Names:
    """The names under forms, and the number of names that hold a word."""

    def __init__(self, entities: Entities, index: str) -> None:
        self.entities, self.searches, self.index = entities, entities.searches, index
        self.matches: Cache[str, Sequence[NameMatch]] = Cache(FORMS_REMEMBERED)
        self.frequencies: Cache[str, int] = Cache(WORDS_REMEMBERED)

    def fetch(self, forms: Sequence[str]) -> dict[str, Sequence[NameMatch]]:
        """Find the names under forms, none for some: those remembered, and the others in one request.

        It also tells how many names hold each of their words.
        """
        unknown = self.matches.missing(filter(None, forms))
        words = self.frequencies.missing(word for form in unknown for word in form.split(" ") if is_counted(word))
        return self.find(forms, words=words)

    def find(self, forms: Sequence[str], *, words: Sequence[str] = ()) -> dict[str, Sequence[NameMatch]]:
        """Find the names under forms, and the number of names that hold some words."""
        matches: dict[str, Sequence[NameMatch]] = {}
        unknown = []
        for form in dict.fromkeys(forms):
            known = self.matches.get(form)
            if known is not None:
                matches[form] = known
            elif form:
                unknown.append(form)
        if not unknown:
            return matches
        searches = [terms_search("forms", terms) for terms in cut([term_of(form) for form in unknown], TERMS_AT_ONCE)]
        counts = [(self.index, count_search(chunk)) for chunk in cut(words, TERMS_AT_ONCE)]
        # Entities and counts of words go out in one request, answered in the order they were asked.
        answers = self.searches.run([(self.entities.index, body) for body in searches] + counts)
        hits = [hit for answer, body in zip(answers, searches, strict=False) for hit in self.all_hits(answer, body)]
        self.note_counts(answers[len(searches) :])
        return matches | self.note_matches(unknown, hits)

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
        form_set = set(forms)
        groups: dict[str, dict[tuple[int, str], list[int]]] = {}
        for hit in hits:
            source = hit["_source"]
            row = source["row"]
            if source["part"] == 0:
                self.entities.remember(source)
            for field in ("names", "aliases"):
                for text in source.get(field, ()):
                    for form, rewriting in forms_of(text).items():
                        if form in form_set:
                            kind = match_kind(rewriting, is_alias=field == "aliases")
                            groups.setdefault(form, {}).setdefault((kind, text), []).append(row)
        matches: dict[str, Sequence[NameMatch]] = {}
        for form in forms:
            matches[form] = tuple(
                NameMatch.of_kind(kind, text, np.array(sorted(set(rows)), dtype=np.uint32))
                for (kind, text), rows in sorted(groups.get(form, {}).items())
            )
            self.matches.put(form, matches[form])
        return matches

    def frequency(self, words: Sequence[str]) -> list[int]:
        """Count the names that hold each word."""
        counts = {word: self.frequencies.get(word) for word in words if is_counted(word)}
        unknown = [word for word, count in counts.items() if count is None]
        if unknown:
            searches = [(self.index, count_search(chunk)) for chunk in cut(unknown, TERMS_AT_ONCE)]
            counts |= self.note_counts(self.searches.run(searches))
        return [counts.get(word) or 0 for word in words]

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
        catalog, rows_by_place = self.entities.catalog, self.entities.catalog.rows_by_place
        for row, entity_id, name, relations, types, *known, _ in bearers:
            if rows_by_place:
                relations = sorted(rows_by_place["relations"][place] for place in relations)
                types = sorted(rows_by_place["types"][place] for place in types)
            self.entities.known.put(row, Entity(entity_id, name, tuple(relations), tuple(types), *known))
        for word, count in counts:
            if word not in catalog.recounted:
                self.frequencies.put(word, count)
        self.matches.put(
            source["form"],
            tuple(NameMatch.of_kind(kind, text, np.array(rows, dtype=np.uint32)) for kind, text, rows in matches),
        )
