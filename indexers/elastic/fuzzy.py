"""Fuzzy recall on the cluster: the names that may be near a form, to be rescored as the embedded index does.

Three searches, which go out together: names that share trigrams; names that share words, or the neighbours of words
that no name holds; whole names within two edits. The cluster's scores decide only what is recalled, never the order.
What a form links to comes with it.
"""

from collections.abc import Collection, Iterator
from typing import Any

from kbtools.linking.similarity import has_neighbours

RECALLED = 100
RECALLED_FIELDS = ["form", "linked"]
EXPANSIONS = 200
"""Terms that an edit may expand to; the cluster's own 50 loses names."""


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
