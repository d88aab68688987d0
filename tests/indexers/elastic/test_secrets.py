"""No secret, in no form, is in any output: every way in, with every error, as kbtools prints it."""

import base64
import html
import json
import logging
import quopri
import re
import ssl
import threading
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import trustme
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kbtools.cli.main import main
from kbtools.errors import KBToolsError
from kbtools.indexers.elastic.connection import Connection, read_connection
from tests.indexers.elastic.conftest import SmallServer

PASSWORD = "s3cret/of#the?reader,%41 é'\"@"
KEY = "c2VjcmV0LWtleS1vZi1yZWFkZXI6b25lLW9mLXRoZQ=="
Settings = tuple[dict[str, str], list[str]]
"""The environment, without the prefix of its variables, and the options of the command line."""


def forms_of(secret: str) -> set[str]:
    """Write a secret in every form that a request or a message may have of it."""
    data = secret.encode()
    plain = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), repr(secret)[1:-1], ascii(secret)[1:-1]}
    plain |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(data)[2:-1]}
    pairs = [data, b"reader:" + data, b"elastic:" + data]
    return plain | {base64.b64encode(pair).decode() for pair in pairs} | {base64.urlsafe_b64encode(data).decode()}


OTHER_FORMS: dict[str, Callable[[str], str]] = {
    "percent escapes in lower case": lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    "percent escapes of every byte": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent escapes twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent escapes of Latin-1": lambda text: quote(text.encode("latin-1"), safe=""),
    "HTML": lambda text: html.escape(text),
    "numbers in HTML": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "hexadecimal numbers in HTML": lambda text: "".join(f"&#x{ord(character):04X};" for character in text),
    "names in HTML": lambda text: text.replace("é", "&eacute;"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "escapes of JSON": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    "base64 without padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 of another user": lambda text: base64.b64encode(b"somebody:" + text.encode()).decode(),
    "base64 inside a text": lambda text: base64.urlsafe_b64encode(b"ab " + text.encode() + b" c").decode(),
    "base64 of Latin-1": lambda text: base64.b64encode(b"reader:" + text.encode("latin-1")).decode(),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "decomposed in base64": lambda text: base64.b64encode(unicodedata.normalize("NFD", text).encode()).decode(),
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "JSON in HTML": lambda text: html.escape(json.dumps(text)),
    "octal escapes": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "braces": lambda text: "".join(f"\\u{{{ord(character):x}}}" for character in text),
    "escapes of JavaScript": lambda text: "".join(f"%u{ord(character):04x}" for character in text),
    "quoted printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "UTF-8 read as Latin-1": lambda text: text.encode().decode("latin-1"),
    "Latin-1 read as UTF-8": lambda text: text.encode("latin-1").decode(errors="replace"),
    "ASCII alone": lambda text: text.encode("ascii", "replace").decode(),
    "a space that does not break": lambda text: text.replace(" ", "\u00a0"),
    "two lines": lambda text: f"{text[:9]}\n  {text[9:]}",
    "base64 in lines": lambda text: base64.encodebytes(b"reader:" + 3 * text.encode()).decode(),
    "base64 with percent escapes": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(b"reader:" + text.encode())).decode(),
    "hexadecimal with colons": lambda text: text.encode().hex(":"),
    "hexadecimal numbers": lambda text: ", ".join(map(hex, text.encode())),
    "numbers of bytes": lambda text: ", ".join(map(str, text.encode())),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in upper case": lambda text: text.encode("latin-1").hex().upper(),
}
"""Other ways in which a server, a proxy or a library may write a secret."""


def test_an_api_key_is_hidden_decoded_too() -> None:
    connection = Connection(("http://host:9200",), None, None, KEY)
    pair = base64.b64decode(KEY).decode()

    assert connection.hide(f"<{pair}>, <{pair.partition(':')[2]}>") == "<***>, <***>"


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_a_secret_is_hidden_in_any_form(form: str) -> None:
    connection = Connection(("http://host:9200",), "reader", PASSWORD, None)
    written = OTHER_FORMS[form](PASSWORD)

    hidden = connection.hide(f"the server said <{written}> and more")

    assert hidden == hidden.replace(written[4:-4], "")
    assert hidden.startswith("the server said <")
    assert hidden.endswith("> and more")
    assert "***" in hidden


def test_a_word_that_is_no_secret_is_not_hidden() -> None:
    text = "abc\\\\" * 20_000 + "only words of a server"
    assert Connection(("http://host:9200",), "reader", "śecrét 漢字", None).hide(text) == text
    assert Connection(("http://host:9200",), "reader", "abc", None).hide(text) == text


SHOWN = forms_of(PASSWORD) | forms_of(KEY) | forms_of(KEY[:20]) | {"s3cret", "the?reader", "the%3Freader"}


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def with_user(url: str, password: str) -> str:
    return url.replace("://", f"://reader:{password}@")


WAYS: dict[str, Callable[[str, Path], Settings]] = {
    "password in the environment": lambda url, folder: ({"URL": url, "PASSWORD": PASSWORD}, []),
    "key in the environment": lambda url, folder: ({"URL": url, "API_KEY": KEY + "\n"}, []),
    "password in a file": lambda url, folder: (
        {"URL": url, "USER": "reader", "PASSWORD_FILE": write(folder, "password", PASSWORD + "\n")},
        [],
    ),
    "password in a file of another system": lambda url, folder: (
        {"URL": url, "PASSWORD_FILE": write(folder, "password", "\ufeff" + PASSWORD + "\r\n")},
        [],
    ),
    "key in a file": lambda url, folder: ({"URL": url, "API_KEY_FILE": write(folder, "key", KEY + "\n")}, []),
    "password in the URL": lambda url, folder: ({"URL": with_user(url, quote(PASSWORD, safe=""))}, []),
}
"""The right places for a secret."""

MISPLACED: dict[str, Callable[[Path], Settings]] = {
    "raw in the URL": lambda folder: ({"URL": with_user("http://host:1", PASSWORD)}, []),
    "comma in the URL": lambda folder: ({"URL": "http://reader:s3cret,more@host:port"}, []),
    "in place of a port": lambda folder: ({"URL": "http://reader:s3cret"}, []),
    "in the query": lambda folder: ({"URL": "http://host/?key=s3cret"}, []),
    "without a scheme": lambda folder: ({"URL": "reader:s3cret@host"}, []),
    "in place of the URL": lambda folder: ({"URL": KEY}, []),
    "with a wrong escape": lambda folder: ({"URL": "http://reader:s3cret%FF@host"}, []),
    "in a URL with a wrong port": lambda folder: ({"URL": "http://reader:s3cret@host:99999"}, []),
    "in a URL of the command line": lambda folder: ({}, [f"--elasticsearch={with_user('http://host', PASSWORD)}"]),
    "without a scheme on the command line": lambda folder: ({}, ["--elasticsearch=reader:s3cret@host"]),
    "as the value of --elasticsearch": lambda folder: ({}, [f"--elasticsearch={KEY}"]),
    "beside the user": lambda folder: ({"USER": "reader:s3cret"}, []),
    "key of two lines": lambda folder: ({"API_KEY": KEY + "\n" + KEY}, []),
    "key of two lines in a file": lambda folder: ({"API_KEY_FILE": write(folder, "key", KEY + "\n" + KEY)}, []),
    "key that is not ASCII": lambda folder: ({"API_KEY": "s3cret-\u0142"}, []),
    "password that is no text": lambda folder: ({"PASSWORD": "s3cret\udcff"}, []),
    "password in place of its file": lambda folder: ({"PASSWORD_FILE": PASSWORD}, []),
    "key in place of its file": lambda folder: ({"API_KEY_FILE": KEY}, []),
    "key in place of the client's": lambda folder: (
        {"CLIENT_KEY": "s3cret", "CLIENT_CERT": write(folder, "cert.pem", "")},
        [],
    ),
    "client key that is none": lambda folder: (
        {
            "URL": "https://host",
            "CLIENT_CERT": write(folder, "cert.pem", "s3cret"),
            "CLIENT_KEY": write(folder, "key.pem", "s3cret"),
        },
        [],
    ),
    "client key with a passphrase": lambda folder: (
        {
            "URL": "https://host",
            "CLIENT_CERT": write(folder, "cert.pem", client_certificate()[0]),
            "CLIENT_KEY": write(folder, "key.pem", client_certificate()[1]),
        },
        [],
    ),
}
"""Wrong places for one, and right ones with a wrong value."""


def client_certificate() -> tuple[str, str]:
    """Make a client certificate and its key, encrypted with the password."""
    ours = trustme.CA().issue_cert("reader@example.org")
    key = load_pem_private_key(ours.private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return ours.cert_chain_pems[0].bytes().decode(), encrypted.decode()


def credentials_of(server: SmallServer) -> str:
    """Repeat the credentials of the last request, as sent and decoded, as a careless server might."""
    sent = server.headers[-1].get("authorization", "").partition(" ")[2]
    password = PASSWORD if sent != KEY else sent
    return f"{sent}, {password}, {quote(password, safe='')}, {password!r}, {json.dumps(password)}"


def echo(servers: list[SmallServer], status: int) -> Callable[..., tuple[int, object]]:
    """Answer with an error that repeats the credentials of the request."""

    def reply(method: str, path: str, body: bytes) -> tuple[int, object]:
        error = {"type": "security_exception", "reason": f"cannot let in {credentials_of(servers[0])}"}
        return status, {"error": error, "status": status}

    return reply


FAULTS = [
    "refused",
    "401",
    "403",
    "500",
    "503",
    "404",
    "product",
    "distribution",
    "page",
    "cut",
    "slow",
    "no TLS",
    "TLS",
]


@pytest.fixture(params=FAULTS)
def faulty(request: pytest.FixtureRequest, small_server: Callable[..., SmallServer], hello: dict[str, object]) -> str:
    """Give the URL of a server that does not answer as it should."""
    fault, servers = request.param, list[SmallServer]()
    if fault == "refused":
        return "http://127.0.0.1:1"
    replies: dict[str, Callable[..., tuple[int, object] | None]] = {
        "distribution": lambda *_: (200, {"version": {"number": "9.0", "distribution": credentials_of(servers[0])}}),
        "page": lambda *_: (200, f"<html>{credentials_of(servers[0])}"),
        "cut": lambda *_: None,
        "slow": lambda *_: request.getfixturevalue("released").wait(20) and None,
    }
    replies |= {status: echo(servers, int(status)) for status in FAULTS if status.isdigit()}
    reply = replies.get(fault, lambda *_: (200, hello))
    server = small_server(reply, product=None if fault == "product" else "Elasticsearch")
    servers.append(server)
    if fault == "TLS":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("localhost").configure_cert(context)
        server.speak_tls(context)
    return server.url.replace("http:", "https:") if "TLS" in fault else server.url


@pytest.fixture
def released() -> Iterator[object]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[..., str]:
    """Run a command that fails, and give all that could be read of it: output, traceback, error, log at DEBUG."""

    def run(environment: dict[str, str], options: list[str]) -> str:
        for name, value in environment.items():
            monkeypatch.setenv(f"KBTOOLS_ELASTICSEARCH_{name}", value)
        at = [] if any(option.startswith("--elasticsearch=") for option in options) else ["--elasticsearch"]
        monkeypatch.setenv("KBTOOLS_ELASTICSEARCH_TIMEOUT", "0.2")
        texts = []
        for flags in ([], ["--verbose", "--debug"]):
            with caplog.at_level(logging.DEBUG):
                result = CliRunner().invoke(main, [*flags, "info", *options, *at])
            error = result.exception
            assert result.exit_code in (1, 2), result.output
            assert isinstance(error, SystemExit if not flags or result.exit_code == 2 else KBToolsError), repr(error)
            assert flags or result.output.splitlines()[-1].startswith("Error: ")
            texts += [result.output, result.stderr, repr(error), str(error), *traceback.format_exception(error)]
            texts.append(repr(getattr(error, "facts", "")))
        texts += [f"{record.getMessage()} {record.args!r} {record.exc_text}" for record in caplog.records]
        return "\n".join(texts)

    return run


def shown_in(text: str) -> list[str]:
    return sorted(form for form in SHOWN if form in text)


@pytest.mark.parametrize("way", WAYS)
def test_no_error_of_a_cluster_shows_a_secret(
    printed: Callable[..., str], faulty: str, tmp_path: Path, way: str
) -> None:
    assert shown_in(printed(*WAYS[way](faulty, tmp_path))) == []


@pytest.mark.parametrize("way", MISPLACED)
def test_no_refusal_of_a_setting_shows_a_secret(printed: Callable[..., str], tmp_path: Path, way: str) -> None:
    assert shown_in(printed(*MISPLACED[way](tmp_path))) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_arrives_as_it_was_given_and_is_not_in_the_connection(tmp_path: Path, way: str) -> None:
    environment, _ = WAYS[way]("http://host:1", tmp_path)
    variables = {f"KBTOOLS_ELASTICSEARCH_{name}": value for name, value in environment.items()}
    connection = read_connection(None, variables)
    assert (connection.password, connection.api_key) in ((PASSWORD, None), (None, KEY))
    assert connection.where == "http://host:1"
    assert shown_in(repr(connection)) == []


def test_a_password_goes_to_the_server_in_utf8(
    small_server: Callable[..., SmallServer], printed: Callable[..., str]
) -> None:
    servers: list[SmallServer] = []
    servers.append(small_server(echo(servers, 401)))
    printed({"URL": servers[0].url, "USER": "jo\u00e3o", "PASSWORD": PASSWORD}, [])
    sent = servers[0].headers[0]["authorization"].removeprefix("Basic ")
    assert base64.b64decode(sent).decode() == f"jo\u00e3o:{PASSWORD}"


def test_an_escaped_user_and_a_name_that_is_not_ascii_are_read() -> None:
    connection = read_connection("http://jo%C3%A3o:a%40b@b\u00fccher.example:1/\u00e9s", {})
    assert (connection.user, connection.password) == ("jo\u00e3o", "a@b")
    assert connection.urls == ("http://xn--bcher-kva.example:1/%C3%A9s",)


def test_a_comma_in_a_password_is_no_end_of_a_url() -> None:
    connection = read_connection("http://a:b,c@one:1,https://two:2", {})
    assert (connection.password, connection.urls) == ("b,c", ("http://one:1", "https://two:2"))
