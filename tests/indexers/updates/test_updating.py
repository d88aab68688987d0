"""Updates in place: who reads meanwhile, what breaks, what was not there, and the history."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kbtools
from kbtools.errors import BuildLocked, DiskFull, KBMissing, KBUnusable, NothingBuilt, OutputUnusable, TooManyBadLines
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder import folder_kb
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FaissVectors, write_vectors
from kbtools.indexers.folder.kb_folder import find_damage, read_manifest
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates import overlay
from kbtools.indexers.updates.compacting import compact
from kbtools.indexers.updates.overlay import open_folder
from kbtools.kb.manifest import Change, change_line, history_report
from kbtools.kb.vector_index import EntityVectors
from kbtools.storage import exchange, locked
from tests.conftest import World, write_world

WORLD = World(
    facts=(("m.0one", "music.album.artist", "m.0two"), ("m.0three", "music.album.artist", "m.0two")),
    names=(("m.0one", "Heroes"), ("m.0two", "David Bowie"), ("m.0three", "Low")),
    types=(("m.0one", "music.album"),),
)


@pytest.fixture
def folder(copy_kb: Callable[[World, Path], Path], tmp_path: Path) -> Path:
    return copy_kb(WORLD, tmp_path / "x.kb")


def name_of(path: Path, entity: str) -> str | None:
    with kbtools.open(path) as kb:
        return kb.entity(entity).name


def rename(path: Path, new: str) -> None:
    kbtools.update(path, add=[{"id": "m.0one", "remove": {"names": True}, "names": [new]}])


def test_who_has_it_open_is_answered_as_before(folder: Path) -> None:
    before = kbtools.open(folder)

    rename(folder, "Station to Station")

    assert before.lookup("heroes").matches[0].id == "m.0one"
    assert before.entity("m.0one").name == "Heroes"
    assert name_of(folder, "m.0one") == "Station to Station"


def test_a_reader_that_opens_at_any_moment_sees_one_state(folder: Path) -> None:
    stop, seen = threading.Event(), set()

    def read() -> None:
        while not stop.is_set():
            kb = open_folder(folder)
            seen.add((kb.names(kb.entity_rows()[:1])[0], tuple(kb.lookup([f"take {take}" for take in range(6)]))))

    reader = threading.Thread(target=read)
    reader.start()
    for take in range(6):
        rename(folder, f"Take {take}")
    compact(folder, watch=BuildProgress())
    stop.set()
    reader.join()

    states = {("Heroes", ()), *((f"Take {take}", (f"take {take}",)) for take in range(6))}
    assert seen <= states
    assert len(seen) > 1


def replace_at(
    monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, instead: Callable[..., Any] | None = None, *, of: str
) -> None:
    """Put an updated copy in the place of a folder when a function is first called for a part of it."""
    renewed = shutil.copytree(folder, folder.with_name("renewed.kb"))
    rename(renewed, "Station to Station")
    module, _, attribute = name.rpartition(".")
    call = getattr(sys.modules[module], attribute)
    waiting = [instead or call]

    def replacing(path: str | Path, *more: Any, **options: Any) -> Any:
        if str(path).endswith(of) and waiting:
            assert exchange(folder, renewed)
            return waiting.pop()(path, *more, **options)
        return call(path, *more, **options)

    monkeypatch.setattr(name, replacing)


def test_a_folder_that_is_emptied_while_it_is_opened_is_looked_for_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_at(monkeypatch, folder, "os.listdir", lambda path: [], of="x.kb")

    assert name_of(folder, "m.0one") == "Station to Station"


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename(folder, "Low")
    replace_at(monkeypatch, folder, "lmdb.open", of="segment/forms.lmdb")

    assert name_of(folder, "m.0one") == "Station to Station"
    assert name_of(folder, "m.0one") == "Station to Station"


def test_what_is_not_there_to_be_removed_is_counted_with_the_first(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.txt").write_text("m.0one\nm.0nobody\n\nm.0noone\n")

    result = kbtools.update(
        folder,
        remove=tmp_path / "gone.txt",
        remove_facts=[("m.0three", "music.album.artist", "m.0one")],
        remove_names=[("m.0three", "High")],
    )

    missing = {missing.kind: (missing.count, missing.first) for missing in result.missing}
    assert result.changes == {"entities removed": 1, "facts removed": 1, "names removed": 1, "types removed": 1}
    assert missing == {
        "entities": (2, "m.0nobody"),
        "facts": (1, "m.0three music.album.artist m.0one"),
        "names": (1, "m.0three High"),
    }


def test_all_facts_and_types_that_are_not_there_are_missed_at_their_entity(folder: Path) -> None:
    result = kbtools.update(folder, add=[{"id": "m.0two", "remove": {"facts": True, "types": True}}])

    assert {missing.kind: missing.first for missing in result.missing} == {"facts": "m.0two", "types": "m.0two"}


def test_what_is_remembered_of_changed_names_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_kb, "CACHED_FORMS", 3)
    kbtools.update(folder, add=[{"id": f"m.0new{number}", "names": [f"new {number}"]} for number in range(9)])
    kb = open_folder(folder)

    found = [[match.name for match in kb.lookup([f"new {number}"])[f"new {number}"]] for number in range(9)]

    assert found == [[f"new {number}"] for number in range(9)]
    assert len(kb.cached) <= 3


def test_the_facts_into_a_changed_entity_are_merged_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kbtools.update(
        folder,
        remove=["m.0one"],
        add=[{"id": "m.0zero", "facts": {"music.album.artist": ["m.0two"], "a.b.c": ["m.0two"]}}],
    )
    kb = open_folder(folder)
    (two,) = kb.rows(["m.0two"])
    assert two is not None

    facts = kb.subjects_of(np.array([two], dtype=np.uint32))[0]

    assert [kb.relations[row] for row in facts.relations] == ["music.album.artist", "music.album.artist", "a.b.c"]
    assert kb.ids(facts.subjects) == ["m.0three", "m.0zero", "m.0zero"]
    assert kb.incoming_counts(np.array([two, two], dtype=np.uint32)).tolist() == [3, 3]
    assert kb.subjects_of(np.array([two], dtype=np.uint32))[0] is facts
    monkeypatch.setattr(overlay, "MOST_MERGED_FACTS", 2)
    (zero,) = kb.rows(["m.0zero"])
    assert zero is not None
    kb.subjects_of(np.array([zero], dtype=np.uint32))[0]
    assert kb.subjects_of(np.array([two], dtype=np.uint32))[0] is not facts


def test_a_change_that_is_there_already_changes_nothing(folder: Path) -> None:
    before = folder.stat().st_ino
    result = kbtools.update(folder, add=[{"id": "m.0one", "names": ["Heroes"], "types": ["music.album"]}])

    assert result.changes == {}
    assert folder.stat().st_ino == before
    assert read_manifest(folder).history == ()


def test_the_same_changes_in_other_updates_are_the_same_content(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "y.kb"
    build(write_world(WORLD, tmp_path), other, options=ReadOptions(), watch=BuildProgress())
    first, second = ({"id": f"m.0{entity}", "names": [entity]} for entity in ("four", "five"))

    kbtools.update(folder, add=[first, second])
    for record in (
        second,
        {"id": "m.0four", "names": ["other"]},
        first,
        {"id": "m.0four", "remove": {"names": "other"}},
    ):
        kbtools.update(other, add=[record])
    for path in (folder, other):
        kbtools.compact(path)

    assert read_manifest(folder).digest == read_manifest(other).digest


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "not a JSON object"),
        ('{"id": "x"}', "only an id"),
        ('{"names": ["x"]}', "no id"),
        ('{"id": 7, "names": ["x"]}', "no id"),
        ('{"id": " ", "names": ["x"]}', "expected text"),
        ('{"id": "x", "nmaes": ["x"]}', "unknown field 'nmaes'; known: aliases, description, facts"),
        ('{"subject": "x", "relation": "r", "object": "y"}', "others to facts or names"),
        ('{"id": "x", "names": 7}', "expected a text or a list"),
        ('{"id": "x", "names": [7]}', "expected text"),
        ('{"id": "x", "names": ["\\u200b"]}', "blank name"),
        ('{"id": "x", "names": ["a\\u0000"]}', "NUL byte"),
        ('{"id": "x", "names": ["\\ud800"]}', "half a surrogate pair"),
        ('{"id": "x", "facts": [["r", "y"]]}', "expected an object"),
        ('{"id": "x", "facts": {"r": {"y": 1}}}', "expected a text or a list"),
        ('{"id": "x", "remove": true}', "object of names"),
        ('{"id": "x", "remove": {"facts": ["r"]}}', "expected an object"),
        ('{"remove": {"id": "x"}}', "expected a text or a list"),
        ('{"merge": "x", "into": []}', "expected text"),
        ('{"merge": "x"}', "unknown field 'merge'"),
        ('{"id": "x", "id": "y", "names": ["x"]}', "two fields 'id'"),
    ],
)
def test_a_line_that_is_no_record_is_named_and_nothing_of_its_file_stays(
    folder: Path, tmp_path: Path, line: str, reason: str
) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text('{"id": "m.0four", "names": ["Lodger"]}\n' + line + "\n")

    with pytest.raises(TooManyBadLines, match=r"new\.jsonl:2: .*") as error:
        kbtools.update(folder, add=file)

    assert reason in str(error.value)
    assert open_folder(folder).rows(["m.0four"]) == [None]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_bad_lines_within_the_share_are_counted_and_the_others_count(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"id": "m.0four", "names": ["Lodger"]}\r\n\n\xff\xfe\n{\n{\n')

    result = kbtools.update(folder, add=file, max_bad=0.8)

    assert name_of(folder, "m.0four") == "Lodger"
    assert {skip.kind: skip.count for skip in result.skipped} == {
        "blank line": 1,
        "invalid UTF-8": 1,
        "invalid record of changes": 2,
    }


def test_ids_that_are_no_ids_are_bad_lines(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.txt").write_text("m.0one\tHeroes\n")

    with pytest.raises(TooManyBadLines, match="more than an id"):
        kbtools.update(folder, remove=tmp_path / "gone.txt")


def test_a_file_of_other_rows_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "types.tsv").write_text("id\ttype\nm.0one\tmusic.album\n")

    with pytest.raises((NothingBuilt, kbtools.WrongFormat), match=r"types\.tsv"):
        kbtools.update(folder, facts=tmp_path / "types.tsv")


def test_ids_are_read_in_every_spelling(folder: Path) -> None:
    kbtools.update(
        folder,
        add=[{"id": "/m/0one", "facts": {"/music/album/genre": "http://rdf.freebase.com/ns/m.0rock"}}],
        remove=["www.freebase.com/m/0three"],
    )

    kb = open_folder(folder)
    assert kb.relations == ("music.album.artist", "music.album.genre")
    assert kb.rows(["m.0three", "m.0rock"]) == [None, 3]


def test_a_new_name_of_a_subject_leaves_the_number_of_facts_into_its_objects(folder: Path) -> None:
    rename(folder, "Station to Station")

    kb = open_folder(folder)
    assert kb.incoming_counts(np.array(kb.rows(["m.0two"]), dtype=np.uint32)).tolist() == [2]


def test_an_entity_that_is_removed_and_added_in_one_update_is_a_new_one(folder: Path) -> None:
    kbtools.update(folder, add=[{"remove": "m.0one"}, {"id": "m.0one", "names": ["Lodger"]}])

    with kbtools.open(folder) as kb:
        assert (kb.entity("m.0one").name, kb.facts("m.0one").total) == ("Lodger", 0)


def test_redirects_merge_entities_and_their_ids(folder: Path) -> None:
    kbtools.update(folder, redirects=[("m.0one", "m.0three"), ("m.0elsewhere", "m.0three")])

    for path in (folder, folder):
        with kbtools.open(path) as kb:
            assert kb.entity("m.0one").id == kb.entity("m.0elsewhere").id == "m.0three"
            assert [name.text for name in kb.kb.names_of(np.array(kb.kb.rows(["m.0three"])))[0]] == ["Heroes", "Low"]
            assert kb.facts("m.0two", reverse=True).total == 1
        kbtools.compact(folder)


def test_a_row_is_never_given_again(folder: Path) -> None:
    rows = []
    for _ in range(2):
        kbtools.update(folder, add=[{"id": "m.0four", "names": ["Lodger"]}])
        rows += open_folder(folder).rows(["m.0four"])
        kbtools.update(folder, remove=["m.0four"])
    kbtools.update(folder, add=[{"id": "m.0five", "names": ["Lodger"]}])

    assert [*rows, *open_folder(folder).rows(["m.0five"])] == [3, 4, 5]


def test_an_update_names_a_relation_as_a_build_does(folder: Path) -> None:
    kbtools.update(folder, relations=[("music.album.artist", "a recording of"), ("music.album.artist", "recorded by")])

    assert open_folder(folder).relation_names == ("recorded by",)


def test_relations_are_named(folder: Path) -> None:
    kbtools.update(folder, relations=[("music.album.artist", "recorded by"), ("no.such.relation", "x")])

    assert open_folder(folder).relation_names == ("recorded by",)
    kbtools.compact(folder)
    assert open_folder(folder).relation_names == ("recorded by",)


def test_everything_may_go(folder: Path) -> None:
    kbtools.update(folder, remove=["m.0one", "m.0two", "m.0three"])

    kb = open_folder(folder)
    assert len(kb.entity_rows()) == 0
    assert (kb.lookup(["heroes"]), kb.similar(["heroez"])) == ({}, [[]])
    assert {kind: count.unique for kind, count in kb.manifest.counts.items()} == dict.fromkeys(kb.manifest.counts, 0)
    kbtools.update(folder, add=[{"id": "m.0one", "names": ["Heroes"]}])
    assert name_of(folder, "m.0one") == "Heroes"


def test_names_without_any_fact_are_updated(tmp_path: Path) -> None:
    kbtools.index(names=[("1", "Ann"), ("2", "Bo")], out=tmp_path / "x.kb")

    kbtools.update(tmp_path / "x.kb", add=[{"id": "1", "rename": {"Ann": "Anna"}}], remove=["2"])

    assert open_folder(tmp_path / "x.kb").rows(["1", "2"]) == [0, None]
    assert name_of(tmp_path / "x.kb", "1") == "Anna"


def test_what_loses_its_last_fact_goes_and_what_keeps_one_stays(folder: Path) -> None:
    fact = ("m.0one", "music.album.genre", "m.0glam")
    kbtools.update(folder, facts=[fact, ("m.0three", *fact[1:])])

    kbtools.update(folder, remove_facts=[fact])
    kept = open_folder(folder).rows(["m.0glam"])
    gone = kbtools.update(folder, remove_facts=[("m.0three", *fact[1:])])

    assert (kept, open_folder(folder).rows(["m.0glam"])) == ([3], [None])
    assert gone.changes == {"entities removed": 1, "facts removed": 1}


def test_the_history_tells_when_what_and_how_much(folder: Path) -> None:
    rename(folder, "Low")
    kbtools.update(folder, remove=["m.0one"])
    kbtools.compact(folder)

    history = read_manifest(folder).history

    assert [change.action for change in history] == ["update", "update", "merge"]
    assert [change.counts for change in history] == [
        {"names added": 1, "names removed": 1},
        {"entities removed": 1, "facts removed": 1, "names removed": 1, "types removed": 1},
        {},
    ]
    assert [change.after for change in history[:-1]] == [change.before for change in history[1:]]
    assert [change.sources for change in history] == [("add given in Python",), ("remove given in Python",), ()]


def test_a_long_history_is_summed_up_but_for_the_last(folder: Path) -> None:
    manifest = read_manifest(folder)
    days = [
        Change(
            "update" if day % 10 else "merge",
            f"day {day}",
            "",
            "",
            ("x.tsv",),
            {"facts added": day} if day % 10 else {},
        )
        for day in range(1, 26)
    ]

    lines = history_report(replace(manifest, history=tuple(days))).splitlines()

    assert lines[:3] == [
        "9 updates from day 1 to day 9: 45 facts added",
        "merge day 10 from x.tsv: 0 B",
        "5 updates from day 11 to day 15: 65 facts added",
    ]
    assert lines[3:] == [change_line(day) for day in days[15:]]
    assert lines[-1] == "update day 25 from x.tsv: 25 facts added"


def test_a_build_that_reads_the_sources_again_says_that_updates_are_lost(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rename(folder, "Low")

    built = build(write_world(WORLD, tmp_path), folder, options=ReadOptions(), watch=BuildProgress())

    assert built.fresh
    assert name_of(folder, "m.0one") == "Heroes"
    assert "which lack 1 updates" in caplog.text


def test_counts_of_names_follow_deleted_and_merged_entities(tmp_path: Path) -> None:
    (tmp_path / "counts.tsv").write_text("Heroes\tm.0one\t7\nHeroes\tm.0three\t2\nLow\tm.0three\t5\nm.0one\t9\n")
    sources = [*write_world(WORLD, tmp_path), Source(tmp_path / "counts.tsv", "counts")]
    build(sources, tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())

    def counted(form: str) -> list[int] | None:
        kb = open_folder(tmp_path / "x.kb")
        counts = kb.name_counts(form, kb.entity_rows())
        return None if counts is None else counts.tolist()

    assert [counted("heroes"), counted("low")] == [[7, 2, 0], [0, 5, 0]]
    kbtools.update(
        tmp_path / "x.kb", add=[{"id": "m.0four", "names": ["Lodger"]}, {"merge": "m.0one", "into": "m.0four"}]
    )
    assert [counted("heroes"), counted("low"), counted("")] == [[2, 0, 7], [5, 0, 0], [0, 0, 9]]
    kbtools.update(tmp_path / "x.kb", remove=["m.0three"])
    assert [counted("heroes"), counted("low")] == [[0, 7], None]
    kbtools.compact(tmp_path / "x.kb")
    assert [counted("heroes"), counted("low")] == [[7, 0], None]


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
def test_vectors_go_with_their_entities(folder: Path, kind: str) -> None:
    pytest.importorskip("faiss")
    kb = open_folder(folder)
    table = np.eye(3, dtype=np.float32)
    write_vectors(folder, kb, EntityVectors(kb.entity_rows(), 3, lambda rows: table[rows]), kind=kind)

    kbtools.update(folder, remove=["m.0one"], add=[{"id": "m.0zero", "names": ["Zero"]}])

    for _ in range(2):
        kb = open_folder(folder)
        vectors = kb.vectors()
        three, zero = kb.rows(["m.0three", "m.0zero"])
        assert isinstance(vectors, FaissVectors)
        assert (len(vectors), vectors.kind, vectors.vector(zero)) == (2, kind, None)
        assert vectors.vector(three).tolist() == [0, 1, 0]
        assert kb.ids(vectors.nearest(table[:1] + 0.1 * table[1:2], limit=3).rows[0]) == ["m.0three", "m.0two"]
        assert list(find_damage(folder, kb.manifest)) == []
        kbtools.compact(folder)


@pytest.mark.parametrize(("limit", "nearest"), [(1, [50]), (2, [50, 51]), (9, list(range(50, 59))), (99, None)])
def test_the_nearest_that_are_left_are_found_however_many_are_gone(
    tmp_path: Path, limit: int, nearest: list[int] | None
) -> None:
    pytest.importorskip("faiss")
    names = tuple((f"m.{number:03}", f"name {number}") for number in range(60))
    facts = (("m.000", "music.album.artist", "m.001"),)
    sources = write_world(World(facts=facts, names=names), tmp_path)
    build(sources, tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())
    kb = open_folder(tmp_path / "x.kb")
    angles = np.linspace(0, 1, 60)
    table = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    write_vectors(kb.path, kb, EntityVectors(kb.entity_rows(), 2, lambda rows: table[rows]), kind="flat")
    kbtools.update(kb.path, remove=[f"m.{number:03}" for number in range(50)])

    found = open_folder(kb.path).vectors().nearest(table[:1], limit=limit)

    assert found.rows.tolist() == [nearest or list(range(50, 60))]


def test_a_merge_keeps_sources_options_and_history_and_adds_itself(folder: Path) -> None:
    rename(folder, "Low")
    rename(folder, "Station to Station")
    before = read_manifest(folder)

    kbtools.compact(folder)

    after = read_manifest(folder)
    assert (after.sources, after.options) == (before.sources, before.options)
    assert after.history[:-1] == before.history
    assert [change.action for change in after.history] == ["update", "update", "merge"]
    assert {kind: (count.duplicate, count.unique) for kind, count in after.counts.items()} == {
        kind: (count.duplicate, count.unique) for kind, count in before.counts.items()
    }
    assert after.history[-1].bytes == sum(after.files.values())


def test_a_class_that_reads_no_updates_refuses_them(folder: Path) -> None:
    rename(folder, "Low")

    with pytest.raises(KBUnusable, match=r"x\.kb: contains updates, .*merge them with kbtools compact"):
        EmbeddedKB(folder)


def test_a_damaged_segment_is_named(folder: Path) -> None:
    rename(folder, "Low")
    (file,) = folder.glob("segment/alias.text.utf8")
    file.write_bytes(b"Lov")

    assert [damage.partition(":")[0] for damage in find_damage(folder, read_manifest(folder))] == [str(file)]
    with pytest.raises(KBUnusable, match=r"alias\.text\.utf8: not as written"):
        open_folder(folder)


def test_a_second_updater_is_refused_in_a_sentence(folder: Path) -> None:
    with (
        locked(folder),
        pytest.raises(BuildLocked, match="another process is building or updating it; run the command"),
    ):
        rename(folder, "Low")

    assert name_of(folder, "m.0one") == "Heroes"


@pytest.mark.parametrize("small_disk", ["2m"], indirect=True)
def test_a_disk_that_is_read_only_is_read_and_not_updated(small_disk: Path, folder: Path) -> None:
    kbtools.update(folder, add=[{"id": "m.0four", "names": ["Lodger"]}])
    for fuzzy in folder.rglob("fuzzy"):
        (fuzzy / ".tantivy-meta.lock").touch()
    path = Path(shutil.copytree(folder, small_disk / "x.kb"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    with pytest.raises(OutputUnusable, match=r"x\.kb: cannot be written \(Read-only file system\)"):
        rename(path, "Low")

    with kbtools.open(path) as kb:
        assert [match.id for name in ("lodger", "lodgerr", "heroess") for match in kb.lookup(name).matches] == [
            "m.0four",
            "m.0four",
            "m.0one",
        ]


def test_what_is_not_there_cannot_be_updated(tmp_path: Path) -> None:
    with pytest.raises(KBMissing, match="build it with kbtools index"):
        rename(tmp_path / "nowhere" / "x.kb", "Low")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("act", [lambda path: rename(path, "Low"), kbtools.compact], ids=["update", "compact"])
def test_a_full_disk_leaves_the_old_state(folder: Path, act: Callable[[Path], Any]) -> None:
    kbtools.update(folder, add=[{"id": "m.0four", "names": ["Lodger"]}])
    before = read_manifest(folder).digest
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))
    try:
        with pytest.raises(DiskFull, match="nothing was changed"):
            act(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)

    assert read_manifest(folder).digest == before
    assert name_of(folder, "m.0four") == "Lodger"
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("small_disk", ["2m"], indirect=True)
@pytest.mark.parametrize("free", [0, 20_000, 60_000])
@pytest.mark.parametrize("act", [lambda path: rename(path, "Low"), kbtools.compact], ids=["update", "compact"])
def test_a_small_disk_that_fills_up_keeps_the_old_state(
    small_disk: Path, folder: Path, act: Callable[[Path], Any], free: int
) -> None:
    kbtools.update(folder, add=[{"id": "m.0four", "names": ["Lodger"]}])
    path = Path(shutil.copytree(folder, small_disk / "x.kb"))
    before, reader = read_manifest(path), kbtools.open(path)
    filling = small_disk / "filling"
    filling.write_bytes(bytes(shutil.disk_usage(small_disk).free - free))

    with pytest.raises(DiskFull, match="no space left on the disk; nothing was changed"):
        act(path)

    assert sorted(os.listdir(small_disk)) == ["filling", "x.kb"]
    assert read_manifest(path) == before
    assert list(find_damage(path, before)) == []
    assert reader.lookup("lodger").matches[0].id == "m.0four"
    filling.unlink()
    rename(path, "Low")
    assert name_of(path, "m.0one") == "Low"


UPDATING = """
import os, signal, sys, kbtools
left = int(sys.argv[2])
def count(event, arguments):
    global left
    left -= event in ("open", "os.link", "os.rename", "os.mkdir", "os.remove")
    if left <= 0:
        left = 10**9  # to kill is an event too
        os.kill(os.getpid(), signal.SIGKILL)
kbtools.update(sys.argv[1], add=[{"id": "m.0one", "rename": {"Heroes": "Take 0"}}])
sys.addaudithook(count)
for take in range(1, 100):
    kbtools.update(sys.argv[1], add=[{"id": "m.0one", "remove": {"names": True}, "names": [f"Take {take}"]}])
    print(take, flush=True)
    if take % 2:
        kbtools.compact(sys.argv[1])
"""


@pytest.mark.parametrize("files", [20, 90, 250, 600])
def test_an_update_killed_at_any_file_leaves_the_state_before_or_after(folder: Path, files: int) -> None:
    command = [sys.executable, "-c", UPDATING, str(folder), str(files)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    done = [0, *map(int, killed.stdout.split())]

    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    with kbtools.open(folder) as kb:
        name = kb.entity("m.0one").name
        assert name in {f"Take {done[-1]}", f"Take {done[-1] + 1}"}
        assert [match.id for match in kb.lookup(str(name)).matches[:1]] == ["m.0one"]
        assert list(find_damage(folder, kb.kb.manifest)) == []
    rename(folder, "Low")
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []


def test_records_may_come_packed(folder: Path, tmp_path: Path) -> None:
    import gzip

    (tmp_path / "new.jsonl.gz").write_bytes(gzip.compress(json.dumps({"id": "m.0four", "names": "Lodger"}).encode()))

    kbtools.update(folder, add=tmp_path / "new.jsonl.gz")

    assert name_of(folder, "m.0four") == "Lodger"
