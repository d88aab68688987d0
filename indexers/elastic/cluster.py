"""Ask a cluster: one door for every request, with retries, and one sentence for everything that can go wrong."""

import logging
import random
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import elastic_transport
import elasticsearch
from elasticsearch import Elasticsearch

from kbtools.errors import NotAllowed, ServerError, Unreachable, WrongServer
from kbtools.indexers.elastic.connection import PREFIX, Connection

logger = logging.getLogger(__name__)

JSON = {"accept": "application/json", "content-type": "application/json"}
LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}
PASSING = frozenset({429, 502, 503, 504})
"""Answers of a cluster that is busy or loses a node: the same request may succeed later."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a request is repeated: waits double from `first` to `longest` seconds, up to `total` in all."""

    total: float = 30.0
    first: float = 0.1
    longest: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def waits(self) -> Any:
        """Yield the seconds to wait before each further try; a little at random, so that clients spread."""
        spent, wait = 0.0, self.first
        while spent < self.total:
            pause = min(wait, self.longest, self.total - spent) * random.uniform(0.8, 1.0)
            spent += max(pause, 0.001)
            yield pause
            wait *= 2


PRESSURE = re.compile(r"_operation_bytes=(\d+), max_\w+_bytes=(\d+)")
"""What an operation takes of a node's memory, and what there is for all of them."""

ONCE = Patience(total=0.0)


class Cluster:
    """An open connection; every method raises a `ServerError` that names the cluster."""

    def __init__(self, connection: Connection, *, patience: Patience | None = None) -> None:
        self.connection = connection
        self.patience = patience or Patience()
        self.client = make_client(connection)

    def close(self) -> None:
        self.client.close()

    def as_patient_as(self, patience: Patience) -> "Cluster":
        """Share the connection, with another patience."""
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
        """Make a request and give its JSON; nothing for a 404 that may be. `to` says what for, in messages.

        Refused and cut connections, time-outs and passing answers are tried again for as long as patience lasts.
        """
        headers = LINES if lines else JSON if body is not None else {"accept": "application/json"}
        waits = (patience or self.patience).waits()
        others = len(self.connection.urls) - 1
        while True:
            try:
                return self.client.perform_request(method, path, params=params, headers=headers, body=body).body
            except elasticsearch.NotFoundError as error:
                if missing_ok:
                    return None
                raise self.explained(error, to) from error
            except (elastic_transport.TransportError, elasticsearch.ApiError) as error:
                if others and passes(error) and not isinstance(error, elasticsearch.ApiError):
                    others -= 1  # the next node, at once
                    continue
                wait = next(waits, None) if passes(error) else None
                if wait is None:
                    raise self.explained(error, to) from error
                logger.info("%s: %s; trying again in %.1f s", to, reason_of(error), wait)
            (patience or self.patience).sleep(wait)

    def explained(self, error: Exception, to: str) -> ServerError:
        """Turn an error of the client into one sentence that names both sides and the next step."""
        return explain(error, to, self.connection)

    def greet(self) -> dict[str, Any]:
        """Check that an Elasticsearch of our major version answers; give what it says of itself."""
        told = self.ask("GET", "/", to="say hello", patience=ONCE)
        where, ours = self.connection.where, version("elasticsearch")
        number = str(told.get("version", {}).get("number", "")) if isinstance(told, dict) else ""
        if not number or told["version"].get("distribution"):
            product = told["version"]["distribution"] if number else "something else"
            raise WrongServer(f"{where}: expected Elasticsearch, found {product}; check the URL", found=product)
        if number.split(".")[0] != ours.split(".")[0]:
            raise WrongServer(
                f"{where}: the server is Elasticsearch {number}, the client of this kbtools is {ours}; "
                "their first numbers must be equal, so use another server or another version of that client",
                server=number,
                client=ours,
            )
        return dict(told)


def make_client(connection: Connection) -> Elasticsearch:
    """Make the client of a connection; nothing is sent yet. Raises Unreachable for certificates that do not load."""
    access: dict[str, Any] = {}
    if connection.api_key:
        access = {"api_key": connection.api_key}
    elif connection.user or connection.password:
        access = {"basic_auth": (connection.user or "elastic", connection.password or "")}
    if any(url.startswith("https:") for url in connection.urls):
        access["ssl_context"] = tls_context(connection)
    return Elasticsearch(
        list(connection.urls), request_timeout=connection.timeout, max_retries=0, connections_per_node=16, **access
    )


def tls_context(connection: Connection) -> ssl.SSLContext:
    """Trust the authority that was named, else those of the system, and show our certificate."""
    try:
        context = ssl.create_default_context(cafile=connection.ca_file)
        if connection.client_cert:
            context.load_cert_chain(connection.client_cert, connection.client_key)
    except (OSError, ValueError) as error:
        given = (connection.ca_file, connection.client_cert, connection.client_key)
        files = ", ".join(str(file) for file in given if file)
        raise Unreachable(f"{connection.where}: {files} cannot be used as certificates ({error})") from error
    return context


def passes(error: Exception) -> bool:
    """Tell whether the same request may succeed later."""
    if isinstance(error, elasticsearch.ApiError):
        return error.meta.status in PASSING and not is_too_large(error)
    if isinstance(error, elastic_transport.TlsError):
        return False
    return isinstance(
        error,
        elastic_transport.ConnectionError | elastic_transport.ConnectionTimeout | elastic_transport.SerializationError,
    )


def is_too_large(error: BaseException | None) -> bool:
    """Tell whether a request is more than the cluster takes at once, however idle it is."""
    if not isinstance(error, elasticsearch.ApiError):
        return False
    pressure = PRESSURE.search(str(error.body)) if error.meta.status == 429 else None
    return error.meta.status == 413 or (pressure is not None and int(pressure[1]) > int(pressure[2]))


def reason_of(error: Exception) -> str:
    """Find the innermost reason in an error of the client or the server."""
    if isinstance(error, elasticsearch.ApiError):
        body = error.body if isinstance(error.body, dict) else {}
        failures = (body.get("_shards") or {}).get("failures") or [{}]
        return f"{error.meta.status} {root_cause(body.get('error') or failures[0].get('reason'))}".strip()
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    return f"{type(inner).__name__}: {str(inner)[:300]}"


def root_cause(told: Any) -> str:
    """Write out the error of a response: its type and reason, those of the cause if it names one."""
    if not isinstance(told, dict):
        return str(told)[:300] if told else ""
    causes = told.get("root_cause") or []
    cause = causes[0] if causes else told
    while isinstance(cause.get("caused_by"), dict):
        cause = cause["caused_by"]
    return f"{cause.get('type', '')}: {str(cause.get('reason', ''))[:300]}"


def explain(error: Exception, to: str, connection: Connection) -> ServerError:
    """Write the one sentence about an error of the client."""
    where, reason = connection.where, reason_of(error)
    if isinstance(error, elasticsearch.UnsupportedProductError):
        return WrongServer(f"{where}: expected Elasticsearch, found another product; check the URL")
    if isinstance(error, elasticsearch.ApiError):
        status = error.meta.status
        if status == 401:
            return NotAllowed(
                f"{where}: the cluster does not accept {credentials(connection)} (401); set {PREFIX}API_KEY, or "
                f"{PREFIX}USER and {PREFIX}PASSWORD, or name a file with --elasticsearch-api-key-file",
                status=status,
            )
        if status == 403:
            return NotAllowed(
                f"{where}: {credentials(connection)} lacks the privilege to {to} ({reason}); "
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
        return Unreachable(f"{where}: speaks no TLS; write http:// in place of https://", reason=reason)
    if isinstance(error, elastic_transport.TlsError):
        return Unreachable(
            f"{where}: TLS does not agree ({reason}); name the cluster's authority with --elasticsearch-ca-file, and a "
            "client certificate if it asks for one"
        )
    if isinstance(error, elastic_transport.ConnectionTimeout):
        return Unreachable(
            f"{where}: no answer within {connection.timeout:g} s when asked to {to}; raise --elasticsearch-timeout or "
            "look at the cluster's load"
        )
    if isinstance(error, elastic_transport.SerializationError):
        return WrongServer(f"{where}: answers with something that is no JSON ({reason}); check the URL")
    return Unreachable(
        f"{where}: not reachable ({reason}); start the cluster (docker compose up -d), or set {PREFIX}URL to where "
        "it is, with https:// if it speaks TLS"
    )


def credentials(connection: Connection) -> str:
    """Say who we are, without the secret."""
    if connection.api_key:
        return "the API key"
    if connection.user or connection.password:
        return f"user {connection.user or 'elastic'!r}"
    return "the client certificate" if connection.client_cert else "a request without credentials"


def check_shards(answer: Mapping[str, Any], where: str) -> None:
    """Refuse an answer that some shards are missing from: it would look like fewer names and facts."""
    failed: Sequence[Any] = ()
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        failed = answer.get("_shards", {}).get("failures") or ()
        reason = root_cause(failed[0].get("reason")) if failed else "timed out"
        raise Unreachable(f"{where}: some shards did not answer ({reason}); look at the cluster's health, try again")
