"""The server as an ASGI application: the page, and knowledge bases by name, the first also at the root."""

import base64
import hashlib
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from kbtools.answering.answerer import Answerer
from kbtools.serve.access import Access, Faults, HostGuard, PathPrefix, metrics
from kbtools.serve.api import KBAPI
from kbtools.serve.endpoints import describe
from kbtools.serve.live_kb import LiveKB, open_live_kb
from kbtools.serve.reconciliation import ReconciliationService
from kbtools.serve.responses import http_error_response, json_response
from kbtools.serve.settings import ServeSettings, kb_names
from kbtools.serve.workers import Workers

_T = TypeVar("_T")

_SWITCH_SECONDS = 0.0005
"""Seconds after which a computing thread yields to others, instead of Python's 0.005: next to two questions of 10,000
characters, the median of short ones fell from 44 to 14 ms, at the same speed for eight clients.
"""


def create_app(settings: ServeSettings, *, workers: Workers | None = None) -> Starlette:
    """Open the knowledge bases and build the application; raises as `open_kb` does."""
    threads = workers or Workers()
    kbs = [open_live_kb(name, kb, settings) for name, kb in zip(kb_names(settings.kbs), settings.kbs, strict=True)]

    agents = [_agent_app(kb, threads) for kb in kbs] if find_spec("mcp") else []
    routes_of = [_kb_routes(kb, threads, teach=settings.teach, link=settings.link) for kb in kbs]
    for routes, agent in zip(routes_of, agents, strict=False):
        routes += agent.routes

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for agent in agents:
                await stack.enter_async_context(agent.router.lifespan_context(agent))
            yield
        threads.close()

    app = Starlette(
        routes=[
            Route("/health", _health),
            Route("/ready", _ready_check(kbs)),
            Route("/metrics", metrics),
            *[Mount(f"/{kb.name}", routes=routes) for kb, routes in zip(kbs, routes_of, strict=True)],
            *routes_of[0],
        ],
        middleware=[
            Middleware(PathPrefix, prefix=settings.root_path),
            Middleware(Access),
            Middleware(CORSMiddleware, allow_origins=settings.cors, allow_methods=["GET", "POST"], allow_headers=["*"]),
            Middleware(Faults),
            Middleware(HostGuard, hosts=settings.hosts, any_site="*" in settings.cors),
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.state.kb_names = [kb.name for kb in kbs]
    return app


def app_from_environment() -> Starlette:
    """Build the application of a worker process."""
    prepare_process()
    return create_app(ServeSettings.from_environment())


def prepare_process() -> None:
    """Log requests and server messages to standard error, one line each; let threads switch often."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    logging.basicConfig(format="%(message)s")
    logging.getLogger("kbtools.serve").setLevel(logging.INFO)


def _kb_routes(kb: LiveKB, workers: Workers, *, teach: bool, link: str) -> list[BaseRoute]:
    """Return the routes of one knowledge base."""
    api = KBAPI(kb, workers, teach=teach, link=link)
    return [
        Route("/", _page),
        Route("/openapi.json", _openapi),
        *ReconciliationService(kb, workers).routes(),
        *api.routes(),
    ]


def _agent_app(kb: LiveKB, workers: Workers) -> Starlette:
    """Return the application that offers a knowledge base to agents, by the Model Context Protocol under /mcp."""
    from mcp.server.transport_security import TransportSecuritySettings

    from kbtools.serve.agent_tools import make_server

    async def ask(job: Callable[[Answerer], _T], /, *, characters: float) -> _T:
        return await workers.run_on(kb, lambda edition: job(edition.answerer), characters=characters)

    server = make_server(ask, name=kb.name)
    # HostGuard already checks the host of every request.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unguarded)


async def _health(request: Request) -> Response:
    """Report that the process runs."""
    return json_response({"status": "up"})


def _ready_check(kbs: list[LiveKB]) -> Callable[[Request], Any]:
    """Return the endpoint that reports the builds being served."""

    async def ready(request: Request) -> Response:
        digests = {kb.name: kb.edition.answerer.kb.manifest.digest for kb in kbs}
        return json_response({"status": "ready", "kbs": digests})

    return ready


async def _openapi(request: Request) -> Response:
    return json_response(describe(request.scope.get("root_path", "")))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return http_error_response(error.status_code, error.detail, error.headers or {})


_PAGE = files("kbtools.serve").joinpath("page.html").read_bytes()


def _inline_hash(element: str) -> str:
    """Return the Content-Security-Policy source for the page's only script or style sheet."""
    (text,) = re.findall(rb"<%s>(.*?)</%s>" % (element.encode(), element.encode()), _PAGE, flags=re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src {_inline_hash('script')}; style-src {_inline_hash('style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",
}


async def _page(request: Request) -> Response:
    """Return the page, which loads its content from the API."""
    return Response(_PAGE, media_type="text/html; charset=utf-8", headers=_HEADERS)
