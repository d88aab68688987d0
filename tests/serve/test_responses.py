"""Statuses, headers and bodies of answers: for each error its status, on every answer the headers for browsers."""

import asyncio
import base64
import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.testclient import TestClient

from kbtools import errors
from kbtools.serve.access import Access, Faults, PathPrefix, hosts_answered
from kbtools.serve.app import create_app
from kbtools.serve.responses import error_response, json_bytes
from kbtools.serve.settings import ServeSettings, kb_names

STATUSES = {
    errors.RequestTooLarge: 413,
    errors.RequestTooSlow: 408,
    errors.AnswerTooSlow: 504,
    errors.ServerBusy: 503,
    errors.RequestForbidden: 403,
    errors.UnknownEntity: 404,
    errors.VectorsMissing: 404,
    errors.BadArgument: 400,
    errors.BadQuestions: 400,
    errors.UnknownPlugin: 400,
    errors.UnknownType: 400,
    errors.UnknownLanguage: 400,
    errors.ModelMissing: 400,
    errors.MissingDependency: 501,
    errors.IncomingMissing: 501,
    errors.Unreachable: 502,
    errors.NotAllowed: 502,
    errors.KBUnusable: 500,
    errors.ModelUnusable: 500,
    ValueError: 500,
}


@pytest.mark.parametrize(("kind", "status"), STATUSES.items(), ids=[kind.__name__ for kind in STATUSES])
def test_an_error_has_its_status_and_headers(kind: type[Exception], status: int) -> None:
    request = Request(
        {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "server": None}
    )

    answer = error_response(request, kind("what is wrong"))

    assert answer.status_code == status
    assert answer.headers.get("connection") == ("close" if status in (408, 413) else None)
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)
    assert (b"what is wrong" in bytes(answer.body)) == (kind is not ValueError)
    assert (f'"kind":"{kind.__name__}"'.encode() in bytes(answer.body)) == (kind is not ValueError)


def test_what_json_cannot_hold_is_a_fault_of_the_program() -> None:
    with pytest.raises(TypeError, match="object"):
        json_bytes({"name": object()})


@pytest.mark.parametrize(
    "path", ["/api/info", "/api/nothing", "/reconcile", "/health", "/metrics", "/api/query", "/openapi.json"]
)
def test_an_answer_has_the_headers_for_browsers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_the_page_runs_its_own_script_alone(client: TestClient) -> None:
    page = client.get("/")

    (script,) = re.findall(rb"<script>(.*?)</script>", page.content, re.DOTALL)
    (style,) = re.findall(rb"<style>(.*?)</style>", page.content, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in (script, style)]
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hashes[0]}'",
        "style-src": f"'sha256-{hashes[1]}'",
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_preview_may_be_framed_and_runs_nothing(client: TestClient) -> None:
    policy = client.get("/reconcile/preview", params={"id": "m.042xh"}).headers["content-security-policy"]

    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.parametrize(
    ("address", "allowed", "hosts"),
    [
        ("127.0.0.1", (), ("localhost", "127.0.0.1")),
        ("::1", (), ("localhost", "::1")),
        ("127.0.0.1", ("KB.example",), ("localhost", "127.0.0.1", "kb.example")),
        ("10.0.0.7", ("kb.example", "b.example"), ("localhost", "10.0.0.7", "kb.example", "b.example")),
        ("10.0.0.7", (), ()),
        ("0.0.0.0", (), ()),
        ("127.0.0.1", ("kb.example", "*"), ()),
    ],
)
def test_hosts_that_are_answered(address: str, allowed: tuple[str, ...], hosts: tuple[str, ...]) -> None:
    assert hosts_answered(address, allowed) == hosts


def test_an_error_names_the_methods_of_its_path(client: TestClient) -> None:
    answer = client.put("/api/lookup")

    assert {*answer.headers["allow"].split(", ")} == {"GET", "HEAD", "POST"}
    assert answer.json() == {"error": {"kind": "HTTPError", "message": "method not allowed"}}


@pytest.mark.parametrize("path", ["/kb/api/info", "/api/info", "/kb", "/kbx/api/info", "/kb/kb/api/info"])
def test_a_prefix_is_a_whole_part_of_the_path(prefixed: TestClient, path: str) -> None:
    status = prefixed.get(path, follow_redirects=False).status_code

    assert status == (404 if path in ("/kbx/api/info", "/kb/kb/api/info") else 200 if "api" in path else 307)


@pytest.fixture(scope="module")
def prefixed(sample_path: Path) -> Iterator[TestClient]:
    with TestClient(create_app(ServeSettings(kbs=(str(sample_path),), root_path="/kb"))) as client:
        yield client


def test_the_description_names_the_prefix_as_its_server(prefixed: TestClient, client: TestClient) -> None:
    assert prefixed.get("/kb/openapi.json").json()["servers"] == [{"url": "/kb"}]
    assert client.get("/openapi.json").json()["servers"] == [{"url": "/"}]


FULL = ServeSettings(
    kbs=("a.kb", "b.kb"),
    backend="memory",
    models="models",
    tagger="tagger",
    device="cuda",
    trust_plugins=True,
    elasticsearch="http://localhost:9200",
    root_path="/kb",
    cors=("https://a.example", "https://b.example"),
    hosts=("localhost", "kb.example"),
    teach=True,
    link="https://www.wikidata.org/wiki/{id}",
)


@pytest.mark.parametrize("settings", [FULL, ServeSettings(kbs=("a.kb",))])
def test_worker_processes_get_every_setting(settings: ServeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTOOLS_SERVE_SETTINGS", "")

    settings.to_environment()

    assert ServeSettings.from_environment() == settings


@pytest.mark.parametrize("root", ["kb", "/kb//x", "/k b", "//kb", "/kb?x", "/é"])
def test_a_root_path_that_is_no_path_is_refused(root: str) -> None:
    with pytest.raises(errors.BadArgument, match="root path"):
        ServeSettings(kbs=("a",), root_path=root)


@pytest.mark.parametrize(
    ("link", "accepted"),
    [
        ("https://a.example/{id}", True),
        ("http://a.example/?q={id}#x", True),
        ("https://a.example/", False),
        ("ftp://a.example/{id}", False),
        ("javascript:'http://{id}'", False),
    ],
)
def test_a_link_is_an_address_with_a_place_for_the_id(link: str, accepted: bool) -> None:
    try:
        made = ServeSettings(kbs=("a",), link=link).link
    except errors.BadArgument:
        made = None

    assert made == (link if accepted else None)


def test_settings_reach_the_page_and_the_parts(sample_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, dict[str, Any]]] = []
    open_kb: Callable[..., Any] = __import__("kbtools").open

    def open_noted(kb: str, **options: Any) -> Any:
        opened.append((kb, options))
        return open_kb(kb)

    monkeypatch.setattr("kbtools.serve.live_kb.open_kb", open_noted)
    parts: dict[str, Any] = {"models": "m", "tagger": "t", "device": "cuda", "trust_plugins": True, "backend": "memory"}
    link = "https://a.example/{id}"
    with TestClient(create_app(ServeSettings(kbs=(str(sample_path),), link=link, teach=True, **parts))) as client:
        info = client.get("/api/info").json()

    assert opened == [(str(sample_path), parts)]
    assert (info["link"], info["teach"]) == (link, True)


class Balance(HTMLParser):
    """Elements of HTML that are open; every end has to close the innermost one."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("/reconcile/preview?id=m.042xh", ["J. K. Rowling", "m.042xh"]),
        ("/reconcile/flyout/entity?id=m.042xh", ["J. K. Rowling", "m.042xh"]),
        ("/reconcile/flyout/type?id=book.author", ["book.author", "people.person"]),
        ("/reconcile/flyout/property?id=book.written_work.author", ["book.written_work.author"]),
        ("/reconcile/preview?id=m.0nobody", ["not found", "no entity has the id"]),
    ],
)
def test_pages_and_flyouts_close_every_element(client: TestClient, path: str, texts: list[str]) -> None:
    answer = client.get(path)

    html = answer.json()["html"] if "flyout" in path else answer.text
    assert Balance(html).open == []
    assert [text for text in texts if text not in html] == []


def test_every_operation_is_described_whole(client: TestClient) -> None:
    described = client.get("/openapi.json").json()

    operations = [operation for methods in described["paths"].values() for operation in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    for operation in operations:
        assert operation["summary"]
        assert operation["responses"].keys() == {"200", "default"}
        for status, schema in operation["responses"].items():
            assert schema["description"]
            (name,) = {content["schema"]["$ref"] for content in schema["content"].values()}
            assert name.removeprefix("#/components/schemas/") in described["components"]["schemas"]
            assert ("Error" in name) is (status == "default")
    posts = {path: methods["post"] for path, methods in described["paths"].items() if "post" in methods}
    assert {path: sorted(post["responses"]["200"]["content"]) for path, post in posts.items()} == {
        "/api/query": ["application/json", "application/jsonl"],
        "/api/lookup": ["application/json", "application/jsonl"],
        "/api/link": ["application/json"],
        "/api/teach": ["application/json"],
    }
    schema = posts["/api/teach"]["requestBody"]["content"]["application/json"]["schema"]
    assert (schema["required"], schema["additionalProperties"]) == (["question"], False)


def ask_layers(app: Any, **scope: Any) -> list[dict[str, Any]]:
    """Send a request through the layers around an application; return the messages of the answer."""
    messages: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        messages.append(message)

    http = {"type": "http", "method": "GET", "path": "/x", "query_string": b"a=1", "headers": [], "client": ("me", 1)}
    asyncio.run(Access(Faults(app))({**http, "http_version": "1.1", "server": None, **scope}, None, send))
    return messages


@pytest.mark.parametrize(
    ("statuses", "bodies", "fault", "logged"),
    [
        ([200], [b"abc", b"defg"], None, "me GET /x?a=1 200 7B"),
        ([404], [b""], None, "me GET /x?a=1 404 0B"),
        ([], [], ClientDisconnect(), "me GET /x?a=1 499 0B"),
        ([200], [b"abc"], ClientDisconnect(), "me GET /x?a=1 499 3B"),
        ([], [], errors.ServerBusy("busy"), "me GET /x?a=1 503 48B"),
        ([], [], None, "me GET /x?a=1 499 0B"),
    ],
)
def test_a_line_of_the_log_has_status_and_bytes(
    caplog: pytest.LogCaptureFixture, statuses: list[int], bodies: list[bytes], fault: Exception | None, logged: str
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for status in statuses:
            await send({"type": "http.response.start", "status": status, "headers": []})
        for body in bodies:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        if fault:
            raise fault

    with caplog.at_level(logging.INFO, logger="kbtools.serve.access"):
        messages = ask_layers(app)

    (line,) = [record.getMessage() for record in caplog.records if record.name == "kbtools.serve.access"]
    assert logged in line
    assert len(messages) == len(statuses) + len(bodies) + 2 * isinstance(fault, errors.ServerBusy)


def test_an_answer_that_fails_half_way_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    messages: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        messages.append("begun")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise errors.ServerBusy("too late")

    with pytest.raises(errors.ServerBusy):
        ask_layers(app)

    assert messages == ["begun"]
    assert "ended early" in caplog.text


@pytest.mark.parametrize("layer", [Access, Faults, lambda app: PathPrefix(app, prefix="/kb")])
def test_what_is_no_request_passes_unchanged(layer: Callable[[Any], Any]) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    asyncio.run(layer(app)({"type": "lifespan"}, None, None))

    assert seen == [{"type": "lifespan"}]


@pytest.mark.parametrize("name", ["api", "health", "mcp", "metrics", "openapi.json", "ready", "reconcile"])
def test_a_path_of_the_server_is_no_name_of_a_knowledge_base(tmp_path: Path, name: str) -> None:
    assert kb_names([str(tmp_path / f"{name}s.kb"), str(tmp_path / "b")]) == [f"{name}s", "b"]
    for folder in (name, f"{name}.kb"):
        with pytest.raises(errors.BadArgument, match=f"{name}' is a path of the server"):
            kb_names([str(tmp_path / "b"), str(tmp_path / folder)])
