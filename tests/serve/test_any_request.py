"""Any request is answered, or refused in a sentence: every endpoint, every parameter, every type of JSON value."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from kbtools.serve.endpoints import ENDPOINTS
from kbtools.serve.parameters import parameter_schemas

NAMES = sorted(
    {name for endpoint in ENDPOINTS for kind in endpoint.methods.values() for name in kind.__struct_fields__}
)
WORDS = (
    "harry potter",
    "m.042xh",
    "n-gram",
    "lexical",
    "type-count",
    "popularity",
    "weighted-sum",
    "book.book",
    "en",
    "",
)
ODD = (
    "²",
    "٣",
    "9" * 400,
    "-1",
    "1e400",
    "NaN",
    "1_0",
    " 5",
    "true",
    "null",
    "\ud800",
    "\x00",
    "a" * 20_000,
    "os:system",
)

texts = st.sampled_from(WORDS) | st.sampled_from(ODD) | st.text(max_size=20)
numbers = st.integers() | st.floats(allow_subnormal=False) | st.sampled_from([10**400, -(10**400), 2**63, 5.0, 0.5])
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(st.sampled_from(NAMES) | texts, values, max_size=4)

properties = st.fixed_dictionaries({}, optional={"pid": values, "v": values, "id": values, "settings": values})
settings_of = st.fixed_dictionaries({}, optional={"limit": values, "content": values})
queries = st.fixed_dictionaries(
    {},
    optional={
        "query": values, "type": values, "limit": values, "type_strict": values, "other": values,
        "properties": values | st.lists(properties, max_size=3),
    },
)  # fmt: skip
extensions = st.fixed_dictionaries(
    {},
    optional={
        "ids": values | st.lists(texts, max_size=3),
        "properties": values
        | st.lists(st.fixed_dictionaries({}, optional={"id": texts, "settings": values | settings_of}), max_size=3),
    },
)

POSTED = [endpoint for endpoint in ENDPOINTS if endpoint.post]


def requests(number: int, *, of_each: int = 1) -> settings:
    """Return the settings for a number of requests, when each example makes `of_each`: drawing one takes longest."""
    return settings(max_examples=-(-number // of_each), deadline=None, suppress_health_check=list(HealthCheck))


def encoded(record: object) -> bytes:
    """Write JSON as Python does, NaN and endless numbers among it."""
    return json.dumps(record).encode()


def check(answer: Any) -> None:
    """Check that an answer is one, or a fault of the request with a sentence that says so."""
    assert 200 <= answer.status_code < 300 or 400 <= answer.status_code < 500, (answer.status_code, answer.text[:300])
    if answer.status_code >= 400 and answer.headers["content-type"].startswith("text/html"):
        assert "no entity has the id" in answer.text
    elif answer.status_code >= 400:
        fault = answer.json()["error"]
        assert fault["kind"] != "InternalError"
        assert len(fault["message"]) > 5


def whole(parameters: dict[str, str]) -> dict[str, str]:
    """Return parameters as an address can hold them: without halves of characters."""
    return {str_of(name): str_of(value) for name, value in parameters.items()}


def str_of(text: str) -> str:
    return text.encode(errors="replace").decode()


def path_of(endpoint: Any, entity_id: str) -> str:
    return endpoint.path.replace("{id}", entity_id)


@requests(1_300, of_each=len(POSTED))
@given(objects | values)
def test_any_body_is_answered_or_refused(client: TestClient, body: object) -> None:
    for endpoint in POSTED:
        check(client.post(endpoint.path, content=encoded(body)))


@requests(1_300, of_each=len(ENDPOINTS))
@given(st.dictionaries(st.sampled_from(NAMES) | texts, texts, max_size=4))
def test_any_address_is_answered_or_refused(client: TestClient, parameters: dict[str, str]) -> None:
    for endpoint in ENDPOINTS:
        check(client.get(path_of(endpoint, "m.042xh"), params=whole(parameters)))


@requests(1_300, of_each=2)
@given(st.dictionaries(st.sampled_from(["q0", "q1"]), queries | values, max_size=2) | values)
def test_any_batch_is_answered_or_refused(client: TestClient, batch: object) -> None:
    text = json.dumps(batch)
    check(client.post("/reconcile", data={"queries": text}))
    check(client.post("/reconcile", content=text, headers={"content-type": "application/json"}))


@requests(1_300, of_each=2)
@given(extensions | values)
def test_any_extension_is_answered_or_refused(client: TestClient, extension: object) -> None:
    check(client.post("/reconcile", data={"extend": json.dumps(extension)}))
    body = encoded({"extend": extension})
    check(client.post("/reconcile", content=body, headers={"content-type": "application/json"}))


SUGGESTIONS = "suggest/entity suggest/type suggest/property flyout/entity flyout/type properties preview suggest/planet"


@requests(400, of_each=len(SUGGESTIONS.split()))
@given(st.dictionaries(st.sampled_from(["prefix", "cursor", "id", "type", "limit", "callback"]), texts, max_size=3))
def test_any_suggestion_is_answered_or_refused(client: TestClient, parameters: dict[str, str]) -> None:
    for path in SUGGESTIONS.split():
        check(client.get(f"/reconcile/{path}", params=whole(parameters)))


@st.composite
def own_parameters(draw: st.DrawFn) -> tuple[Any, str, dict[str, Any]]:
    """Draw an endpoint, a method of it, and values for parameters that it has: the required ones and some others."""
    endpoint = draw(st.sampled_from(ENDPOINTS))
    method, kind = draw(st.sampled_from(sorted(endpoint.methods.items())))
    names = draw(st.lists(st.sampled_from(kind.__struct_fields__ or ("lang",)), max_size=2))
    drawn = (
        values | long_texts if method == "POST" else texts | long_texts.map(lambda text: "a" * min(len(text), 20_000))
    )
    chosen = {name: draw(st.sampled_from(WORDS) | drawn) for name in parameter_schemas(kind)[1] or ["question"]}
    return endpoint, method, chosen | {name: draw(drawn) for name in names}


long_texts = st.builds(
    lambda letter, length: letter * length,
    st.sampled_from('aé9 "/%'),
    st.sampled_from([1, 99, 100, 101, 200, 201, 300, 301, 9_999, 10_000, 10_001, 30_000]),
)


@requests(1_000)
@given(own_parameters())
def test_any_value_of_a_parameter_is_answered_or_refused(
    client: TestClient, asked: tuple[Any, str, dict[str, Any]]
) -> None:
    endpoint, method, parameters = asked
    path = path_of(endpoint, "m.042xh")
    if method == "POST":
        check(client.post(path, content=encoded(parameters)))
    else:
        check(client.get(path, params=whole(parameters)))


@requests(400, of_each=1 + len(POSTED))
@given(
    st.binary(max_size=60) | st.builds(lambda text: b"queries=" + text, st.binary(max_size=40)),
    st.sampled_from(["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "json;charset=x"]),
)  # fmt: skip
def test_any_bytes_are_answered_or_refused(client: TestClient, body: bytes, kind: str) -> None:
    for path in ("/reconcile", *[endpoint.path for endpoint in POSTED]):
        check(client.post(path, content=body, headers={"content-type": kind}))


@requests(400)
@given(
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]),
    st.sampled_from(["/", "/api/entity/", "/reconcile/", "/reconcile/flyout/", "/sample/", "/sample/api/", "/no/"]),
    texts,
)  # fmt: skip
def test_any_path_is_answered_or_refused(client: TestClient, method: str, path: str, rest: str) -> None:
    answer = client.request(method, path + quote(str_of(rest[:2_000]), safe="/"), follow_redirects=False)

    assert answer.status_code < 500, answer.text
    if method != "HEAD" and answer.status_code >= 400:
        check(answer)


@requests(300)
@given(
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "other"]), values, max_size=5)
    | st.fixed_dictionaries(
        {
            "jsonrpc": st.just("2.0"),
            "id": st.just(1),
            "method": st.just("tools/call"),
            "params": st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["lookup", "show", "facts", "link", "query", "other"]),
                    "arguments": st.dictionaries(
                        st.sampled_from(["name", "id", "text", "question", "limit", "offset", "reverse", "type"]),
                        values,
                    ),
                }
            ),
        }
    )
    | values
)
def test_any_message_of_an_agent_is_answered_or_refused(client: TestClient, message: object) -> None:
    answer = client.post(
        "/mcp", content=encoded(message), headers={"content-type": "application/json", "accept": "application/json"}
    )

    assert answer.status_code < 500, answer.text


@pytest.mark.parametrize("limit", ["9" * 400, "\u00b2", "1e400", "-1", "5.5", "NaN"])
def test_a_limit_that_is_no_whole_number_is_named(client: TestClient, limit: str) -> None:
    asked = client.get("/api/lookup", params={"name": "it", "limit": limit})
    proposed = client.get("/reconcile/properties", params={"limit": limit})
    extended = client.post(
        "/reconcile",
        data={"extend": json.dumps({"ids": [], "properties": [{"id": "p", "settings": {"limit": limit}}]})},
    )

    assert (asked.status_code, "limit must be a whole number from 1 to 1,000" in asked.text) == (400, True)
    assert (proposed.status_code, "limit must be a whole number" in proposed.text) == (400, True)
    assert extended.status_code == 400 or limit == "9" * 400


@pytest.mark.parametrize("limit", ["9" * 400, "1e400", "5.5", "NaN", "true", "[]"])
def test_a_limit_of_json_that_is_no_whole_number_is_named(client: TestClient, limit: str) -> None:
    asked = client.post("/api/lookup", content=f'{{"name": "it", "limit": {limit}}}'.encode())
    reconciled = client.post("/reconcile", data={"queries": f'{{"q": {{"query": "it", "limit": {limit}}}}}'})

    assert (asked.status_code, "limit must be a whole number from 1 to 1,000" in asked.text) == (400, True)
    assert (reconciled.status_code, "limit must be a whole number from 1 on" in reconciled.text) == (400, True)
