"""Versions on a cluster that cannot be made, counted or named, and what is written when only some of it changes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kbtools
from kbtools.errors import BulkFailed, ServerError, Unreachable, WrongFormat
from kbtools.indexers.elastic import cluster_updates, folder_contents, versions
from kbtools.indexers.elastic.build_lock import BuildNote, _locked
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.cluster_updates import UpdateOptions, update_on_cluster
from kbtools.indexers.elastic.connection import Connection
from kbtools.indexers.elastic.folder_contents import FolderEntities
from kbtools.indexers.elastic.inventory import choose_versions, cluster_status
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import Loaded
from kbtools.indexers.elastic.mapping import index_name
from kbtools.indexers.elastic.versions import Version, copy_version, count_documents, create_version, list_versions
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.update_sources import UpdateSource
from tests.indexers.elastic.conftest import SINGLE, SmallServer

Proxy = Callable[[Callable[[int, str, str], Any]], SmallServer]

FACTS = [("Q1", "artist", "Q2"), ("Q3", "artist", "Q2"), ("Q3", "after", "Q1")]
NAMES = [("Q1", "Heroes"), ("Q2", "David Bowie"), ("Q3", "Low")]


@pytest.fixture(scope="module")
def albums(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedKB:
    merged = [("old", "Q3"), ("older", "Q2"), ("oldest", "Q3")]
    types = [("Q1", "album"), ("Q3", "album"), ("Q2", "person")]
    path = tmp_path_factory.mktemp("albums") / "albums.kb"
    with kbtools.index(out=path, facts=FACTS, names=NAMES, types=types, redirects=merged):
        return EmbeddedKB(path)


@pytest.fixture
def changed(
    load_sample: Callable[..., Loaded], albums: EmbeddedKB, cluster: Cluster, kb_name: str, tmp_path: Path
) -> Callable[[str], ElasticKB]:
    """Return a function that loads a few albums, changes them by JSON Lines, and opens what is there then."""
    load_sample(albums)

    def run(changes: str) -> ElasticKB:
        file = tmp_path / "changes.jsonl"
        file.write_text(changes)
        sources = [UpdateSource(Source(file, "any"), "changes")]
        update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(ReadOptions()))
        return ElasticKB(kb_name, cluster)

    return run


def test_what_was_there_already_hides_no_change_behind_it(changed: Callable[[str], ElasticKB]) -> None:
    kb = changed('{"id": "Q1", "names": ["Heroes"]}\n{"id": "Q3", "rename": {"Low": "Lodger"}, "types": ["record"]}\n')

    assert kb.lookup(["lodger", "low"]).keys() == {"lodger"}
    types = kb.types_of(kb.entity_rows())
    assert [[kb.types[kind] for kind in types.values[start:end]] for start, end in zip(
        types.starts, types.starts[1:], strict=False)] == [["album"], ["person"], ["album", "record"]]  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["documents", "entities", "names", "types", "facts", "facts of subjects", "incoming facts"]
)
def test_a_change_of_which_anything_is_lost_is_not_switched_to(
    changed: Callable[[str], ElasticKB], cluster: Cluster, kb_name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = versions.count_held

    def losing(*arguments: Any) -> Mapping[str, int]:
        counts = held(*arguments)
        return counts | {kind: counts[kind] - 1}

    monkeypatch.setattr(cluster_updates, "count_held", losing)
    with pytest.raises(BulkFailed, match=f"has . of . {kind} of changed entities;"):
        changed('{"id": "Q1", "rename": {"Heroes": "Lodger"}}\n')
    assert [version.number for version in list_versions(cluster, kb_name)] == [1]


def test_contents_and_merged_ids_are_the_same_in_blocks(albums: EmbeddedKB, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FolderEntities(albums)
    whole = list(reader.contents(range(3)))

    assert [len(content.get("merged", ())) for content in whole] == [0, 1, 2]
    merged = [reader.merged_ids(*rows) for rows in ((1, 2), (2, 3))]
    assert [{row: len(ids) for row, ids in some.items()} for some in merged] == [{1: 1}, {2: 2}]
    for size in (1, 2):
        monkeypatch.setattr(folder_contents, "_BLOCK", size)
        assert list(reader.contents(range(3))) == whole
        assert list(reader.contents(range(1, 3))) == whole[1:]


def test_a_lock_tells_for_how_long_its_holder_was_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtools.indexers.elastic.build_lock.time.time", lambda: 1_000.0)
    cluster: Any = SimpleNamespace(connection=SimpleNamespace(where="here"))

    told = [str(_locked(cluster, "kb", BuildNote(1, owner="me", beat=beat))) for beat in (993.0, 1_003.0)]

    for seconds, text in zip((7, 0), told, strict=True):
        assert f"loaded or updated by me (last sign of life {seconds} s ago); " in text
    assert "by another process; wait" in str(_locked(cluster, "kb", None))


@pytest.mark.parametrize("secrets", [("seven-up", "seven-up.and.more"), ("seven-up.and.more", "seven-up")])
def test_of_secrets_that_begin_alike_the_longest_is_hidden(secrets: tuple[str, str]) -> None:
    connection = Connection(urls=("http://a:9200",), user="u", password=secrets[0], api_key=secrets[1])

    assert connection.hide("sent seven-up.and.more, and seven-up") == "sent ***, and ***"


@pytest.mark.parametrize("name", ["*", "A", "kbtools-x", "a,b"])
def test_a_name_that_cannot_be_is_asked_of_no_cluster(name: str) -> None:
    class Silent:
        def greet(self) -> Any:
            return {"version": {"number": "9"}}

    silent: Any = Silent()
    with pytest.raises(WrongFormat, match="not a valid name for a knowledge base"):
        cluster_status(silent, name)
    with pytest.raises(WrongFormat, match="not a valid name for a knowledge base"):
        choose_versions(silent, name, number=None, unfinished=False)


def test_segments_are_merged_if_asked_for(
    load_sample: Callable[..., Loaded], proxy: Proxy, connect: Callable[..., Cluster]
) -> None:
    merges: list[str] = []

    def watch(number: int, method: str, path: str) -> None:
        if "_forcemerge" in path:
            merges.append(path.partition("?")[2])

    load_sample(on=connect(proxy(watch).url), segments=3)
    load_sample(on=connect(proxy(watch).url), force=True)

    assert [set(parameters.split("&")) for parameters in merges] == [
        {"max_num_segments=3", "wait_for_completion=false"}
    ]


def test_of_a_version_that_cannot_be_made_nothing_is_left(
    cluster: Cluster, proxy: Proxy, connect: Callable[..., Cluster], kb_name: str
) -> None:
    names = index_name(kb_name, 1, "names")

    def refuse(number: int, method: str, path: str) -> Any:
        full = {"error": {"type": "validation_exception", "reason": "too many shards"}, "status": 400}
        return (400, full) if method == "PUT" and names in path else None

    with pytest.raises(ServerError, match="too many shards"):
        create_version(connect(proxy(refuse).url), kb_name, 1, SINGLE)
    assert list_versions(cluster, kb_name) == []


def test_an_index_of_another_keeps_its_name(cluster: Cluster, kb_name: str) -> None:
    names = index_name(kb_name, 1, "names")
    cluster.ask("PUT", f"/{names}", to="make an index")

    assert create_version(cluster, kb_name, 1, SINGLE) is None

    assert list_versions(cluster, kb_name) == []
    assert cluster.ask("GET", f"/{names}", to="look").keys() == {names}
    cluster.ask("DELETE", f"/{names}", to="remove it")


@pytest.mark.parametrize(("status", "primaries"), [("red", 0), ("yellow", 1)])
def test_a_copy_without_its_shards_is_no_version(
    load_sample: Callable[..., Loaded],
    cluster: Cluster,
    proxy: Proxy,
    connect: Callable[..., Cluster],
    kb_name: str,
    impatient: Patience,
    status: str,
    primaries: int,
) -> None:
    load_sample()
    (version,) = list_versions(cluster, kb_name)

    def watch(number: int, method: str, path: str) -> Any:
        health = {"status": status, "unassigned_primary_shards": primaries}
        return (200, health) if "_cluster/health" in path else None

    with pytest.raises(Unreachable, match="cannot be allocated; check the disks"):
        copy_version(connect(proxy(watch).url, patience=impatient), version, 2)


def test_a_count_without_all_shards_is_none(proxy: Proxy, connect: Callable[..., Cluster], impatient: Patience) -> None:
    def watch(number: int, method: str, path: str) -> Any:
        return (200, {"count": 1, "_shards": {"failed": 1}}) if "_count" in path else None

    version = Version("kb", 1, {"entities": "e", "names": "n"})
    with pytest.raises(Unreachable, match="some shards did not answer"):
        count_documents(connect(proxy(watch).url, patience=impatient), version)
