"""Documents hold all that an entity has, however large it is, and no term that a cluster refuses."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.indexers.elastic import documents as documents_module
from kbtools.indexers.elastic import mapping
from kbtools.indexers.elastic.catalog import catalog_documents, chunked
from kbtools.indexers.elastic.documents import (
    INCOMING,
    OUTGOING,
    Document,
    documents,
    facts_in,
    form_documents,
    id_field,
    read_content,
    term_of,
)
from kbtools.indexers.elastic.folder_contents import FolderEntities, count_normal_forms, normal_forms
from kbtools.indexers.elastic.mapping import ROLES, read_mapping
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.text.variants import name_forms
from tests.conftest import World

LONGEST_LUCENE_TERM = 32_766


def entity_documents(kb: EmbeddedKB, first: int, last: int) -> Iterator[Document]:
    reader = FolderEntities(kb)
    return documents(reader.contents(range(first, last)), reader.language)


def name_documents(kb: EmbeddedKB, first: int = 0) -> Iterator[Document]:
    return form_documents(normal_forms(kb, first))


def sources(found: Iterable[Document]) -> list[dict[str, Any]]:
    return [json.loads(document.source) for document in found]


@pytest.fixture(scope="module")
def giant(make_kb: Callable[[str, World], Any], new_world: type[World]) -> EmbeddedKB:
    """A knowledge base with an entity of 45,000 objects, 30,000 subjects, 100 relations and 21,000 names."""
    facts = [("giant", f"r.{number % 100:02}", f"object {number:05}") for number in range(45_000)]
    facts += [(f"object {number:05}", f"r.{number % 3}", "giant") for number in range(15_000, 45_000)]
    names = [("giant", "Giant"), ("object 00007", "Seven")]
    aliases = [("giant", f"Giant number {number}") for number in range(21_000)]
    types = [("giant", "t.large"), ("object 00007", "t.small")]
    return make_kb("embedded", new_world(tuple(facts), tuple(names), tuple(types), tuple(aliases)))


def test_every_field_of_a_document_is_in_the_mapping(
    sample_kb: EmbeddedKB, tiny_world: World, make_kb: Callable[[str, World], Any]
) -> None:
    rows = range(sample_kb.manifest.counts["entities"].unique)
    entities = sources(entity_documents(sample_kb, 0, len(rows))) + sources(catalog_documents(sample_kb))
    forms = sources(name_documents(sample_kb))
    for role, found in zip(ROLES, (entities, forms), strict=True):
        mapping = read_mapping(role)["mappings"]
        assert mapping["dynamic"] == "strict"
        assert {name for document in found for name in document} <= set(mapping["properties"])


def test_a_document_holds_what_the_embedded_index_holds(sample_kb: EmbeddedKB) -> None:
    kb = sample_kb
    found = sources(entity_documents(kb, 0, 506))
    rows = np.arange(len(found), dtype=np.uint32)
    assert [document["id"] for document in found] == kb.ids(rows)
    assert [document["facts"] for document in found] == kb.fact_counts(rows).tolist()
    assert [document.get("names", []) + document.get("aliases", []) for document in found] == [
        [name.text for name in names] for names in kb.names_of(rows)
    ]
    assert [
        {relation: sorted(targets) for relation, targets in facts_in(document, *OUTGOING)} for document in found
    ] == [
        {
            kb.relations[relation]: sorted(kb.ids(kb.objects_of([(row, relation)])[0]))
            for relation in kb.relations_of(np.array([row], dtype=np.uint32)).values.tolist()
        }
        for row in rows.tolist()
    ]
    assert [document["facts_in"] for document in found] == kb.incoming_counts(rows).tolist()
    assert [[row for run in document.get("subjects", []) for row in run] for document in found] == [
        kb.subjects_of(np.array([row], dtype=np.uint32))[0].subjects.tolist() for row in rows.tolist()
    ]


def test_a_giant_entity_is_bounded_and_loses_nothing(giant: EmbeddedKB) -> None:
    (row,) = giant.rows(["giant"])
    found = list(entity_documents(giant, row, row + 1))
    parts = sources(found)
    main = parts[-1]
    assert (main["part"], main["parts"], main["id"], main["facts"]) == (0, len(parts) - 1, "giant", 45_000)
    assert [document.done for document in found] == [row] * (len(found) - 1) + [row + 1]
    assert len({document.key for document in found}) == len(found) > 3
    assert all(len(document.source) < 2 * documents_module.MOST_BYTES for document in found)
    assert all(sum(map(len, part.get("objects", []))) <= documents_module.MOST_VALUES for part in parts)
    held = [(relation, target) for part in parts for relation, run in facts_in(part, *OUTGOING) for target in run]
    assert len(held) == len(set(held)) == 45_000 == sum(part.get("held", 0) for part in parts)
    assert set(held) == {(f"r.{number % 100:02}", f"object {number:05}") for number in range(45_000)}
    # Those who point at it are many too, and stand in its documents by row.
    pointing = [(relation, row) for part in parts for relation, run in facts_in(part, *INCOMING) for row in run]
    assert len(pointing) == main["facts_in"] == 30_000 == sum(part.get("held_in", 0) for part in parts)
    incoming = giant.subjects_of(np.array([row], dtype=np.uint32))[0]
    ids = [giant.relations[relation] for relation in incoming.relations]
    assert pointing == list(zip(ids, incoming.subjects.tolist(), strict=True))
    names = [name for part in [main, *parts[:-1]] for name in part.get("names", []) + part.get("aliases", [])]
    assert names == [name.text for name in giant.spoken_names(row)]
    assert sum(part.get("named", 0) for part in parts) == 21_001


def test_a_content_is_read_back_from_its_documents(giant: EmbeddedKB, sample_kb: EmbeddedKB) -> None:
    for kb in (giant, sample_kb):
        reader = FolderEntities(kb)
        contents = list(reader.contents(range(500)))
        stored = [sources(documents([content], reader.language)) for content in contents]
        held = [{name: value for name, value in content.items() if name != "forms"} for content in contents]
        assert [read_content([own[-1], *own[:-1]], reader.language) for own in stored] == held


def test_forms_of_a_block_of_names_are_those_of_each(sample_kb: EmbeddedKB) -> None:
    contents = list(FolderEntities(sample_kb).contents(range(500)))

    forms = [content.get("forms", []) for content in contents]

    assert [sorted(own) for own in forms] == [
        sorted(form for text in content.get("names", []) + content.get("aliases", []) for form in name_forms(text))
        for content in contents
    ]


def test_several_processes_make_the_documents_that_one_makes(
    sample_kb: EmbeddedKB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtools.processes.WORTHWHILE", 1)
    monkeypatch.setattr("kbtools.indexers.elastic.folder_contents._MANY", 0)
    monkeypatch.setattr("kbtools.indexers.elastic.folder_contents._BLOCK", 100)
    reader = FolderEntities(sample_kb)

    one, two = (list(reader.documents(7, jobs=jobs)) for jobs in (1, 2))

    assert two == one == list(entity_documents(sample_kb, 7, len(sample_kb.entity_ids)))


def test_a_document_too_large_in_bytes_is_parted_too(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    long = "x" * 900_000
    facts = tuple(("big", "r", f"{number}{long}") for number in range(9))
    kb = make_kb("embedded", new_world(facts, (("big", "Big"),)))
    (row,) = kb.rows(["big"])
    parts = sources(entity_documents(kb, row, row + 1))
    assert len(parts) == 2
    assert sum(len(run) for part in parts for run in part["objects"]) == 9


def test_an_entity_that_fits_is_one_document(giant: EmbeddedKB) -> None:
    (row,) = giant.rows(["object 00007"])
    (document,) = sources(entity_documents(giant, row, row + 1))
    assert document == {
        "row": row, "part": 0, "id": "object 00007", "facts": 0, "names": ["Seven"], "named": 1, "forms": ["seven"],
        "types": ["t.small"], "facts_in": 1, "held_in": 1, "relations_in": ["r.07"],
        "subjects": [giant.rows(["giant"])],
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["long " * 2_000 + "end", "x" * 10_000, "é" * 10_000, "東" * 40_000, "\U0001f600" * 9_000]
)
def test_no_term_is_longer_than_lucene_takes(
    make_kb: Callable[[str, World], Any], new_world: type[World], name: str
) -> None:
    kb = make_kb("embedded", new_world((("a", "r", "b" * 40_000),), (("a", name),)))
    found = sources(entity_documents(kb, 0, 2))
    (form,) = sources(name_documents(kb))
    terms = [term for document in found for term in document.get("forms", [])]
    terms += [term for document in found for term in [id_field(document["id"])[1]]]
    words = form.get("form", form.get("words", "")).split(" ")
    assert all(len(term.encode()) <= LONGEST_LUCENE_TERM for term in terms + words)
    assert sorted(terms[: len(name_forms(name))]) == sorted(map(term_of, name_forms(name)))


def test_terms_of_long_forms_tell_them_apart() -> None:
    assert term_of("short") == "short"
    assert term_of("é" * 240) == "é" * 240
    assert len({term_of("é" * 241), term_of("é" * 240 + "e"), term_of("é" * 241 + "x")}) == 3


def test_names_have_languages_where_these_are_others_than_the_commonest(
    make_kb: Callable[[str, World], Any], new_world: type[World]
) -> None:
    names = (("a", "Köln", "de"), ("a", "Cologne", "en"), ("b", "Bonn", "de"), ("b", "Trier", "de"))
    kb = make_kb(
        "embedded",
        new_world((("a", "r", "b"),), (), spoken=names, spoken_aliases=(("b", "Bunn", "de"),), language="en,de"),
    )
    main, other = sources(entity_documents(kb, 0, 2))
    assert (main["names"], main["aliases"], main["languages"]) == (["Cologne"], ["Köln"], ["en", "de"])
    assert "languages" not in other
    contents = FolderEntities(kb).contents(range(2))
    assert [sources(documents_module.parts(content, "de")) for content in contents] == [[main], [other]]
    assert json.loads(next(catalog_documents(kb)).source)["catalog"]["language"] == "de"


def test_every_normal_form_is_a_document_and_a_load_goes_on_anywhere(sample_kb: EmbeddedKB) -> None:
    forms = sample_kb.manifest.statistics["forms"]
    whole = list(name_documents(sample_kb))
    place = whole[len(whole) // 2].done
    assert list(name_documents(sample_kb, place)) == [document for document in whole if document.done > place]
    assert len({document.key for document in whole}) == len(whole) == count_normal_forms(sample_kb) < forms


def test_a_form_has_its_entity_with_the_most_names(sample_kb: EmbeddedKB) -> None:
    bearers = {form: bearer for form, bearer, _ in normal_forms(sample_kb)}
    assert list(bearers.values()) == sample_kb.bearers(list(bearers))


def test_long_lists_of_relations_are_cut(sample_kb: EmbeddedKB) -> None:
    names = [document.key for document in catalog_documents(sample_kb)]
    assert names == ["manifest", "relations-0", "types-0"]
    assert [len(chunk) for chunk in chunked(["x" * 600_000] * 3)] == [2, 1]
    assert list(chunked([])) == [[]]


def test_the_mappings_are_part_of_the_package() -> None:
    folder = Path(mapping.__file__).parent / "mappings"
    assert sorted(file.stem for file in folder.glob("*.json")) == sorted([*ROLES, "vectors", "builds"])


@pytest.mark.parametrize(("length", "field"), [(8_000, "id"), (8_001, "hashed_id")])
def test_an_id_is_looked_up_as_it_is_up_to_the_longest(
    make_kb: Callable[[str, World], Any], new_world: type[World], length: int, field: str
) -> None:
    long = "x" * length
    kb = make_kb("embedded", new_world(facts=((long, "r", "z"),), names=((long, "X"),)))

    (document,) = [one for one in sources(entity_documents(kb, 0, 2)) if one["id"] == long]

    assert id_field(long)[0] == field
    assert ("hashed_id" in document) == (field == "hashed_id")
    assert id_field(long)[1] in (document["id"], *document.get("hashed_id", ()))
