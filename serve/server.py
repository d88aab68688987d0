"""Runs the application: one socket, worker processes that share it, a graceful stop."""

import os
import re
import resource
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from kbtools.serve.access import hosts_answered
from kbtools.serve.app import create_app, prepare_process
from kbtools.serve.live_kb import open_live_kb
from kbtools.serve.settings import ServeSettings, kb_names
from kbtools.storage import temporary_folder

HEAD_SECONDS = 10.0
"""Seconds within which a new connection must send the head of its first request."""

_HEAD_BYTES = 64 << 10
"""Most bytes of the head of a request, including its empty line."""

_STOP_SECONDS = 10
"""Seconds that requests have to finish once the server is stopped."""

_HEAD_END = re.compile(rb"\n\r?\n")
"""The end of a head; h11 accepts lines without a carriage return too."""

_BACKLOG = 2_048


class _BoundedProtocol(H11Protocol):
    """HTTP by h11 with a limited size of heads; a connection that sends none in time is closed."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.head_timer = self.loop.call_later(HEAD_SECONDS, self.close_without_head)

    def close_without_head(self) -> None:
        if cast(object, self.cycle) is None and not self.transport.is_closing():
            self.transport.close()

    def handle_events(self) -> None:
        """Process received data; refuse a too long head, which h11 would accept if it arrived at once."""
        if self.conn.their_state is h11.IDLE:
            arrived, _ = self.conn.trailing_data
            end = _HEAD_END.search(arrived)
            if (end.end() if end else len(arrived)) > _HEAD_BYTES:
                self.send_400_response(f"the head of the request has more than {_HEAD_BYTES:,} bytes")
                return
        super().handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        self.head_timer.cancel()
        super().connection_lost(exc)


def run_server(settings: ServeSettings, *, host: str, port: int, workers: int, announce: Callable[[str], None]) -> None:
    """Serve until stopped; `announce` is called with the address.

    Raises OSError if the address is unavailable, and as `open_kb` does, before it is announced.
    """
    raise_open_files()
    prepare_process()
    with ExitStack() as stack:
        listener = stack.enter_context(listen(host, port))
        settings = replace(settings, hosts=hosts_answered(listener.getsockname()[0], settings.hosts))
        if workers > 1:
            # Opened once here, since a worker that fails would be restarted endlessly.
            for name, kb in zip(kb_names(settings.kbs), settings.kbs, strict=True):
                open_live_kb(name, kb, settings).edition.answerer.close()
            settings.to_environment()
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(stack.enter_context(temporary_folder()))
        config = uvicorn.Config(
            "kbtools.serve.app:app_from_environment" if workers > 1 else create_app(settings),
            factory=workers > 1,
            http=_BoundedProtocol,
            ws="none",
            workers=workers,
            backlog=_BACKLOG,
            h11_max_incomplete_event_size=_HEAD_BYTES,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        announce(f"http://{_bracketed(host)}:{listener.getsockname()[1]}{settings.root_path}/")
        with suppress(KeyboardInterrupt):
            if workers > 1:
                Multiprocess(config, sockets=[listener]).run()
            else:
                uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Bind an address; raise OSError that names it if it is unavailable."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise OSError(f"{_bracketed(host)}:{port}: {error.strerror or error}; choose another with --port") from error
    # Connections inherit it: an answer's head and body are two packets, one of which would wait 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def raise_open_files() -> None:
    """Allow as many connections as the system permits: the usual limit of 1,024 is soft."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
