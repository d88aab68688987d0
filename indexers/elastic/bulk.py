"""Bulk requests: a few at a time, with bounded memory, confirmed in order, repeated after temporary refusals."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from kbtools.errors import BulkFailed, NotAllowed, ServerError, Unreachable
from kbtools.indexers.elastic.cluster import PASSING, Cluster, Patience, is_too_large, kind_of, root_cause
from kbtools.indexers.elastic.documents import Document
from kbtools.indexers.elastic.mapping import loading_alias

IN_FLIGHT = 4
"""Requests at a time: enough to keep both cores busy on the machine measured in docs/elasticsearch.md."""

MOST_DOCUMENTS = 1_000
_MOST_BYTES = 4_000_000
"""Most documents and bytes of a request: Elasticsearch recommends a few megabytes, and more gains nothing."""

_ACTION = 40
"""Bytes of the line before a document in a bulk request: its id and the name of the action."""

_LARGEST = 100 * 1024 * 1024 - 1_000
"""Bytes of a document that a cluster accepts by default."""

_LIMIT = "nodes.*.http.max_content_length_in_bytes"
_SHARD_TIMEOUT = "20s"
"""The time for which the cluster waits for a lost shard before it reports it."""

_ANSWERED = "errors,items.*.status,items.*.error"
"""The fields requested of an answer; all of them would make it as long as the request."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A document that the cluster finally rejected, with the reason; equal reasons have the same `kind`."""

    key: str
    kind: str
    reason: str
    source: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of a batch: everything before row `done` is stored, except rejected documents."""

    done: int
    documents: int
    rejected: tuple[Rejected, ...]


def _cut_batches(documents: Iterable[Document], most: int) -> Iterator[list[Document]]:
    """Cut a stream into batches by count and bytes; a document larger than a batch gets its own."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        length = len(document.source) + _ACTION
        if batch and (len(batch) >= most or size + length > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch


class _Stopped(Exception):
    """Raised in a waiting request when the load ends."""


class Sender:
    """A sender of batches to one cluster, for use by one thread; it has its own threads for requests."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        patience: Patience,
        in_flight: int = IN_FLIGHT,
        most: int = MOST_DOCUMENTS,
        largest: int = _LARGEST,
    ) -> None:
        self.cluster = cluster
        self.in_flight, self.most, self.largest = in_flight, most, largest
        self.stopped = threading.Event()
        self.wait = patience.sleep
        self.patience = replace(patience, sleep=self.pause)

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the load."""
        self.wait(seconds)
        if self.stopped.is_set():
            raise _Stopped

    def send_all(self, index: str, documents: Iterable[Document], confirm: Callable[[Sent], None]) -> None:
        """Send a stream of documents; batches are confirmed in the order of the stream.

        At most `in_flight + 1` batches exist at any time, even with a slow cluster.
        """
        pending: deque[Future[Sent]] = deque()
        with ThreadPoolExecutor(self.in_flight, thread_name_prefix="bulk") as pool:
            try:
                for batch in _cut_batches(documents, self.most):
                    if len(pending) > self.in_flight:
                        confirm(pending.popleft().result())
                    pending.append(pool.submit(self.send, index, batch))
                while pending:
                    confirm(pending.popleft().result())
            except BaseException:
                # Wakes requests that wait for their next try, so that the pool can end.
                self.stopped.set()
                for future in pending:
                    future.cancel()
                raise

    def store(self, index: str, documents: Iterable[Document]) -> tuple[int, int]:
        """Send documents and refresh the index; return their number and bytes, raise BulkFailed if one is rejected."""
        kinds: dict[str, str] = {}
        count = size = 0

        def measured() -> Iterator[Document]:
            nonlocal count, size
            for document in documents:
                count, size = count + 1, size + len(document.source)
                yield document

        self.send_all(index, measured(), lambda sent: note_kinds(kinds, sent.rejected))
        if kinds:
            reasons = "; ".join(f"{kind}: {reason}" for kind, reason in kinds.items())
            raise BulkFailed(f"{self.cluster.connection.where}: documents were rejected, {reasons}", kinds=kinds)
        self.cluster.ask("POST", f"/{index}/_refresh", to=f"refresh {index}")
        return count, size

    def send(self, index: str, batch: list[Document]) -> Sent:
        """Store a batch, repeating temporary refusals, and return the rejected documents."""
        left, rejected = batch, []
        waits = self.patience.waits()
        while left:
            left, refused, reason = self.send_once(index, left)
            rejected += refused
            if left:
                wait = next(waits, None)
                if wait is None:
                    raise Unreachable(
                        f"{self.cluster.connection.where}: the cluster keeps refusing documents for {index} "
                        f"({reason}); check its health and disks, then run the same command to resume",
                        index=index,
                        reason=reason,
                    )
                self.patience.sleep(wait)
        return Sent(batch[-1].done, len(batch) - len(rejected), tuple(rejected))

    def send_once(self, index: str, documents: list[Document]) -> tuple[list[Document], list[Rejected], str]:
        """Make one request; return the documents to send again, those rejected, and the last reason to send again."""
        if len(documents) == 1 and len(documents[0].source) > self.largest:
            return [], [_too_large(documents[0])], ""
        try:
            answer = self.cluster.ask(
                "POST", f"/{loading_alias(index)}/_bulk", b"".join(document.lines() for document in documents),
                to=f"load documents into {index}", lines=True, patience=self.patience,
                params={"require_alias": "true", "timeout": _SHARD_TIMEOUT, "filter_path": _ANSWERED},
            )  # fmt: skip
        except ServerError as error:
            if is_too_large(error.__cause__):
                return self.send_halves(index, documents)
            raise
        if not answer["errors"]:
            return [], [], ""
        if len(answer["items"]) != len(documents):
            raise ServerError(
                f"{self.cluster.connection.where}: answered for {len(answer['items'])} documents when {len(documents)} "
                "were sent; a proxy between kbtools and the cluster may change responses"
            )
        again, rejected, last = [], [], ""
        for document, outcome in zip(documents, answer["items"], strict=True):
            (done,) = outcome.values()
            status, fault = done["status"], done.get("error")
            if fault is None:
                continue
            reason = root_cause(fault)
            if status in PASSING:
                again.append(document)
                last = f"{status} {reason}"
            # A deleted or blocked index refuses every document; the document is not at fault.
            elif status in (403, 404) or fault.get("type") == "cluster_block_exception":
                raise ServerError(
                    f"{self.cluster.connection.where}: {index} accepts no documents ({status} {reason}); fix "
                    "this, then run the same command to resume",
                    index=index,
                    reason=reason,
                )
            else:
                rejected.append(Rejected(document.key, kind_of(fault), reason, document.source))
        return again, rejected, last

    def send_halves(self, index: str, documents: list[Document]) -> tuple[list[Document], list[Rejected], str]:
        """Send documents that are too large for one request in halves, down to a single one that is too large."""
        if len(documents) == 1:
            return [], [_too_large(documents[0])], ""
        middle = len(documents) // 2
        first, second = self.send_once(index, documents[:middle]), self.send_once(index, documents[middle:])
        return first[0] + second[0], first[1] + second[1], second[2] or first[2]


def note_kinds(kinds: dict[str, str], rejected: Iterable[Rejected]) -> None:
    """Record the first of each kind of rejected documents."""
    for document in rejected:
        kinds.setdefault(document.kind, f"document {document.key}: {document.reason}")


def _too_large(document: Document) -> Rejected:
    """Return the rejection of a document that is too large for any request."""
    size = len(document.source)
    reason = f"a document of {size:,} bytes is larger than the cluster accepts (http.max_content_length, or its memory)"
    return Rejected(document.key, "too large", reason, document.source)


def read_largest(cluster: Cluster) -> int:
    """Return the largest allowed request in bytes; Elasticsearch's default if the credentials do not permit asking."""
    try:
        answer = cluster.ask("GET", "/_nodes/http", to="ask for the size of requests", params={"filter_path": _LIMIT})
    except NotAllowed:
        return _LARGEST
    nodes = (answer or {}).get("nodes", {}).values()
    # The least of all nodes, since any may get the request; 1,000 bytes are reserved for headers.
    return min((int(node["http"]["max_content_length_in_bytes"]) - 1_000 for node in nodes), default=_LARGEST)
