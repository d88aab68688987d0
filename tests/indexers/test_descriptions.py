"""Descriptions: read of every kind of source, stored beside names, changed by updates, and shown."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kbtools
from kbtools.cli.main import main
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.kb_folder import find_damage, read_manifest
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.overlay import open_folder
from kbtools.kb.contract import KnowledgeBase
from tests.conftest import World

FACTS = [("Q1", "P19", "Q2"), ("Q2", "P17", "Q3")]
NAMES = [("Q1", "Ann"), ("Q2", "Paris"), ("Q3", "France")]
DESCRIBED = [("Q1", "a painter"), ("Q3", "a country")]


def descriptions(kb: KnowledgeBase) -> dict[str, str]:
    rows = kb.entity_rows()
    return {entity: text for entity, text in zip(kb.ids(rows), kb.descriptions(rows), strict=True) if text}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "d.kb"
    kbtools.index(out=folder, facts=FACTS, names=NAMES, descriptions=DESCRIBED)
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "d.kb")


def index(tmp_path: Path, *arguments: str) -> dict[str, str]:
    done = CliRunner().invoke(main, ["index", "--quiet", "--out", str(tmp_path / "i.kb"), *arguments])
    assert done.exit_code == 0, done.stderr
    return descriptions(EmbeddedKB(tmp_path / "i.kb"))


def test_every_backend_gives_them_in_the_order_asked(backend: str, make_kb: Callable[[str, World], Any]) -> None:
    kb = make_kb(backend, World(tuple(FACTS), tuple(NAMES), descriptions=tuple(DESCRIBED)))
    rows = np.array(kb.rows(["Q3", "Q2", "Q1"]), dtype=np.uint32)
    assert kb.descriptions(rows) == ["a country", None, "a painter"]
    assert kb.descriptions(rows[:0]) == []


@pytest.mark.parametrize(
    ("languages", "expected"),
    [("en", {"Q1": "a person"}), ("de,en", {"Q1": "eine Person"}), ("fr,mul", {}), ("en,", {"Q1": "a person"})],
)
def test_that_of_the_first_language_asked_for_counts(tmp_path: Path, languages: str, expected: dict[str, str]) -> None:
    texts = {"de": "eine Person", "en": "a  person\n"}
    item = {
        "type": "item", "id": "Q1", "labels": {"mul": {"language": "mul", "value": "Ann"}},
        "descriptions": {tag: {"language": tag, "value": text} for tag, text in texts.items()},
        "claims": {"P31": [{"rank": "normal", "mainsnak": {"snaktype": "value", "datavalue": {
            "type": "wikibase-entityid", "value": {"id": "Q5"}}}}]},
    }  # fmt: skip
    (tmp_path / "d.json").write_text(f"[\n{json.dumps(item)}\n]\n")
    assert index(tmp_path, "--wikidata", str(tmp_path / "d.json"), "--lang", f"{languages},mul") == expected


def test_rdf_has_them_by_their_predicates_and_as_no_facts(tmp_path: Path) -> None:
    predicates = {
        "Q1": "http://schema.org/description", "Q2": "https://schema.org/description",
        "Q3": "http://purl.org/dc/terms/description", "Q4": "http://www.w3.org/2000/01/rdf-schema#comment",
        "Q5": "http://www.w3.org/2004/02/skos/core#definition",
    }  # fmt: skip
    lines = [
        f"<{entity}> <http://a/p> <Q9> .\n"
        f'<{entity}> <http://www.w3.org/2000/01/rdf-schema#label> "Ann" .\n'
        f'<{entity}> <{predicate}> "a painter of {entity}"@en .\n<{entity}> <{predicate}> "eine Malerin"@de .\n'
        for entity, predicate in predicates.items()
    ]
    (tmp_path / "d.nt").write_text("".join(lines))

    read = index(tmp_path, "--rdf", str(tmp_path / "d.nt"), "--lang", "en,de")

    assert read == {entity: f"a painter of {entity}" for entity in predicates}
    assert list(EmbeddedKB(tmp_path / "i.kb").relations) == ["http://a/p"]
    assert index(tmp_path, "--rdf", str(tmp_path / "d.nt"), "--description-predicate", "http://b/other") == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n.csv", 'id,name,description\nQ1,Ann,"a painter,\nof walls | doors"\nQ2,Paris,\n'),
        ("n.tsv", 'id\tname\tdescription\nQ1\tAnn\t"a painter,\nof walls | doors"\nQ2\tParis\t\n'),
        ("n.jsonl", '{"id": "Q1", "name": "Ann"}\n{"id": "Q1", "description": "a painter,\\nof walls | doors"}\n'),
    ],
)
def test_tables_of_names_have_a_column_of_them(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "f.tsv").write_text("subject\trelation\tobject\nQ1\tP19\tQ2\n")
    (tmp_path / name).write_text(text)
    sources = ("--facts", str(tmp_path / "f.tsv"), "--names", str(tmp_path / name), "--list-separator", "|")
    assert index(tmp_path, *sources) == {"Q1": "a painter, of walls | doors"}


def test_a_table_of_an_entity_a_row_has_a_column_of_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,name,note,kind\nQ1,Ann,"a painter,\nof walls",person\n')
    given = ("--table", str(tmp_path / "t.csv"), "--description", "note")
    assert index(tmp_path, *given, "--list-separator", ",") == {"Q1": "a painter, of walls"}


def test_an_entity_with_nothing_else_is_none(tmp_path: Path) -> None:
    with kbtools.index(out=tmp_path / "x.kb", facts=FACTS, names=NAMES, descriptions=[("Q9", "nobody")]) as answerer:
        assert descriptions(answerer.kb) == {}


def test_merged_ids_have_one(tmp_path: Path) -> None:
    redirects = [("Q8", "Q7"), ("Q7", "Q1")]
    kbtools.index(
        out=tmp_path / "x.kb", facts=FACTS, names=NAMES, descriptions=[("Q8", "a painter")], redirects=redirects
    )
    assert descriptions(EmbeddedKB(tmp_path / "x.kb")) == {"Q1": "a painter"}


def test_they_are_content_and_are_checked(folder: Path, tmp_path: Path) -> None:
    kbtools.index(out=tmp_path / "x.kb", facts=FACTS, names=NAMES)
    assert read_manifest(folder).digest != read_manifest(tmp_path / "x.kb").digest
    assert read_manifest(folder).statistics["descriptions"] == 2
    path = folder / "description.text.utf8"
    path.write_bytes(path.read_bytes().replace(b"painter", b"printer"))
    assert [path.name in damage for damage in find_damage(folder, read_manifest(folder))] == [True]


CHANGES: list[tuple[list[dict[str, Any]], dict[str, str]]] = [
    ([{"id": "Q2", "description": "a  city"}], {"Q1": "a painter", "Q2": "a city", "Q3": "a country"}),
    ([{"id": "Q1", "description": "a poet"}], {"Q1": "a poet", "Q3": "a country"}),
    ([{"id": "Q1", "remove": {"description": True}}], {"Q3": "a country"}),
    ([{"remove": "Q1"}], {"Q3": "a country"}),
    ([{"merge": "Q1", "into": "Q2"}], {"Q2": "a painter", "Q3": "a country"}),
    ([{"merge": "Q1", "into": "Q3"}], {"Q3": "a country"}),
    ([{"id": "Q0", "names": ["New"], "description": "new"}], {"Q0": "new", "Q1": "a painter", "Q3": "a country"}),
]


@pytest.mark.parametrize(("changes", "expected"), CHANGES)
def test_updates_change_them_and_compact_keeps_them(
    folder: Path, changes: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    kbtools.update(folder, add=changes)
    assert descriptions(open_folder(folder)) == expected
    assert read_manifest(folder).statistics["descriptions"] == len(expected)
    kbtools.update(folder, facts=[("Q2", "P2", "Q3")])
    assert descriptions(open_folder(folder)) == expected
    kbtools.compact(folder)
    assert descriptions(EmbeddedKB(folder)) == expected
    assert read_manifest(folder).statistics["descriptions"] == len(expected)


def test_rows_given_to_an_update_replace_them(folder: Path) -> None:
    result = kbtools.update(folder, descriptions=[("Q1", "a poet"), ("Q3", "a country")])
    assert result.changes == {"descriptions changed": 1}
    assert descriptions(open_folder(folder)) == {"Q1": "a poet", "Q3": "a country"}


def test_what_is_not_there_cannot_be_taken_away(folder: Path) -> None:
    result = kbtools.update(folder, add=[{"id": "Q2", "remove": {"description": True}}])
    assert [(missing.kind, missing.first) for missing in result.missing] == [("descriptions", "Q2")]


def test_an_update_of_an_updated_folder_can_be_opened_by_its_copy(folder: Path, tmp_path: Path) -> None:
    kbtools.update(folder, add=[{"id": "Q2", "description": "a city"}])
    assert descriptions(open_folder(shutil.copytree(folder, tmp_path / "copy.kb")))["Q2"] == "a city"


def test_commands_show_them(folder: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, [arguments[0], "--kb", str(folder), *arguments[1:]])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    assert run("show", "Q1").splitlines()[:2] == ["Ann (Q1)", "  a painter"]
    assert json.loads(run("show", "Q1", "--json"))["description"] == "a painter"
    assert "Ann (Q1), a painter  [exact: Ann]" in run("lookup", "Ann")
    assert json.loads(run("lookup", "Ann", "--json"))["matches"][0]["description"] == "a painter"
    assert "Ann (Q1), a painter  P19" in run("query", "where was Ann born")
    candidate = json.loads(run("query", "--json", "where was Ann born"))["candidates"][0]
    assert candidate["subject_description"] == "a painter"


def test_a_build_reads_the_same_from_files(folder: Path, tmp_path: Path) -> None:
    lines = [{"id": entity, "description": text} for entity, text in DESCRIBED]
    (tmp_path / "d.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "f.jsonl").write_text(
        "".join(json.dumps(dict(zip(("subject", "relation", "object"), f, strict=True))) + "\n" for f in FACTS)
    )
    (tmp_path / "n.jsonl").write_text("".join(f'{{"id": "{entity}", "name": "{name}"}}\n' for entity, name in NAMES))
    kinds = {"f": "facts", "n": "names", "d": "names"}
    sources = [Source(tmp_path / f"{name}.jsonl", kind) for name, kind in kinds.items()]  # type: ignore[arg-type]
    built = build(sources, tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())
    assert built.manifest.digest == read_manifest(folder).digest
