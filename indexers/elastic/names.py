"""Names on a cluster: the entities with a form, the number of names with a word, and the names similar to a form.

Three searches recall names similar to a form: whole names within two edits; names that share trigrams; names that share
words, or the neighbours of words that no name has. If edits may suffice, the first search is made alone, and the others
only for the remaining forms. The cluster's scores only decide what is recalled; the order is that of the embedded
index. All answers are cached.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kbtools.indexers.elastic.documents import is_counted, term_of
from kbtools.indexers.elastic.mapping import ENTITIES, NAMES
from kbtools.indexers.elastic.searches import Cache, Searches, count_search, cut, terms_search
from kbtools.kb.contract import NameMatch, SimilarName, match_kind
from kbtools.linking.near_ranking import Bearer
from kbtools.linking.similarity import LONGEST_NAME, edits_suffice, has_neighbours, may_settle, rescore, within_edits
from kbtools.text.variants import name_forms

TERMS_AT_ONCE = 4_000
"""Forms or words in one search; the cluster's limit is 65,536."""

_KEPT_FORMS, _KEPT_WORDS = 50_000, 100_000
"""Forms and words cached, at most twice as many: those of some thousand questions with 40 n-grams."""

_RECALLED = 100
"""Names recalled by each search for trigrams and words: five times the twenty that linking needs, since only rescoring
orders them.
"""

_NEIGHBOURS = 1_000
"""Names within two edits recalled, as many as from a folder: names of six letters have hundreds."""

_EXPANSIONS = 200
"""Words to which an edit may expand; the cluster's default of 50 loses names."""

_SHOWN = ["form", "popularity", "bearer"]
"""The fields returned with a recalled form, from columns: its source is not read."""

_KEPT_SIMILAR = 1_000
"""Forms whose similar names are cached, at most twice as many."""

_Recalled = dict[str, Bearer]
"""Forms of names, each with its entity with the most names."""

_forms_of = lru_cache(_KEPT_FORMS)(name_forms)


class Names:
    """The names equal or similar to forms, and the number of names with a word.

    `count` is the number of all forms of names; `note` is called with each entity in an answer.
    """

    def __init__(
        self, searches: Searches, indexes: Mapping[str, str], *, count: int, note: Callable[[dict[str, Any]], None]
    ) -> None:
        self.searches, self.count, self.note = searches, count, note
        self.entities, self.index = indexes[ENTITIES], indexes[NAMES]
        self.matches: Cache[str, Sequence[NameMatch]] = Cache(_KEPT_FORMS)
        self.frequencies: Cache[str, int] = Cache(_KEPT_WORDS)
        self.known: Cache[tuple[str, int, float, bool], list[SimilarName]] = Cache(_KEPT_SIMILAR)

    def lookup(self, forms: Sequence[str]) -> dict[str, Sequence[NameMatch]]:
        """Return the names under forms, empty for some: cached ones, and the others in one request.

        The request also counts the names with each of their words, which the pruners need next.
        """
        matches = {form: self.matches.get(form) for form in forms if form}
        unknown = [form for form, known in matches.items() if known is None]
        if unknown:
            words = self.frequencies.missing(word for form in unknown for word in form.split(" ") if is_counted(word))
            searches = [terms_search("forms", terms) for terms in cut(list(map(term_of, unknown)), TERMS_AT_ONCE)]
            # Entities and counts of words in one request; its answers are in the order of the searches.
            answers = self.searches.run([*((self.entities, body) for body in searches), *self.counts_of(words)])
            self.note_counts(answers[len(searches) :])
            hits = [hit for answer, body in zip(answers, searches, strict=False) for hit in self.all_hits(answer, body)]
            matches |= self.note_matches(unknown, hits)
        return {form: known for form, known in matches.items() if known}

    def all_hits(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Yield the hits of a search by row, including further pages."""
        while True:
            hits = answer["hits"]["hits"]
            yield from hits
            if len(hits) < body["size"]:
                return
            body = body | {"search_after": hits[-1]["sort"]}
            (answer,) = self.searches.run([(self.entities, body)])

    def note_matches(self, forms: list[str], hits: list[dict[str, Any]]) -> dict[str, Sequence[NameMatch]]:
        """Group hits by form, kind and spelling, as the embedded index does; cache them and the entities."""
        wanted = set(forms)
        groups: dict[str, dict[tuple[int, str], list[int]]] = {}
        for hit in hits:
            source = hit["_source"]
            self.note(source)
            for field in ("names", "aliases"):
                for text in source.get(field, ()):
                    for form, rewriting in _forms_of(text).items():
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
        """Count the names with each word."""
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
        """Read the number of names with each word, and cache it."""
        counts = {
            word: int(bucket["doc_count"])
            for answer in answers
            for word, bucket in answer["aggregations"]["words"]["buckets"].items()
        }
        for word, count in counts.items():
            self.frequencies.put(word, count)
        return counts

    def similar(self, forms: Sequence[str], *, limit: int, cutoff: float, edits_only: bool) -> list[list[SimilarName]]:
        """Return the names similar to forms: cached ones, and the others recalled together and rescored."""
        known = {form: self.known.get((form, limit, cutoff, edits_only)) for form in forms}
        unknown = [form for form, similar in known.items() if similar is None]
        # No name is similar to the empty form or to a form longer than all names that are compared.
        recallable = [form for form in unknown if form and len(form) <= LONGEST_NAME]
        recalled = self.within_edits(recallable) if edits_only else self.recall_all(recallable, cutoff=cutoff)
        for form in unknown:
            near = recalled.get(form, {})
            known[form] = similar = _rescored(form, near, limit=limit, cutoff=cutoff, names=self.count)
            self.known.put((form, limit, cutoff, edits_only), similar)
        return [list(known[form] or ()) for form in forms]

    def within_edits(self, forms: Sequence[str]) -> dict[str, _Recalled]:
        """Recall the names within edits."""
        recalled = self.recall({form: [_whole_search(form)] for form in forms})
        return {form: {name: near[name] for name in within_edits(form, list(near))} for form, near in recalled.items()}

    def recall_all(self, forms: Sequence[str], *, cutoff: float) -> dict[str, _Recalled]:
        """Recall names by every search, or by edits alone if these suffice."""
        recalled: dict[str, _Recalled] = {form: {} for form in forms}
        whole = {form: [_whole_search(form)] for form in forms}
        if may_settle(cutoff=cutoff, names=self.count):
            recalled = self.recall(whole)
            whole = {
                form: []
                for form, near in recalled.items()
                if not edits_suffice(form, near, cutoff=cutoff, names=self.count)
            }
        words = list({word for form in whole for word in form.split(" ")})
        known = {word for word, count in zip(words, self.frequency(words), strict=True) if count}
        further = self.recall({form: [*searches, *_shared_searches(form, known)] for form, searches in whole.items()})
        return recalled | {form: recalled[form] | names for form, names in further.items()}

    def recall(self, searches_of: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, _Recalled]:
        """Run the searches of forms in one request; return the forms of names that each recalls."""
        bodies = [(self.index, body) for bodies in searches_of.values() for body in bodies]
        answers = iter(self.searches.run(bodies))
        return {
            form: {name: bearer for _ in bodies for name, bearer in _recalled_forms(next(answers))}
            for form, bodies in searches_of.items()
        }


def _rescored(form: str, near: _Recalled, *, limit: int, cutoff: float, names: int) -> list[SimilarName]:
    """Rescore and order the names recalled for a form."""
    return rescore(
        form, near, limit=limit, cutoff=cutoff, names=names, bearers=lambda forms: [near[name] for name in forms]
    )


def _shared_searches(form: str, known: Collection[str]) -> list[dict[str, Any]]:
    """Return the searches for names that share trigrams or words; `known` are its words that some name has."""
    words = [_word_query(word, word in known) for word in form.split(" ")]
    return [search({"match": {"trigrams": form}}), search({"bool": {"should": words}})]


def _whole_search(form: str) -> dict[str, Any]:
    """Return the search for whole names within two edits; the first letter may differ, and a swap counts as one."""
    fuzzy = {"value": form, "fuzziness": 2, "prefix_length": 0, "max_expansions": _NEIGHBOURS, "transpositions": True}
    return search({"fuzzy": {"form": fuzzy}}, size=_NEIGHBOURS)


def search(query: dict[str, Any], *, size: int = _RECALLED) -> dict[str, Any]:
    """Return a search that reads columns alone: an id would be decompressed with the documents around it."""
    shown = {"_source": False, "stored_fields": "_none_", "docvalue_fields": _SHOWN}
    return {"size": size, "track_total_hits": False, **shown, "query": query}


def _word_query(word: str, known: bool) -> dict[str, Any]:
    """Return a query for a word, or for its neighbours if no name has it."""
    if known or not has_neighbours(word):
        return {"term": {"words": word}}
    fuzzy = {"value": word, "fuzziness": 1, "prefix_length": 0, "max_expansions": _EXPANSIONS, "boost": 8}
    return {"fuzzy": {"words": fuzzy}}


def _recalled_forms(answer: dict[str, Any]) -> Iterator[tuple[str, Bearer]]:
    """Yield the forms that a search recalled with their bearers; the longest names have neither."""
    for hit in answer["hits"]["hits"]:
        if fields := hit.get("fields"):
            yield fields["form"][0], Bearer(fields["popularity"][0], fields["bearer"][0])
