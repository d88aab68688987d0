"""The names that a server answers to: a page of another site that makes a browser ask reads nothing."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from kbtools.errors import RequestForbidden
from kbtools.serve.access import HostGuard, hosts_answered
from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings
from tests.serve.conftest import RunningServer
from tests.serve.test_server import answer_of

CROSS_SITE = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "script"}
REFINE = {"sec-fetch-site": "same-site", "sec-fetch-dest": "script"}


NAMED = ("kb.example.org",)


@pytest.fixture(scope="module")
def app_of(sample_path: Path) -> Callable[..., TestClient]:
    """Return a function for the client of a server with an address, names and origins that it allows, each once."""

    @functools.cache
    def client(address: str, *, allowed: tuple[str, ...] = (), cors: tuple[str, ...] = ()) -> TestClient:
        settings = ServeSettings(kbs=(str(sample_path),), hosts=hosts_answered(address, allowed), cors=cors)
        return TestClient(create_app(settings), base_url="http://127.0.0.1:8000")

    return client


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("LOCALHOST:8000", 200),
        ("[::1]:8000", 200),
        ("kb.example.org", 200),
        ("KB.example.org:443", 200),
        ("rebound.example", 403),
        ("127.0.0.1.rebound.example:8000", 403),
        ("kb.example.org.rebound.example", 403),
        ("[::1]", 200),
        ("[::1].evil.com", 403),
        ("[::1]evil.com:8000", 403),
        ("[127.0.0.1]@evil.com", 403),
        ("localhost:8000.evil.com", 403),
        ("localhost:evil.com", 403),
        ("[::1", 403),
        ("[localhost]", 403),
    ],
)
def test_a_server_of_this_machine_answers_to_its_names_alone(
    app_of: Callable[..., TestClient], host: str, status: int
) -> None:
    answer = app_of("127.0.0.1", allowed=NAMED).get("/health", headers={"host": host})

    assert answer.status_code == status
    assert status == 200 or "--allowed-host" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("address", "allowed"), [("192.168.0.2", ()), ("0.0.0.0", ()), ("127.0.0.1", ("*",))])
def test_a_server_of_a_network_answers_to_any_name(
    app_of: Callable[..., TestClient], address: str, allowed: tuple[str, ...]
) -> None:
    answer = app_of(address, allowed=allowed).get("/health", headers={"host": "kb.example.org"})

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("headers", "cors", "status"),
    [
        (CROSS_SITE, (), 403),
        (CROSS_SITE, ("*",), 200),
        (REFINE, (), 200),
        (CROSS_SITE | {"host": "kb.example.org"}, (), 200),
    ],
    ids=["another site", "every site allowed", "OpenRefine on this machine", "a public name"],
)
def test_a_page_of_another_site_gets_no_script_from_this_machine(
    app_of: Callable[..., TestClient], headers: dict[str, str], cors: tuple[str, ...], status: int
) -> None:
    server = app_of("127.0.0.1", allowed=NAMED, cors=cors)

    answer = server.get("/reconcile", params={"callback": "read"}, headers=headers)

    assert answer.status_code == status
    assert status == 200 or "sample" not in answer.text


@pytest.mark.parametrize("any_site", [False, True])
def test_scripts_of_this_machine_are_for_other_sites_if_every_site_is_allowed(any_site: bool) -> None:
    guard = HostGuard(Mock(), hosts=(), any_site=any_site)

    with nullcontext() if any_site else pytest.raises(RequestForbidden, match=r"--cors '\*'"):
        guard.check(Headers({"host": "localhost", **CROSS_SITE}))


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /health HTTP/1.1\r\nHost: rebound.example\r\n\r\n", b"403"),
        (b"GET /health HTTP/1.0\r\n\r\n", b"200"),
    ],
    ids=["another name", "none"],
)
def test_the_command_answers_to_its_names_alone(server: RunningServer, head: bytes, status: bytes) -> None:
    assert answer_of(server, head).startswith(b"HTTP/1.1 " + status)


PAGE = "https://refine.example:8443"
OTHERS = {
    "null": "null",
    "none": "",
    "any": "*",
    "another scheme": "http://refine.example:8443",
    "no port": "https://refine.example",
    "another port": "https://refine.example:8444",
    "a subdomain": "https://a.refine.example:8443",
    "a longer name": "https://refine.example.evil.example:8443",
    "the end of the name": "https://evilrefine.example:8443",
    "a user": "https://refine.example:8443@evil.example",
    "a path": "https://refine.example:8443/",
    "capitals": "HTTPS://REFINE.EXAMPLE:8443",
    "a dot": "https://refine.example.:8443",
    "two": "https://refine.example:8443 https://evil.example",
    "two with a comma": "https://refine.example:8443, https://evil.example",
    "a file": "file://",
    "an extension": "chrome-extension://abcdefghijklmnop",
    "an address": "https://[::1]:8443",
    "a long one": "https://" + "a" * 10_000,
    "no ASCII": "https://r\u00e9fine.example:8443",
}


@pytest.mark.parametrize("origin", OTHERS.values(), ids=OTHERS)
def test_a_page_of_another_origin_reads_nothing(app_of: Callable[..., TestClient], origin: str) -> None:
    answers = ask_across(app_of("0.0.0.0", cors=("https://one.example", PAGE)), origin)

    assert {answer.headers.get("access-control-allow-origin") for answer in answers} == {None}
    assert {answer.headers.get("access-control-allow-credentials") for answer in answers} == {None}


@pytest.mark.parametrize(("cors", "allowed"), [((PAGE,), PAGE), (("*",), "*")])
def test_a_page_of_an_origin_that_is_named_reads_answers(
    app_of: Callable[..., TestClient], cors: tuple[str], allowed: str
) -> None:
    answers = ask_across(app_of("0.0.0.0", cors=cors), PAGE)

    assert {answer.headers.get("access-control-allow-origin") for answer in answers} == {allowed}
    assert {answer.headers.get("access-control-allow-credentials") for answer in answers} == {None}


def ask_across(asking: TestClient, origin: str) -> list[Any]:
    """Send what a browser sends for a page of another origin: simple requests, and a look before others."""
    headers = {b"origin": origin.encode()}
    wanted = headers | {b"access-control-request-method": b"POST", b"access-control-request-headers": b"content-type"}
    return [
        asking.get("/api/info", headers=headers),
        asking.get("/api/entity/m.0nobody", headers=headers),
        asking.post("/api/lookup", json={"name": "It"}, headers=headers),
        asking.options("/api/lookup", headers=wanted),
    ]
