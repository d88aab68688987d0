"""The draft of an update is what plain sets would be after any changes, and counts what changed and was missing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.batches import ALIAS
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.draft import Draft
from kbtools.indexers.updates.update_sources import UpdateSource, read_into
from kbtools.kb.language_tags import SpokenText
from tests.conftest import World, write_world
from tests.indexers.updates.test_updated_kb import DESCRIPTIONS, IDS, KINDS, NAMES, Plain, records

FACTS = (
    ("m.0a", "book.author", "m.0b"),
    ("m.0a", "book.author", "m.0c"),
    ("m.0b", "music.genre", "m.0a"),
    ("m.0c", "music.genre", "m.0c"),
    ("Z", "book.author", "m.0c"),
)
WORLD = World(
    facts=FACTS,
    names=(("m.0a", "Jaws"), ("m.0a", "It"), ("m.0b", "Who"), ("m.0c", "Jaws"), ("é", "Emma")),
    aliases=(("m.0a", "Solaris"), ("m.0b", "It"), ("é", "Jaws")),
    types=(("m.0a", KINDS[0]), ("m.0a", KINDS[1]), ("é", KINDS[0])),
    descriptions=(("m.0a", DESCRIPTIONS[0]), ("Z", DESCRIPTIONS[1])),
)


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedKB:
    folder = tmp_path_factory.mktemp("drafted")
    build(write_world(WORLD, folder), folder / "x.kb", options=ReadOptions(), watch=BuildProgress())
    return EmbeddedKB(Path(folder / "x.kb"))


def state_of(draft: Draft) -> dict[str, Any]:
    """Return the contents of the drafted entities by id."""
    rows = {entity: row for entity in IDS if (row := draft.find(entity)) is not None}
    own = {entity: row for entity, row in rows.items() if draft.id_of(row) == entity}
    return {
        "facts": {
            (entity, draft.relations[relation], draft.id_of(target))
            for entity, row in own.items()
            for relation, target in draft.facts[row]
        },
        "names": {
            (entity, text, int(name.rank == ALIAS))
            for entity, row in own.items()
            for text, name in draft.names[row].items()
        },
        "kinds": {(entity, draft.types[kind]) for entity, row in own.items() for kind in draft.kinds[row]},
        "described": {(entity, text) for entity, row in own.items() if (text := draft.description_of(row))},
        "merged": {(entity, draft.id_of(row)) for entity, row in rows.items() if draft.id_of(row) != entity},
    }


def expected_of(plain: Plain) -> dict[str, Any]:
    return {
        "facts": plain.facts,
        "names": {(entity, text, rank) for entity, texts in plain.texts.items() for text, rank in texts.items()},
        "kinds": plain.kinds,
        "described": set(plain.described.items()),
        "merged": {(old, plain.canonical(old)) for old in plain.merged},
    }


def change(draft: Draft, folder: Path, record: dict[str, Any]) -> None:
    """Make the changes of a record as those of a file."""
    file = folder / "changes.jsonl"
    file.write_text(json.dumps(record))
    read_into(draft, UpdateSource(Source(file, "any"), "changes"), ReadOptions())


def one_by_one(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Divide a record, so that each removal stands alone."""
    removed = record.get("remove")
    for field, parts in removed.items() if isinstance(removed, dict) else ():
        if isinstance(parts, dict):
            pairs = [
                (relation, target) for relation, own in parts.items() for target in ([True] if own is True else own)
            ]
            values: list[Any] = [{relation: True if target is True else [target]} for relation, target in pairs]
        else:
            values = [True] if parts is True else [[text] for text in parts]
        yield from ({"id": record["id"], "remove": {field: value}} for value in values)
    if not isinstance(removed, dict):
        yield record


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, min_size=1, max_size=8))
@example([{"merge": "m.0d", "into": "m.0d"}, {"remove": "m.0d"}])
@example([{"id": "Z", "remove": {"description": True, "facts": True}}, {"remove": "Z"}])
@example([{"merge": "m.0a", "into": "m.0b"}, {"remove": "m.0b"}, {"id": "m.0a", "names": ["It"]}])
def test_a_draft_is_what_plain_sets_would_be_and_counts_what_changed(
    kb: EmbeddedKB, tmp_path: Path, changes: list[dict[str, Any]]
) -> None:
    draft, plain = Draft(kb), Plain(WORLD)
    draft.expect(IDS)
    former = state_of(draft)
    assert former == expected_of(plain)
    for record in [part for own in changes for part in one_by_one(own)]:
        plain.change(record)
        counts, missing = draft.counts.copy(), dict(draft.missing)
        change(draft, tmp_path, record)
        latter = state_of(draft)
        made = {kind: count - counts[kind] for kind, count in draft.counts.items()}
        for kind, parts in (("facts", "facts"), ("names", "names"), ("types", "kinds")):
            gained = made.get(f"{kind} added", 0) - made.get(f"{kind} removed", 0)
            assert gained == size(latter[parts]) - size(former[parts])
        if "remove" in record:
            # An entity without facts, names and types can still be removed.
            is_whole = not isinstance(record["remove"], dict)
            assert (draft.missing != missing) == (latter == former) or (is_whole and draft.missing == missing)
        former = latter
    plain.merged = {old: new for old, new in plain.merged.items() if draft.find(old) is not None}
    assert former == expected_of(plain)


@pytest.mark.parametrize(
    "removed",
    [
        {"names": True, "aliases": True},
        {"names": True, "aliases": ["Solaris"], "types": ["t.b"]},
        {"names": ["It"], "aliases": True, "types": True, "description": True, "facts": True},
        {"types": True, "facts": {"book.author": True, "music.genre": ["m.0a"]}},
        {"facts": {"music.genre": True, "book.author": ["m.0c"]}, "description": True},
    ],
)
@pytest.mark.parametrize("entity", ["m.0a", "m.0b"])
def test_removals_of_one_record_are_all_made(
    kb: EmbeddedKB, tmp_path: Path, entity: str, removed: dict[str, Any]
) -> None:
    draft, plain, record = Draft(kb), Plain(WORLD), {"id": entity, "remove": removed, "names": ["Solari"]}
    draft.expect(IDS)

    change(draft, tmp_path, record)
    plain.change(record)

    assert state_of(draft) == expected_of(plain)


def test_a_description_is_one_line_and_replaces_that_of_its_language(kb: EmbeddedKB, tmp_path: Path) -> None:
    draft = Draft(kb)
    change(draft, tmp_path, {"id": "m.0c", "description": {"de": "ein\nBuch", "EN": " a  book "}})
    change(draft, tmp_path, {"id": "m.0c", "description": {"en": "a novel"}})

    described = draft.description_of(draft.require("m.0c"))

    assert isinstance(described, SpokenText)
    assert described.by_tag == {"de": "ein Buch", "en": "a novel"}
    assert draft.counts["descriptions changed"] == 3


def test_relations_are_named_in_languages_and_found_by_their_ids(kb: EmbeddedKB, tmp_path: Path) -> None:
    draft = Draft(kb)
    row = draft.relation_rows["book.author"]
    change(draft, tmp_path, {"id": "book.author", "names": {"de": "geschrieben\tvon"}})
    change(draft, tmp_path, {"id": "book.author", "names": {"en": "written by"}})
    change(draft, tmp_path, {"id": "book.author", "names": {"en": "written by"}})

    named = draft.relation_names[row]

    assert isinstance(named, SpokenText)
    assert named.by_tag == {"de": "geschrieben von", "en": "written by"}
    assert (draft.counts["relations named"], draft.new_ids) == (2, [])


SPELLINGS = ("m.{}", "/m/{}", "http://rdf.freebase.com/ns/m.{}", "www.freebase.com/m/{}")


def records_of(spelling: int) -> list[dict[str, Any]]:
    """Write one of each change, its ids, types, relations and languages in one of their spellings."""
    one, two, three, new = (SPELLINGS[spelling].format(name) for name in ("0a", "0b", "0c", "0new"))
    genre, kind, tag = ("/music/genre", "/t/c", "DE") if spelling % 2 else ("music.genre", "t.c", "de")
    return [
        {"id": new, "names": {tag: "Nova"}, "aliases": {tag: ["Neu"]}, "types": [kind], "facts": {genre: [one, two]}},
        {"id": one, "description": {tag: "ein Buch"}, "types": [kind]},
        {"id": one, "remove": {"types": [kind]}},
        {"id": two, "remove": {"facts": {genre: [one]}}},
        {"merge": two, "into": new},
        {"id": three, "facts": {genre: [two]}},
        {"id": three, "remove": {"facts": {genre: True}}},
        {"remove": one},
    ]


@pytest.mark.parametrize("spelling", range(1, len(SPELLINGS)))
def test_ids_types_and_languages_of_records_may_be_spelt_in_any_way(
    kb: EmbeddedKB, tmp_path: Path, spelling: int
) -> None:
    usual, draft = Draft(kb), Draft(kb)
    for own, number in ((usual, 0), (draft, spelling)):
        for record in records_of(number):
            change(own, tmp_path, record)

    assert (draft.counts, draft.missing, draft.new_ids, draft.names, draft.facts, draft.kinds) == (
        usual.counts, usual.missing, usual.new_ids, usual.names, usual.facts, usual.kinds,
    )  # fmt: skip
    assert (draft.descriptions, draft.redirects, draft.deleted) == (usual.descriptions, usual.redirects, usual.deleted)
    assert usual.missing == {}
    assert usual.counts["entities merged"] == 1


def test_a_name_in_a_language_that_is_not_listed_comes_behind_those_that_are(kb: EmbeddedKB, tmp_path: Path) -> None:
    draft, file = Draft(kb), tmp_path / "changes.jsonl"
    names = {"fr": "Roman", "en": "Zeta", "de": "Ypsilon", "it": "Alfa"}
    file.write_text(json.dumps({"id": "new", "names": names, "aliases": {"en": "Aaa"}}))

    read_into(draft, UpdateSource(Source(file, "any"), "changes"), ReadOptions(language="de,en"))

    own = draft.names[draft.require("new")]
    assert sorted(own, key=lambda text: (own[text].rank, text)) == ["Ypsilon", "Zeta", "Alfa", "Roman", "Aaa"]
    assert {text: name.parts for text, name in own.items()} == {
        **{text: {tag: False} for tag, text in names.items()},
        "Aaa": {"en": True},
    }


def size(parts: set[tuple[str, ...]]) -> int:
    """Count parts, a name with either rank once."""
    return len({part[:2] if len(part) == 3 and isinstance(part[2], int) else part for part in parts})


@pytest.mark.parametrize("name", NAMES)
def test_bearers_of_a_name_are_those_that_have_it_by_now(kb: EmbeddedKB, tmp_path: Path, name: str) -> None:
    draft = Draft(kb)
    for record in (
        {"id": "m.0a", "rename": {"Jaws": "Solari"}},
        {"id": "new", "names": ["jaws", "C++"]},
        {"remove": "é"},
        {"merge": "m.0b", "into": "m.0c"},
    ):
        change(draft, tmp_path, record)
    borne = {
        "m.0a": {"solari", "it", "solaris"},
        "m.0c": {"jaws", "who", "it"},
        "new": {"jaws", "c++"},
    }

    bearers = draft.bearers([name, "nobody"])

    assert {key: {draft.id_of(row) for row in rows} for key, rows in bearers.items()} == {
        name.lower(): {entity for entity, texts in borne.items() if name.lower() in texts},
        "nobody": set(),
    }
