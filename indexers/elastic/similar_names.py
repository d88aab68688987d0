"""Names close to a form on a cluster: recalled by three searches, rescored as the embedded index does, remembered.

The searches go out together: names that share trigrams; names that share words, or the neighbours of words that no
name holds; whole names within two edits. The cluster's scores decide only what is recalled, never the order.
What a form links to comes with it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from kbtools.indexers.elastic.names import Names
from kbtools.indexers.elastic.searches import Cache
from kbtools.kb.contract import SimilarName
from kbtools.linking.similarity import LONGEST_NAME, has_neighbours, rescore

RECALLED = 100
"""Names that each search recalls: five times the twenty that linking wants, since only rescoring orders them."""

RECALLED_FIELDS = ["form", "popularity", "linked"]
EXPANSIONS = 200
"""Terms that an edit may expand to; the cluster's own 50 loses names."""

REMEMBERED = 1_000
"""Forms whose similar names are kept, twice as many at most."""


class SimilarNames:
    """The names close to forms, many forms in one request."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.known: Cache[tuple[str, int, float], list[SimilarName]] = Cache(REMEMBERED)

    def to(self, form: str, *, limit: int, cutoff: float) -> list[SimilarName]:
        known = self.known.get((form, limit, cutoff))
        return list(self.fetch([form], limit, cutoff)[form] if known is None else known)

    def expect(self, forms: Sequence[str], *, limit: int, cutoff: float) -> None:
        """Fetch the names close to several forms."""
        unknown = self.known.missing((form, limit, cutoff) for form in forms)
        self.fetch([form for form, _, _ in unknown], limit, cutoff)

    def fetch(self, forms: Sequence[str], limit: int, cutoff: float) -> dict[str, list[SimilarName]]:
        """Recall and rescore the names close to forms, and remember them."""
        short_forms = [form for form in forms if form and len(form) <= LONGEST_NAME]
        words = {word for form in short_forms for word in form.split(" ")}
        known = {word for word, count in zip(words, self.names.frequency(list(words)), strict=True) if count}
        searches = {form: recall_searches(form, known) for form in short_forms}
        answers = iter(
            self.names.searches.run([(self.names.index, body) for bodies in searches.values() for body in bodies])
        )
        similar = {}
        for form in forms:
            sources = {source["form"]: source for _ in searches.get(form, ()) for source in recalled(next(answers))}
            similar[form] = rescore(form, sources, limit=limit, cutoff=cutoff, popularity=popularity_in(sources))
            self.known.put((form, limit, cutoff), similar[form])
            for name in similar[form]:
                self.names.note_linked(sources[name.form])
        return similar


def popularity_in(sources: Mapping[str, Mapping[str, Any]]) -> Callable[[Sequence[str]], list[int]]:
    """Look up the popularity of forms in their documents."""
    return lambda forms: [sources[form]["popularity"] for form in forms]


def recall_searches(form: str, known: Collection[str]) -> list[dict[str, Any]]:
    """Write the searches for a form; `known` are those of its words that some name holds."""
    words = [word_query(word, word in known) for word in form.split(" ")]
    return [search({"match": {"trigrams": form}}), search({"bool": {"should": words}}), search(whole_query(form))]


def search(query: dict[str, Any]) -> dict[str, Any]:
    return {"size": RECALLED, "track_total_hits": False, "_source": RECALLED_FIELDS, "query": query}


def whole_query(form: str) -> dict[str, Any]:
    """Ask for whole names within two edits, the first letter too."""
    fuzzy = {"value": form, "fuzziness": 2, "prefix_length": 0, "max_expansions": EXPANSIONS, "transpositions": True}
    return {"fuzzy": {"form": fuzzy}}


def word_query(word: str, known: bool) -> dict[str, Any]:
    """Ask for a word as it is, or for its neighbours where no name holds it."""
    if known or not has_neighbours(word):
        return {"term": {"words": word}}
    fuzzy = {"value": word, "fuzziness": 1, "prefix_length": 0, "max_expansions": EXPANSIONS, "boost": 8}
    return {"fuzzy": {"words": fuzzy}}


def recalled(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the documents of the forms that a search recalled."""
    for hit in answer["hits"]["hits"]:
        if "form" in hit["_source"]:
            yield hit["_source"]
