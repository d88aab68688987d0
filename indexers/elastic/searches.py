"""Many searches in one request, and what a reader must hear when an index is gone or a shard is silent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import elasticsearch

from kbtools.errors import KBMissing, ServerError, Unreachable
from kbtools.indexers.elastic.cluster import PASSING, Cluster, check_shards, root_cause

AT_ONCE = 200
"""Searches in one request; more of them go out in further ones."""

WHOLE = {"allow_partial_search_results": "false"}

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class Searches:
    """Search the indexes of one knowledge base."""

    def __init__(self, cluster: Cluster, kb: str) -> None:
        self.cluster = cluster
        self.kb = kb

    def run(self, searches: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Run searches, each in an index, in as few requests as may be; give their answers in order.

        Raises KBMissing where an index was deleted, Unreachable where a shard does not answer.
        """
        answers: list[dict[str, Any]] = []
        for start in range(0, len(searches), AT_ONCE):
            answers += self.run_some(searches[start : start + AT_ONCE])
        return answers

    def run_some(self, searches: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any] | None] = [None] * len(searches)
        left = list(range(len(searches)))
        waits = self.cluster.patience.waits()
        while left:
            if len(left) == 1:
                index, body = searches[left[0]]
                told = [self.ask("POST", f"/{index}/_search", encode(body), params=WHOLE)]
            else:
                lines = "".join(header(searches[at][0]) + encode(searches[at][1]) + "\n" for at in left)
                told = self.ask("POST", "/_msearch", lines, lines=True)["responses"]
            again, reason = [], ""
            for at, answer in zip(left, told, strict=True):
                if "error" in answer:
                    if answer.get("status") not in PASSING:
                        raise self.failed(answer["error"])
                    again.append(at)
                    reason = root_cause(answer["error"])
                else:
                    check_shards(answer, self.cluster.connection.where)
                    answers[at] = answer
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
        """Make a request of a reader."""
        try:
            return self.cluster.ask(method, path, body, to=f"search {self.kb}", lines=lines, params=params)
        except ServerError as error:
            if isinstance(error.__cause__, elasticsearch.NotFoundError):
                raise self.gone(error.__cause__.body) from error
            raise

    def failed(self, error: Any) -> ServerError | KBMissing:
        """Name the error of one search among many."""
        if isinstance(error, dict) and error.get("type") == "index_not_found_exception":
            return self.gone({"error": error})
        return ServerError(f"{self.cluster.connection.where}: could not search {self.kb} ({root_cause(error)})")

    def gone(self, body: Any) -> KBMissing:
        """Say that the version being read was deleted."""
        error = body.get("error") if isinstance(body, dict) else None
        index = error.get("index") if isinstance(error, dict) else None
        return KBMissing(
            f"{self.cluster.connection.where}: the index {index or 'of ' + self.kb} was deleted while {self.kb!r} was "
            "open; open it again, or load it again with kbtools load",
            name=self.kb,
            index=index,
        )


def header(index: str) -> str:
    return encode({"index": index, "allow_partial_search_results": False}) + "\n"
