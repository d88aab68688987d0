"""Names close to a form on a cluster: recalled by searches, rescored as the embedded index does, remembered.

Three searches recall forms: whole names within two edits; names that share trigrams; names that share words, or the
neighbours of words that no name holds. Where edits may suffice the first is made alone, and the others only for forms
that it does not settle. The cluster's scores decide only what is recalled, never the order.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kbtools.indexers.elastic.names import Names
from kbtools.indexers.elastic.searches import Cache
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

SHOWN = ["form", "popularity"]
"""The fields that come with a recalled form, from columns: its source is not read."""

KEPT = 1_000
"""Forms whose similar names are remembered, twice as many at most."""

Recalled = dict[str, int]
"""Forms of names, each with its popularity: the number of names of that bearer that has most."""


class SimilarNames:
    """The names close to forms, many forms in one request; `count` is the number of all forms of names."""

    def __init__(self, names: Names, *, count: int) -> None:
        self.names, self.count = names, count
        self.known: Cache[tuple[str, int, float, bool], list[SimilarName]] = Cache(KEPT)

    def to(self, forms: Sequence[str], *, limit: int, cutoff: float, edits_only: bool) -> list[list[SimilarName]]:
        """Return the names close to forms: those remembered, and the others recalled together and rescored."""
        known = {form: self.known.get((form, limit, cutoff, edits_only)) for form in forms}
        unknown = [form for form, similar in known.items() if similar is None]
        # Nothing is similar to the empty form, nor to one that is longer than any name that is compared.
        recallable = [form for form in unknown if form and len(form) <= LONGEST_NAME]
        recalled = self.within_edits(recallable) if edits_only else self.recall_all(recallable, cutoff=cutoff)
        for form in unknown:
            known[form] = similar = self.rescored(form, recalled.get(form, {}), limit=limit, cutoff=cutoff)
            self.known.put((form, limit, cutoff, edits_only), similar)
        return [list(known[form] or ()) for form in forms]

    def rescored(self, form: str, names: Recalled, *, limit: int, cutoff: float) -> list[SimilarName]:
        """Order the names recalled for a form."""
        listed = shortlist(closest(form, names, cutoff=cutoff, names=self.count), limit=limit)
        return order(listed, limit=limit, popularity=lambda forms: [names[form] for form in forms])

    def within_edits(self, forms: Sequence[str]) -> dict[str, Recalled]:
        """Recall the names within edits."""
        recalled = self.recall({form: [whole_search(form)] for form in forms})
        return {form: {name: near[name] for name in within_edits(form, list(near))} for form, near in recalled.items()}

    def recall_all(self, forms: Sequence[str], *, cutoff: float) -> dict[str, Recalled]:
        """Recall names by every search, or by edits alone where these suffice."""
        recalled: dict[str, Recalled] = {form: {} for form in forms}
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

    def recall(self, searches_of: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Recalled]:
        """Make the searches for forms, all in one request; return the forms of names that each recalls."""
        bodies = [(self.names.index, body) for bodies in searches_of.values() for body in bodies]
        answers = iter(self.names.searches.run(bodies))
        return {
            form: {name: popularity for _ in bodies for name, popularity in recalled_forms(next(answers))}
            for form, bodies in searches_of.items()
        }


def shared_searches(form: str, known: Collection[str]) -> list[dict[str, Any]]:
    """Write the searches for names that share trigrams or words; `known` are the words of it that some name holds."""
    words = [word_query(word, word in known) for word in form.split(" ")]
    return [search({"match": {"trigrams": form}}), search({"bool": {"should": words}})]


def whole_search(form: str) -> dict[str, Any]:
    """Write the search for whole names within two edits, the first letter too; two letters swapped are one here."""
    fuzzy = {"value": form, "fuzziness": 2, "prefix_length": 0, "max_expansions": NEIGHBOURS, "transpositions": True}
    return search({"fuzzy": {"form": fuzzy}}, size=NEIGHBOURS)


def search(query: dict[str, Any], *, size: int = RECALLED) -> dict[str, Any]:
    return {"size": size, "track_total_hits": False, "_source": False, "docvalue_fields": SHOWN, "query": query}


def word_query(word: str, known: bool) -> dict[str, Any]:
    """Ask for a word as it is, or for its neighbours if no name holds it."""
    if known or not has_neighbours(word):
        return {"term": {"words": word}}
    fuzzy = {"value": word, "fuzziness": 1, "prefix_length": 0, "max_expansions": EXPANSIONS, "boost": 8}
    return {"fuzzy": {"words": fuzzy}}


def recalled_forms(answer: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the forms that a search recalled with their popularity; the longest names have neither."""
    for hit in answer["hits"]["hits"]:
        if fields := hit.get("fields"):
            yield fields["form"][0], fields["popularity"][0]
