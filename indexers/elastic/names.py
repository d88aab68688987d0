"""Names on a cluster: which entities bear a form, and how many names hold a word, in one request and remembered."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kbtools.indexers.elastic.documents import is_counted, term_of
from kbtools.indexers.elastic.entities import Entities
from kbtools.indexers.elastic.searches import Cache, count_search, cut, terms_search
from kbtools.kb.contract import NameMatch, match_kind
from kbtools.text.name_forms import name_forms

TERMS_AT_ONCE = 4_000
"""Forms or words in one search; the cluster's own limit is 65,536."""

KEPT_FORMS, KEPT_WORDS = 50_000, 100_000
"""Forms and words that are remembered, twice as many at most: those of some thousand questions of 40 n-grams."""

forms_of = lru_cache(KEPT_FORMS)(name_forms)


class Names:
    """The names under forms, and the number of names that hold a word."""

    def __init__(self, entities: Entities, index: str) -> None:
        self.entities, self.searches, self.index = entities, entities.searches, index
        self.matches: Cache[str, Sequence[NameMatch]] = Cache(KEPT_FORMS)
        self.frequencies: Cache[str, int] = Cache(KEPT_WORDS)

    def lookup(self, forms: Sequence[str]) -> dict[str, Sequence[NameMatch]]:
        """Return the names under forms, none for some: those remembered, and the others in one request.

        The request counts the names that hold each of their words, too, which the pruners ask for next.
        """
        matches = {form: self.matches.get(form) for form in forms if form}
        unknown = [form for form, own in matches.items() if own is None]
        if unknown:
            words = self.frequencies.missing(word for form in unknown for word in form.split(" ") if is_counted(word))
            searches = [terms_search("forms", terms) for terms in cut(list(map(term_of, unknown)), TERMS_AT_ONCE)]
            # Entities and counts of words go out in one request, answered in the order of the searches.
            answers = self.searches.run([*((self.entities.index, body) for body in searches), *self.counts_of(words)])
            self.note_counts(answers[len(searches) :])
            hits = [hit for answer, body in zip(answers, searches, strict=False) for hit in self.all_hits(answer, body)]
            matches |= self.note_matches(unknown, hits)
        return {form: own for form, own in matches.items() if own}

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
        wanted = set(forms)
        groups: dict[str, dict[tuple[int, str], list[int]]] = {}
        for hit in hits:
            source = hit["_source"]
            self.entities.note(source)
            for field in ("names", "aliases"):
                for text in source.get(field, ()):
                    for form, rewriting in forms_of(text).items():
                        if form in wanted:
                            kind = match_kind(rewriting, is_alias=field == "aliases")
                            groups.setdefault(form, {}).setdefault((kind, text), []).append(source["row"])
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
            counts |= self.note_counts(self.searches.run(list(self.counts_of(unknown))))
        return [counts.get(word) or 0 for word in words]

    def counts_of(self, words: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the searches that count words."""
        for chunk in cut(words, TERMS_AT_ONCE):
            yield self.index, count_search(chunk)

    def note_counts(self, answers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Read how many names hold each word, and remember it."""
        counts = {
            word: int(bucket["doc_count"])
            for answer in answers
            for word, bucket in answer["aggregations"]["words"]["buckets"].items()
        }
        for word, count in counts.items():
            self.frequencies.put(word, count)
        return counts
