"""Requests to a cluster: all go through `Cluster.ask`, which repeats those that may succeed later and explains each
error with its reason and the next step.
"""

import base64
import logging
import random
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import elastic_transport
import elasticsearch
import msgspec
from elasticsearch import Elasticsearch
from elasticsearch.serializer import JsonSerializer

from kbtools.errors import NotAllowed, ServerError, Unreachable, WrongServer
from kbtools.indexers.elastic.connection import PREFIX, Connection, read_connection

logger = logging.getLogger(__name__)

# At DEBUG the client library logs whole requests and answers: megabytes of documents, and secrets echoed by a server.
logging.getLogger("elastic_transport.node").setLevel(logging.INFO)

_JSON = {"accept": "application/json", "content-type": "application/json"}
_LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}

PASSING = frozenset({429, 502, 503, 504})
"""Status codes of a busy cluster or one that loses a node: the same request may succeed later."""

_PRESSURE = re.compile(r"_operation_bytes=(\d+), max_\w+_bytes=(\d+)")
"""The memory of a node that an operation needs, and that available to all operations."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for which a request is repeated: pauses double from `first` to `longest`, up to `total` in all."""

    total: float = 30.0
    first: float = 0.1
    longest: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def waits(self) -> Iterator[float]:
        """Yield the seconds to wait before each further try, randomly reduced by up to a fifth to spread clients."""
        spent, wait = 0.0, self.first
        while spent < self.total:
            pause = min(wait, self.longest, self.total - spent) * random.uniform(0.8, 1.0)
            spent += max(pause, 0.001)
            yield pause
            wait *= 2


ONCE = Patience(total=0.0)
"""A single try: to check whether a cluster answers, and at the end of a program, which must not wait."""


class Cluster:
    """An open connection; every method raises a `ServerError` that names the cluster."""

    def __init__(self, connection: Connection, *, patience: Patience | None = None) -> None:
        self.connection = connection
        self.patience = patience or Patience()
        self.client = _make_client(connection)

    def close(self) -> None:
        self.client.close()

    def as_patient_as(self, patience: Patience) -> "Cluster":
        """Return a cluster that shares this connection, with another patience."""
        other = copy(self)
        other.patience = patience
        return other

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        to: str,
        missing_ok: bool = False,
        lines: bool = False,
        params: Mapping[str, Any] | None = None,
        patience: Patience | None = None,
    ) -> Any:
        """Make a request and return its JSON, None for a 404 with `missing_ok`; `to` is its purpose, for messages.

        Refused and dropped connections, time-outs and temporary failures are retried within the patience.
        """
        headers = _LINES if lines else _JSON if body is not None else {"accept": "application/json"}
        waits = (patience or self.patience).waits()
        others = len(self.connection.urls) - 1
        while True:
            try:
                return self.client.perform_request(method, path, params=params, headers=headers, body=body).body
            except elasticsearch.NotFoundError as error:
                if missing_ok:
                    return None
                raise _explain(error, to, self.connection) from self.cause(error)
            except (elastic_transport.TransportError, elasticsearch.ApiError) as error:
                if others and _passes(error) and not isinstance(error, elasticsearch.ApiError):
                    others -= 1  # Try the next node at once.
                    continue
                wait = next(waits, None) if _passes(error) else None
                if wait is None:
                    raise _explain(error, to, self.connection) from self.cause(error)
                logger.info("%s: %s; trying again in %.1f s", to, self.connection.hide(_reason_of(error)), wait)
            (patience or self.patience).sleep(wait)

    def cause(self, error: Exception) -> Exception | None:
        """Return the error if a traceback may show it: it must not contain a secret, or an unread answer that may."""
        message = f"{error!s} {error!r}"
        unread = isinstance(error, elastic_transport.SerializationError)
        return None if unread or self.connection.hide(message) != message else error

    def health(
        self, indexes: str, *, until: Callable[[dict[str, Any]], bool], patience: Patience
    ) -> dict[str, Any] | None:
        """Poll the health of indexes until it is as required or patience ends; return the last answer.

        Replaces a waiting request, which a cluster answers with 408 on time-out. None for indexes that do not exist.
        """
        waits = patience.waits()
        while True:
            health: dict[str, Any] | None = self.ask(
                "GET", f"/_cluster/health/{indexes}", to="ask for the health of indexes", missing_ok=True
            )
            wait = None if health is None or until(health) else next(waits, None)
            if wait is None:
                return health
            patience.sleep(wait)

    def greet(self) -> dict[str, Any]:
        """Check that an Elasticsearch of the client's major version answers, and return its answer."""
        answer = self.ask("GET", "/", to="say hello", patience=ONCE)
        where, ours = self.connection.where, version("elasticsearch")
        number = str(answer.get("version", {}).get("number", "")) if isinstance(answer, dict) else ""
        if not number or answer["version"].get("distribution"):
            product = self.connection.hide(str(answer["version"]["distribution"])) if number else "something else"
            raise WrongServer(f"{where}: expected Elasticsearch, found {product}; check the URL", found=product)
        if number.split(".")[0] != ours.split(".")[0]:
            raise WrongServer(
                f"{where}: the server is Elasticsearch {number}, the client of this kbtools is {ours}; "
                "the major versions must be equal, so use another version of the server or the client",
                server=number,
                client=ours,
            )
        return dict(answer)


@contextmanager
def connected(url: str | None = None) -> Iterator[Cluster]:
    """Yield the cluster with a URL, by default that of the environment, whose version is supported."""
    cluster = Cluster(read_connection(url))
    try:
        cluster.greet()
        yield cluster
    finally:
        cluster.close()


class _Json(JsonSerializer):
    """JSON whose answers msgspec reads, in half the time of the standard library."""

    def json_loads(self, data: bytes) -> Any:
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error


def _make_client(connection: Connection) -> Elasticsearch:
    """Create the client of a connection, which sends nothing yet; raise Unreachable for invalid certificates."""
    access: dict[str, Any] = {}
    if connection.api_key:
        access = {"api_key": connection.api_key}
    elif connection.user or connection.password:
        pair = f"{connection.user or 'elastic'}:{connection.password or ''}"
        access = {"basic_auth": base64.b64encode(pair.encode()).decode()}  # In UTF-8; the client would encode as ASCII.
    if any(url.startswith("https:") for url in connection.urls):
        access["ssl_context"] = _tls_context(connection)
    # The client's own retries would multiply ours.
    return Elasticsearch(
        list(connection.urls),
        request_timeout=connection.timeout,
        max_retries=0,
        connections_per_node=16,
        serializer=_Json(),
        **access,
    )


def _tls_context(connection: Connection) -> ssl.SSLContext:
    """Trust the configured authority, else those of the system, and present our certificate."""
    try:
        context = ssl.create_default_context(cafile=connection.ca_file)
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key, password=_refuse_passphrase)
    except (OSError, ValueError) as error:
        paths = (connection.ca_file, connection.client_cert, connection.client_key)
        files = ", ".join(str(file) for file in paths if file)
        raise Unreachable(f"{connection.where}: {files} cannot be used as certificates ({error})") from error
    return context


def _refuse_passphrase() -> str:
    """Raise an error, instead of asking on the terminal."""
    raise ValueError("the key is encrypted; give one without a passphrase")


def _passes(error: Exception) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, elasticsearch.ApiError):
        return error.meta.status in PASSING and not is_too_large(error)
    if isinstance(error, elastic_transport.TlsError):
        return False
    return isinstance(
        error,
        elastic_transport.ConnectionError | elastic_transport.ConnectionTimeout | elastic_transport.SerializationError,
    )


def is_too_large(error: BaseException | None) -> bool:
    """Return whether a request is larger than even an idle cluster accepts."""
    if not isinstance(error, elasticsearch.ApiError):
        return False
    # A busy node refuses with 429 and has room later; a request beyond its total memory is always refused.
    pressure = _PRESSURE.search(str(error.body)) if error.meta.status == 429 else None
    return error.meta.status == 413 or (pressure is not None and int(pressure[1]) > int(pressure[2]))


def _reason_of(error: Exception) -> str:
    """Return the innermost reason of an error of the client or the server."""
    if isinstance(error, elasticsearch.ApiError):
        body = error.body if isinstance(error.body, dict) else {}
        failures = (body.get("_shards") or {}).get("failures") or [{}]
        return f"{error.meta.status} {root_cause(body.get('error') or failures[0].get('reason'))}".strip()
    if isinstance(error, elastic_transport.SerializationError):
        return "an answer that is not JSON"  # Its message would be the whole answer.
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    return f"{type(inner).__name__}: {str(inner)[:300]}"


def root_cause(error: Any) -> str:
    """Return the type and reason of the error in a response, or those of its cause if it names one."""
    if not isinstance(error, dict):
        return str(error)[:300] if error else ""
    causes = error.get("root_cause") or []
    cause = causes[0] if causes else error
    while isinstance(cause.get("caused_by"), dict):
        cause = cause["caused_by"]
    return f"{cause.get('type', '')}: {str(cause.get('reason', ''))[:300]}"


def kind_of(error: dict[str, Any]) -> str:
    """Return the kind of a rejection: the types of the error and of its causes."""
    kinds = [error.get("type", "unknown")]
    while isinstance(error.get("caused_by"), dict):
        error = error["caused_by"]
        kinds.append(error.get("type", "unknown"))
    return " < ".join(dict.fromkeys(kinds))


def _explain(error: Exception, to: str, connection: Connection) -> ServerError:
    """Return the kbtools error for an error of the client, with a one-sentence message."""
    where, reason = connection.where, connection.hide(_reason_of(error))
    if isinstance(error, elasticsearch.UnsupportedProductError):
        return WrongServer(f"{where}: expected Elasticsearch, found another product; check the URL")
    if isinstance(error, elasticsearch.ApiError):
        status = error.meta.status
        if status == 401:
            return NotAllowed(
                f"{where}: the cluster does not accept {_credentials(connection)} (401); set {PREFIX}API_KEY, or "
                f"{PREFIX}USER and {PREFIX}PASSWORD",
                status=status,
            )
        if status == 403:
            return NotAllowed(
                f"{where}: {_credentials(connection)} lacks the privilege to {to} ({reason}); "
                "grant it, docs/elasticsearch.md lists what kbtools needs",
                status=status,
            )
        if status in (400, 406) and "media_type" in reason:
            return WrongServer(
                f"{where}: the server does not speak the protocol of the client {version('elasticsearch')} "
                f"({reason}); use a server of the same major version"
            )
        if status in PASSING:
            return Unreachable(f"{where}: could not {to}, the cluster cannot answer now ({reason}); try again later")
        return ServerError(f"{where}: could not {to} ({reason})", status=status, reason=reason)
    if "WRONG_VERSION_NUMBER" in reason or "record layer" in reason:
        return Unreachable(f"{where}: no TLS; use http:// instead of https://", reason=reason)
    if isinstance(error, elastic_transport.TlsError):
        return Unreachable(
            f"{where}: the TLS handshake failed ({reason}); name the cluster's authority in {PREFIX}CA_FILE, and a "
            "client certificate if it asks for one"
        )
    if isinstance(error, elastic_transport.ConnectionTimeout):
        return Unreachable(
            f"{where}: no answer within {connection.timeout:g} s when asked to {to}; raise {PREFIX}TIMEOUT or "
            "look at the cluster's load"
        )
    if isinstance(error, elastic_transport.SerializationError):
        return WrongServer(f"{where}: the response is not JSON; check the URL")
    return Unreachable(
        f"{where}: not reachable ({reason}); start the cluster (docker compose up -d), or set {PREFIX}URL to "
        "its address, with https:// if it uses TLS"
    )


def _credentials(connection: Connection) -> str:
    """Describe the credentials, without the secret."""
    if connection.api_key:
        return "the API key"
    if connection.user or connection.password:
        return f"user {connection.user or 'elastic'!r}"
    return "the client certificate" if connection.client_cert else "a request without credentials"


def check_shards(answer: Mapping[str, Any], where: str) -> None:
    """Raise an error for an answer that lacks some shards: names and facts would seem to be missing."""
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        failed = answer.get("_shards", {}).get("failures") or ()
        reason = root_cause(failed[0].get("reason")) if failed else "timed out"
        raise Unreachable(f"{where}: some shards did not answer ({reason}); look at the cluster's health, try again")
