"""What a client makes of the answers of a cluster about its nodes, shards, copies and deleted documents."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import Unreachable
from kbtools.indexers.elastic.bulk import read_largest
from kbtools.indexers.elastic.cluster import Cluster, Patience
from kbtools.indexers.elastic.cluster_updates import UpdateOptions, update_on_cluster
from kbtools.indexers.elastic.inventory import drop_deleted
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import Loaded, LoadOptions, _wait_for_copies
from kbtools.indexers.elastic.mapping import ENTITIES, IndexSettings
from kbtools.indexers.elastic.versions import Version, count_documents, current_version
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.update_sources import UpdateSource
from tests.indexers.elastic.conftest import SmallServer


@pytest.fixture
def update(kb_name: str, tmp_path: Path) -> Callable[[Cluster], object]:
    """Name a new entity."""
    file = tmp_path / "changes.jsonl"
    file.write_text(json.dumps({"id": "m.078ffw", "names": ["Harry P."], "facts": {"new.relation": ["m.0new"]}}))
    sources = [UpdateSource(Source(file, "any"), "changes")]
    return lambda cluster: update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(ReadOptions()))


@pytest.mark.parametrize(
    ("status", "sizes", "largest"),
    [
        (200, [90_000, 50_000, 70_000], 49_000),
        (200, [90_000], 89_000),
        (200, [], 100 * 1024 * 1024 - 1_000),
        (403, [], 100 * 1024 * 1024 - 1_000),
    ],
)
def test_a_request_is_as_large_as_the_smallest_node_takes_it_less_its_headers(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    status: int,
    sizes: list[int],
    largest: int,
) -> None:
    nodes = {str(place): {"http": {"max_content_length_in_bytes": size}} for place, size in enumerate(sizes)}
    server = small_server(lambda *_: (status, {"nodes": nodes} if nodes else {}))

    assert read_largest(connect(server.url)) == largest


@pytest.mark.parametrize("counted", [{"_shards": {"failed": 1}}, {"_shards": {"failed": 0}, "timed_out": True}])
def test_documents_of_some_shards_are_no_count(
    small_server: Callable[..., SmallServer], connect: Callable[..., Cluster], counted: dict[str, Any]
) -> None:
    server = small_server(lambda *_: (200, {"count": 7, **counted}))

    with pytest.raises(Unreachable, match="some shards did not answer"):
        count_documents(connect(server.url), Version("kb", 1, {"entities": "one", "names": "two"}))


def test_no_search_takes_an_answer_of_some_shards(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    kb_name: str,
    update: Callable[[Cluster], object],
) -> None:
    asked: list[str] = []
    cluster = connect(proxy(lambda number, method, path: asked.append(path)).url)

    load_sample(on=cluster)
    update(cluster)
    kb = ElasticKB(kb_name, cluster)
    assert Answerer(kb).query("who created the character harry potter").candidates
    assert kb.lookup(["harry p"])

    searches = [path for path in asked if path.split("?")[0].endswith("_search")]
    assert len(searches) > 3
    assert [path for path in searches if "allow_partial_search_results=false" not in path] == []


@pytest.mark.parametrize("replicas", [None, 0, 3])
def test_an_update_keeps_the_copies_of_shards(
    load_sample: Callable[..., Loaded],
    cluster: Cluster,
    kb_name: str,
    update: Callable[[Cluster], object],
    replicas: int | None,
) -> None:
    load_sample(settings=IndexSettings(replicas=replicas))
    before = copies_of(cluster, kb_name)

    update(cluster)

    assert copies_of(cluster, kb_name) == before == (("0-1", None) if replicas is None else (None, str(replicas)))


@pytest.mark.parametrize(
    ("status", "nodes", "missing", "is_waiting"),
    [("green", 3, 0, False), ("yellow", 1, 2, False), ("yellow", 3, 2, True), ("red", 3, None, True)],
)
def test_copies_are_waited_for_while_nodes_may_take_them(
    small_server: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    impatient: Patience,
    status: str,
    nodes: int,
    missing: int | None,
    is_waiting: bool,
) -> None:
    unassigned = {"initializing_shards": 1, "unassigned_shards": 1} if missing else {}
    health = {"initializing_shards": 0, "unassigned_shards": 0, **unassigned}
    server = small_server(lambda *_: (200, {"status": status, "number_of_data_nodes": nodes, **health}))
    options = LoadOptions(settings=IndexSettings(replicas=1), patience=impatient)

    with pytest.raises(Unreachable, match="red; start") if missing is None else nullcontext():
        assert _wait_for_copies(connect(server.url), "kb", "one", options) == missing

    assert (len(server.requests) > 1) is is_waiting


def copies_of(cluster: Cluster, kb: str) -> tuple[str | None, str | None]:
    """Return the copies that follow the number of nodes, else their number."""
    index = current_version(cluster, kb).indexes[ENTITIES]
    answer = cluster.ask("GET", f"/{index}/_settings", to="look", params={"flat_settings": "true"})
    settings = answer[index]["settings"]
    follows = settings.get("index.auto_expand_replicas", "false")
    return (None, settings["index.number_of_replicas"]) if follows == "false" else (follows, None)


def test_deleted_documents_are_dropped_once_no_copy_needs_them(
    load_sample: Callable[..., Loaded],
    proxy: Callable[..., SmallServer],
    connect: Callable[..., Cluster],
    cluster: Cluster,
    kb_name: str,
    update: Callable[[Cluster], object],
) -> None:
    load_sample()
    update(cluster)
    retained, slept, merged = iter([4, 9, 10]), [], []

    def watch(number: int, method: str, path: str) -> tuple[int, object] | None:
        if "level=shards" in path:
            free, kept = (
                {"retention_leases": {"leases": [{"retaining_seq_no": first}]}} for first in (99, next(retained))
            )
            shards = {"0": [{"seq_no": {"global_checkpoint": 9}, **own} for own in (free, kept)]}
            return 200, {"indices": {"one": {"shards": shards}}}
        merged.extend([len(slept)] if "_forcemerge" in path else [])
        return None

    server = proxy(watch)
    dropped = drop_deleted(connect(server.url), kb_name, patience=Patience(total=1e5, sleep=slept.append))

    assert dropped is not None
    assert dropped.count > 0
    assert merged == [2]
    # The merge is looked at until it is done, and not again.
    assert sum(path.startswith("/_tasks/") for path in server.paths()) == 1 + len(slept) - merged[0]
