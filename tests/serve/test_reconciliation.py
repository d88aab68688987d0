"""The reconciliation service: what it gives fits the schemas of version 0.2, and OpenRefine's requests are answered."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from referencing import Registry, Resource
from starlette.testclient import TestClient

import kbtools
from kbtools.serve.app import create_app
from kbtools.serve.settings import ServeSettings
from kbtools.serve.value_comparison import likeness, read_comparable
from kbtools.serve.vocabulary import Vocabulary

QUERIES = {
    "q0": {"query": "harry potter", "type": "book.literary_series", "limit": 3, "type_strict": "any"},
    "q1": {"query": "Harry Poter"},
    "q2": {"query": "It", "properties": [{"pid": "book.written_work.author", "v": "Stephen King"}]},
    "q3": {"properties": [{"pid": "book.written_work.author", "v": {"id": "m.042xh"}}]},
}

Validate = Callable[[Any, str], None]


@pytest.fixture(scope="session")
def validate(schemas: Path) -> Validate:
    """Check a record by one of the schemas."""
    contents = {path.name: json.loads(path.read_text()) for path in (schemas / "schemas").glob("*.json")}
    space = "https://reconciliation-api.github.io/specs/0.2/schemas/"
    registry: Registry[Any] = Registry()
    for name, schema in contents.items():
        fitted = {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": space + name}
        if name == "manifest.json":
            fitted["properties"] = {**schema["properties"]}
            del fitted["properties"]["authentication"]  # points to a schema of another site; we ask for none
        registry = registry.with_resource(space + name, Resource.from_contents(fitted))

    def check(record: Any, name: str) -> None:
        jsonschema.Draft202012Validator(registry.contents(space + name), registry=registry).validate(record)

    return check


def reconciled(client: TestClient, queries: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    answer = client.post("/reconcile", data={"queries": json.dumps(queries)})
    assert answer.status_code == 200, answer.text
    return {key: result["result"] for key, result in answer.json().items()}


def test_the_manifest_fits(client: TestClient, validate: Validate) -> None:
    manifest = client.get("/reconcile").json()

    validate(manifest, "manifest.json")
    assert manifest["batchSize"] == 100
    assert manifest["identifierSpace"] == "http://rdf.freebase.com/ns/"
    assert {"id": "book.book", "name": "book.book"} in manifest["defaultTypes"]


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(lambda c: c.get("/reconcile", params={"queries": json.dumps(QUERIES)}), id="get"),
        pytest.param(lambda c: c.post("/reconcile", data={"queries": json.dumps(QUERIES)}), id="form"),
        pytest.param(lambda c: c.post("/reconcile", json={"queries": QUERIES}), id="json"),
        pytest.param(lambda c: c.post("/sample/reconcile", json=QUERIES), id="json batch"),
    ],
)
def test_a_batch_is_answered_by_every_method(client: TestClient, validate: Validate, send: Callable[..., Any]) -> None:
    answer = send(client)

    validate(answer.json(), "reconciliation-result-batch.json")
    assert answer.json().keys() == QUERIES.keys()


def test_the_type_is_a_bound_under_any(client: TestClient) -> None:
    (series,) = reconciled(client, QUERIES)["q0"]

    assert (series["id"], series["match"]) == ("m.0kba084", True)


def test_the_type_is_a_wish_under_should(client: TestClient) -> None:
    first, second = reconciled(client, {"q": {"query": "harry potter", "type": "book.literary_series"}})["q"]

    assert (first["id"], second["id"]) == ("m.0kba084", "m.078ffw")
    assert first["score"] > second["score"]
    assert {"id": "type_match", "value": False} in second["features"]


@pytest.mark.parametrize(
    ("strictness", "types", "kept"),
    [
        ("all", ["book.literary_series", "book.written_work"], ["m.0kba084"]),
        ("all", ["book.literary_series", "film.film"], []),
        ("any", ["book.literary_series", "film.film"], ["m.0kba084"]),
    ],
)
def test_all_types_are_needed_under_all_and_one_under_any(
    client: TestClient, strictness: str, types: list[str], kept: list[str]
) -> None:
    results = reconciled(client, {"q": {"query": "harry potter", "type": types, "type_strict": strictness}})["q"]

    assert [result["id"] for result in results] == kept


def test_namesakes_are_no_match(client: TestClient) -> None:
    results = reconciled(client, {"q": {"query": "Harry Potter"}})["q"]

    assert [result["match"] for result in results] == [False, False]


def test_a_misspelt_name_is_no_match(client: TestClient) -> None:
    results = reconciled(client, {"q": {"query": "Stephen Kingg"}})["q"]

    assert results[0]["name"] == "Stephen King"
    assert results[0]["match"] is False


def test_a_name_too_far_for_a_link_is_a_candidate(client: TestClient) -> None:
    (result, *_) = reconciled(client, {"q": {"query": "Stefan Kinge"}})["q"]

    assert client.get("/api/lookup?name=Stefan+Kinge").json()["matches"] == []
    assert (result["name"], result["match"]) == ("Stephen King", False)
    assert 40 < result["score"] < 56


def test_one_bearer_of_a_name_is_a_match(client: TestClient) -> None:
    (result,) = reconciled(client, {"q": {"query": "stephen king"}})["q"]

    assert (result["id"], result["match"]) == ("m.0jt90f5", True)
    assert 0 <= result["score"] <= 100


AUTHOR = "the long awaited history of the iron kite of the hill"


@pytest.fixture(scope="module")
def namesakes(make_kb: Callable[..., Any], new_world: Any) -> Iterator[TestClient]:
    """Serve two bearers of a name: the one with most facts has an author that is less like the one asked for."""
    world = new_world(
        facts=(
            ("m.1", "book.author", "m.8"),
            *(("m.1", "book.note", f'"{number}"@en') for number in range(9)),
            ("m.2", "book.author", "m.9"),
        ),
        names=(("m.1", "Kite"), ("m.2", "Kite"), ("m.8", AUTHOR[:-5] + "hxyz"), ("m.9", AUTHOR[:-1] + "m")),
        types=(("m.1", "book.book"), ("m.2", "book.book"), ("m.2", "book.series")),
    )
    with TestClient(create_app(ServeSettings(kbs=(str(make_kb("embedded", world).path),)))) as session:
        yield session


def certain(result: dict[str, Any]) -> bool:
    features = {feature["id"]: feature["value"] for feature in result["features"]}
    agreed = all(value >= 0.95 for name, value in features.items() if name.startswith("property:"))
    return features["same_name"] and features.get("type_match") is not False and agreed


@pytest.mark.parametrize(
    ("query", "ids", "matches"),
    [
        ({}, ["m.1", "m.2"], [False, False]),
        ({"properties": [{"pid": "book.author", "v": AUTHOR}]}, ["m.1", "m.2"], [False, False]),
        ({"properties": [{"pid": "book.author", "v": {"id": "m.9"}}]}, ["m.2", "m.1"], [True, False]),
        ({"properties": [{"pid": "book.author", "v": AUTHOR[:-1] + "m"}]}, ["m.2", "m.1"], [True, False]),
        ({"type": "book.series"}, ["m.2", "m.1"], [True, False]),
        ({"type": ["book.series", "book.film"]}, ["m.2", "m.1"], [True, False]),
        ({"type": ["book.series", "book.book"], "type_strict": "all"}, ["m.2"], [True]),
        ({"type": "book.book", "limit": 1}, ["m.1"], [False]),
    ],
)
def test_the_one_certain_candidate_is_a_match_if_it_is_first(
    namesakes: TestClient, query: dict[str, Any], ids: list[str], matches: list[bool]
) -> None:
    results = reconciled(namesakes, {"q": {"query": "Kite", **query}})["q"]

    assert [result["id"] for result in results] == ids
    assert [result["match"] for result in results] == matches


def test_a_certain_candidate_below_the_first_is_no_match(namesakes: TestClient) -> None:
    asked = [{"pid": "book.author", "v": AUTHOR}]

    results = reconciled(namesakes, {"q": {"query": "Kite", "properties": asked}})["q"]

    assert [certain(result) for result in results] == [False, True]
    assert not any(result["match"] for result in results)


def test_values_of_properties_re_rank_namesakes(client: TestClient) -> None:
    asked = {"pid": "fictional_universe.fictional_character.character_created_by", "v": "J.K. Rowling"}
    other = {"pid": "book.written_work.author", "v": [{"id": "/m/042xh", "name": "Joanne"}]}

    results = reconciled(
        client,
        {"a": {"query": "Harry Potter", "properties": [asked]}, "b": {"query": "Harry Potter", "properties": [other]}},
    )

    assert [result["id"] for result in results["a"]] == ["m.078ffw", "m.0kba084"]
    assert [result["id"] for result in results["b"]] == ["m.0kba084", "m.078ffw"]
    assert [result["match"] for result in results["b"]] == [True, False]
    assert {"id": "property:book.written_work.author", "value": 1.0} in results["b"][0]["features"]


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("typed", [{}, {"type": "book.literary_series"}])
def test_a_score_is_the_weighted_mean_of_its_features(client: TestClient, number: int, typed: dict[str, str]) -> None:
    properties = [
        {"pid": "book.written_work.author", "v": ["J. K. Rowling", "Stephen King"]},
        {"pid": "fictional_universe.fictional_character.character_created_by", "v": "J. K. Rowlin"},
    ][:number]

    results = reconciled(client, {"q": {"query": "Harry Potter", "properties": properties, **typed}})["q"]

    assert len(results) == 2
    for result in results:
        features = {feature["id"]: feature["value"] for feature in result["features"]}
        agreed = [feature["value"] for feature in result["features"] if feature["id"].startswith("property:")]
        mean = (features["name_score"] + 0.4 * 100 * sum(agreed)) / (1 + 0.4 * number)
        assert len(agreed) == number
        assert result["score"] == pytest.approx(mean * (0.7 if features.get("type_match") is False else 1), abs=0.02)
    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)


def test_the_more_values_agree_the_higher_the_score(client: TestClient) -> None:
    values = [["J. K. Rowling"], ["J. K. Rowling", {"id": "m.042xh"}], ["J. K. Rowling", "{}"], ["{}", "[]"]]
    properties = [[{"pid": "book.written_work.author", "v": value}] for value in values]

    results = reconciled(
        client, {str(n): {"query": "Harry Potter", "properties": asked} for n, asked in enumerate(properties)}
    )

    best = [found[0] for found in results.values()]
    assert {result["id"] for result in best[:3]} == {"m.0kba084"}
    assert [result["match"] for result in best] == [True, True, False, False]
    assert best[0]["score"] == best[1]["score"] > best[2]["score"] > best[3]["score"]
    assert {"id": "property:book.written_work.author", "value": 0.5} in best[2]["features"]


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("2001-02-03T00:00:00Z", "2001-02-03", 1, 1),
        ("2001", "2001-02-03", 1, 1),
        ("2001-02-03", "2001-02", 1, 1),
        ("+2001-00-00T00:00:00Z", "2001-02-03", 1, 1),
        ("2001-02-04", "2001-02-03", 0, 0),
        ("2002", "2001-02-03", 0, 0),
        ("10,000", "10000", 1, 1),
        ("1.50", "1.5", 1, 1),
        ("48.85, 2.35", "48.8502,2.3499", 0.99, 1),
        ("Point(2.35 48.85)", "48.85,2.35", 1, 1),
        ("48.85, 2.35", "48.8502, 12.3499", 0, 0),
        ("89.9, 0.0", "89.9, 180.0", 0.5, 0.6),
        ("999.0, 999.0", "0.0, 0.0", 0, 1),
        ("3 February 2001", "2001-02-03", 1, 1),
        ("1.96 metre", "1.96", 1, 1),
        ("1.96 m", "1.96 cm", 0, 0),
        ("1961", "1961 people", 1, 1),
        ("https://www.example.org/a/", "http://example.org/a", 1, 1),
        ("978-3-16-148410-0", "9783161484100", 1, 1),
        ("Stephen King", "stephen king", 1, 1),
        ("Stephen King", "Stephen Kong", 0.9, 0.95),
        ("", "", 0, 0),
        ("9" * 400, "9" * 400, 1, 1),
    ],
)
def test_values_are_compared_by_what_they_are(one: str, other: str, least: float, most: float) -> None:
    agreed = [
        likeness(read_comparable(first), read_comparable(second), cutoff=0.0)
        for first, second in ((one, other), (other, one))
    ]

    assert agreed[0] == pytest.approx(agreed[1])
    assert least <= agreed[0] <= most


def test_values_alone_find_their_subjects(client: TestClient) -> None:
    by_id = {"properties": [{"pid": "book.written_work.author", "v": {"id": "m.042xh"}}]}
    by_name = {"properties": [{"pid": "book.written_work.author", "v": "j. k. rowling"}]}

    results = reconciled(client, {"a": by_id, "b": by_name})

    assert {result["id"] for result in results["a"]} == {"m.0kba084", "m.0c_vk"}
    assert [result["id"] for result in results["a"]] == [result["id"] for result in results["b"]]
    assert not any(result["match"] for result in results["a"])


@pytest.mark.parametrize("spelling", ["m.042xh", "/m/042xh", "http://rdf.freebase.com/ns/m.042xh"])
def test_an_id_finds_its_entity(client: TestClient, spelling: str) -> None:
    (result,) = reconciled(client, {"q": {"query": spelling}})["q"]

    assert (result["id"], result["score"], result["match"]) == ("m.042xh", 100, True)


def examples(kind: str, folder: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted((folder / "examples" / kind).glob("*.json")):
        yield path.name, json.loads(path.read_text())


def test_valid_examples_of_queries_are_answered(client: TestClient, schemas: Path, validate: Validate) -> None:
    answers = {
        name: client.post("/reconcile", data={"queries": json.dumps(batch)})
        for name, batch in examples("reconciliation-query-batch/valid", schemas)
    }

    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 200)
    assert len(answers) == 4
    for answer in answers.values():
        validate(answer.json(), "reconciliation-result-batch.json")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("empty-properties.json", "query 'q1' needs a query or at least one of properties"),
        ("empty-query.json", "query 'q1' needs a query"),
        ("misnamed-property.json", "query 'q0' has no key 'props'"),
    ],
)
def test_invalid_examples_of_queries_are_refused(client: TestClient, schemas: Path, name: str, fault: str) -> None:
    batch = (schemas / "examples" / "reconciliation-query-batch" / "invalid" / name).read_text()

    answer = client.post("/reconcile", data={"queries": batch})

    assert answer.status_code == 400
    assert fault in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("queries", "fault"),
    [
        ("{", "queries is not JSON"),
        ("[]", "queries must be an object"),
        ('{"q": 1}', "query 'q' is an object"),
        ('{"q": {"query": 1}}', "query must be a text"),
        ('{"q": {"query": "a", "limit": 0}}', "limit must be a whole number from 1"),
        ('{"q": {"query": "a", "limit": NaN}}', "limit must be a whole number from 1"),
        ('{"q": {"query": "a", "type": [1]}}', "type must be an id"),
        ('{"q": {"query": "a", "type_strict": "maybe"}}', "type_strict must be any, should or all"),
        ('{"q": {"query": "a", "properties": {}}}', "properties must be a list"),
        ('{"q": {"query": "a", "properties": [{"v": 1}]}}', "a property needs a pid"),
        ('{"q": {"query": "a", "properties": [{"pid": "p", "v": null}]}}', "a value must be a text"),
    ],
)
def test_faults_of_queries_are_named(client: TestClient, queries: str, fault: str) -> None:
    answer = client.post("/reconcile", data={"queries": queries})

    assert answer.status_code == 400
    assert fault in answer.json()["error"]["message"]


def test_a_batch_beyond_the_size_of_the_manifest_is_too_large(client: TestClient) -> None:
    batch = {str(number): {"query": "a"} for number in range(101)}

    assert client.post("/reconcile", json=batch).status_code == 413


def test_a_post_without_queries_is_refused(client: TestClient) -> None:
    assert "queries or extend" in client.post("/reconcile", data={"a": "b"}).json()["error"]["message"]


@pytest.mark.parametrize("path", ["/reconcile", "/reconcile/suggest/type?prefix=book"])
def test_a_callback_makes_it_a_script(client: TestClient, path: str) -> None:
    plain = client.get(path).json()

    answer = client.get(path, params={"callback": "jQuery12.done", **({"prefix": "book"} if "?" in path else {})})

    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.text.startswith("/**/jQuery12.done(")
    assert json.loads(answer.text.removeprefix("/**/jQuery12.done(").removesuffix(");")) == plain


@pytest.mark.parametrize("callback", ["alert(1)//", "a b", "a.", "1a", "", "a" * 101, "ä"])
def test_a_callback_that_is_no_name_is_refused(client: TestClient, callback: str) -> None:
    answer = client.get("/reconcile", params={"callback": callback})

    assert answer.status_code == 400
    assert "callback must be the name of a function" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "query",
    ["Stephen King", '{"query": "Stephen King", "type": "book.author"}', '{"query": "Stephen King", "limit": "1"}'],
)
def test_one_query_of_the_older_form_is_answered(client: TestClient, query: str) -> None:
    answer = client.get("/reconcile", params={"query": query}).json()

    assert answer["result"][0]["name"] == "Stephen King"


@pytest.mark.parametrize(
    ("kind", "prefix", "first"),
    [
        ("entity", "harr", "m.03176f"),
        ("entity", "Harry Potter", "m.078ffw"),
        ("entity", "m.042xh", "m.042xh"),
        ("entity", "stephen kingg", "m.0jt90f5"),
        ("entity", "potte", "m.03176f"),
        ("type", "book", "book.written_work"),
        ("type", "literary", "book.literary_series"),
        ("property", "book.written", "book.written_work.author"),
        ("property", "author", "book.written_work.author"),
    ],
)
def test_suggestions_complete_what_is_typed(
    client: TestClient, validate: Validate, kind: str, prefix: str, first: str
) -> None:
    answer = client.get(f"/reconcile/suggest/{kind}", params={"prefix": prefix}).json()

    plural = {"entity": "entities", "type": "types", "property": "properties"}[kind]
    validate(answer, f"suggest-{plural}-response.json")
    assert answer["result"][0]["id"] == first


@pytest.mark.parametrize(("kind", "prefix"), [("type", ""), ("property", ""), ("entity", "the")])
def test_a_cursor_skips_suggestions(client: TestClient, kind: str, prefix: str) -> None:
    def suggested(**cursor: str) -> list[str]:
        answer = client.get(f"/reconcile/suggest/{kind}", params={"prefix": prefix, **cursor}).json()
        return [suggestion["id"] for suggestion in answer["result"]]

    everything, rest, behind = suggested(), suggested(cursor="5"), suggested(cursor="20")

    assert len(everything) == 20
    assert not {*everything} & {*behind}
    assert rest == everything[5:] + behind[:5]


@pytest.mark.parametrize(
    ("kind", "spelling", "told"),
    [
        ("entity", "m.042xh", "J. K. Rowling"),
        ("type", "book.book", "book.book"),
        ("property", "book.written_work.author", "book.written_work.author"),
    ],
)
def test_flyouts_show_what_was_suggested(client: TestClient, kind: str, spelling: str, told: str) -> None:
    flyout = client.get(f"/reconcile/flyout/{kind}", params={"id": spelling}).json()

    assert flyout["id"] == spelling
    assert told in flyout["html"]


@pytest.mark.parametrize(
    "entity_id", ["Q99999", "<script>alert(1)</script>", "http://x.org/item?n=1&lang=en#it", "é" * 500]
)
def test_a_preview_of_an_unknown_id_is_a_page_in_words(client: TestClient, entity_id: str) -> None:
    preview = client.get("/reconcile/preview", params={"id": entity_id})

    assert preview.status_code == 404
    assert preview.headers["content-type"].startswith("text/html")
    assert "no entity has the id" in preview.text
    assert escape(entity_id[:20]) in preview.text
    assert "<script" not in preview.text


def test_previews_and_flyouts_escape_names(scripted_path: Path) -> None:
    with TestClient(create_app(ServeSettings(kbs=(str(scripted_path),)))) as client:
        preview = client.get("/reconcile/preview", params={"id": "m.01script"})
        flyout = client.get("/reconcile/flyout/entity", params={"id": "m.01script"}).json()

    assert preview.headers["content-type"].startswith("text/html")
    assert "frame-ancestors" not in preview.headers["content-security-policy"]
    assert "&lt;script&gt;" in preview.text
    assert "&lt;b&gt;bold" in preview.text
    assert "<script" not in preview.text + flyout["html"]


def test_extension_gives_the_objects_of_rows(client: TestClient, validate: Validate) -> None:
    query = {
        "ids": ["m.042xh", "/m/078ffw", "m.0nobody"],
        "properties": [
            {"id": "people.person.place_of_birth"},
            {"id": "people.person.gender", "settings": {"content": "id", "limit": "1"}},
        ],
    }

    answer = client.post("/reconcile", data={"extend": json.dumps(query)}).json()

    validate(answer, "data-extension-response.json")
    born, gender = answer["rows"]["m.042xh"]["people.person.place_of_birth"], answer["rows"]["m.042xh"]
    assert [value["name"] for value in born] == ["Yate"]
    assert [list(value) for value in gender["people.person.gender"]] == [["str"]]
    assert answer["rows"]["m.0nobody"] == {key: [] for key in answer["rows"]["m.042xh"]}


def test_literals_extend_as_text(scripted_path: Path) -> None:
    query = {"ids": ["m.01script"], "properties": [{"id": "film.film.note"}]}
    with TestClient(create_app(ServeSettings(kbs=(str(scripted_path),)))) as client:
        answer = client.get("/reconcile", params={"extend": json.dumps(query)}).json()

    assert answer["rows"] == {"m.01script": {"film.film.note": [{"str": "<b>bold</b>"}]}}


def test_valid_examples_of_extension_are_read_up_to_a_property_that_there_is_not(
    client: TestClient, schemas: Path
) -> None:
    queries = dict(examples("data-extension-query/valid", schemas))

    answers = [client.post("/reconcile", data={"extend": json.dumps(query)}) for query in queries.values()]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert all("no property has the id" in answer.json()["error"]["message"] for answer in answers)


@pytest.mark.parametrize(
    "extend", ["[]", "{}", '{"ids": [1], "properties": []}', '{"ids": [], "properties": [{"name": "a"}]}']
)
def test_faults_of_extension_are_named(client: TestClient, extend: str) -> None:
    answer = client.post("/reconcile", data={"extend": extend})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("extend")


def test_properties_of_a_type_are_proposed(client: TestClient, validate: Validate) -> None:
    proposal = client.get("/reconcile/properties", params={"type": "book.author", "limit": "3"}).json()

    validate(proposal, "data-extension-property-proposal.json")
    assert (proposal["type"], proposal["limit"], len(proposal["properties"])) == ("book.author", 3, 3)
    assert {"id": "people.person.place_of_birth", "name": "people.person.place_of_birth"} in proposal["properties"]


def test_every_path_of_the_manifest_answers(client: TestClient) -> None:
    manifest = client.get("/reconcile").json()
    ids = {"entity": "m.042xh", "type": "book.book", "property": "book.written_work.author"}

    paths = [manifest["preview"]["url"].replace("{{id}}", "m.042xh")]
    for kind, service in manifest["suggest"].items():
        paths.append(service["service_url"] + service["service_path"] + "?prefix=a")
        flyout = service["flyout_service_url"] + service["flyout_service_path"]
        paths.append(flyout.replace("${id}", ids[kind]))
    proposals = manifest["extend"]["propose_properties"]
    paths.append(proposals["service_url"] + proposals["service_path"] + "?type=book.book")

    assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)


def test_types_and_relations_are_counted_as_a_loop_does(sample_path: Path) -> None:
    kb = kbtools.open(sample_path).kb
    rows = np.arange(kb.manifest.counts["entities"].unique, dtype=np.uint32)
    types, relations = kb.types_of(rows), kb.relations_of(rows)
    pairs = Counter(
        (int(kind), int(relation))
        for row in rows
        for kind in types.values[types.starts[row] : types.starts[row + 1]]
        for relation in relations.values[relations.starts[row] : relations.starts[row + 1]]
    )

    counted = Vocabulary(kb).borne_together

    assert {(kind, relation): count for kind, relation, count in counted.tolist()} == pairs


def test_types_properties_and_previews_are_in_the_language_asked_for(tmp_path: Path) -> None:
    kbtools.index(
        facts=[("Q1", "P19", "Q2"), ("Q5", "P31", "Q9")], types=[("Q1", "Q5")], language="en,de", out=tmp_path / "k.kb",
        names=[("Q1", "Ann", "en"), ("Q1", "Anna", "de"), ("Q2", "Köln", "de"), ("Q5", "human", "en"),
            ("Q5", "Mensch", "de")],
        relations=[("P19", "place of birth", "en"), ("P19", "Geburtsort", "de")],
        descriptions=[("Q1", "a painter", "en"), ("Q1", "eine Malerin", "de")],
    ).close()  # fmt: skip
    with TestClient(create_app(ServeSettings(kbs=(str(tmp_path / "k.kb"),)))) as session:

        def told(path: str, **parameters: str) -> Any:
            return session.get(f"/reconcile{path}", params={"lang": "de", **parameters}).json()

        extended = told("", extend=json.dumps({"ids": ["Q1"], "properties": [{"id": "P19"}]}))
        place = {"id": "P19", "name": "Geburtsort"}

        assert extended["meta"] == [place]
        assert extended["rows"]["Q1"]["P19"] == [{"id": "Q2", "name": "Köln"}]
        assert told("/suggest/property", prefix="Geburt")["result"] == [place]
        assert told("/properties", type="Q5")["properties"] == [place]
        assert told("/suggest/type", prefix="Q5")["result"] == [{"id": "Q5", "name": "Mensch"}]
        assert told("/suggest/entity", prefix="Ann")["result"][0]["description"] == "eine Malerin"
        assert "Geburtsort" in told("/flyout/property", id="P19")["html"]
        assert "Geburtsort: <bdi" in session.get("/reconcile/preview", params={"id": "Q1", "lang": "de"}).text
        assert (
            session.get("/reconcile/properties", params={"type": "Q5"}).json()["properties"][0]["name"]
            == "place of birth"
        )


def test_addresses_of_the_manifest_keep_its_languages(client: TestClient) -> None:
    manifest = client.get("/reconcile", params={"lang": "en"}).json()
    paths = [manifest["preview"]["url"], manifest["extend"]["propose_properties"]["service_path"]]
    paths += [
        path for part in manifest["suggest"].values() for path in (part["service_path"], part["flyout_service_path"])
    ]
    assert [path.rpartition("lang=")[2] for path in paths] == ["en"] * len(paths)
    assert client.get("/reconcile", params={"lang": "tlh"}).status_code == 400
