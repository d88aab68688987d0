"""Updates on a cluster change what a folder's change; readers are undisturbed, and faults leave the old state."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings

import kbtools
from kbtools.answering.answerer import Answerer
from kbtools.answering.records import UpdateResult
from kbtools.cli.main import main
from kbtools.errors import (
    BadArgument,
    BuildLocked,
    BulkFailed,
    KBMissing,
    NotAllowed,
    Unreachable,
)
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.elastic import documents
from kbtools.indexers.elastic.build_lock import BuildLock, BuildNote, read_note
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.cluster_updates import UpdateJob, UpdateOptions, update_on_cluster
from kbtools.indexers.elastic.documents import EntityContent, key_of_form
from kbtools.indexers.elastic.entity_changes import StoredKB
from kbtools.indexers.elastic.inventory import choose_versions, drop_deleted, remove_versions
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import LoadOptions, load
from kbtools.indexers.elastic.mapping import index_name
from kbtools.indexers.elastic.versions import Version, list_versions, roll_back
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.overlay import open_folder
from kbtools.indexers.updates.update_sources import UpdateSource
from kbtools.indexers.updates.updating import update
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.language_tags import SpokenText, stored_text
from kbtools.kb.vector_index import EntityVectors
from kbtools.serve.live_kb import ASKED_AGAIN, open_live_kb
from kbtools.serve.settings import ServeSettings
from tests.conftest import World, write_world
from tests.indexers.elastic.conftest import SINGLE, SmallServer, age_note
from tests.indexers.updates.test_updated_kb import (
    IDS,
    Plain,
    Record,
    aliases_of_worlds,
    answers,
    contents,
    counts,
    named_of_worlds,
    steps,
    triples_of_worlds,
    types_of_worlds,
)
from tests.kbtools.test_languages import SPEAKING

MUSIC = World(
    facts=(("m.0one", "music.album.artist", "m.0two"), ("m.0three", "music.album.artist", "m.0two")),
    names=(("m.0one", "Heroes"), ("m.0two", "David Bowie"), ("m.0three", "Low")),
    types=(("m.0one", "music.album"),),
)
RENAMED: list[Record] = [{"id": "m.0one", "rename": {"Heroes": "Lodger"}}]


def sources_of(folder: Path, changes: list[Record]) -> list[UpdateSource]:
    file = folder / "changes.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in changes))
    return [UpdateSource(Source(file, "any"), "changes")]


def told(result: UpdateResult) -> dict[str, Any]:
    """Leave out what the homes tell differently: where it is, and the digest of its content."""
    return {name: value for name, value in result.to_json().items() if name not in ("kb", "digest")}


def held(kb: Any, merged: dict[str, str]) -> dict[str, Any]:
    """Tell all that a cluster can find; beginnings of names it cannot."""
    return {name: value for name, value in contents(kb, merged).items() if name != "beginnings"}


@pytest.mark.real_cluster
@settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    triples=triples_of_worlds, named=named_of_worlds, aliases=aliases_of_worlds, types=types_of_worlds, updates=steps
)
def test_the_same_updates_make_the_same_knowledge_base_in_a_folder_and_on_a_cluster(
    tmp_path_factory: Any,
    cluster: Cluster,
    kb_name: str,
    triples: list[tuple[str, str, str]],
    named: list[tuple[str, str]],
    aliases: list[tuple[str, str]],
    types: list[tuple[str, str]],
    updates: list[list[Record]],
) -> None:
    world = World((*triples,), (*named, (triples[0][0], "Jaws")), (*types,), (*aliases,))
    plain, folder = Plain(world), tmp_path_factory.mktemp("homes")
    build(write_world(plain.world(), folder), folder / "x.kb", options=ReadOptions(), watch=BuildProgress())
    load_options = LoadOptions(settings=SINGLE, force=True)
    load(EmbeddedKB(folder / "x.kb"), cluster, kb_name, options=load_options, watch=BuildProgress())
    for changes in updates:
        sources = sources_of(folder, changes)
        here = update(folder / "x.kb", sources, options=ReadOptions())
        there = update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(ReadOptions()))
        for record in changes:
            plain.change(record)
        plain.forget()
        kb, twin = ElasticKB(kb_name, cluster), open_folder(folder / "x.kb")
        assert told(there) == told(here)
        assert held(kb, plain.merged) == held(twin, plain.merged)
        assert answers(kb) == answers(twin)
        assert counts(kb) == counts(twin)
        assert kb.rows([*IDS, *plain.merged]) == twin.rows([*IDS, *plain.merged])
        assert kb.entity_rows().tolist() == twin.entity_rows().tolist()
        assert (tuple(kb.relations), tuple(kb.types)) == (twin.relations, twin.types)
        assert len(kb.manifest.history) == len(twin.manifest.history)


@pytest.fixture
def folder(copy_kb: Callable[[World, Path], Path], tmp_path: Path) -> Path:
    return copy_kb(MUSIC, tmp_path / "x.kb")


@pytest.fixture
def loaded(folder: Path, cluster: Cluster, kb_name: str) -> str:
    """Load a few albums."""
    load(EmbeddedKB(folder), cluster, kb_name, options=LoadOptions(settings=SINGLE), watch=BuildProgress())
    return kb_name


@pytest.fixture
def change(cluster: Cluster, loaded: str, tmp_path: Path) -> Callable[..., UpdateResult]:
    """Change them by records."""

    def run(records: Sequence[Record] = RENAMED, on: Cluster = cluster, **options: Any) -> UpdateResult:
        sources = sources_of(tmp_path, list(records))
        return update_on_cluster(on, loaded, sources, options=UpdateOptions(ReadOptions(), **options))

    return run


def name_of(cluster: Cluster, kb: str, entity: str = "m.0one") -> str | None:
    opened = ElasticKB(kb, cluster)
    return opened.names(np.array(opened.rows([entity])))[0]


def states(cluster: Cluster, kb: str) -> list[tuple[int, str]]:
    return [(version.number, version.state) for version in list_versions(cluster, kb)]


def test_entities_in_parts_and_names_of_many_are_updated_as_in_a_folder(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, loaded: str, folder: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(documents, "MOST_VALUES", 3)
    records: list[list[Record]] = [
        [{"id": entity, "names": ["Jaws"], "facts": {"a.b": ["m.0a", "Z"], "c.d": ["Q42"]}} for entity in IDS],
        [{"id": entity, "aliases": ["Who", "It", "C++"], "types": ["t.a", "t.b"]} for entity in IDS[::2]],
        [{"id": entity, "description": f"a film called {entity}"} for entity in ("m.0a", "Z", "Q42", "m.0new")],
        [{"remove": "Q42"}, {"merge": "Z", "into": "é"}, {"id": "m.0a", "remove": {"facts": True, "names": True}}],
    ]
    for changes in records:
        sources = sources_of(tmp_path, changes)
        update(folder, sources, options=ReadOptions())
        update_on_cluster(cluster, loaded, sources, options=UpdateOptions(ReadOptions()))

        kb, twin = ElasticKB(loaded, cluster), open_folder(folder)
        assert held(kb, {"Z": "é"}) == held(twin, {"Z": "é"})
        assert kb.descriptions(kb.entity_rows()) == twin.descriptions(twin.entity_rows())
        assert answers(kb) == answers(twin)
        assert counts(kb) == counts(twin)


def test_a_name_of_a_relation_alone_makes_a_version_unless_it_is_there(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    first, other, same, again = (
        change([{"id": "music.album.artist", "names": [name]}]).digest
        for name in ("by", "recorded by", "recorded by", "by")
    )

    assert first == again != other == same
    assert tuple(ElasticKB(loaded, cluster).relation_names) == ("by",)
    assert max(number for number, _ in states(cluster, loaded)) == 4


def spoken(kb: KnowledgeBase) -> dict[str, Any]:
    """Tell the names of all entities with their languages, and what is found in each."""
    rows, languages = kb.entity_rows(), kb.manifest.languages
    found = {
        (tag, match.id, match.matched_name)
        for tag in languages.keys() - {"und"}
        for name in ("Gift", "Berlin", "Köln", "Cologne", "Low", "A-de", "Rat", "Germany", "Kolonia")
        for match in Answerer(kb).lookup(name, lang=tag).matches
    }
    return {"names": dict(zip(kb.ids(rows), kb.names_of(rows), strict=True)), "counts": languages, "found": found}


@pytest.mark.real_cluster
@pytest.mark.parametrize("world", [SPEAKING, MUSIC, replace(MUSIC, language="de,en")], ids=["many", "none", "de"])
def test_updates_keep_languages_as_in_a_folder(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, kb_name: str, tmp_path: Path, world: World
) -> None:
    monkeypatch.setattr(documents, "MOST_VALUES", 4)
    build(write_world(world, tmp_path), tmp_path / "x.kb", options=reading(world), watch=BuildProgress())
    load(EmbeddedKB(tmp_path / "x.kb"), cluster, kb_name, options=LoadOptions(settings=SINGLE), watch=BuildProgress())
    assert spoken(ElasticKB(kb_name, cluster)) == spoken(open_folder(tmp_path / "x.kb"))
    changes: list[list[Record]] = [
        [{"id": "Q365", "names": {"it": "Colonia"}}, {"id": "m.0one", "names": {"de": "A-de"}, "aliases": ["Low"]}],
        [{"id": "Q365", "rename": {"Köln": "Kolonia"}}, {"id": "Q64", "remove": {"names": ["Berlin"]}}],
        [{"id": "Q4", "names": {"de": ["Gift"], "en": ["Gift", "Rat"]}, "facts": {"opposite": ["Q1"]}}],
        [{"merge": "Q2", "into": "Q1"}, {"id": "Q90", "aliases": {"la": ["Lutetia"], "de": ["Paris"]}}],
        [{"remove": "Q183"}, {"id": "m.0one", "remove": {"names": True}}, {"id": "m.0two", "names": {"fr": "Bowie"}}],
    ]
    for step in changes:
        sources, options = sources_of(tmp_path, step), ReadOptions(language="en,de,")
        update(tmp_path / "x.kb", sources, options=options)
        update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(options))
        kb, twin = ElasticKB(kb_name, cluster), open_folder(tmp_path / "x.kb")
        assert spoken(kb) == spoken(twin)
    drop_deleted(cluster, kb_name)
    assert spoken(ElasticKB(kb_name, cluster)) == spoken(twin)


def test_names_have_no_language_on_a_cluster_once_no_name_has_one(
    cluster: Cluster, kb_name: str, tmp_path: Path
) -> None:
    path, world = tmp_path / "x.kb", World((("Q1", "r", "Q2"),), (), spoken=(("Q1", "Heroes", "de"),), language="de")
    build(write_world(world, tmp_path), path, options=reading(world), watch=BuildProgress())
    load(EmbeddedKB(path), cluster, kb_name, options=LoadOptions(settings=SINGLE), watch=BuildProgress())
    removed: Record = {"id": "Q1", "remove": {"names": True}}
    for record in (removed, {"id": "Q2", "names": ["Low"]}, {"id": "Q2", "names": ["Lodger"]}):
        sources, options = sources_of(tmp_path, [record]), ReadOptions()
        update(path, sources, options=options)
        update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(options))

    kb, twin = ElasticKB(kb_name, cluster), open_folder(path)
    assert kb.names_of(kb.entity_rows()) == twin.names_of(twin.entity_rows())
    assert kb.manifest.languages == twin.manifest.languages == {}


def test_an_update_names_new_entities_by_their_ids_as_a_build_does_in_both_homes(
    cluster: Cluster, kb_name: str, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("marie_curie\tborn_in\twarsaw\n", encoding="utf-8")
    objects = 'http://e.org/caf%C3%A9_noir http://e.org/caf%E9 /c/en/hot_dog ns:a:b Q1 42 "ox" 日本'.split()
    new.write_text("".join(f"marie_curie\tlikes\t{each}\n" for each in objects), encoding="utf-8")
    one, both, loading = tmp_path / "one.kb", tmp_path / "both.kb", LoadOptions(settings=SINGLE)
    build([Source(old, "facts"), Source(new, "facts")], both, options=ReadOptions(), watch=BuildProgress())
    old.write_text("ada\tborn_in\tulm\nmarie_curie\tborn_in\twarsaw\n", encoding="utf-8")
    build([Source(old, "facts")], one, options=ReadOptions(), watch=BuildProgress())
    load(EmbeddedKB(one), cluster, kb_name, options=loading, watch=BuildProgress())
    removing = sources_of(tmp_path, [{"remove": "ada"}, {"remove": "ulm"}])
    for sources in (removing, [UpdateSource(Source(new, "facts"), "add")]):
        update(one, sources, options=ReadOptions())
        update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(ReadOptions()))

    homes = EmbeddedKB(both), open_folder(one), ElasticKB(kb_name, cluster)
    names = [dict(zip(kb.ids(rows), kb.names_of(rows), strict=True)) for kb in homes if (rows := kb.entity_rows()).size]
    assert [name.text for name in names[0]["http://e.org/caf%C3%A9_noir"]] == ["café noir"]
    assert names[0] == names[1] == names[2]


def reading(world: World) -> ReadOptions:
    return ReadOptions(language=world.language)


def test_who_has_it_open_is_answered_as_before(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    before = ElasticKB(loaded, cluster)
    result = change()

    assert result.changes == {"names added": 1, "names removed": 1}
    assert Answerer(before).lookup("heroes").matches[0].id == "m.0one"
    assert before.names(np.array(before.rows(["m.0one"]))) == ["Heroes"]
    assert name_of(cluster, loaded) == "Lodger"
    assert [entry.counts for entry in ElasticKB(loaded, cluster).manifest.history] == [result.changes]


def test_a_reader_that_opens_at_any_moment_sees_one_state(
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
) -> None:
    seen = []

    def watch(number: int, method: str, path: str) -> None:
        if method in ("PUT", "POST", "DELETE") and "_search" not in path:
            kb = ElasticKB(loaded, cluster)
            seen.append((name_of(cluster, loaded), *kb.lookup(["heroes", "lodger"])))

    change(on=connect(proxy(watch).url))
    seen.append((name_of(cluster, loaded), *ElasticKB(loaded, cluster).lookup(["heroes", "lodger"])))

    assert set(seen) == {("Heroes", "heroes"), ("Lodger", "lodger")}


@pytest.mark.parametrize("step", ["_clone", "names/_mapping", "entities-loading/_bulk", "names-loading", "_aliases"])
@pytest.mark.parametrize("how", ["cut", "cut after"])
def test_an_update_that_loses_its_cluster_leaves_one_state_and_the_next_goes_on(
    step: str,
    how: str,
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    impatient: Patience,
) -> None:
    lost: list[str] = []

    def watch(number: int, method: str, path: str) -> str | None:
        if step in path and not lost:
            lost.append(path)
            return how
        return "cut" if lost else None

    with pytest.raises(Unreachable):
        change(on=connect(proxy(watch).url), patience=impatient)
    told = name_of(cluster, loaded)
    again = change(take_over=True)

    assert told == ("Lodger" if (step, how) == ("_aliases", "cut after") else "Heroes")
    assert bool(again.changes) is (told == "Heroes")
    assert name_of(cluster, loaded) == "Lodger"
    assert [state for _, state in states(cluster, loaded)] == ["older", "current"]
    assert read_note(cluster, loaded) is None


def test_an_update_under_way_refuses_another_a_load_and_a_removal(
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    folder: Path,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
) -> None:
    refused = []

    def watch(number: int, method: str, path: str) -> None:
        if "_bulk" in path and not refused:
            options = LoadOptions(settings=SINGLE, force=True)
            with pytest.raises(BuildLocked, match="loaded or updated by process"):
                change([{"remove": "m.0three"}])
            with pytest.raises(BuildLocked):
                load(EmbeddedKB(folder), cluster, loaded, options=options, watch=BuildProgress())
            with pytest.raises(BuildLocked):
                remove_versions(cluster, loaded, choose_versions(cluster, loaded, number=None, unfinished=True))
            refused.append(path)

    change(on=connect(proxy(watch).url))

    assert refused
    assert states(cluster, loaded) == [(1, "older"), (2, "current")]


def test_a_load_that_was_left_unfinished_is_named_before_anything_is_changed(
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    folder: Path,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    impatient: Patience,
) -> None:
    options = LoadOptions(settings=SINGLE, force=True, patience=impatient)
    cut = connect(proxy(lambda number, method, path: "cut" if "_bulk" in path else None).url)
    with pytest.raises(Unreachable):
        load(EmbeddedKB(folder), cut, loaded, options=options, watch=BuildProgress())

    age_note(cluster, loaded)
    with pytest.raises(BuildLocked, match="left unfinished; run it again to resume, or drop it with kbtools remove"):
        change()
    remove_versions(cluster, loaded, choose_versions(cluster, loaded, number=None, unfinished=True))
    assert change().changes


def test_who_may_only_read_is_told_which_privilege_is_missing(
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
) -> None:
    def watch(number: int, method: str, path: str) -> tuple[int, object] | None:
        error = {"type": "security_exception", "reason": "action [write] is unauthorized for user [reader]"}
        writes = method in ("PUT", "DELETE") or "_bulk" in path or "_clone" in path
        return (403, {"error": error, "status": 403}) if writes else None

    with pytest.raises(NotAllowed, match="lacks the privilege to note the progress") as caught:
        change(on=connect(proxy(watch).url))

    assert "\n" not in str(caught.value)
    assert states(cluster, loaded) == [(1, "current")]


@pytest.mark.real_cluster
def test_a_full_disk_leaves_the_old_state_and_is_named(
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
) -> None:
    def watch(number: int, method: str, path: str) -> None:
        if "names-loading/_bulk" in path:
            body = {"index.blocks.read_only_allow_delete": True}
            cluster.ask("PUT", f"/{index_name(loaded, 2, 'names')}/_settings", body, to="block it")

    patience = Patience(total=0.5, first=0.1, longest=0.1, sleep=lambda seconds: None)
    with pytest.raises(Unreachable, match=r"keeps refusing documents.*429 cluster_block_exception.*flood-stage"):
        change(on=connect(proxy(watch).url), patience=patience)

    assert states(cluster, loaded) == [(1, "current")]
    assert change().changes


@pytest.mark.real_cluster
@pytest.mark.parametrize(
    ("role", "key", "lost"),
    [
        ("entities", "1", "3 of 4 documents of entities"),  # of one that the update does not change
        ("entities", "0", "1 of 2 documents of changed entities"),
        ("names", key_of_form("heroes"), "4 of 5 forms"),
    ],
)
def test_a_version_that_lost_documents_is_refused(
    change: Callable[..., UpdateResult],
    cluster: Cluster,
    loaded: str,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    key: str,
    lost: str,
) -> None:
    check = UpdateJob.check

    def lose(job: UpdateJob, before: Any, changes: Any, forms: Any, version: Version) -> None:
        cluster.ask("DELETE", f"/{version.indexes[role]}/_doc/{key}", to="lose it", params={"refresh": "true"})
        check(job, before, changes, forms, version)

    monkeypatch.setattr(UpdateJob, "check", lose)
    with pytest.raises(BulkFailed, match=f"has .*{lost}"):
        change([{"id": "m.0one", "aliases": ["Helden"]}, {"id": "m.0four", "names": ["Lodger"]}])

    assert states(cluster, loaded) == [(1, "current")]


def test_entities_that_facts_of_changed_ones_lead_to_are_not_read_whole(
    change: Callable[..., UpdateResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[int] = []
    fetch = StoredKB.contents_of

    def note(kb: StoredKB, rows: Sequence[int]) -> list[EntityContent]:
        fetched.extend(rows)
        return fetch(kb, rows)

    monkeypatch.setattr(StoredKB, "contents_of", note)
    change([{"id": "m.0one", "facts": {"music.album.next": ["m.0three"]}}])

    # The artist, whose row is the third, is the object of a former fact alone.
    assert set(fetched) == {0, 1}


def test_a_rollback_leaves_an_update_again_and_the_next_starts_from_there(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    change()
    roll_back(cluster, loaded)
    back = name_of(cluster, loaded)
    change([{"id": "m.0one", "aliases": ["Helden"]}])

    assert (back, name_of(cluster, loaded)) == ("Heroes", "Heroes")
    # What was rolled back is nobody's state before.
    assert states(cluster, loaded) == [(1, "older"), (3, "current")]
    assert ElasticKB(loaded, cluster).lookup(["helden", "lodger"]).keys() == {"helden"}


def test_a_change_that_is_there_already_makes_no_version(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    again = [{"id": "m.0one", "names": ["Heroes"]}, {"id": "m.0one", "aliases": ["x"], "remove": {}}]
    undone = [*again, {"id": "m.0one", "remove": {"aliases": ["x"]}}]

    assert change(again[:1]).changes == {}
    assert change(undone).changes == {}
    assert states(cluster, loaded) == [(1, "current")]


def test_changes_that_are_taken_back_give_the_content_of_before(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    digest = ElasticKB(loaded, cluster).manifest.digest
    there, back = change(), change([{"id": "m.0one", "rename": {"Lodger": "Heroes"}}])

    assert there.digest != digest
    assert back.digest == digest


def test_a_removed_entity_never_gets_its_row_again(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    (row,) = ElasticKB(loaded, cluster).rows(["m.0three"])
    change([{"remove": "m.0three"}])
    change([{"id": "m.0three", "names": ["Low"]}])

    kb = ElasticKB(loaded, cluster)
    assert kb.rows(["m.0three"]) == [3]
    assert row not in kb.entity_rows().tolist()


def test_vectors_stay_with_the_entities_that_are_there(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    vectors = np.eye(3, dtype=np.float32)
    rows = np.arange(3, dtype=np.uint32)
    given_vectors = EntityVectors(rows, 3, lambda chunk: vectors[chunk])
    ElasticKB(loaded, cluster).load_vectors(given_vectors, settings=SINGLE)
    gone, *_ = ElasticKB(loaded, cluster).rows(["m.0three"])
    change([{"remove": "m.0three"}, {"id": "m.0four", "names": ["Station to Station"]}])

    kb = ElasticKB(loaded, cluster)
    near = kb.vectors().nearest(vectors, limit=3).rows
    assert len(kb.vectors()) == 2
    assert set(near.ravel().tolist()) == {0, 1, 2} - {gone}
    assert list_versions(cluster, loaded)[0].indexes.keys() == list_versions(cluster, loaded)[1].indexes.keys()


@pytest.mark.real_cluster
def test_compacting_drops_what_updates_left_on_the_disks_and_changes_no_answer(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str
) -> None:
    change([{"remove": "m.0three"}])
    kb = ElasticKB(loaded, cluster)
    before = contents(kb, {})
    first = drop_deleted(cluster, loaded)

    assert first is not None
    assert first.after < first.before
    assert drop_deleted(cluster, loaded) is None
    assert contents(ElasticKB(loaded, cluster), {}) == before


def test_the_command_reports_and_info_shows_the_history(
    loaded: str, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_ELASTICSEARCH_URL", url)
    (tmp_path / "gone.txt").write_text("m.0three\nm.0nobody\n")
    given_kb = ("--kb", loaded, "--elasticsearch")

    updated = CliRunner().invoke(main, ["update", "--remove", str(tmp_path / "gone.txt"), *given_kb])
    info = CliRunner().invoke(main, ["info", *given_kb])
    back = CliRunner().invoke(main, ["rollback", *given_kb])

    report = updated.output.splitlines()
    assert report[0].startswith(f"{loaded}: 1 entity removed, 1 fact removed, 1 name removed; content ")
    assert report[1] == "not there: 1 entity; first: m.0nobody"
    assert "gone.txt: 1 entity removed, 1 fact removed, 1 name removed" in info.output
    assert back.output.startswith(f"{loaded} is version 1 again")


@pytest.mark.real_cluster
def test_the_command_takes_over_the_lock_of_a_killed_update(
    loaded: str, cluster: Cluster, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_ELASTICSEARCH_URL", url)
    (tmp_path / "gone.txt").write_text("m.0three\n")
    command = ["update", "--remove", str(tmp_path / "gone.txt"), "--kb", loaded, "--elasticsearch"]
    BuildLock.take(cluster, loaded, BuildNote(2), None).stop()  # as a killed process leaves it

    refused = CliRunner().invoke(main, command)
    updated = CliRunner().invoke(main, [*command, "--take-over"])

    assert "run the command with --take-over" in refused.output
    assert updated.output.startswith(f"{loaded}: 1 entity removed")


@pytest.mark.real_cluster
def test_relations_and_types_that_nothing_has_any_more_keep_their_rows_in_both_homes(
    change: Callable[..., UpdateResult], cluster: Cluster, loaded: str, folder: Path, tmp_path: Path
) -> None:
    removed = [
        {"id": "m.0one", "remove": {"facts": True, "types": True}, "facts": {"music.album.label": ["m.0two"]}},
        {"id": "m.0three", "remove": {"facts": True}, "types": ["music.record"]},
    ]
    change(removed)
    update(folder, sources_of(tmp_path, removed), options=ReadOptions())

    homes = (ElasticKB(loaded, cluster), open_folder(folder))
    assert [tuple(kb.relations) for kb in homes] == [("music.album.artist", "music.album.label")] * 2
    assert [tuple(kb.types) for kb in homes] == [("music.album", "music.record")] * 2


@pytest.mark.real_cluster
def test_python_changes_a_knowledge_base_on_a_cluster_too(
    loaded: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTOOLS_ELASTICSEARCH_URL", url)
    result = kbtools.update(loaded, backend="elasticsearch", add=RENAMED, remove_names=[("m.0two", "Ziggy")])

    with kbtools.open(loaded, backend="elasticsearch") as kb:
        assert kb.entity("m.0one").name == "Lodger"
    assert (result.kb, [missing.kind for missing in result.missing]) == (loaded, ["names"])
    with pytest.raises(BadArgument, match="backend 'memory': its knowledge bases cannot be updated"):
        kbtools.update(loaded, backend="memory", add=RENAMED)


@pytest.mark.real_cluster
def test_a_name_that_the_cluster_does_not_have_is_refused(cluster: Cluster, kb_name: str, tmp_path: Path) -> None:
    with pytest.raises(KBMissing, match=f"no knowledge base {kb_name!r}"):
        update_on_cluster(cluster, kb_name, sources_of(tmp_path, RENAMED), options=UpdateOptions(ReadOptions()))


@pytest.mark.real_cluster
def test_a_served_knowledge_base_goes_on_with_the_new_version(
    change: Callable[..., UpdateResult], loaded: str, url: str
) -> None:
    live = open_live_kb(loaded, loaded, ServeSettings(kbs=(loaded,), elasticsearch=url))
    seen = []
    for records in ([], RENAMED, [{"remove": "m.0three"}]):
        change(records or [{"id": "m.0one", "names": ["Heroes"]}])
        live.identity.asked = -ASKED_AGAIN  # type: ignore[attr-defined]
        with live.newest() as edition:
            seen.append((edition.answerer.entity("m.0one").name, len(edition.answerer.lookup("low").matches)))

    assert seen == [("Heroes", 1), ("Lodger", 1), ("Lodger", 0)]


def texts_in_languages(kb: KnowledgeBase) -> tuple[list[str], list[str]]:
    """Return the names of relations and the descriptions with their languages."""
    return [*map(stored_text, kb.relation_names)], [*map(stored_text, kb.descriptions(kb.entity_rows()))]


@pytest.mark.real_cluster
def test_names_of_relations_and_descriptions_keep_their_languages_on_a_cluster(
    cluster: Cluster, kb_name: str, tmp_path: Path
) -> None:
    names = [("Q1", "Anna", "de"), ("Q1", "Ann", "en"), ("Q2", "Köln", "de")]
    relations = [("P19", "place of birth", "en"), ("P19", "Geburtsort", "de")]
    described = [("Q1", "a painter", "en"), ("Q1", "eine Malerin", "de")]
    kbtools.index(
        facts=[("Q1", "P19", "Q2")], names=names, relations=relations, descriptions=described,
        language="en,de", out=tmp_path / "x.kb",
    ).close()  # fmt: skip
    load(EmbeddedKB(tmp_path / "x.kb"), cluster, kb_name, options=LoadOptions(settings=SINGLE), watch=BuildProgress())
    german = Answerer(ElasticKB(kb_name, cluster)).query("wo wurde Anna geboren", lang="de")
    before = texts_in_languages(ElasticKB(kb_name, cluster))
    sources = sources_of(tmp_path, [{"id": "Q1", "description": {"de": "Bildhauerin"}, "facts": {"P27": ["Q2"]}}])
    (tmp_path / "r.tsv").write_text("relation\tname\tlanguage\nP19\tlieu de naissance\tfr\nP27\tLand\tde\n")
    sources.append(UpdateSource(Source(tmp_path / "r.tsv", "relations"), "add"))
    reading = ReadOptions(language="en,de,fr")
    update(tmp_path / "x.kb", sources, options=reading)
    update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(reading))

    assert german.candidates[0].relation_name == "Geburtsort"
    assert [answer.name for answer in german.answers] == ["Köln"]
    assert before[0] == [stored_text(SpokenText.of({"en": "place of birth", "de": "Geburtsort"}))]
    assert texts_in_languages(ElasticKB(kb_name, cluster)) == texts_in_languages(open_folder(tmp_path / "x.kb"))
    assert "lieu de naissance" in texts_in_languages(ElasticKB(kb_name, cluster))[0][0]
