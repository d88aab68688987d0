"""A connection is put together from the right places, and says in one sentence why it fails."""

import base64
import pickle
import re
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from kbtools.errors import NotAllowed, ServerError, Unreachable, WrongFormat, WrongServer
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.connection import read_connection
from tests.indexers.elastic.conftest import SmallServer

SECRET = "s3cret-and-long"


def refuse(status: int, kind: str = "security_exception") -> Callable[..., tuple[int, object]]:
    error = {"type": kind, "reason": "action [cluster:monitor/main] is unauthorized for user [reader]"}
    return lambda method, path, body: (status, {"error": {"root_cause": [error], **error}, "status": status})


def test_a_url_outranks_the_environment_and_both_the_default() -> None:
    environment = {"KBTOOLS_ELASTICSEARCH_URL": "http://there:1", "KBTOOLS_ELASTICSEARCH_USER": "reader"}
    assert read_connection(None, {}).urls == ("http://localhost:9200",)
    assert read_connection(None, environment).urls == ("http://there:1",)
    assert read_connection("http://here:2", environment).urls == ("http://here:2",)
    assert read_connection(None, environment).user == "reader"


def test_several_urls_ports_and_paths_are_read() -> None:
    found = read_connection("http://one, HTTPS://two/es/ ,http://[::1]:9,http://one:9200", {})
    assert found.urls == ("http://one:9200", "https://two:443/es", "http://[::1]:9")


@pytest.mark.parametrize("url", ["one:9200", "ftp://one", "http://", "http://one:port", "http://one,", ","])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(WrongFormat, match=r"expected http|[Pp]ort"):
        read_connection(url, {})


def test_secrets_come_from_the_environment_or_a_file_and_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET + "\n")
    by_file = read_connection(None, {"KBTOOLS_ELASTICSEARCH_API_KEY_FILE": str(tmp_path / "key")})
    by_environment = read_connection(None, {"KBTOOLS_ELASTICSEARCH_PASSWORD": SECRET})
    by_file_named_there = read_connection(None, {"KBTOOLS_ELASTICSEARCH_PASSWORD_FILE": str(tmp_path / "key")})
    in_url = read_connection(None, {"KBTOOLS_ELASTICSEARCH_URL": f"http://reader:{SECRET}@one:1"})
    assert (by_file.api_key, by_environment.password, by_file_named_there.password) == (SECRET, SECRET, SECRET)
    assert (in_url.user, in_url.password, in_url.urls) == ("reader", SECRET, ("http://one:1",))
    assert SECRET not in repr((by_file, by_environment, by_file_named_there, in_url)) + in_url.where


@pytest.mark.parametrize("content", [None, "", b"\xff\xfe"])
def test_a_secret_that_cannot_be_read_is_named_by_its_file(tmp_path: Path, content: bytes | str | None) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(NotAllowed, match="password"):
        read_connection(None, {"KBTOOLS_ELASTICSEARCH_PASSWORD_FILE": str(file)})


def test_certificates_must_exist(tmp_path: Path) -> None:
    with pytest.raises(WrongFormat, match=r"none\.pem: no such file; .* KBTOOLS_ELASTICSEARCH_CA_FILE"):
        read_connection(None, {"KBTOOLS_ELASTICSEARCH_CA_FILE": str(tmp_path / "none.pem")})


@pytest.mark.parametrize("timeout", ["soon", "0", "-1", "nan", "1e9"])
def test_a_timeout_is_a_number_of_seconds(timeout: str) -> None:
    with pytest.raises(WrongFormat, match="seconds"):
        read_connection(None, {"KBTOOLS_ELASTICSEARCH_TIMEOUT": timeout})


def test_a_refused_connection_says_where_and_how_to_start_one(
    connect: Callable[..., Cluster], impatient: Patience
) -> None:
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:1: not reachable .*refused.*docker compose up"):
        connect("http://127.0.0.1:1", patience=impatient).greet()


def test_another_product_is_told_by_its_headers(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], hello: dict[str, object]
) -> None:
    server = small_server(lambda *_: (200, hello), product=None)
    with pytest.raises(WrongServer, match="expected Elasticsearch, found another product"):
        connect(server.url).greet()


def test_another_product_is_told_by_what_it_says(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], hello: dict[str, object]
) -> None:
    hello["version"] = {"number": "9.1.0", "distribution": "opensearch"}
    server = small_server(lambda *_: (200, hello))
    with pytest.raises(WrongServer, match="found opensearch"):
        connect(server.url).greet()


def test_a_page_is_no_cluster(small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]) -> None:
    server = small_server(lambda *_: (200, {"welcome": "to the printer"}))
    with pytest.raises(WrongServer, match="found something else"):
        connect(server.url).greet()


@pytest.mark.parametrize("number", ["8.19.2", "10.0.0"])
def test_another_major_version_names_both_sides(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], hello: dict[str, object], number: str
) -> None:
    hello["version"] = {"number": number}
    server = small_server(lambda *_: (200, hello))
    with pytest.raises(WrongServer, match=rf"the server is Elasticsearch {number}, the client .* is 9\."):
        connect(server.url).greet()


def test_missing_credentials_name_the_variables(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    with pytest.raises(NotAllowed, match=r"a request without credentials \(401\).*KBTOOLS_ELASTICSEARCH_API_KEY"):
        connect(small_server(refuse(401)).url).greet()


def test_wrong_credentials_name_the_user_but_not_the_password(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    server = small_server(refuse(401))
    with pytest.raises(NotAllowed, match="user 'reader'") as caught:
        connect(server.url, user="reader", environment={"KBTOOLS_ELASTICSEARCH_PASSWORD": SECRET}).greet()
    assert SECRET not in str(caught.value) + repr(caught.value.facts)
    assert server.headers[0]["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("settings", "sent", "named"),
    [
        ({"USER": "reader"}, "reader:", "user 'reader'"),
        ({"PASSWORD": SECRET}, f"elastic:{SECRET}", "user 'elastic'"),
        ({"USER": "zo\u00eb", "PASSWORD": SECRET}, f"zo\u00eb:{SECRET}", "user 'zo\u00eb'"),
    ],
)
def test_a_user_alone_is_sent_and_a_password_alone_is_that_of_elastic(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    settings: dict[str, str],
    sent: str,
    named: str,
) -> None:
    server = small_server(refuse(401))
    with pytest.raises(NotAllowed, match=named):
        connect(server.url, **{name.lower(): text for name, text in settings.items()}).greet()
    assert server.headers[0]["authorization"] == f"Basic {base64.b64encode(sent.encode()).decode()}"


def test_an_api_key_is_sent_and_not_shown(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    server = small_server(refuse(401))
    with pytest.raises(NotAllowed, match="the API key") as caught:
        connect(server.url, environment={"KBTOOLS_ELASTICSEARCH_API_KEY": SECRET}).greet()
    assert SECRET not in str(caught.value)
    assert server.headers[0]["authorization"] == f"ApiKey {SECRET}"


def test_a_missing_privilege_is_named(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    with pytest.raises(NotAllowed, match=r"lacks the privilege to say hello .*cluster:monitor/main"):
        connect(small_server(refuse(403)).url).greet()


def test_a_cluster_that_takes_too_long_is_named_with_the_seconds(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], impatient: Patience
) -> None:
    import threading

    release = threading.Event()
    server = small_server(lambda *_: release.wait(20) and None)
    with pytest.raises(Unreachable, match=r"no answer within 0.2 s .*KBTOOLS_ELASTICSEARCH_TIMEOUT"):
        connect(server.url, timeout="0.2", patience=impatient).greet()
    release.set()


def test_a_storm_of_429_passes(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], impatient: Patience
) -> None:
    answers = [(429, {"error": "busy"})] * 4 + [(503, {}), (502, "<html>"), None, (200, {"calm": True})]
    server = small_server(lambda *_: answers.pop(0))
    assert connect(server.url, patience=impatient).ask("GET", "/x", to="wait") == {"calm": True}
    assert len(server.requests) == 8


def test_a_storm_that_does_not_pass_ends_with_its_reason(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], impatient: Patience
) -> None:
    server = small_server(lambda *_: (429, {"error": {"type": "circuit_breaking_exception", "reason": "too large"}}))
    with pytest.raises(Unreachable, match=r"could not wait.*429 circuit_breaking_exception: too large"):
        connect(server.url, patience=impatient).ask("GET", "/x", to="wait")
    assert 3 < len(server.requests) < 20


def test_an_error_that_will_not_pass_is_not_tried_again(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], impatient: Patience
) -> None:
    server = small_server(refuse(400, "parsing_exception"))
    with pytest.raises(ServerError, match=r"could not ask.*400 parsing_exception"):
        connect(server.url, patience=impatient).ask("GET", "/x", to="ask")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "reason", "is_repeated"),
    [
        (413, "", False),
        (429, "rejected [current_coordinating_operation_bytes=51, max_coordinating_bytes=50]", False),
        (429, "rejected [current_coordinating_operation_bytes=50, max_coordinating_bytes=50]", True),
        (429, "rejected", True),
    ],
)
def test_what_is_more_than_a_cluster_ever_takes_is_not_tried_again(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    impatient: Patience,
    status: int,
    reason: str,
    is_repeated: bool,
) -> None:
    server = small_server(lambda *_: (status, {"error": {"type": "es_rejected", "reason": reason}}))
    with pytest.raises(ServerError):
        connect(server.url, patience=impatient).ask("POST", "/_bulk", to="store", body={})
    assert (len(server.requests) > 1) is is_repeated


@given(st.floats(0, 40, allow_subnormal=False), st.floats(0.01, 2), st.floats(0.05, 5))
def test_pauses_double_up_to_the_longest_and_end_with_patience(total: float, first: float, longest: float) -> None:
    spent = 0.0
    for number, pause in enumerate(Patience(total, first, longest).waits()):
        most = min(first * 2**number, longest, total - spent)
        assert 0.8 * most <= pause <= most
        spent += max(pause, 0.001)
    assert spent >= total


def test_what_is_missing_is_an_error_unless_it_may_be(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    cluster = connect(small_server(lambda *_: (404, {"error": {"type": "not_found", "reason": "no x"}})).url)

    assert cluster.ask("GET", "/x", to="look", missing_ok=True) is None
    with pytest.raises(ServerError, match=r"could not look \(404 not_found: no x\)"):
        cluster.ask("GET", "/x", to="look")


def test_a_request_names_the_kind_of_its_body(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    server = small_server(lambda *_: (200, {}))
    cluster = connect(server.url)

    cluster.ask("GET", "/x", to="look")
    cluster.ask("POST", "/x", {"query": {}}, to="search")
    cluster.ask("POST", "/_bulk", b"{}\n", to="store", lines=True)

    kinds = [re.findall(r"[\w-]+(?=;|$)", headers.get("content-type", "")) for headers in server.headers]
    assert [kind[0] if kind else None for kind in kinds] == [None, "json", "x-ndjson"]


def test_the_reason_of_a_shard_is_the_reason_of_the_request(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], impatient: Patience
) -> None:
    cause = {"type": "io_exception", "reason": "no such library"}
    failure = {"shard": 0, "reason": {"type": "refresh_failed", "reason": "failed", "caused_by": cause}}
    server = small_server(lambda *_: (500, {"_shards": {"total": 1, "failed": 1, "failures": [failure]}}))
    with pytest.raises(ServerError, match=r"could not refresh \(500 io_exception: no such library\)"):
        connect(server.url, patience=impatient).ask("POST", "/x/_refresh", to="refresh")


def test_the_other_nodes_answer_where_one_is_down(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    impatient: Patience,
    hello: dict[str, object],
) -> None:
    server = small_server(lambda *_: (200, hello))
    cluster = connect(f"http://127.0.0.1:1,{server.url}", patience=impatient)
    assert cluster.ask("GET", "/", to="say hello")["name"] == "small"


def test_a_cluster_is_greeted_by_whichever_node_is_up(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], hello: dict[str, object]
) -> None:
    server = small_server(lambda *_: (200, hello))
    for down in ("http://127.0.0.1:1,http://127.0.0.1:2,{}", "http://127.0.0.1:1,{},http://127.0.0.1:2"):
        assert connect(down.format(server.url)).greet() == hello


def test_errors_survive_pickling(connect: Callable[..., Cluster], impatient: Patience) -> None:
    with pytest.raises(Unreachable) as caught:
        connect("http://127.0.0.1:1", patience=impatient).greet()
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls_server(
    small_server: Callable[..., SmallServer], authority: trustme.CA, hello: dict[str, object]
) -> Callable[..., SmallServer]:
    def start(*, client_certificate: bool = False) -> SmallServer:
        server = small_server(lambda *_: (200, hello))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        if client_certificate:
            authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        server.speak_tls(context)
        return server

    return start


def test_an_unknown_authority_asks_for_the_ca_file(
    tls_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    with pytest.raises(Unreachable, match=r"the TLS handshake failed .*KBTOOLS_ELASTICSEARCH_CA_FILE"):
        connect(tls_server().url).greet()


def test_the_authority_of_the_ca_file_is_trusted(
    tls_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    authority: trustme.CA,
    tmp_path: Path,
    hello: dict[str, object],
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    assert connect(tls_server().url, ca_file=str(tmp_path / "ca.pem")).greet() == hello


def test_a_client_certificate_lets_us_in(
    tls_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    authority: trustme.CA,
    tmp_path: Path,
    hello: dict[str, object],
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    ours = authority.issue_cert("reader@example.org")
    ours.private_key_pem.write_to_path(tmp_path / "key.pem")
    ours.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    files = {"ca_file": "ca.pem", "client_cert": "cert.pem", "client_key": "key.pem"}
    given = {name: str(tmp_path / file) for name, file in files.items()}
    assert connect(tls_server(client_certificate=True).url, **given).greet() == hello


def test_without_a_client_certificate_nothing_is_said(
    tls_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    authority: trustme.CA,
    tmp_path: Path,
    impatient: Patience,
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = tls_server(client_certificate=True)
    with pytest.raises(Unreachable, match=server.url):
        connect(server.url, ca_file=str(tmp_path / "ca.pem"), patience=impatient).greet()


def test_a_file_that_is_no_certificate_is_refused(connect: Callable[..., Cluster], tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(Unreachable, match=r"ca\.pem cannot be used as certificates"):
        connect("https://localhost:1", ca_file=str(tmp_path / "ca.pem"))


def test_tls_asked_of_a_server_without_it_says_so(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], hello: dict[str, object]
) -> None:
    server = small_server(lambda *_: (200, hello))
    with pytest.raises(Unreachable, match="no TLS; use http://"):
        connect(server.url.replace("http://", "https://")).greet()
