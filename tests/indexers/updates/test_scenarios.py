"""Single changes, one after the other, leave what a fresh build of the same facts has, and what they are counted as."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kbtools
from kbtools.errors import BadArgument, NothingBuilt
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.kb_folder import find_damage, read_manifest
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates import compacting, update_sources
from kbtools.indexers.updates.compacting import compact
from kbtools.indexers.updates.overlay import open_folder
from kbtools.kb.manifest import MERGE
from tests.conftest import World, write_world
from tests.indexers.updates.test_updated_kb import (
    Plain,
    Record,
    apply_records,
    compact_alike,
    contents,
    counts,
    memory_of,
    number_alike,
)

WORLD = World(
    facts=(
        ("m.0a", "book.author", "m.0b"),
        ("m.0a", "book.author", "m.0c"),
        ("m.0b", "music.genre", "m.0a"),
        ("m.0c", "music.genre", "m.0c"),
        ("Z", "book.author", "m.0c"),
        ("Z", "book.author", '"7"'),
        ("m.0d", "film.directed_by", "Q42"),
    ),
    names=(("m.0a", "Jaws"), ("m.0a", "It"), ("m.0b", "The Who"), ("m.0c", "Jaws"), ("é", "Emma")),
    aliases=(("m.0a", "Solaris"), ("m.0b", "It"), ("é", "Jaws")),
    types=(("m.0a", "t.a"), ("m.0a", "t.b"), ("é", "t.a")),
    descriptions=(("m.0a", "a book"), ("Z", "a town")),
)

STEPS: dict[str, list[list[Record]]] = {
    "names and aliases come and go": [
        [{"id": "m.0d", "names": ["Who"], "aliases": ["C++", "It"]}, {"id": "m.0a", "rename": {"Jaws": "jaws"}}],
        [{"id": "m.0c", "names": ["Solari"]}],  # "solarr" is near both this and Solaris
        [{"id": "m.0a", "remove": {"names": True, "aliases": ["Solaris"]}}],
        [{"id": "m.0d", "remove": {"names": ["Who"], "aliases": True}, "names": ["1984", "O'Neil"]}],
    ],
    "an entity goes and comes back": [
        [{"remove": "m.0a"}],
        [{"id": "m.0a", "names": ["Łódź"], "facts": {"place.a..b": ["m.0a", "Q42"]}}, {"remove": "Z"}],
        [{"remove": "m.0a"}, {"remove": "m.0d"}, {"id": "m.0a", "names": ["Emma (film)"]}],
    ],
    "entities are merged in turn": [
        [{"merge": "m.0b", "into": "m.0a"}],
        [{"id": "m.0b", "facts": {"music.genre": ["Z"]}, "description": "somebody"}, {"merge": "m.0a", "into": "Z"}],
        [{"merge": "Z", "into": "e f"}, {"id": "m.0a", "types": ["t.c"]}],
    ],
    "facts of old and new relations come and go": [
        [{"id": "m.0d", "facts": {"place.a..b": ["Q42", "e f"], "film.directed_by": ["m.0a", "Q42"]}}],
        [{"id": "m.0a", "remove": {"facts": {"book.author": True, "music.genre": ["m.0b"]}}}],
        [{"id": "m.0d", "remove": {"facts": True}}, {"id": "Z", "remove": {"facts": {"book.author": ["m.0c"]}}}],
    ],
    "types and descriptions come and go": [
        [{"id": "m.0c", "types": ["t.c", "t.a"], "description": "somebody"}, {"id": "Q42", "types": ["t.b"]}],
        [{"id": "m.0a", "remove": {"types": ["t.b"], "description": True}}, {"id": "Z", "description": "a book"}],
        [{"id": "m.0c", "remove": {"types": True}}, {"id": "nobody", "types": ["t.a"], "description": "a book"}],
    ],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_after_each_update_it_is_as_built_afresh(tmp_path: Path, steps: list[list[Record]]) -> None:
    plain, path = Plain(WORLD), tmp_path / "x.kb"
    build(write_world(WORLD, tmp_path), path, options=ReadOptions(), watch=BuildProgress())
    for changes in steps:
        made = apply_records(path, changes)
        for record in changes:
            plain.change(record)
        plain.forget()
        kb, fresh = open_folder(path), memory_of(plain.world())
        number_alike(fresh, kb)
        assert contents(kb, plain.merged) == contents(fresh, {})
        assert [kb.ids(np.array([row])) for row in kb.rows(list(plain.merged))] == [
            [plain.canonical(old)] for old in plain.merged
        ]
        assert kb.manifest.history[-1].counts == made
    before = counts(open_folder(path))
    assert list(find_damage(path, read_manifest(path))) == []
    compact_alike(path)
    built = build(
        write_world(plain.world(), tmp_path), tmp_path / "fresh.kb", options=ReadOptions(), watch=BuildProgress()
    )
    appended = ("relations", "types", "types_of_unknown_entities")
    assert before | dict.fromkeys(appended) == counts(open_folder(tmp_path / "fresh.kb")) | dict.fromkeys(appended)
    assert read_manifest(path).digest == built.manifest.digest or plain.merged


@pytest.fixture
def folder(copy_kb: Callable[[World, Path], Path], tmp_path: Path) -> Path:
    return copy_kb(WORLD, tmp_path / "x.kb")


def test_every_change_is_counted(folder: Path) -> None:
    made = apply_records(
        folder,
        [
            {"id": "m.0a", "names": ["Jaws", "New"], "types": ["t.a", "t.c"], "description": "a town"},
            {"id": "m.0a", "facts": {"book.author": ["m.0b", "new"]}, "remove": {"aliases": ["Solaris"]}},
            {"id": "é", "remove": {"types": True}},
            {"remove": "Z"},
            {"merge": "m.0b", "into": "m.0c"},
            {"id": "Q42", "description": "somebody"},
            {"id": "Q42", "remove": {"description": True}},
        ],
    )

    assert made == {
        "descriptions changed": 3,
        "entities added": 1,
        "entities merged": 1,
        "entities removed": 1,
        "facts added": 2,
        "facts removed": 4,
        "names added": 3,
        "names removed": 3,
        "types added": 1,
        "types removed": 1,
        "values removed": 1,
    }


SPOKEN = World(
    facts=(("Q1", "r.r.r", "Q2"),),
    names=(("Q2", "Plain"),),
    spoken=(
        ("Q1", "Moon", "en"),
        ("Q1", "Mond", "de"),
        ("Q1", "Lune", "fr"),
        ("Q1", "Aluna", "es"),
        ("Q2", "Two", "en"),
    ),
    spoken_aliases=(("Q1", "Luna", "de"), ("Q1", "Moon", "fr")),
    language="en,de,fr,es",
)


def test_names_keep_languages_and_order_through_updates_and_a_compaction(tmp_path: Path) -> None:
    path, options = tmp_path / "x.kb", ReadOptions(language=SPOKEN.language)
    build(write_world(SPOKEN, tmp_path), path, options=options, watch=BuildProgress())
    before = open_folder(path)
    rows = np.array(before.rows(["Q1"]), dtype=np.uint32)
    names, ranked, languages = before.names_of(rows), before.ranked_names(rows), before.manifest.languages

    apply_records(path, [{"id": "Q1", "types": ["t.a"]}, {"id": "Q3", "names": {"de": "Drei"}}], options)
    apply_records(path, [{"id": "Q1", "aliases": {"de": "Erdmond"}}, {"id": "Q2", "names": ["Simple"]}], options)
    apply_records(path, [{"id": "Q1", "remove": {"aliases": ["Erdmond"]}}], options)
    apply_records(path, [{"id": "Q2", "remove": {"names": ["Simple"]}}, {"remove": "Q3"}], options)

    kb = open_folder(path)
    assert (kb.names_of(rows), kb.ranked_names(rows)) == (names, ranked)
    assert kb.manifest.languages == languages
    apply_records(path, [{"id": "Q1", "remove": {"types": True}}], options)
    compact(path, watch=BuildProgress())
    kb = open_folder(path)
    assert (kb.names_of(rows), kb.ranked_names(rows), kb.manifest.languages) == (names, ranked, languages)


def test_names_in_later_languages_are_removed_with_the_aliases(tmp_path: Path) -> None:
    options = ReadOptions(language=SPOKEN.language)
    build(write_world(SPOKEN, tmp_path), tmp_path / "x.kb", options=options, watch=BuildProgress())

    apply_records(tmp_path / "x.kb", [{"id": "Q1", "remove": {"aliases": True}}], options)

    with kbtools.open(tmp_path / "x.kb") as kb:
        entity = kb.entity("Q1")
        assert (entity.name, entity.aliases) == ("Moon", ())


def test_names_without_languages_get_some_with_the_first_update_in_one(folder: Path) -> None:
    assert open_folder(folder).manifest.languages == {}
    apply_records(folder, [{"id": "m.0d", "names": ["Undetermined"]}])
    assert open_folder(folder).manifest.languages == {}

    apply_records(folder, [{"id": "m.0d", "names": {"DE": "Deutsch"}}])

    kb = open_folder(folder)
    assert kb.manifest.languages == {"und": 9, "de": 1}
    texts = {name.text: name.languages for name in kb.names_of(np.array(kb.rows(["m.0d"]), dtype=np.uint32))[0]}
    assert texts == {"Undetermined": ("und",), "Deutsch": ("de",)}


def test_batches_change_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "_ENTITIES_AT_ONCE", 2)
    monkeypatch.setattr(update_sources, "_CHANGES_AT_ONCE", 1)
    plain = Plain(WORLD)
    for record in (changes := [record for records in STEPS["entities are merged in turn"] for record in records]):
        plain.change(record)
    plain.forget()

    apply_records(folder, changes)
    compact(folder, watch=BuildProgress())

    assert contents(open_folder(folder), plain.merged) == contents(memory_of(plain.world()), {})


def test_what_is_taken_back_leaves_the_content_as_it_was(folder: Path) -> None:
    apply_records(folder, [{"id": "m.0d", "names": ["Who"]}])
    digest = read_manifest(folder).digest

    there = apply_records(folder, [{"id": "m.0d", "rename": {"Who": "Him"}}, {"id": "m.0d", "rename": {"Him": "Who"}}])

    assert there == {}
    assert read_manifest(folder).digest == digest
    assert len(read_manifest(folder).history) == 1


def test_an_update_of_a_merge_is_measured_and_counts_duplicates(tmp_path: Path) -> None:
    world = World(facts=(*WORLD.facts, WORLD.facts[0]), names=(*WORLD.names, WORLD.names[0]))
    build(write_world(world, tmp_path), tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())
    first = read_manifest(tmp_path / "x.kb")
    apply_records(tmp_path / "x.kb", [{"id": "m.0a", "names": ["New"]}])
    second = read_manifest(tmp_path / "x.kb")

    assert compact(tmp_path / "x.kb", watch=BuildProgress())
    third = read_manifest(tmp_path / "x.kb")

    for kind, more in (("facts", 0), ("names", 1)):
        raw, unique = first.counts[kind].raw, first.counts[kind].unique
        assert raw == unique + 1
        assert [(one.counts[kind].raw, one.counts[kind].unique) for one in (second, third)] == [
            (raw + more, unique + more)
        ] * 2
    update, merge = third.history
    segment = sum(size for name, size in second.files.items() if name.startswith("segment/"))
    assert (update.before, update.after, update.bytes) == (first.digest, second.digest, segment)
    assert (merge.action, merge.before, merge.after) == (MERGE, second.digest, third.digest)
    assert compact(tmp_path / "x.kb", watch=BuildProgress()) is None


def test_rows_are_removed_kind_by_kind(folder: Path) -> None:
    result = kbtools.update(
        folder,
        remove_facts=[("m.0a", "book.author", "m.0b"), ("m.0a", "no.such.relation", "m.0b")],
        remove_names=[("m.0a", "Jaws"), ("m.0a", "Solaris")],
        remove_types=[("m.0a", "t.a"), ("é", "t.c"), ("nobody", "t.a")],
    )

    assert result.changes == {"facts removed": 1, "names removed": 2, "types removed": 1}
    assert {missing.kind: (missing.count, missing.first) for missing in result.missing} == {
        "facts": (1, "m.0a no.such.relation m.0b"),
        "types": (2, "é t.c"),
    }
    with kbtools.open(folder) as kb:
        entity = kb.entity("m.0a")
        assert (entity.name, entity.aliases, [kind.id for kind in entity.types]) == ("It", (), ["t.b"])


def test_rows_are_added_kind_by_kind_and_a_description_is_the_first_by_spelling(folder: Path) -> None:
    result = kbtools.update(
        folder,
        facts=[("m.0d", "book.author", "new")],
        names=[("m.0d", "Name")],
        aliases=[("m.0d", "Alias")],
        types=[("m.0d", "t.a")],
        descriptions=[("m.0d", "b\nc"), ("m.0d", "a  word")],
        redirects=[("m.0b", "m.0c")],
        relations=[("book.author", "written by"), ("book.author", "author")],
    )

    assert result.changes.keys() >= {"entities added", "entities merged", "relations named", "descriptions changed"}
    with kbtools.open(folder) as kb:
        entity = kb.entity("m.0d")
        assert (entity.name, entity.aliases, entity.description) == ("Name", ("Alias",), "a word")
        assert [kind.id for kind in entity.types] == ["t.a"]
        assert kb.entity("m.0b").id == "m.0c"
        assert [fact.relation.name for fact in kb.facts("m.0d").facts] == ["author", None]


def test_a_cell_of_a_table_is_an_entity_or_a_value(folder: Path, tmp_path: Path) -> None:
    schema = "http://www.w3.org/2001/XMLSchema#"
    cells = {
        "The Who": "m.0b",
        "the who": "m.0b",
        "Jaws": '"Jaws"',  # two entities have the name
        "Nova": "new",  # a name of another row
        "m.0c": "m.0c",
        "Nobody": '"Nobody"',
    }
    values = {
        "12.5": f'"12.5"^^<{schema}decimal>',
        "2001-02-03": f'"2001-02-03"^^<{schema}date>',
        "2001-02-03T04:05:06Z": f'"2001-02-03T04:05:06Z"^^<{schema}dateTime>',
        "http://example.org/x": f'"http://example.org/x"^^<{schema}anyURI>',
    }
    rows = [f"row{number},Row {number},{cell}" for number, cell in enumerate(cells)]
    head, last = "id,name,near,size,day,time,site", f"new,Nova,,{','.join(values)}"
    (tmp_path / "more.csv").write_text("\n".join([head, *rows, last]), encoding="utf-8")

    kbtools.update(folder, table=tmp_path / "more.csv", columns={"link": "near"})

    with kbtools.open(folder) as kb:
        assert kb.entity("row3").name == "Row 3"
        found = [[fact.object.id for fact in kb.facts(f"row{number}").facts] for number in range(len(cells))]
        assert found == [[target] for target in cells.values()]
        assert [fact.object.id for fact in kb.facts("new").facts] == list(values.values())


def test_a_file_without_rows_is_named_with_its_lines(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id,name\n", encoding="utf-8")

    with pytest.raises(NothingBuilt, match=r"more\.csv: no rows among its \d lines"):
        kbtools.update(folder, table=tmp_path / "more.csv")


def test_changes_may_be_paths_ids_or_records(folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for number, file in enumerate(files):
        file.write_text(f'{{"id": "new{number}", "names": ["New {number}"]}}\n', encoding="utf-8")
    (tmp_path / "gone.txt").write_text("m.0a\n", encoding="utf-8")

    kbtools.update(folder, add=files)
    kbtools.update(folder, add=str(files[0]), remove=str(tmp_path / "gone.txt"))
    kbtools.update(folder, add=map(str, files), remove=iter(["m.0b"]))

    assert open_folder(folder).rows(["new0", "new1"]) != [None, None]
    assert open_folder(folder).rows(["m.0a", "m.0b"]) == [None, None]
    sources = [change.sources for change in read_manifest(folder).history]
    assert sources[-1] == ("remove given in Python", *map(str, files))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "at least one change"),
        ({"add": []}, "at least one change"),
        ({"remove": "m.0a"}, "remove: expected a path or several ids"),
        ({"add": 7}, "add: expected a path or several records"),
        ({"remove": b"m.0a"}, "several ids"),
    ],
)
def test_what_are_no_changes_is_refused(folder: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadArgument, match=reason):
        kbtools.update(folder, **changes)


def test_redirects_that_a_build_read_survive_updates_of_their_target(tmp_path: Path) -> None:
    (tmp_path / "old.tsv").write_text("old\tnew\nm.0old\tm.0a\nm.0older\tm.0b\n", encoding="utf-8")
    sources = [*write_world(WORLD, tmp_path), Source(tmp_path / "old.tsv", "redirects")]
    path = tmp_path / "x.kb"
    build(sources, path, options=ReadOptions(), watch=BuildProgress())

    def target(entity: str) -> str | None:
        kb = open_folder(path)
        (row,) = kb.rows([entity])
        return None if row is None else kb.ids(np.array([row], dtype=np.uint32))[0]

    assert [target("m.0old"), target("m.0older")] == ["m.0a", "m.0b"]
    apply_records(path, [{"merge": "m.0a", "into": "m.0c"}, {"remove": "m.0b"}])
    assert [target("m.0old"), target("m.0a"), target("m.0older")] == ["m.0c", "m.0c", None]
    apply_records(path, [{"id": "m.0older", "names": ["Anew"]}])
    assert target("m.0older") == "m.0older"
    compact(path, watch=BuildProgress())
    assert [target("m.0old"), target("m.0a"), target("m.0older")] == ["m.0c", "m.0c", "m.0older"]
