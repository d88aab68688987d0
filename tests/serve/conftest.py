"""Servers for tests: the application in this process, and the command in its own process."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings

KBTOOLS = str(Path(sysconfig.get_path("scripts"), "kbtools"))
SCHEMAS = Path(__file__).resolve().parents[3] / "shared" / "reconciliation" / "0.2"


@dataclass(frozen=True)
class RunningServer:
    """The command `kbtools serve` as a process; `log` is its standard error."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split("/")[0].rsplit(":", 1)
        return host, int(port)


@contextmanager
def serving(log: Path, *arguments: str) -> Iterator[RunningServer]:
    """Run the command until the block ends; raise AssertionError if it does not start."""
    with log.open("wb") as written:
        process = subprocess.Popen([KBTOOLS, "serve", "--port", "0", *arguments], stderr=written)
    try:
        url = announced(process, log)
        yield RunningServer(process, url, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def announced(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that the server prints, once it accepts connections."""
    while process.poll() is None:
        # A loop without a wait would take a core from the server.
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        announcement = re.search(r"serving at (\S+)", log.read_text())
        if announcement:
            host, port = announcement[1].split("/")[2].rsplit(":", 1)
            socket.create_connection((host, int(port)), timeout=20).close()
            return announcement[1]
    raise AssertionError(log.read_text())


class LoopTransport(httpx2.BaseTransport):
    """Requests to an application in an event loop of this thread."""

    def __init__(self, app: Starlette, loop: asyncio.Runner) -> None:
        self.loop, self.transport = loop, httpx2.ASGITransport(app, client=("testclient", 50000))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.loop.run(self.answer(request))

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self.transport.handle_async_request(request)
        return httpx2.Response(answer.status_code, headers=answer.headers, content=await answer.aread())


class LoopClient(TestClient):
    """A client whose application runs in this thread, and only during requests.

    `TestClient` changes threads eight times a request, which takes longer than most answers.
    """

    app: Starlette

    def __enter__(self) -> Self:
        self.loop, self.ended = asyncio.Runner(), asyncio.Event()
        self._transport = LoopTransport(self.app, self.loop)
        self.loop.run(self.start())
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.run(self.stop())
        self.loop.close()

    async def start(self) -> None:
        started = asyncio.Event()
        self.life = asyncio.create_task(self.live(started))
        await started.wait()

    async def live(self, started: asyncio.Event) -> None:
        """Start and end the application in one task, as its own tasks need."""
        try:
            async with self.app.router.lifespan_context(self.app):
                started.set()
                await self.ended.wait()
        finally:
            started.set()

    async def stop(self) -> None:
        self.ended.set()
        await self.life


@pytest.fixture(scope="session")
def client(sample_path: Path) -> Iterator[TestClient]:
    """Yield a client of the application over the sample, in this process."""
    with LoopClient(create_app(ServeSettings(kbs=(str(sample_path),)))) as session:
        yield session


@pytest.fixture(scope="session")
def server(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Yield the running command over the sample."""
    with serving(tmp_path_factory.mktemp("server") / "log", "--kb", str(sample_path)) as running:
        yield running


@pytest.fixture(scope="session")
def scripted_path(make_kb: Callable[..., Any], new_world: Any) -> Path:
    """Build a knowledge base whose names are markup, right to left, and longer than a line."""
    world = new_world(
        facts=(
            ("m.01script", "film.film.director", "m.02arabic"),
            ("m.01script", "film.film.note", '"<b>bold</b>"@en'),
            ("m.02arabic", "people.person.place_of_birth", "m.03long"),
        ),
        names=(
            ("m.01script", "<script>document.title='forged'</script>"),
            ("m.02arabic", "يوسف شاهين"),
            ("m.03long", "A name " + "without any end " * 20),
        ),
        types=(("m.01script", "film.film"), ("m.02arabic", "people.person")),
    )
    return make_kb("embedded", world).path


@pytest.fixture(scope="session")
def schemas() -> Path:
    """Return the schemas and examples of the reconciliation API, or skip."""
    if not SCHEMAS.is_dir():
        pytest.skip(f"{SCHEMAS} does not exist; it should contain the schemas of the Reconciliation Service API 0.2")
    return SCHEMAS


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the browser, or skip; fail if browsers are required."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        missing = "needs a browser: apt-get install chromium chromium-driver"
        (pytest.fail if os.environ.get("KBTOOLS_TEST_BROWSER_REQUIRED") else pytest.skip)(missing)
    return browser or ""
