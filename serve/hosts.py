"""The host names that a server answers to: a page of another site can make a browser ask, and must not read.

A name of that site may be made to lead here (DNS rebinding), and a script may be asked for by JSONP.
"""

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kbtools.errors import RequestForbidden


def hosts_answered(address: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Give the names to answer to beside loopback ones, none for any: on a loopback address, those allowed."""
    if "*" in allowed or (not allowed and not is_loopback(address)):
        return ()
    return ("localhost", address, *(name.lower() for name in allowed))


def is_loopback(host: str) -> bool:
    """Tell whether a name leads to this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_of(headers: Headers) -> str:
    """Read the name that a request was sent to, without its port."""
    host = headers.get("host", "").lower()
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


class HostGuard:
    """A layer that turns away requests by other names, and scripts for pages of other sites from a loopback name."""

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str], any_site: bool) -> None:
        self.app, self.hosts, self.any_site = app, hosts, any_site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.check(Headers(scope=scope))
        await self.app(scope, receive, send)

    def check(self, headers: Headers) -> None:
        """Raise RequestForbidden for what is turned away; every browser names the host, so that one without is none."""
        host = host_of(headers)
        if host and self.hosts and host not in self.hosts and not is_loopback(host):
            raise RequestForbidden(f"no server here is named {host!r}; --allowed-host makes it one", name=host)
        crossing = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-dest") == "script"
        if crossing and is_loopback(host) and not self.any_site:
            raise RequestForbidden("a page of another site gets no script from here; --cors '*' lets it read all")
