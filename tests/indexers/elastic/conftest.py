"""A cluster for the tests that need one, and small servers for faults that a real one cannot produce."""

import itertools
import json
import os
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kbtools.indexers.building.build import BuildProgress
from kbtools.indexers.elastic.build_lock import STALE, drop_note, read_note, write_note
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.connection import read_connection
from kbtools.indexers.elastic.loading import Loaded, LoadOptions, load
from kbtools.indexers.elastic.mapping import IndexSettings
from kbtools.indexers.elastic.versions import delete_versions, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from tests.indexers.elastic.stand_in import HELLO, StandIn

SINGLE = IndexSettings(replicas=0)


@pytest.fixture(scope="session")
def stand_in() -> Iterator[str]:
    """Start a stand-in for a cluster."""
    server = SmallServer(StandIn().reply, product="Elasticsearch")
    yield server.url
    server.close()


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """Find the cluster that tests may write to; without one, a stand-in serves those that need no real one."""
    is_served = not os.environ.get("KBTOOLS_TEST_ELASTICSEARCH_URL") and not request.node.get_closest_marker(
        "real_cluster"
    )
    return str(request.getfixturevalue("stand_in" if is_served else "cluster_url"))


@pytest.fixture
def cluster(url: str) -> Iterator[Cluster]:
    opened = Cluster(read_connection(url, {}))
    yield opened
    opened.close()


@pytest.fixture
def kb_name(cluster: Cluster) -> Iterator[str]:
    """Yield a name that nothing on the cluster has; remove what is loaded under it afterwards."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    delete_versions(cluster, list_versions(cluster, name))
    drop_note(cluster, name)


def age_note(cluster: Cluster, kb: str) -> None:
    """Make the last renewal of a lock an old one."""
    note, stamp = read_note(cluster, kb)
    write_note(cluster, kb, replace(note, beat=time.time() - STALE - 1), stamp)


@pytest.fixture(scope="session")
def sample_kb(sample_path: Path) -> EmbeddedKB:
    return EmbeddedKB(sample_path)


@pytest.fixture
def load_sample(cluster: Cluster, kb_name: str, sample_kb: EmbeddedKB, tmp_path: Path) -> Callable[..., Loaded]:
    """Return a function that loads the sample under the test's name."""

    def run(kb: EmbeddedKB = sample_kb, on: Cluster = cluster, **options: Any) -> Loaded:
        usual: dict[str, Any] = {"settings": SINGLE, "rejected": tmp_path / "rejected.jsonl"}
        return load(kb, on, kb_name, options=LoadOptions(**(usual | options)), watch=BuildProgress())

    return run


@pytest.fixture
def impatient() -> Patience:
    """Return a patience of a few tries without waiting."""
    return Patience(total=1.0, first=0.2, longest=0.2, sleep=lambda seconds: None)


class SmallServer:
    """An HTTP server that answers with status and JSON from `reply(method, path, body)`, or disconnects if it is None.

    `requests` lists the method and path of every request, in order.
    """

    def __init__(self, reply: Callable[[str, str, bytes], tuple[int, object] | None], *, product: str | None) -> None:
        outer = self
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet an answer: a second one waits 40 ms for the acknowledgement of the first

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                outer.requests.append((self.command, self.path))
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                chosen = reply(self.command, self.path, body)
                if chosen is None:
                    self.close_connection = True
                    return
                content = chosen[1].encode() if isinstance(chosen[1], str) else json.dumps(chosen[1]).encode()
                self.send_response(chosen[0])
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                if product:
                    self.send_header("x-elastic-product", product)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = respond

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Ignore disconnected clients, which the tests produce."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def speak_tls(self, context: ssl.SSLContext) -> None:
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https"

    def paths(self) -> list[str]:
        """Return the paths of all requests, without their parameters."""
        return [path.split("?")[0] for _, path in self.requests]

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def small_server() -> Iterator[Callable[..., SmallServer]]:
    """Return a function that starts small servers, which end with the test."""
    started: list[SmallServer] = []

    def start(
        reply: Callable[[str, str, bytes], tuple[int, object] | None], *, product: str | None = "Elasticsearch"
    ) -> SmallServer:
        started.append(SmallServer(reply, product=product))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def connect() -> Iterator[Callable[..., Cluster]]:
    """Return a function that connects to a URL with settings of the environment; closed at the end of the test."""
    opened: list[Cluster] = []

    def run(
        url: str, *, patience: Patience | None = None, environment: dict[str, str] | None = None, **given: str
    ) -> Cluster:
        variables = {f"KBTOOLS_ELASTICSEARCH_{name.upper()}": value for name, value in given.items()}
        opened.append(Cluster(read_connection(url, variables | (environment or {})), patience=patience))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


@pytest.fixture
def hello() -> dict[str, object]:
    """Return the greeting of an Elasticsearch."""
    return dict(HELLO)


@pytest.fixture
def proxy(url: str, small_server: Callable[..., SmallServer]) -> Callable[..., SmallServer]:
    """Return a starter of proxies to the cluster: `watch(number, method, path)` may answer instead."""

    def start(watch: Callable[[int, str, str], Any]) -> SmallServer:
        numbers = itertools.count(1)
        parts = urlsplit(url.split(",")[0])

        def reply(method: str, path: str, body: bytes) -> tuple[int, object] | None:
            chosen = watch(next(numbers), method, path)
            if chosen == "cut":
                return None
            if isinstance(chosen, tuple):
                return chosen
            connection = HTTPConnection(parts.hostname, parts.port, timeout=60)
            kind = "application/x-ndjson" if path.split("?")[0].endswith(("_bulk", "_msearch")) else "application/json"
            connection.request(method, path, body or None, {"content-type": kind} if body else {})
            answer = connection.getresponse()
            content = answer.read().decode()
            connection.close()
            return None if chosen == "cut after" else (answer.status, content)

        return small_server(reply)

    return start
