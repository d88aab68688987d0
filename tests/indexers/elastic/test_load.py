"""A load is whole or not seen, goes on where it was killed, and touches nothing that is not its own."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kbtools.answering.answerer import Answerer
from kbtools.cli.main import main
from kbtools.errors import (
    BuildLocked,
    BulkFailed,
    KBMissing,
    KBUnusable,
    NameTaken,
    ServerError,
    Unreachable,
    WrongFormat,
)
from kbtools.indexers.elastic.build_lock import CONTROL, read_note, write_note
from kbtools.indexers.elastic.bulk import IN_FLIGHT, MOST_DOCUMENTS, Sender, read_largest
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.documents import Document, documents, form_documents
from kbtools.indexers.elastic.folder_contents import FolderEntities, count_normal_forms, normal_forms
from kbtools.indexers.elastic.inventory import choose_versions, cluster_status, remove_versions
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import Loaded
from kbtools.indexers.elastic.mapping import MAPPING_VERSION, OWNER, IndexSettings, index_body, index_name
from kbtools.indexers.elastic.versions import current_version, list_versions, roll_back
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import KnowledgeBase
from tests.conftest import World
from tests.indexers.elastic.conftest import SmallServer, age_note

LARGE = 20_000
SLOW = 0.2
"""Seconds by which a request is delayed: about ten times what the server takes for a thousand documents."""

KBTOOLS = str(Path(sysconfig.get_path("scripts"), "kbtools"))
QUESTIONS = [
    "who created the character harry potter",
    "who wrote it",
    "what genre is harder.....faster?",
    "frankenstien",
]


def pools(kb: KnowledgeBase) -> list[dict[str, Any]]:
    answerer = Answerer(kb)
    return [answerer.query(text, top=None).to_json() | {"milliseconds": None} for text in QUESTIONS]


def states(cluster: Cluster, name: str) -> list[tuple[int, str]]:
    return [(version.number, version.state) for version in list_versions(cluster, name)]


@pytest.fixture(scope="module")
def other_kb(make_kb: Callable[[str, World], Any], tiny_world: World) -> EmbeddedKB:
    return make_kb("embedded", tiny_world)


# versions


def test_a_loaded_kb_answers_as_the_embedded_one(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, sample_kb: EmbeddedKB
) -> None:
    loaded = load_sample()
    assert (loaded.version, loaded.fresh) == (1, True)
    assert pools(ElasticKB(kb_name, cluster)) == pools(sample_kb)


def test_the_same_content_is_not_loaded_twice_unless_forced(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    load_sample()
    assert load_sample().fresh is False
    assert load_sample(force=True).version == 2
    assert states(cluster, kb_name) == [(1, "older"), (2, "current")]


def test_older_versions_stay_as_many_as_asked(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, other_kb: EmbeddedKB, sample_kb: EmbeddedKB
) -> None:
    load_sample(), load_sample(other_kb), load_sample(sample_kb), load_sample(other_kb, keep=2)
    assert states(cluster, kb_name) == [(2, "older"), (3, "older"), (4, "current")]
    load_sample(sample_kb, keep=0)
    assert states(cluster, kb_name) == [(5, "current")]


def test_a_kb_can_be_rolled_back_until_nothing_older_is_left(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, other_kb: EmbeddedKB
) -> None:
    load_sample()
    load_sample(other_kb)
    assert roll_back(cluster, kb_name).number == 1
    assert states(cluster, kb_name) == [(1, "current"), (2, "older")]
    with pytest.raises(KBMissing, match="no complete version before 1"):
        roll_back(cluster, kb_name)


def test_readers_see_one_version_or_the_other_while_it_is_switched(
    load_sample: Callable[..., Loaded],
    cluster: Cluster,
    kb_name: str,
    other_kb: EmbeddedKB,
    url: str,
    connect: Callable[..., Cluster],
) -> None:
    load_sample()
    seen, ended = [], threading.Event()

    def read() -> None:
        reader = connect(url)
        while not ended.is_set():
            aliased = reader.ask("GET", f"/_alias/{kb_name}", to="look")
            seen.append(tuple(sorted(aliased)))

    thread = threading.Thread(target=read)
    thread.start()
    load_sample(other_kb)
    ended.set()
    thread.join()
    both = [tuple(index_name(kb_name, number, role) for role in ("entities", "names")) for number in (1, 2)]
    assert set(seen) <= set(both)


def test_an_open_reader_stays_with_its_version(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, other_kb: EmbeddedKB, sample_kb: EmbeddedKB
) -> None:
    load_sample()
    reader = ElasticKB(kb_name, cluster)
    load_sample(other_kb, keep=1)
    assert pools(reader) == pools(sample_kb)


def test_the_settings_are_restored_after_the_load(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    load_sample()
    told = cluster.ask("GET", f"/{kb_name}/_settings", to="look", params={"flat_settings": "true"})
    assert {one["settings"]["index.refresh_interval"] for one in told.values()} == {"1s"}
    assert {one["settings"]["index.number_of_replicas"] for one in told.values()} == {"0"}
    assert cluster.ask("GET", f"/_alias/{kb_name}*-loading", to="look", missing_ok=True) in (None, {})


def test_a_damaged_folder_is_not_copied(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, sample_path: Path, tmp_path: Path
) -> None:
    shutil.copytree(sample_path, tmp_path / "damaged.kb")
    damaged = EmbeddedKB(tmp_path / "damaged.kb")
    texts = tmp_path / "damaged.kb" / "alias.text.utf8"
    content = bytearray(texts.read_bytes())
    content[len(content) // 2] ^= 1
    texts.write_bytes(content)
    with pytest.raises(KBUnusable, match=r"alias\.text\.utf8"):
        load_sample(damaged)
    assert states(cluster, kb_name) == []


# copies


def unhurried() -> tuple[Patience, list[float]]:
    """Give a patience of a minute that only notes for how long it would have slept."""
    slept: list[float] = []
    return Patience(total=60.0, sleep=slept.append), slept


@pytest.mark.parametrize(("made_after", "missing"), [(3, 0), (10_000, 2)])
def test_a_load_waits_for_copies_and_becomes_visible_without_them(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    made_after: int,
    missing: int,
) -> None:
    patience, slept = unhurried()
    asked: list[str] = []

    def watch(number: int, method: str, path: str) -> tuple[int, object] | None:
        if "_cluster/health" not in path:
            return None
        asked.append(path)
        making = {"status": "yellow", "initializing_shards": 1, "unassigned_shards": 1, "number_of_data_nodes": 3}
        return (200, making) if len(asked) < made_after else None

    loaded = load_sample(on=connect(proxy(watch).url), patience=patience)
    assert (loaded.fresh, loaded.copies_missing) == (True, missing)
    assert states(cluster, kb_name) == [(1, "current")]
    assert sum(slept) > 45 if missing else len(slept) == made_after - 1


def test_a_load_does_not_wait_for_copies_that_no_node_can_take(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    patience, slept = unhurried()
    nodes = cluster.ask("GET", "/_cluster/health", to="count")["number_of_data_nodes"]
    loaded = load_sample(settings=IndexSettings(replicas=nodes), patience=patience)
    assert (loaded.fresh, loaded.copies_missing, slept) == (True, 2, [])
    (version,) = cluster_status(cluster, kb_name).versions
    assert [(index.replicas, index.copies_missing) for index in version.indexes] == [(nodes, 1)] * 2


def test_a_version_that_has_lost_a_shard_is_not_switched_to(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    red = {"status": "red", "initializing_shards": 0, "unassigned_shards": 1, "number_of_data_nodes": 3}
    server = proxy(lambda number, method, path: (200, red) if "_cluster/health" in path else None)
    with pytest.raises(Unreachable, match=r"the cluster's health is red; .* run the same command to resume"):
        load_sample(on=connect(server.url), patience=unhurried()[0])
    assert states(cluster, kb_name) == [(1, "unfinished")]
    assert load_sample().fresh


# strangers


@pytest.mark.parametrize(
    "mark",
    ["someone's", 7, [], {}, {"kb": 1, "version": "one", "mapping": None, "complete": "yes"}, {"kb": "x"}, {"kb": {}}],
    ids=str,
)
def test_a_mark_that_kbtools_did_not_write_makes_a_stranger_of_an_index(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, mark: object
) -> None:
    stranger = index_name(kb_name, 1, "names")
    body = {"mappings": {"_meta": {OWNER: mark}}, "aliases": {kb_name: {}}}
    cluster.ask("PUT", f"/{stranger}", body, to="make an index")
    try:
        assert kb_name not in {version.kb for version in cluster_status(cluster).versions}
        for refused in (load_sample, lambda: ElasticKB(kb_name, cluster), lambda: cluster_status(cluster, kb_name)):
            with pytest.raises(NameTaken, match=f"{kb_name}' is an alias of {stranger}, which kbtools did not make"):
                refused()
    finally:
        cluster.ask("DELETE", f"/{stranger}", to="remove it")


@pytest.mark.parametrize("record", [{"kb": "x"}, {"owner": "someone", "part": 1}, {}], ids=str)
def test_a_note_that_kbtools_did_not_write_is_named(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    record: dict[str, Any],
) -> None:
    stopped_load(load_sample, proxy, connect, at=16)
    cluster.ask("PUT", f"/{CONTROL}/_doc/{kb_name}", {"kb": kb_name, "record": record}, to="write a note")
    with pytest.raises(KBUnusable, match="another version of kbtools wrote a note in it; go on with that version"):
        load_sample()
    status = cluster_status(cluster, kb_name)
    assert [build.kb for build in status.builds] == [kb_name]
    assert "or delete the index kbtools-builds if nothing is being loaded" in status.builds[0].progress
    shown = CliRunner().invoke(main, ["info", "--elasticsearch", cluster.connection.where, "--kb", kb_name])
    assert shown.exit_code == 0
    assert f"build of {kb_name} version 0: kbtools-builds: another version of kbtools wrote" in shown.stdout


def test_a_name_that_is_an_index_already_is_refused(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    cluster.ask("PUT", f"/{kb_name}", to="make an index")
    with pytest.raises(NameTaken, match=r"is an index, .* which kbtools did not make"):
        load_sample()
    with pytest.raises(NameTaken):
        ElasticKB(kb_name, cluster)
    with pytest.raises(NameTaken):
        choose_versions(cluster, kb_name, number=None, unfinished=False)
    cluster.ask("DELETE", f"/{kb_name}", to="remove it")


def test_a_name_that_is_an_alias_of_another_index_is_refused(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    stranger = f"stranger-{kb_name}"
    cluster.ask("PUT", f"/{stranger}", {"aliases": {kb_name: {}}}, to="make an index")
    with pytest.raises(NameTaken, match=f"is an alias of {stranger}"):
        load_sample()
    cluster.ask("DELETE", f"/{stranger}", to="remove it")


def test_an_index_without_our_mark_is_never_deleted(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    load_sample()
    stranger = f"kbtools-{kb_name}-000009-entities"
    cluster.ask("PUT", f"/{stranger}", {"mappings": {"_meta": {"made by": "someone"}}}, to="make an index")
    removed = remove_versions(cluster, kb_name, choose_versions(cluster, kb_name, number=None, unfinished=False))
    assert removed == [index_name(kb_name, 1, role) for role in ("entities", "names")]
    assert cluster.ask("GET", f"/{stranger}", to="look")
    cluster.ask("DELETE", f"/{stranger}", to="remove it")


@pytest.mark.parametrize(
    "name", ["", "A", "-x", "_x", "a b", "a*", "a,b", "é", "x" * 101, "kbtools-x", "a/b", "..", "a\n"]
)
def test_a_name_that_no_alias_can_have_is_refused(cluster: Cluster, name: str) -> None:
    with pytest.raises(WrongFormat, match="not a valid name for a knowledge base"):
        current_version(cluster, name)


def test_an_unknown_kb_names_those_that_are_there(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    load_sample()
    with pytest.raises(KBMissing, match=f"no knowledge base 'nowhere'; known: .*{kb_name}"):
        ElasticKB("nowhere", cluster)


def test_another_mapping_version_is_refused(load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str) -> None:
    load_sample()
    for role in ("entities", "names"):
        mark = {"kb": kb_name, "version": 1, "mapping": MAPPING_VERSION + 1, "complete": True}
        cluster.ask("PUT", f"/{index_name(kb_name, 1, role)}/_mapping", {"_meta": {OWNER: mark}}, to="change")
    with pytest.raises(KBUnusable, match=f"found mapping version {MAPPING_VERSION + 1}, this kbtools reads"):
        ElasticKB(kb_name, cluster)


def test_a_stranger_in_the_place_of_a_version_is_passed_by(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str
) -> None:
    stranger = index_name(kb_name, 1, "names")
    cluster.ask("PUT", f"/{stranger}", to="make an index")
    assert load_sample().version == 2
    assert states(cluster, kb_name) == [(2, "current")]
    cluster.ask("DELETE", f"/{stranger}", to="remove it")


# removal


def test_the_current_version_is_removed_only_with_the_whole(
    load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str, other_kb: EmbeddedKB
) -> None:
    load_sample()
    load_sample(other_kb)
    with pytest.raises(ServerError, match="version 2 is the current one"):
        choose_versions(cluster, kb_name, number=2, unfinished=False)
    with pytest.raises(KBMissing, match="no version 7; there are 1, 2"):
        choose_versions(cluster, kb_name, number=7, unfinished=False)
    remove_versions(cluster, kb_name, choose_versions(cluster, kb_name, number=1, unfinished=False))
    assert states(cluster, kb_name) == [(2, "current")]


# faults of a load


def stopped_load(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    at: int,
    force: bool = False,
) -> None:
    """Load through a proxy that refuses everything from one request on."""
    server, at_once = proxy(lambda number, method, path: "cut" if number >= at else None), Patience(total=0)
    with pytest.raises(Unreachable):
        load_sample(on=connect(server.url, patience=at_once), patience=at_once, batch=100, force=force)


def test_what_a_failed_load_left_is_named_and_can_be_removed(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    stopped_load(load_sample, proxy, connect, at=16)
    age_note(cluster, kb_name)
    status = cluster_status(cluster, kb_name)
    assert [version.state for version in status.versions] == ["unfinished"]
    assert "left behind by process" in status.builds[0].progress
    with pytest.raises(KBMissing, match="a build of it is unfinished"):
        ElasticKB(kb_name, cluster)
    remove_versions(cluster, kb_name, choose_versions(cluster, kb_name, number=None, unfinished=True))
    assert list_versions(cluster, kb_name) == []
    assert read_note(cluster, kb_name) is None


def test_a_failed_load_leaves_the_old_version_to_readers(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    other_kb: EmbeddedKB,
    sample_kb: EmbeddedKB,
) -> None:
    load_sample()
    server = proxy(lambda number, method, path: "cut" if number >= 18 else None)
    with pytest.raises(Unreachable):
        load_sample(other_kb, on=connect(server.url, patience=Patience(total=0)), patience=Patience(total=0), batch=5)
    assert pools(ElasticKB(kb_name, cluster)) == pools(sample_kb)
    assert states(cluster, kb_name) == [(1, "current"), (2, "unfinished")]


def test_a_second_run_goes_on_from_what_is_confirmed(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    sample_kb: EmbeddedKB,
) -> None:
    bulks = []

    def watch(number: int, method: str, path: str) -> Any:
        bulks.append(path) if "_bulk" in path else None
        return "cut" if "_bulk" in path and len(bulks) > 4 else None

    server = proxy(watch)
    with pytest.raises(Unreachable):
        load_sample(
            on=connect(server.url, patience=Patience(total=0)), patience=Patience(total=0), batch=100, in_flight=1
        )
    before = len(bulks)
    age_note(cluster, kb_name)
    again = proxy(lambda number, method, path: bulks.append(path) if "_bulk" in path else None)
    load_sample(on=connect(again.url), batch=100)
    whole = 1 + 6 + 8  # the catalog, 506 entities, 738 names by the hundred
    assert len(bulks) - before < whole
    assert states(cluster, kb_name) == [(1, "current")]
    assert pools(ElasticKB(kb_name, cluster)) == pools(sample_kb)


def test_cut_connections_and_passing_answers_lose_and_double_nothing(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    sample_kb: EmbeddedKB,
) -> None:
    faults = random.Random(6)

    def watch(number: int, method: str, path: str) -> Any:
        return faults.choice([None, None, None, "cut", "cut after", (429, {}), (503, {}), (502, "<html>"), (504, {})])

    patience = Patience(total=60.0, first=0.01, longest=0.05, sleep=lambda seconds: None)
    server = proxy(watch)
    loaded = load_sample(on=connect(server.url, patience=patience), patience=patience, batch=20)
    assert loaded.fresh
    assert pools(ElasticKB(kb_name, cluster)) == pools(sample_kb)


def test_documents_that_pass_later_are_sent_again_alone(
    cluster: Cluster,
    kb_name: str,
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    load_sample: Callable[..., Loaded],
) -> None:
    sizes = []

    def watch(number: int, method: str, path: str) -> Any:
        if "_bulk" not in path:
            return None
        sizes.append(number)
        if len(sizes) != 2:
            return None
        busy = {"type": "es_rejected_execution_exception", "reason": "queue is full"}
        items = [{"index": {"status": 429, "error": busy}}] + [{"index": {"status": 201}}] * 99
        return 200, {"errors": True, "items": items}

    server = proxy(watch)
    with pytest.raises(BulkFailed, match="of 506 entities") as caught:
        load_sample(on=connect(server.url), batch=100, in_flight=1)
    # the server said that 99 documents were stored, which they were not: the check finds it
    assert caught.value.facts["counts"]["entities"] == (506 - 99, 506)
    assert load_sample(batch=100).fresh


def test_rejected_documents_are_kept_counted_and_fail_the_run(
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    load_sample: Callable[..., Loaded],
    cluster: Cluster,
    kb_name: str,
    tmp_path: Path,
) -> None:
    def watch(number: int, method: str, path: str) -> Any:
        if "names-loading/_bulk" not in path:  # 738 names in 6 batches of 123
            return None
        odd = {
            "type": "mapper_parsing_exception",
            "reason": "failed",
            "caused_by": {"type": "x_content", "reason": "odd: \u0141"},
        }
        large = {"type": "illegal_argument_exception", "reason": "Limit of total fields [100] has been exceeded"}
        items = [{"index": {"status": 400, "error": odd}}, {"index": {"status": 400, "error": large}}]
        return 200, {"errors": True, "items": items + [{"index": {"status": 201}}] * 121}

    server = proxy(watch)
    with pytest.raises(
        BulkFailed, match=r"12 documents were rejected.*mapper_parsing.*odd.*Limit of total fields"
    ) as caught:
        load_sample(on=connect(server.url), batch=123, in_flight=2)
    lines = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert caught.value.facts["rejected"] == len(lines) == 12
    assert "odd: \u0141" in (tmp_path / "rejected.jsonl").read_text(encoding="utf-8")
    assert len(caught.value.facts["kinds"]) == 2
    assert {"_id", "reason", "document"} == set(lines[0])
    assert states(cluster, kb_name) == [(1, "unfinished")]
    assert load_sample().fresh


@pytest.mark.real_cluster
def test_documents_beyond_the_field_limit_are_kept_counted_and_fail_the_run(
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    load_sample: Callable[..., Loaded],
    cluster: Cluster,
    kb_name: str,
    sample_kb: EmbeddedKB,
    tmp_path: Path,
) -> None:
    name, replaced = index_name(kb_name, 1, "names"), []
    body = index_body("names", kb=kb_name, version=1, settings=IndexSettings(replicas=0))
    body["mappings"] = {"_meta": body["mappings"]["_meta"]}  # every field is a new one, and there is room for one
    body["settings"]["index"]["mapping"]["total_fields"]["limit"] = 1

    def watch(number: int, method: str, path: str) -> None:
        if "names-loading/_bulk" in path and not replaced:
            replaced.append(cluster.ask("DELETE", f"/{name}", to="replace it"))
            cluster.ask("PUT", f"/{name}", body, to="replace it")

    with pytest.raises(BulkFailed, match=r"Limit of total fields \[1\] has been exceeded") as caught:
        load_sample(on=connect(proxy(watch).url), in_flight=1)
    lines = (tmp_path / "rejected.jsonl").read_text().splitlines()
    assert caught.value.facts["rejected"] == len(lines) == count_normal_forms(sample_kb)
    assert states(cluster, kb_name) == [(1, "unfinished")]
    remove_versions(cluster, kb_name, choose_versions(cluster, kb_name, number=None, unfinished=True))
    assert load_sample().fresh


def test_two_loaders_of_one_name_do_not_meet(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    refused = []

    def watch(number: int, method: str, path: str) -> None:
        if "_bulk" in path and not refused:
            refused.append("")
            with pytest.raises(BuildLocked, match=f"is being loaded or updated by process {os.getpid()} on") as caught:
                load_sample()
            refused.append(caught.value.facts["owner"].split()[1])

    load_sample(on=connect(proxy(watch).url))
    assert refused == ["", str(os.getpid())]
    assert states(cluster, kb_name) == [(1, "current")]


def test_a_name_under_load_cannot_be_removed_nor_loaded_from_elsewhere(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    other_kb: EmbeddedKB,
) -> None:
    seen = []

    def watch(number: int, method: str, path: str) -> None:
        if "_bulk" in path and not seen:
            seen.append(path)
            with pytest.raises(BuildLocked):
                load_sample(other_kb)
            with pytest.raises(BuildLocked):
                remove_versions(cluster, kb_name, choose_versions(cluster, kb_name, number=None, unfinished=True))

    assert load_sample(on=connect(proxy(watch).url)).fresh
    assert seen


def test_a_killed_loader_keeps_its_lock_until_it_is_stale_or_taken_over(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    stopped_load(load_sample, proxy, connect, at=16)
    with pytest.raises(BuildLocked, match=f"is being loaded or updated by process {os.getpid()} on .* --take-over"):
        load_sample()
    assert cluster_status(cluster, kb_name).builds[0].progress.startswith("held by process")
    with pytest.raises(BuildLocked):
        remove_versions(cluster, kb_name, choose_versions(cluster, kb_name, number=None, unfinished=True))
    age_note(cluster, kb_name)
    assert load_sample().fresh
    stopped_load(load_sample, proxy, connect, at=16, force=True)
    assert load_sample(take_over=True, force=True).fresh
    assert [state for _, state in states(cluster, kb_name)] == ["older", "current"]


def test_a_loader_that_was_replaced_stops(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    def watch(number: int, method: str, path: str) -> None:
        if "names-loading/_bulk" in path:
            note, stamp = read_note(cluster, kb_name)
            write_note(cluster, kb_name, replace(note, token="another"), stamp)

    with pytest.raises(BuildLocked, match="is being loaded or updated by process"):
        load_sample(on=connect(proxy(watch).url))
    assert states(cluster, kb_name) == [(1, "unfinished")]


@pytest.mark.real_cluster
def test_an_index_that_takes_no_writes_says_so_and_the_load_goes_on_later(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    def watch(number: int, method: str, path: str) -> None:
        if "names-loading/_bulk" in path:
            name = index_name(kb_name, 1, "names")
            cluster.ask("PUT", f"/{name}/_settings", {"index.blocks.read_only": True}, to="block it")

    with pytest.raises(ServerError, match=r"accepts no documents \(403 cluster_block_exception.*read-only"):
        load_sample(on=connect(proxy(watch).url))
    name = index_name(kb_name, 1, "names")
    cluster.ask("PUT", f"/{name}/_settings", {"index.blocks.read_only": None}, to="free it")
    assert load_sample().fresh


@pytest.mark.real_cluster
def test_a_full_disk_is_waited_for_and_then_named(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    def watch(number: int, method: str, path: str) -> None:
        if "names-loading/_bulk" in path:
            name = index_name(kb_name, 1, "names")
            cluster.ask("PUT", f"/{name}/_settings", {"index.blocks.read_only_allow_delete": True}, to="block it")

    patience = Patience(total=0.5, first=0.1, longest=0.1, sleep=lambda seconds: None)
    with pytest.raises(Unreachable, match=r"keeps refusing documents.*429 cluster_block_exception.*flood-stage"):
        load_sample(on=connect(proxy(watch).url), patience=patience)
    name = index_name(kb_name, 1, "names")
    cluster.ask("PUT", f"/{name}/_settings", {"index.blocks.read_only_allow_delete": None}, to="free it")
    assert load_sample().fresh


def test_an_index_deleted_during_the_load_is_an_error_and_not_made_anew(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
) -> None:
    name = index_name(kb_name, 1, "names")

    def watch(number: int, method: str, path: str) -> None:
        if "names-loading/_bulk" in path:
            cluster.ask("DELETE", f"/{name}", to="delete it", missing_ok=True)

    with pytest.raises(ServerError, match="names"):
        load_sample(on=connect(proxy(watch).url))
    assert cluster.ask("GET", f"/{name}", to="look", missing_ok=True) is None
    assert load_sample().version == 2


def test_a_document_that_is_too_large_is_rejected_and_its_neighbours_stored(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    stored = []

    def reply(method: str, path: str, body: bytes) -> tuple[int, object]:
        if len(body) > 1_000:
            return 413, ""
        stored.append(body)
        return 200, {"errors": False, "items": []}

    documents = [Document(str(number), b"x" * (2_000 if number == 5 else 100), number + 1) for number in range(8)]
    sent = []
    sender = Sender(connect(small_server(reply).url), patience=Patience(total=0))
    sender.send_all("some", documents, sent.append)
    assert [rejected.key for rejected in sent[0].rejected] == ["5"]
    assert "2,000 bytes is larger than the cluster accepts" in sent[0].rejected[0].reason
    assert (sent[0].documents, sent[0].done) == (7, 8)
    assert sum(body.count(b'"_id"') for body in stored) == 7


def test_a_document_larger_than_any_request_is_rejected_without_being_sent(cluster: Cluster, kb_name: str) -> None:
    index = f"kbtools-{kb_name}-000001-names"
    body = index_body("names", kb=kb_name, version=1, settings=IndexSettings(replicas=0))
    cluster.ask("PUT", f"/{index}", body, to="make an index")
    large = b'{"words":"' + b"x " * 53_000_000 + b'"}'
    documents = [Document("0", b'{"form":"a"}', 1), Document("1", large, 2), Document("2", b'{"form":"b"}', 3)]
    sent = []
    Sender(cluster, patience=Patience(), largest=read_largest(cluster)).send_all(index, documents, sent.append)
    assert [(one.done, one.documents, len(one.rejected)) for one in sent] == [(1, 1, 0), (2, 0, 1), (3, 1, 0)]
    assert "106,000,012 bytes is larger than the cluster accepts" in sent[1].rejected[0].reason


@pytest.mark.real_cluster
def test_a_document_that_never_fits_into_memory_is_rejected_and_not_tried_forever(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    def reply(method: str, path: str, body: bytes) -> tuple[int, object]:
        if len(body) < 1_000:
            return 200, {"errors": False, "items": []}
        pressure = "rejected execution of coordinating operation [all_bytes=0, coordinating_operation_bytes=2000, "
        reason = {"type": "es_rejected_execution_exception", "reason": pressure + "max_coordinating_bytes=1000]"}
        return 429, {"error": reason, "status": 429}

    documents = [Document(str(number), b"x" * (2_000 if number == 1 else 100), number + 1) for number in range(3)]
    server, sent = small_server(reply), []
    Sender(connect(server.url), patience=Patience(total=60.0)).send_all("some", documents, sent.append)
    assert [rejected.key for rejected in sent[0].rejected] == ["1"]
    assert len(server.requests) < 6


def test_a_slow_cluster_is_never_read_ahead_of(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    asked, release = [], threading.Semaphore(0)
    read, confirmed, ahead = [], [], []

    def reply(method: str, path: str, body: bytes) -> tuple[int, object]:
        asked.append(path)
        release.acquire(timeout=10)
        return 200, {"errors": False, "items": []}

    def documents() -> Iterator[Document]:
        for number in range(1_000):
            read.append(number)
            ahead.append(len(read) - 10 * len(confirmed))
            if number % 10 == 0:
                release.release()
            yield Document(str(number), b"{}", number + 1)

    sender = Sender(connect(small_server(reply).url), patience=Patience(total=0), in_flight=2, most=10)
    threading.Timer(0, release.release, [200]).start()
    sender.send_all("some", documents(), confirmed.append)
    assert len(confirmed) == 100
    assert max(ahead) <= 10 * (2 + 2) + 1


@pytest.fixture(scope="module")
def large_kb(make_kb: Callable[[str, World], Any], new_world: type[World]) -> EmbeddedKB:
    """A knowledge base of 20,000 entities with a name each."""
    rows = range(LARGE)
    facts = tuple((f"m.{row:05}", "r", f"m.{(row * 7) % LARGE:05}") for row in rows)
    return make_kb("embedded", new_world(facts, tuple((f"m.{row:05}", f"number {row} of all") for row in rows)))


@pytest.mark.real_cluster
@pytest.mark.parametrize(
    ("role", "read"),
    [
        ("entities", lambda kb: documents(FolderEntities(kb).contents(range(LARGE)), "und")),
        ("names", lambda kb: form_documents(normal_forms(kb))),
    ],
    ids=["entities", "names"],
)
def test_a_large_kb_is_read_as_slowly_as_a_slow_cluster_stores_it(
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    large_kb: EmbeddedKB,
    role: str,
    read: Callable[..., Any],
) -> None:
    index, drawn, stored, ahead = index_name(kb_name, 1, role), itertools.count(1), [0], []
    body = index_body(role, kb=kb_name, version=1, settings=IndexSettings(replicas=0))
    cluster.ask("PUT", f"/{index}", body, to="make an index")

    def documents() -> Iterator[Document]:
        for document in read(large_kb):
            ahead.append(next(drawn) - stored[-1])
            yield document

    slow = proxy(lambda number, method, path: time.sleep(SLOW))
    sender = Sender(connect(slow.url), patience=Patience())
    sender.send_all(index, documents(), lambda sent: stored.append(stored[-1] + sent.documents))
    cluster.ask("POST", f"/{index}/_refresh", to="refresh")
    assert cluster.ask("GET", f"/{index}/_count", to="count")["count"] == stored[-1] == len(ahead) == LARGE
    assert MOST_DOCUMENTS < max(ahead) <= (IN_FLIGHT + 2) * MOST_DOCUMENTS + 1


def test_batches_are_confirmed_in_order_whatever_order_they_are_stored_in(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster]
) -> None:
    turn = threading.Event()

    def reply(method: str, path: str, body: bytes) -> tuple[int, object]:
        if b'"_id":"0"' in body:
            turn.wait(10)
        if b'"_id":"2"' in body:
            turn.set()
        return 200, {"errors": False, "items": []}

    confirmed = []
    sender = Sender(connect(small_server(reply).url), patience=Patience(total=0), in_flight=3, most=1)
    documents = [Document(str(number), b"{}", number + 1) for number in range(6)]
    sender.send_all("some", documents, lambda sent: confirmed.append(sent.done))
    assert confirmed == [1, 2, 3, 4, 5, 6]


# killed


@pytest.mark.real_cluster
def test_a_load_killed_at_ten_points_and_run_again_is_as_an_unbroken_one(
    proxy: Callable[..., SmallServer],
    cluster: Cluster,
    kb_name: str,
    sample_kb: EmbeddedKB,
    sample_path: Path,
    tmp_path: Path,
) -> None:
    command = [
        KBTOOLS, "load", str(sample_path), "--kb", kb_name, "--batch", "40", "--take-over",
        "--in-flight", "2", "--replicas", "0", "--quiet", "--rejected", str(tmp_path / "rejected.jsonl"),
    ]  # fmt: skip
    points = iter(sorted(random.Random(2026).sample(range(4, 60), 10)))
    state: dict[str, Any] = {"process": None, "at": None, "seen": 0}

    def watch(number: int, method: str, path: str) -> Any:
        state["seen"] += 1
        if state["seen"] == state["at"]:
            os.kill(state["process"].pid, signal.SIGKILL)
            return "cut after" if number % 2 else "cut"
        return None

    server = proxy(watch)
    killed = 0
    environment = os.environ | {"KBTOOLS_ELASTICSEARCH_URL": server.url}
    for point in points:
        state |= {"at": point % 17 + 4, "seen": 0}
        state["process"] = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        state["process"].communicate(timeout=60)
        killed += state["process"].returncode == -signal.SIGKILL
    state["at"] = None
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert killed == 10
    assert [state for _, state in states(cluster, kb_name)][-1] == "current"
    assert pools(ElasticKB(kb_name, cluster)) == pools(sample_kb)
