"""Limits, defaults and orders of the reconciliation service, over many namesakes and an entity with many values."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kbtools.errors import BadArgument
from kbtools.serve.app import create_app
from kbtools.serve.reconciliation_queries import Value, read_batch, read_extension, read_single
from kbtools.serve.settings import ServeSettings
from kbtools.serve.value_comparison import likeness, read_comparable

KITES = [f"k{number:03}" for number in range(130)]
TYPES = [f"toy.kind{number:02}" for number in range(12)]


@pytest.fixture(scope="module")
def client(make_kb: Callable[..., Any], new_world: Any) -> Iterator[TestClient]:
    world = new_world(
        facts=(
            *((kite, "maker", "p9" if kite == "k020" else "p1") for kite in KITES),
            *((kite, "toy.size", f'"{kite}"') for kite in KITES[:9]),
            *(("big", "part", f"part{number:02}") for number in range(12)),
            *(("board", f"r{number}", "p1") for number in range(5)),
            ("x9", "pilot", "p1"),
            ("x1", "pilot", "p9"),
        ),
        names=(
            *((kite, "Kite") for kite in KITES),
            *(("board", "Kite Board"), ("surf", "Kitesurfing"), ("big", "Lantern"), ("p1", "Ada"), ("p9", "Orla")),
            ("far", "Stephen King"),
        ),
        types=(
            *(("big", kind) for kind in TYPES),
            *((kite, TYPES[0]) for kite in KITES[:3]),
            ("k001", TYPES[1]),
            ("p1", "person"),
        ),
        aliases=tuple(("big", f"Lamp {letter}") for letter in "abcdefgh"),
        spoken=(("p1", "Adele", "fr"),),
        language="en,fr",
    )
    with TestClient(create_app(ServeSettings(kbs=(str(make_kb("embedded", world).path),)))) as session:
        yield session


def ids(client: TestClient, **query: Any) -> list[str]:
    answer = client.post("/reconcile", data={"queries": json.dumps({"q": query})})
    assert answer.status_code == 200, answer.text
    return [result["id"] for result in answer.json()["q"]["result"]]


@pytest.mark.parametrize(
    ("limit", "count"), [(None, 10), (1, 1), (3.0, 3), (25, 25), (100, 100), (101, 100), (9_999, 100)]
)
def test_ten_candidates_are_given_and_at_most_a_hundred(client: TestClient, limit: float | None, count: int) -> None:
    assert len(ids(client, query="Kite", **({} if limit is None else {"limit": limit}))) == count


def test_of_many_namesakes_twenty_five_are_re_ranked(client: TestClient) -> None:
    by_maker = {"properties": [{"pid": "maker", "v": "Orla"}]}

    assert KITES.index("k020") < 25
    assert ids(client, query="Kite", limit=1) == ["k000"]
    assert ids(client, query="Kite", limit=1, **by_maker) == ["k020"]
    assert ids(client, query="Kite", limit=2, type=TYPES[1])[0] == "k001"


def test_candidates_of_one_score_come_by_id(client: TestClient) -> None:
    properties = [{"pid": "pilot", "v": {"id": "p1"}}, {"pid": "pilot", "v": {"id": "p9"}}]

    assert ids(client, properties=properties) == ["x1", "x9"]


@pytest.mark.parametrize(
    ("text", "found"), [("Stefn Kngi", ["far"]), ("Stphn Knxxx", ["far"]), ("Stzzz Kxxxxg", []), ("Zebra", [])]
)
def test_a_name_is_a_candidate_from_sixty_percent_on(client: TestClient, text: str, found: list[str]) -> None:
    assert ids(client, query=text) == found
    assert ids(client, query=text, type=TYPES[0]) == found


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"limit": "2"}, ["k000", "k001"]),
        ({"type": TYPES[1], "limit": "2"}, ["k001", "k000"]),
        ({"type": TYPES[1], "type_strict": "any"}, ["k001"]),
        ({"type": "no.such", "type_strict": "any"}, []),
    ],
)
def test_one_query_of_the_older_form_has_its_settings(
    client: TestClient, parameters: dict[str, str], found: list[str]
) -> None:
    record = {"query": "Kite", **parameters}

    for asked in (record, {"query": json.dumps(record)}):
        results = client.get("/reconcile", params=asked).json()["result"]
        assert [result["id"] for result in results] == found


def test_the_last_value_of_a_form_counts(client: TestClient) -> None:
    first, last = (json.dumps({"q": {"query": name}}) for name in ("Lantern", "Ada"))

    answer = client.post("/reconcile", data={"queries": [first, last]})

    assert [result["id"] for result in answer.json()["q"]["result"]] == ["p1"]


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ("a", [Value("a")]),
        (7, [Value("7")]),
        (7.0, [Value("7")]),
        (1.5, [Value("1.5")]),
        (True, [Value("true")]),
        ([False, "false"], [Value("false")]),
        ({"id": "m.1", "name": "Ada"}, [Value("Ada", "m.1")]),
        ({"id": "m.1"}, [Value("", "m.1")]),
        ({"id": "m.1", "name": 7}, [Value("", "m.1")]),
        (["a", "b", "a"], [Value("a"), Value("b")]),
        ([str(number) for number in range(101)], [Value(str(number)) for number in range(100)]),
        ("a" * 10_001, [Value("a" * 10_000)]),
        ([], []),
    ],
)
def test_values_are_read_as_texts_or_entities(raw: Any, values: list[Value]) -> None:
    query = read_batch({"q": {"query": "a", "properties": [{"pid": "p", "v": raw}]}})["q"]

    assert query.properties[0].values == values


@pytest.mark.parametrize(
    ("raw", "text", "types", "count", "strictness"),
    [
        ({"query": "a" * 10_001}, "a" * 10_000, [], 10, "should"),
        ({"query": "a", "type": "b", "limit": 5.0}, "a", ["b"], 5, "should"),
        ({"query": "a", "type": ["b", "c", "b"], "limit": 1_000}, "a", ["b", "c"], 100, "should"),
        ({"query": "a", "type": [str(n) for n in range(101)], "type_strict": "all"}, "a",
         [str(n) for n in range(100)], 10, "all"),
    ],
)  # fmt: skip
def test_a_query_has_defaults_and_limits(
    raw: dict[str, Any], text: str, types: list[str], count: int, strictness: str
) -> None:
    query = read_single(raw)

    assert (query.text, query.types, query.count, query.strictness) == (text, types, count, strictness)


@pytest.mark.parametrize(("limit", "count"), [("7", 7), ("0", None), ("x", None), (3, 3)])
def test_a_limit_of_the_older_form_may_be_a_text(limit: Any, count: int | None) -> None:
    try:
        read: int | None = read_single({"query": "a", "limit": limit}).count
    except BadArgument:
        read = None

    assert read == count


@pytest.mark.parametrize(
    ("limit", "count"), [(0, 0), ("", 0), (" 3 ", 3), (5.0, 5), (-1, None), ("-1", None), ("x", None)]
)
def test_a_limit_of_an_extension_is_a_number_or_its_text(limit: Any, count: int | None) -> None:
    extension = {"ids": ["a", "b", "a"], "properties": [{"id": "p", "settings": {"limit": limit}}, {"id": "p"}]}
    try:
        query = read_extension(extension)
        read: int | None = query.properties[0].count
        assert query.cells == 2
    except BadArgument:
        read = None

    assert read == count


@pytest.mark.parametrize(
    ("settings", "count"), [({}, 12), ({"limit": 0}, 12), ({"limit": 3}, 3), ({"limit": "20"}, 12)]
)
def test_an_extension_gives_all_values_unless_it_is_limited(
    client: TestClient, settings: dict[str, Any], count: int
) -> None:
    extension = {"ids": ["big"], "properties": [{"id": "part", "settings": settings}]}

    rows = client.post("/reconcile", data={"extend": json.dumps(extension)}).json()["rows"]

    assert rows["big"]["part"] == [{"id": f"part{number:02}", "name": f"part{number:02}"} for number in range(count)]


def test_each_property_of_an_extension_has_settings_of_its_own(client: TestClient) -> None:
    properties = [{"id": "r0", "settings": {"content": "id"}}, {"id": "r1"}]
    extension = {"ids": ["board"], "properties": properties}

    rows = client.post("/reconcile", data={"extend": json.dumps(extension)}).json()["rows"]

    assert rows["board"] == {"r0": [{"str": "p1"}], "r1": [{"id": "p1", "name": "Ada"}]}


def test_an_extension_takes_any_spelling_of_an_id(make_kb: Callable[..., Any], new_world: Any) -> None:
    kb = make_kb("embedded", new_world((("m.01a", "maker", "m.02b"),), (("m.01a", "Kite"), ("m.02b", "Ada"))))
    extension = {"ids": ["/m/01a"], "properties": [{"id": "maker"}]}
    with TestClient(create_app(ServeSettings(kbs=(str(kb.path),)))) as session:
        answer = session.get("/reconcile", params={"extend": json.dumps(extension)}).json()

    assert answer["rows"] == {"/m/01a": {"maker": [{"id": "m.02b", "name": "Ada"}]}}


def test_one_id_of_freebase_among_the_first_makes_freebase_the_space(
    make_kb: Callable[..., Any], new_world: Any
) -> None:
    kb = make_kb("embedded", new_world((("a1", "maker", "m.02b"),), (("a1", "Kite"),)))
    with TestClient(create_app(ServeSettings(kbs=(str(kb.path),)))) as session:
        manifest = session.get("/reconcile").json()

    assert manifest["identifierSpace"] == "http://rdf.freebase.com/ns/"


def suggested(client: TestClient, **parameters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/reconcile/suggest/entity", params=parameters).json()["result"]
    return found


def test_suggestions_go_on_to_the_last_entity(client: TestClient) -> None:
    pages = [[entity["id"] for entity in suggested(client, prefix="Kite", cursor=at)] for at in range(0, 200, 20)]

    assert [len(page) for page in pages] == [20] * 6 + [12, 0, 0, 0]
    assert len({entity for page in pages for entity in page}) == 132
    assert pages[0][:9] == KITES[:9]


def test_the_very_name_is_suggested_before_one_that_begins_so_and_this_before_a_similar_one(client: TestClient) -> None:
    by_name, by_beginning = suggested(client, prefix="Kite"), suggested(client, prefix="Kites")

    assert (by_name[0]["id"], "board" in [entity["id"] for entity in by_name]) == ("k000", False)
    assert [entity["id"] for entity in by_beginning][:2] == ["surf", "k000"]
    assert suggested(client, prefix="boar")[0]["id"] == "board"
    assert suggested(client, prefix="bo") == []


@pytest.mark.parametrize(("prefix", "first"), [("k020", ["k020"]), ("Kit", ["board", "k000", "k001"]), ("urfing", [])])
def test_an_id_is_completed_and_names_by_the_number_of_their_facts(
    client: TestClient, prefix: str, first: list[str]
) -> None:
    assert [entity["id"] for entity in suggested(client, prefix=prefix)][: len(first) or None] == first


def test_a_suggestion_has_three_types_at_most(client: TestClient) -> None:
    (lantern,) = suggested(client, prefix="Lantern")

    assert lantern["notable"] == TYPES[:3]
    assert lantern["description"] == ", ".join(["big", *TYPES[:3]])


def test_a_preview_shows_six_names_and_eight_facts_at_most(client: TestClient) -> None:
    html, other = (client.get("/reconcile/preview", params={"id": one}).text for one in ("big", "p1"))

    assert [name for name in (f"Lamp {letter}" for letter in "abcdefgh") if name in html] == [
        f"Lamp {letter}" for letter in "abcdef"
    ]
    assert html.count("part: <bdi") == 8
    assert "Adele" in other


def test_the_manifest_names_ten_types_and_its_own_spaces(client: TestClient) -> None:
    manifest = client.get("/reconcile").json()

    url = "http://testserver/reconcile"
    assert (manifest["identifierSpace"], manifest["schemaSpace"]) == (f"{url}#entities", f"{url}#types")
    assert manifest["view"] == {"url": "http://testserver/#entity?id={{id}}"}
    assert len(manifest["defaultTypes"]) == 10
    assert manifest["name"] == "world (kbtools)"


@pytest.mark.parametrize(("length", "status"), [(100, 200), (101, 400)])
def test_a_callback_has_at_most_a_hundred_characters(client: TestClient, length: int, status: int) -> None:
    assert client.get("/reconcile", params={"callback": "a" * length}).status_code == status


@pytest.mark.parametrize(
    ("one", "other", "agreement"),
    [
        ("AB-12", "ab12", 1.0),
        ("AB-12", "ab13", 0.0),
        ("2001-02-03T00:00:00." + "0" * 41, "2001-02-03", 0.0),
        ("2001-02-03T00:00:00." + "0" * 40, "2001-02-03", 1.0),
        ("0.0, 0.0", "0.0, 0.2248", 0.5),
        ("0.0, 0.0", "0.2248, 0.0", 0.5),
        ("60.0, 0.0", "60.0, 0.4496", 0.5),
        ("Point(0.2248 0.0)", "0.0, 0.2248", 1.0),
        ("1997", "1997.0", 1.0),
        ("1997", "1997-05", 1.0),
        ("2001-00-05", "2001", 1.0),
        ("2001-00-00", "2001-05-07", 1.0),
        ("10 km", "10", 1.0),
        ("10 km", "10 m", 0.0),
        ("kite", "kit", 0.857),
        ("kite", "lamp", 0.0),
    ],
)
def test_values_agree_by_their_kind(one: str, other: str, agreement: float) -> None:
    for first, second in ((one, other), (other, one)):
        found = likeness(read_comparable(first), read_comparable(second), cutoff=0.8)
        assert found == pytest.approx(agreement, abs=0.01)
