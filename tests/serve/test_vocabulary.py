"""Types and relations to choose from, against plain loops over a world in which counts, ids and names all differ."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import kbtools
from kbtools.serve.app import create_app
from kbtools.serve.kb_description import check_choice, kb_info
from kbtools.serve.settings import ServeSettings
from kbtools.serve.vocabulary import Vocabulary

FACTS = (
    ("m.1", "book.written_work.author", "m.9"),
    ("m.2", "book.written_work.author", "m.9"),
    ("m.2", "book.written_work.co_author", "m.9"),
    ("m.3", "film.film.author_of_book", "m.9"),
    ("m.3", "film.film.author_of_book", "m.8"),
    ("m.4", "author", "m.9"),
    ("m.4", "zone.a", "m.9"),
    ("m.3", "zone.a", "m.9"),
    ("m.1", "zone.a", "m.9"),
)
TYPES = (
    ("m.1", "book.book"),
    ("m.2", "book.book"),
    ("m.2", "film.film"),
    ("m.3", "film.film"),
    ("m.4", "film.bookish_film"),
    ("m.5", "book.empty"),
    ("m.4", "comic_book.issue"),
)


@pytest.fixture(scope="module")
def made(make_kb: Callable[..., Any], new_world: Any) -> Any:
    return make_kb("embedded", new_world(FACTS, (("m.1", "Kite"),), types=TYPES))


@pytest.fixture(scope="module")
def vocabulary(made: Any) -> Vocabulary:
    return Vocabulary(made)


def pairs() -> Counter[tuple[str, str]]:
    """Count the entities of each type with each relation."""
    borne = {(subject, relation) for subject, relation, _ in FACTS}
    return Counter((kind, relation) for entity, kind in TYPES for subject, relation in borne if subject == entity)


def test_the_most_frequent_types_come_first(vocabulary: Vocabulary) -> None:
    counts = Counter[str]()
    for (kind, _), count in pairs().items():
        counts[kind] += count
    order = sorted({kind for _, kind in TYPES}, key=lambda kind: (-counts[kind], kind))

    assert vocabulary.frequent_types(10) == order
    assert vocabulary.frequent_types(2) == order[:2]


@pytest.mark.parametrize("kind", sorted({kind for _, kind in TYPES} | {"no.such"}))
def test_relations_of_a_type_come_by_frequency(vocabulary: Vocabulary, kind: str) -> None:
    counts = {relation: count for (own, relation), count in pairs().items() if own == kind}

    relations = vocabulary.relations_of_type(kind)

    rows = vocabulary.relation_rows
    assert relations == sorted(counts, key=lambda relation: (-counts[relation], rows[relation]))


@pytest.mark.parametrize(
    ("prefix", "types"),
    [
        ("book", ["book.book", "book.empty", "comic_book.issue", "film.bookish_film"]),
        ("BOOK", ["book.book", "book.empty", "comic_book.issue", "film.bookish_film"]),
        ("film.film", ["film.film"]),
        ("issue", ["comic_book.issue"]),
        ("ook", []),
    ],
)
def test_types_are_found_by_their_beginning_then_by_a_word(
    vocabulary: Vocabulary, prefix: str, types: list[str]
) -> None:
    assert vocabulary.find_types(prefix) == types


@pytest.mark.parametrize(
    ("prefix", "relations"),
    [
        ("author", ["author", "book.written_work.author", "film.film.author_of_book", "book.written_work.co_author"]),
        ("written work", ["book.written_work.author", "book.written_work.co_author"]),
        ("zone.a", ["zone.a"]),
    ],
)
def test_relations_are_found_by_their_beginning_then_by_a_word(
    vocabulary: Vocabulary, prefix: str, relations: list[str]
) -> None:
    assert sorted(vocabulary.find_relations(prefix)) == sorted(relations)
    assert vocabulary.find_relations(prefix)[0] == relations[0]


def test_without_a_text_all_relations_come_by_frequency(vocabulary: Vocabulary) -> None:
    counts = Counter[str]()
    for (_, relation), count in pairs().items():
        counts[relation] += count

    relations = vocabulary.find_relations("")

    assert [counts[relation] for relation in relations] == sorted(counts.values(), reverse=True)
    assert relations[0] == "zone.a"


def test_a_sample_is_spread_over_all_entities(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = vocabulary.kb.entity_rows()
    assert np.array_equal(vocabulary.sample, rows)
    monkeypatch.setattr("kbtools.serve.vocabulary._SAMPLED", 3)

    sample = Vocabulary(vocabulary.kb).sample

    assert sample.tolist() == [rows[0], rows[(len(rows) - 1) // 2], rows[-1]]


@pytest.fixture(scope="module")
def client(made: Any) -> Iterator[TestClient]:
    with TestClient(create_app(ServeSettings(kbs=(str(made.path),)))) as session:
        yield session


def test_info_is_the_record_of_the_manifest(client: TestClient, made: Any) -> None:
    info, manifest = client.get("/api/info").json(), made.manifest

    assert (info["name"], info["kbtools"], info["digest"]) == ("world", kbtools.__version__, manifest.digest)
    assert (info["built"], info["bytes"]) == (manifest.built, sum(manifest.files.values()))
    assert info["counts"]["facts"] == {"raw": 9, "duplicate": 0, "unique": 9}
    assert {key: row["count"] for key, row in info["statistics"].items()} == {
        key: manifest.statistics[key] for key in info["statistics"]
    }
    assert [(source["kind"], source["lines"], source["bytes"]) for source in info["sources"]] == [
        (source.kind, source.lines, source.bytes) for source in manifest.sources
    ]
    assert (info["languages"], info["vectors"], info["taught"]) == ([], None, 0)
    assert info["defaults"]["pruning"] in info["pruners"]
    assert info["defaults"]["scorer"] in info["scorers"]


def test_ready_names_the_builds(client: TestClient, made: Any) -> None:
    assert client.get("/ready").json() == {"status": "ready", "kbs": {"world": made.manifest.digest}}


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        ({"scorer": "a,b,c,d"}, True),
        ({"scorer": "a,b,c,d,e"}, False),
        ({"scorer": "a, a"}, False),
        ({"subject": "os:system"}, False),
        ({"ranker": "os:system"}, False),
        ({"pruning": "os:system"}, False),
        ({"scorer": "os:system"}, False),
        ({"question": "what is os:system"}, True),
    ],
)
def test_a_request_chooses_installed_parts_and_few_of_them(arguments: dict[str, str], accepted: bool) -> None:
    try:
        check_choice(arguments)
        refused = False
    except kbtools.BadArgument:
        refused = True

    assert refused != accepted


def test_info_counts_the_vectors_that_can_be_read(kites: Callable[..., Any]) -> None:
    from kbtools.answering.answerer import open_kb
    from kbtools.indexers.folder.faiss_index import write_vectors
    from kbtools.kb.vector_index import EntityVectors, VectorOrigin

    folder = kites(names=(("m.5", "Vane"),), language="en")
    with open_kb(folder) as answerer:
        table = np.eye(3, dtype=np.float32)
        vectors = EntityVectors(np.arange(2, dtype=np.uint32), 3, lambda rows: table[rows], VectorOrigin("words"))
        write_vectors(folder, answerer.kb, vectors)
    with open_kb(folder) as answerer:
        assert kb_info("kites", answerer)["vectors"] == {"count": 2, "dim": 3, "subject": "words"}


def test_info_names_the_languages_of_names(kites: Callable[..., Any]) -> None:
    from kbtools.answering.answerer import open_kb

    with open_kb(kites(spoken=(("m.8", "Nom", "fr"), ("m.8", "Name", "de")), language="en,fr,de")) as answerer:
        info = kb_info("kites", answerer)

    assert info["languages"] == ["de", "fr"]
    assert all("/" not in source["name"] for source in info["sources"])
