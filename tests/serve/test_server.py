"""The command as a process: where it listens, how it stops, and what hostile clients do to it."""

import http.client
import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from kbtools.cli.main import main
from kbtools.serve.app import prepare_process
from kbtools.serve.server import _BoundedProtocol, listen, raise_open_files, run_server
from kbtools.serve.settings import ServeSettings
from tests.serve.conftest import KBTOOLS, RunningServer, announced, serving

QUESTION = "/api/query?question=who+wrote+it&top=1"


def fetch(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        record: dict[str, object] = json.load(answer)
    return record


def is_alive(server: RunningServer) -> bool:
    return fetch(server.url + "health") == {"status": "up"}


def answer_of(server: RunningServer, sent: bytes) -> bytes:
    """Send bytes and read what comes first."""
    with socket.create_connection(server.address, timeout=30) as client:
        client.sendall(sent)
        return client.recv(65_536)


def logged(server: RunningServer, text: str) -> bool:
    """Wait until the log holds a text: its line is written when the answer has been sent."""
    return any(text in server.log.read_text() for _ in range(20_000))


def test_it_listens_on_this_machine_alone(server: RunningServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert is_alive(server)


def test_a_request_is_a_line_of_the_log(server: RunningServer) -> None:
    fetch(server.url.rstrip("/") + QUESTION)

    assert logged(server, f" 127.0.0.1 GET {QUESTION} 200 ")


def test_a_long_address_is_cut_in_the_log(server: RunningServer) -> None:
    with pytest.raises(urllib.error.HTTPError):
        fetch(server.url + "api/query?question=" + "a" * 20_000)

    assert logged(server, f"question={'a' * (2_000 - len('/api/query?question='))}...(20020B) 413 ")


def test_a_forged_address_of_a_client_is_one_word_of_the_log(server: RunningServer) -> None:
    request = urllib.request.Request(server.url + "health", headers={"X-Forwarded-For": "6.6.6.6 GET /admin"})

    urllib.request.urlopen(request, timeout=30).close()

    assert logged(server, " 6.6.6.6\\x20GET\\x20/admin GET /health 200 ")


def test_a_thousand_connections_held_open_do_no_harm(server: RunningServer) -> None:
    raise_open_files()
    with ExitStack() as stack:
        for _ in range(1_000):
            stack.enter_context(socket.create_connection(server.address)).sendall(b"GET /health HT")
        assert fetch(server.url.rstrip("/") + QUESTION)["answers_total"] == 1


def test_cut_connections_do_no_harm(server: RunningServer) -> None:
    head = b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    for _ in range(20):
        with socket.create_connection(server.address) as client:
            client.sendall(head)
    for _ in range(20):
        with socket.create_connection(server.address) as client:
            client.sendall(f"GET {QUESTION} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    assert is_alive(server)
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header\r\n\r\n",
        b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    ],
    ids=["TLS", "no address", "long address", "header", "length"],
)
def test_what_is_no_http_is_refused(server: RunningServer, sent: bytes) -> None:
    answer = answer_of(server, sent)

    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
    assert b"Traceback" not in answer
    assert is_alive(server)


@pytest.mark.parametrize(
    ("length", "status"), [(2_000, b"200"), (65_536, b"200"), (65_537, b"400"), (70_000, b"400"), (500_000, b"400")]
)
@pytest.mark.parametrize("line", [b"\r\n", b"\n"], ids=["CRLF", "LF"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_head_has_at_most_64_kilobytes(
    server: RunningServer, length: int, status: bytes, line: bytes, pieces: int
) -> None:
    begin = b"GET /health HTTP/1.1%sHost: localhost%sX: " % (line, line)
    head = begin + b"a" * (length - len(begin) - 2 * len(line)) + 2 * line
    size = -(-length // pieces)

    with socket.create_connection(server.address, timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):  # the rest of a head that is refused already
            for start in range(0, length, size):
                client.sendall(head[start : start + size])
        try:
            answer = client.recv(65_536)
        except ConnectionResetError:
            answer = b"HTTP/1.1 400"

    assert len(head) == length
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_ten_megabytes_get_an_answer(server: RunningServer) -> None:
    with closing(http.client.HTTPConnection(*server.address, timeout=30)) as connection:
        connection.request("POST", "/api/query", body=b"a" * 10_000_000)
        answer = connection.getresponse()
        record = json.load(answer)

    assert answer.status == 413
    assert record["error"]["kind"] == "RequestTooLarge"
    assert is_alive(server)


def test_a_body_that_does_not_arrive_is_given_up(sample_path: Path, tmp_path: Path) -> None:
    program = (
        "import sys, kbtools.serve.parameters as p, kbtools.serve.server as s; p.BODY_SECONDS = s.HEAD_SECONDS = 0.2;"
        "from kbtools.cli.main import main; main()"
    )
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", "--kb", str(sample_path), "--port", "0"], stderr=written
        )
    try:
        url = announced(process, log)
        address = RunningServer(process, url, log).address
        with (
            socket.create_connection(address, timeout=30) as slow,
            socket.create_connection(address, timeout=30) as mute,
        ):
            slow.sendall(b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            answer, nothing = slow.recv(65_536), mute.recv(1)
    finally:
        process.terminate()
        process.wait(20)

    assert answer.startswith(b"HTTP/1.1 408")
    assert nothing == b""


def test_it_stops_when_told_and_finishes_what_it_began(sample_path: Path, tmp_path: Path) -> None:
    questions = json.dumps({"questions": ["who created the character harry potter"] * 500, "top": 1})
    with serving(tmp_path / "log", "--kb", str(sample_path)) as running:
        with closing(http.client.HTTPConnection(*running.address, timeout=30)) as connection:
            connection.request("POST", "/api/query", body=questions)
            answer = connection.getresponse()
            running.process.send_signal(signal.SIGTERM)
            lines = answer.read().splitlines()
        code = running.process.wait(20)

    assert len(lines) == 500
    assert code in (0, -signal.SIGTERM)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_worker_processes_share_the_port_and_the_metrics(sample_path: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--kb", str(sample_path), "--workers", "2") as running:
        for _ in range(20):
            assert fetch(running.url.rstrip("/") + QUESTION)["answers_total"] == 1
        with urllib.request.urlopen(running.url + "metrics", timeout=30) as answer:
            metrics = answer.read().decode()

    assert 'kbtools_requests_total{endpoint="query",status="200"} 20.0' in metrics


def test_a_prefix_reaches_the_page(sample_path: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--kb", str(sample_path), "--root-path", "/kb") as running:
        assert running.url.endswith("/kb/")
        assert fetch(running.url + "api/info")["root"] == "/kb"


def test_a_connection_sends_each_packet_at_once() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_it_listens_on_the_first_address_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in ("127.0.0.1", "127.0.0.2")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *name, **kind: addresses)

    with listen("kb.example.org", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(("host", "address"), [("localhost", "http://localhost:"), ("::1", "http://[::1]:")])
def test_one_process_announces_its_address_and_shares_no_metrics(
    sample_path: Path, host: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtools.serve.server.listen", lambda host, port: socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    addresses: list[str] = []

    run_server(ServeSettings(kbs=(str(sample_path),)), host=host, port=0, workers=1, announce=addresses.append)

    assert [announced.startswith(address) for announced in addresses] == [True]
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_a_process_logs_its_requests(
    client: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    caplog.set_level(logging.WARNING, "kbtools.serve")
    caplog.handler.setLevel(logging.INFO)

    prepare_process()
    client.get("/health")

    assert "GET /health 200" in caplog.text


@pytest.mark.parametrize(
    ("began", "closing", "closed"), [(False, False, 1), (False, True, 0), (True, False, 0), (True, True, 0)]
)
def test_a_connection_is_closed_for_silence_before_its_first_request_alone(
    began: bool, closing: bool, closed: int
) -> None:
    transport = Mock(is_closing=Mock(return_value=closing))
    protocol = object.__new__(_BoundedProtocol)
    protocol.transport, protocol.cycle = transport, Mock() if began else None

    protocol.close_without_head()

    assert transport.close.call_count == closed


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1_024, 4_096, (4_096, 4_096)),
        (1_024, 1_000_000, (65_536, 1_000_000)),
        (1_024, resource.RLIM_INFINITY, (65_536, resource.RLIM_INFINITY)),
        (100_000, 1_000_000, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_of_connections_is_raised_as_far_as_allowed(
    soft: int, hard: int, raised: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: asked.append(limits))

    raise_open_files()

    assert asked == ([raised] if raised else [])


def test_a_port_that_is_taken_is_one_sentence(server: RunningServer, sample_path: Path) -> None:
    port = str(server.address[1])

    done = CliRunner().invoke(main, ["serve", "--kb", str(sample_path), "--port", port])

    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert f"127.0.0.1:{port}" in done.stderr
    assert "choose another with --port" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_missing_knowledge_base_is_one_sentence(tmp_path: Path, workers: str) -> None:
    done = subprocess.run(
        [KBTOOLS, "serve", "--kb", str(tmp_path / "no.kb"), "--port", "0", "--workers", workers],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "no.kb" in done.stderr
    assert "serving at" not in done.stderr


def test_a_missing_package_is_named_with_its_command(sample_path: Path) -> None:
    program = "import sys; sys.modules['uvicorn'] = None; from kbtools.cli.main import main; main()"

    done = subprocess.run(
        [sys.executable, "-c", program, "serve", "--kb", str(sample_path)], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 1
    assert done.stderr.startswith("Error: this needs uvicorn; install it with pip install ")
    assert "[serve]" in done.stderr
