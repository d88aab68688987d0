"""Searches of a reader: many in one request, with errors for a deleted index and for a shard that does not answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import elasticsearch

from kbtools.errors import KBMissing, ServerError, Unreachable
from kbtools.indexers.elastic.cluster import PASSING, Cluster, check_shards, root_cause
from kbtools.indexers.elastic.documents import encode, word_term

MOST_SEARCHES = 200
"""Most searches in one request, to bound the memory of its answer."""

PAGE = 1_000
"""Most entities in one answer; more come in further pages, below the cluster's limit of 10,000."""

NAMED = ["names", "aliases", "languages"]
"""The fields with the names of an entity."""

LINKED = ["row", "part", "parts", "id", *NAMED, "description", "types", "relations", "facts", "facts_in"]
"""The fields of an entity that linking and ranking need; its objects are read later."""

WHOLE = {"allow_partial_search_results": "false"}
"""A shard that does not answer is an error: otherwise its names and facts would seem not to exist."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Searches:
    """The searches in the indexes of one knowledge base."""

    def __init__(self, cluster: Cluster, kb: str) -> None:
        self.cluster = cluster
        self.kb = kb

    def run(self, searches: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Run searches, each in an index, in as few requests as possible; return their answers in order.

        Raises KBMissing if an index was deleted, Unreachable if a shard does not answer.
        """
        answers: list[dict[str, Any]] = []
        for start in range(0, len(searches), MOST_SEARCHES):
            answers += self.run_some(searches[start : start + MOST_SEARCHES])
        return answers

    def run_some(self, searches: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any] | None] = [None] * len(searches)
        left = list(range(len(searches)))
        waits = self.cluster.patience.waits()
        while left:
            if len(left) == 1:
                index, body = searches[left[0]]
                responses = [self.ask("POST", f"/{index}/_search", encode(body), params=WHOLE)]
            else:
                heads = [{"index": searches[place][0], "allow_partial_search_results": False} for place in left]
                bodies = [searches[place][1] for place in left]
                lines = "".join(f"{encode(head)}\n{encode(body)}\n" for head, body in zip(heads, bodies, strict=True))
                responses = self.ask("POST", "/_msearch", lines, lines=True)["responses"]
            again, reason = [], ""
            for place, answer in zip(left, responses, strict=True):
                if "error" in answer:
                    if answer.get("status") not in PASSING:
                        raise self.failed(answer["error"])
                    again.append(place)
                    reason = root_cause(answer["error"])
                else:
                    check_shards(answer, self.cluster.connection.where)
                    answers[place] = answer
            left = again
            if left:
                wait = next(waits, None)
                if wait is None:
                    raise Unreachable(
                        f"{self.cluster.connection.where}: could not search {self.kb} ({reason}); look at the "
                        "cluster's health and try again"
                    )
                self.cluster.patience.sleep(wait)
        return [answer for answer in answers if answer is not None]

    def ask(
        self, method: str, path: str, body: Any = None, *, lines: bool = False, params: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            return self.cluster.ask(method, path, body, to=f"search {self.kb}", lines=lines, params=params)
        except ServerError as error:
            if isinstance(error.__cause__, elasticsearch.NotFoundError):
                raise self.gone(error.__cause__.body) from error
            raise

    def failed(self, error: Any) -> ServerError | KBMissing:
        """Return the error of one search among many."""
        if isinstance(error, dict) and error.get("type") == "index_not_found_exception":
            return self.gone({"error": error})
        return ServerError(f"{self.cluster.connection.where}: could not search {self.kb} ({root_cause(error)})")

    def gone(self, body: Any) -> KBMissing:
        """Return the error for a deleted version."""
        error = body.get("error") if isinstance(body, dict) else None
        index = error.get("index") if isinstance(error, dict) else None
        return KBMissing(
            f"{self.cluster.connection.where}: the index {index or 'of ' + self.kb} was deleted while {self.kb!r} was "
            "open; open it again, or load it again with kbtools load",
            name=self.kb,
            index=index,
        )


def terms_search(field: str, terms: Sequence[str]) -> dict[str, Any]:
    """Return a search for entities by the terms of a field, in the order of their rows."""
    return {
        "size": PAGE,
        "query": {"constant_score": {"filter": {"terms": {field: list(terms)}}}},
        "sort": ["row", "part"],
        "_source": LINKED,
        "track_total_hits": False,
    }


def count_search(words: Sequence[str]) -> dict[str, Any]:
    """Return a search that counts the names with each word."""
    filters = {word: {"term": {"words": word_term(word)}} for word in words}
    return {"size": 0, "track_total_hits": False, "aggs": {"words": {"filters": {"filters": filters}}}}


def cut(values: Sequence[_Value], size: int) -> list[Sequence[_Value]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


class Cache(Generic[_Key, _Value]):
    """A bounded cache of answers of the cluster; the least recently used are dropped first.

    It has two generations of entries: when the young one is full it becomes the old one, and the old one is dropped.
    Between `size` and twice as many entries are kept; one that is read moves to the young generation. Replaces an
    ordered dictionary in which each entry that is read moves to the end.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.young: dict[_Key, _Value] = {}
        self.old: dict[_Key, _Value] = {}

    def get(self, key: _Key) -> _Value | None:
        value = self.young.get(key)
        if value is None:
            value = self.old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        if len(self.young) >= self.size:
            self.old, self.young = self.young, {}
        self.young[key] = value

    def missing(self, keys: Iterable[_Key]) -> list[_Key]:
        """Return the distinct keys that are not cached, in order."""
        return [key for key in dict.fromkeys(keys) if self.get(key) is None]
