"""The searches that a reader makes: entities by the terms of a field, and the number of names that hold each word."""

from collections.abc import Sequence
from typing import Any

from kbtools.indexers.elastic.documents import LONGEST_TERM
from kbtools.indexers.elastic.forms import word_term

TERMS_AT_ONCE = 4_000
"""Forms in one search; the cluster's own limit is 65,536."""

PAGE = 1_000
"""Entities in one answer; more of them come in further ones."""

LINKED = ["row", "part", "parts", "id", "names", "aliases", "types", "relations", "facts"]


def terms_search(field: str, terms: Sequence[str]) -> dict[str, Any]:
    """Search for entities by the terms of a field, in the order of their rows."""
    return {
        "size": PAGE,
        "query": {"constant_score": {"filter": {"terms": {field: list(terms)}}}},
        "sort": ["row", "part"],
        "_source": LINKED,
        "track_total_hits": False,
    }


def count_search(words: Sequence[str]) -> dict[str, Any]:
    """Count the names that hold each word."""
    filters = {word: {"term": {"words": word_term(word)}} for word in words}
    return {"size": 0, "track_total_hits": False, "aggs": {"words": {"filters": {"filters": filters}}}}


def is_counted(word: str) -> bool:
    """Tell whether a word is one that names are counted by."""
    return bool(word) and len(word.encode()) <= LONGEST_TERM


def cut(values: Sequence[Any], size: int) -> list[Any]:
    return [values[start : start + size] for start in range(0, len(values), size)]
