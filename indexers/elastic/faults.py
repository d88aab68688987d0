"""Faults of a cluster: which of them pass, and a sentence for each, with its reason and the next step."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import elastic_transport
import elasticsearch

from kbtools.errors import NotAllowed, ServerError, Unreachable, WrongServer
from kbtools.indexers.elastic.connection import PREFIX, Connection

PASSING = frozenset({429, 502, 503, 504})
"""Answers of a cluster that is busy or loses a node: the same request may succeed later."""

PRESSURE = re.compile(r"_operation_bytes=(\d+), max_\w+_bytes=(\d+)")
"""The memory of a node that an operation takes, and the memory that all of them have."""


def passes(error: Exception) -> bool:
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
    """Return whether a request is more than the cluster takes at once, however idle it is."""
    if not isinstance(error, elasticsearch.ApiError):
        return False
    # A busy node refuses with 429 and has room later; a request beyond all its room is refused for ever.
    pressure = PRESSURE.search(str(error.body)) if error.meta.status == 429 else None
    return error.meta.status == 413 or (pressure is not None and int(pressure[1]) > int(pressure[2]))


def reason_of(error: Exception) -> str:
    """Return the innermost reason of an error of the client or the server."""
    if isinstance(error, elasticsearch.ApiError):
        body = error.body if isinstance(error.body, dict) else {}
        failures = (body.get("_shards") or {}).get("failures") or [{}]
        return f"{error.meta.status} {root_cause(body.get('error') or failures[0].get('reason'))}".strip()
    if isinstance(error, elastic_transport.SerializationError):
        return "an answer that is no JSON"  # its message is the whole answer
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    return f"{type(inner).__name__}: {str(inner)[:300]}"


def root_cause(error: Any) -> str:
    """Return the type and reason of the error in a response, those of its cause if it names one."""
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


def explain(error: Exception, to: str, connection: Connection) -> ServerError:
    """Return the error of kbtools for an error of the client, with one sentence."""
    where, reason = connection.where, connection.hide(reason_of(error))
    if isinstance(error, elasticsearch.UnsupportedProductError):
        return WrongServer(f"{where}: expected Elasticsearch, found another product; check the URL")
    if isinstance(error, elasticsearch.ApiError):
        status = error.meta.status
        if status == 401:
            return NotAllowed(
                f"{where}: the cluster does not accept {credentials(connection)} (401); set {PREFIX}API_KEY, or "
                f"{PREFIX}USER and {PREFIX}PASSWORD",
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
            f"{where}: TLS does not agree ({reason}); name the cluster's authority in {PREFIX}CA_FILE, and a "
            "client certificate if it asks for one"
        )
    if isinstance(error, elastic_transport.ConnectionTimeout):
        return Unreachable(
            f"{where}: no answer within {connection.timeout:g} s when asked to {to}; raise {PREFIX}TIMEOUT or "
            "look at the cluster's load"
        )
    if isinstance(error, elastic_transport.SerializationError):
        return WrongServer(f"{where}: answers with something that is no JSON; check the URL")
    return Unreachable(
        f"{where}: not reachable ({reason}); start the cluster (docker compose up -d), or set {PREFIX}URL to where "
        "it is, with https:// if it speaks TLS"
    )


def credentials(connection: Connection) -> str:
    """Describe our credentials, without the secret."""
    if connection.api_key:
        return "the API key"
    if connection.user or connection.password:
        return f"user {connection.user or 'elastic'!r}"
    return "the client certificate" if connection.client_cert else "a request without credentials"


def check_shards(answer: Mapping[str, Any], where: str) -> None:
    """Refuse an answer that lacks some shards: it would look like fewer names and facts."""
    if answer.get("timed_out") or answer.get("_shards", {}).get("failed"):
        failed = answer.get("_shards", {}).get("failures") or ()
        reason = root_cause(failed[0].get("reason")) if failed else "timed out"
        raise Unreachable(f"{where}: some shards did not answer ({reason}); look at the cluster's health, try again")
