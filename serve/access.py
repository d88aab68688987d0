"""Checks and records around every request: accepted hosts, the log, metrics, and headers for browsers.

A foreign domain may be made to resolve to this machine (DNS rebinding), and JSONP loads data as a script: pages of
other sites can send such requests, but must not read the answers.
"""

import ipaddress
import logging
import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbtools.errors import RequestForbidden
from kbtools.serve.responses import error_response

logger = logging.getLogger(__name__)

_UNPRINTABLE = re.compile(rb"[^!#-\[\]-~]")
"""Bytes that occur in an address only to forge a log: spaces, quotes, backslashes, control characters."""

_LONGEST = 2_000
"""Bytes of an address in the log; those of most questions are far shorter."""

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::[0-9]*)?")
"""A host, in brackets if it is an IPv6 address, with an optional port."""

_GONE = 499
"""The status in logs for a client that disconnected."""

_REGISTRY = CollectorRegistry()
_REQUESTS = Counter("kbtools_requests", "Requests, by endpoint and status.", ("endpoint", "status"), registry=_REGISTRY)
_SECONDS = Histogram(
    "kbtools_request_seconds",
    "Seconds from the first byte of a request to the last of its answer.",
    ("endpoint",),
    registry=_REGISTRY,
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
)

_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer that does not set its own."""


async def metrics(request: Request) -> Response:
    """Return the metrics of this server for Prometheus, over all its worker processes."""
    registry = _REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), media_type="text/plain; version=0.0.4; charset=utf-8")


class PathPrefix:
    """A layer that serves under a path prefix, whether or not the proxy strips it."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self.app, self.prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.prefix:
            path = scope["path"]
            if not f"{path}/".startswith(f"{self.prefix}/"):
                path = self.prefix + path
            scope = {**scope, "path": path, "root_path": self.prefix, "app_root_path": self.prefix}
        await self.app(scope, receive, send)


class Access:
    """A layer that logs and counts each request, and adds the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        status, sent = _GONE, 0

        async def observed(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, observed)
        except ClientDisconnect:
            status = _GONE
        finally:
            seconds = time.perf_counter() - begun
            endpoint = getattr(scope.get("endpoint"), "__name__", "none").lstrip("_")
            _REQUESTS.labels(endpoint, str(status)).inc()
            _SECONDS.labels(endpoint).observe(seconds)
            logger.info("%s %d %dB %.1fms", _address(scope), status, sent, 1000 * seconds)


class Faults:
    """A layer that converts errors to answers, inside the CORS layer so that pages may read errors as well."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def observed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, observed)
        except ClientDisconnect:
            raise
        except Exception as error:
            if begun:  # A dropped connection shows that the answer is incomplete.
                logger.error("%s ended early: %s", _address(scope), ascii(error))
                raise
            await error_response(Request(scope), error)(scope, receive, send)


def _address(scope: Scope) -> str:
    """Format time, client and request without spaces inside, so that no request can forge a line of the log."""
    client = (scope.get("client") or ("-",))[0]
    target = scope.get("raw_path") or scope["path"].encode()
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{now} {_printable(client.encode())} {scope['method']} {_logged(target)}"


def _logged(target: bytes) -> str:
    """Return an address for the log, cut if it is long: a single one may have 60,000 bytes."""
    return _printable(target) if len(target) <= _LONGEST else f"{_printable(target[:_LONGEST])}...({len(target)}B)"


def _printable(raw: bytes) -> str:
    return _UNPRINTABLE.sub(lambda match: b"\\x%02x" % match.group()[0], raw).decode("ascii")


def hosts_answered(address: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the accepted hosts besides loopback names: those allowed if listening on loopback, else empty for any."""
    if "*" in allowed or (not allowed and not _is_loopback(address)):
        return ()
    return ("localhost", address, *(name.lower() for name in allowed))


def _is_loopback(host: str) -> bool:
    """Return whether a host always refers to this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host_of(headers: Headers) -> str:
    """Return the host of a request without its port; unchanged if it is malformed."""
    host = headers.get("host", "").lower()
    parts = _HOST.fullmatch(host)
    return (parts[1] or parts[2]) if parts else host


class HostGuard:
    """A layer that refuses requests for other hosts, and scripts requested by pages of other sites from loopback."""

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str], any_site: bool) -> None:
        self.app, self.hosts, self.any_site = app, hosts, any_site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.check(Headers(scope=scope))
        await self.app(scope, receive, send)

    def check(self, headers: Headers) -> None:
        """Raise RequestForbidden for refused requests; one without a host is accepted, since no browser sends it."""
        host = _host_of(headers)
        if host and self.hosts and host not in self.hosts and not _is_loopback(host):
            raise RequestForbidden(
                f"this server does not accept the host {host!r}; allow it with --allowed-host", name=host
            )
        crossing = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-dest") == "script"
        if crossing and _is_loopback(host) and not self.any_site:
            raise RequestForbidden(
                "pages of other sites may not load scripts from this server; allow it with --cors '*'"
            )
