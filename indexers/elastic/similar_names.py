"""Names close to a form on a cluster: recalled by searches, rescored as the embedded index does, remembered.

Three searches recall forms: whole names within two edits; names that share trigrams; names that share words, or the
neighbours of words that no name holds. Where edits may suffice the first is made alone, and the others only for forms
that it does not settle. The cluster's scores decide only what is recalled, never the order. The documents of the names
that are kept are read at the end, and what a form links to comes with them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kbtools.indexers.elastic.names import Names
from kbtools.indexers.elastic.searches import PAGE, Cache, cut
from kbtools.kb.contract import SimilarName
from kbtools.linking.similarity import (
    LONGEST_NAME,
    closest,
    edits_suffice,
    has_neighbours,
    may_settle,
    order,
    shortlist,
    within_edits,
)

RECALLED = 100
"""Names that each search by trigrams and words recalls: five times the twenty that linking wants, since only rescoring
orders them."""

NEIGHBOURS = 1_000
"""Names within two edits that are recalled, as many as a folder keeps: of six letters hundreds are that near."""

EXPANSIONS = 200
"""Words that an edit may expand to; the cluster's own 50 loses names."""

REMEMBERED = 1_000
"""Forms whose similar names are kept, twice as many at most."""

Recalled = Mapping[str, Collection[str]]


class SimilarNames:
    """The names close to forms, many forms in one request; `count` is the number of all forms of names."""

    def __init__(self, names: Names, *, count: int) -> None:
        self.names, self.count = names, count
        self.known: Cache[tuple[str, int, float], list[SimilarName]] = Cache(REMEMBERED)

    def to(self, forms: Sequence[str], *, limit: int, cutoff: float) -> list[list[SimilarName]]:
        """Return the names close to several forms: those remembered, and the others in one request."""
        known = {form: self.known.get((form, limit, cutoff)) for form in forms}
        unknown = [form for form, names in known.items() if names is None]
        similar = self.fetch(unknown, limit, cutoff) if unknown else {}
        return [list(similar[form] if (names := known[form]) is None else names) for form in forms]

    def fetch(self, forms: Sequence[str], limit: int, cutoff: float) -> dict[str, list[SimilarName]]:
        """Recall and rescore the names close to forms, and remember them."""
        recalled = self.recall_all(searchable(forms), cutoff=cutoff)
        similar = self.rescored({form: recalled.get(form, ()) for form in forms}, limit=limit, cutoff=cutoff)
        for form, names in similar.items():
            self.known.put((form, limit, cutoff), names)
        return similar

    def within_edits(self, forms: Sequence[str], *, limit: int, cutoff: float) -> list[list[SimilarName]]:
        """Find the names within edits of several forms."""
        recalled = self.recall({form: [whole_search(form)] for form in searchable(forms)})
        near = {form: within_edits(form, list(recalled.get(form, ()))) for form in forms}
        similar = self.rescored(near, limit=limit, cutoff=cutoff)
        return [list(similar[form]) for form in forms]

    def recall_all(self, forms: Sequence[str], *, cutoff: float) -> dict[str, set[str]]:
        """Recall names by every search, or by edits alone where these suffice."""
        recalled: dict[str, set[str]] = {form: set() for form in forms}
        whole = {form: [whole_search(form)] for form in forms}
        if may_settle(cutoff=cutoff, names=self.count):
            recalled = self.recall(whole)
            whole = {
                form: []
                for form, near in recalled.items()
                if not edits_suffice(form, near, cutoff=cutoff, names=self.count)
            }
        words = list({word for form in whole for word in form.split(" ")})
        known = {word for word, count in zip(words, self.names.frequency(words), strict=True) if count}
        further = self.recall({form: [*own, *shared_searches(form, known)] for form, own in whole.items()})
        return recalled | {form: recalled[form] | names for form, names in further.items()}

    def recall(self, searches_of: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, set[str]]:
        """Make the searches for forms, all in one request; give the forms of names that each recalls."""
        bodies = [(self.names.index, body) for bodies in searches_of.values() for body in bodies]
        answers = iter(self.names.searches.run(bodies))
        return {
            form: {name for _ in bodies for name in recalled_forms(next(answers))}
            for form, bodies in searches_of.items()
        }

    def rescored(self, recalled: Recalled, *, limit: int, cutoff: float) -> dict[str, list[SimilarName]]:
        """Order recalled names, whose documents are read in one request."""
        listed = {
            form: shortlist(closest(form, names, cutoff=cutoff, names=self.count), limit=limit)
            for form, names in recalled.items()
        }
        sources = self.read(name.form for names in listed.values() for name in names)
        popularity = popularity_in(sources)
        similar = {form: order(names, limit=limit, popularity=popularity) for form, names in listed.items()}
        for form in dict.fromkeys(name.form for names in similar.values() for name in names):
            self.names.note_linked(sources[form])
        return similar

    def read(self, forms: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Read the documents of forms that were recalled."""
        bodies = [
            {
                "size": len(chunk),
                "track_total_hits": False,
                "_source": ["form", "popularity", "linked"],
                "query": {"constant_score": {"filter": {"terms": {"form": list(chunk)}}}},
            }
            for chunk in cut(list(dict.fromkeys(forms)), PAGE)
        ]
        answers = self.names.searches.run([(self.names.index, body) for body in bodies])
        return {hit["_source"]["form"]: hit["_source"] for answer in answers for hit in answer["hits"]["hits"]}


def searchable(forms: Iterable[str]) -> list[str]:
    """List the forms that names may be similar to, once each."""
    return [form for form in dict.fromkeys(forms) if form and len(form) <= LONGEST_NAME]


def popularity_in(sources: Mapping[str, Mapping[str, Any]]) -> Callable[[Sequence[str]], list[int]]:
    """Look up the popularity of forms in their documents."""
    return lambda forms: [sources[form]["popularity"] for form in forms]


def shared_searches(form: str, known: Collection[str]) -> list[dict[str, Any]]:
    """Write the searches for names that share trigrams or words; `known` are the words of it that some name holds."""
    words = [word_query(word, word in known) for word in form.split(" ")]
    return [search({"match": {"trigrams": form}}), search({"bool": {"should": words}})]


def whole_search(form: str) -> dict[str, Any]:
    """Write the search for whole names within two edits, the first letter too; two letters swapped are one here."""
    fuzzy = {"value": form, "fuzziness": 2, "prefix_length": 0, "max_expansions": NEIGHBOURS, "transpositions": True}
    return search({"fuzzy": {"form": fuzzy}}, size=NEIGHBOURS)


def search(query: dict[str, Any], *, size: int = RECALLED) -> dict[str, Any]:
    return {"size": size, "track_total_hits": False, "_source": False, "docvalue_fields": ["form"], "query": query}


def word_query(word: str, known: bool) -> dict[str, Any]:
    """Ask for a word as it is, or for its neighbours where no name holds it."""
    if known or not has_neighbours(word):
        return {"term": {"words": word}}
    fuzzy = {"value": word, "fuzziness": 1, "prefix_length": 0, "max_expansions": EXPANSIONS, "boost": 8}
    return {"fuzzy": {"words": fuzzy}}


def recalled_forms(answer: dict[str, Any]) -> Iterator[str]:
    """Yield the forms that a search recalled; the longest names have none of their own."""
    for hit in answer["hits"]["hits"]:
        yield from hit.get("fields", {}).get("form", ())
