"""Vectors belong to a version on the cluster; how they are searched is the contract of all vector indexes."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kbtools.errors import BadVectors, BuildLocked, ServerError, VectorsMissing, WrongFormat
from kbtools.indexers.elastic.build_lock import update_lock
from kbtools.indexers.elastic.cluster import Cluster
from kbtools.indexers.elastic.cluster_updates import UpdateOptions, update_on_cluster
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.loading import Loaded
from kbtools.indexers.elastic.mapping import MAPPING_VERSION, IndexMark, IndexSettings
from kbtools.indexers.elastic.versions import current_version, list_versions
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.indexers.updates.update_sources import UpdateSource
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import EntityVectors

ENTITIES = 506


@pytest.fixture
def opened(load_sample: Callable[..., Loaded], cluster: Cluster, kb_name: str) -> ElasticKB:
    load_sample()
    return ElasticKB(kb_name, cluster)


def given(rows: Sequence[int], dim: int = 4) -> EntityVectors:
    return EntityVectors(np.array(rows, dtype=np.uint32), dim, lambda some: np.ones((len(some), dim), np.float32))


def test_vectors_belong_to_their_version_and_go_with_it(
    opened: ElasticKB, cluster: Cluster, kb_name: str, load_sample: Callable[..., Loaded]
) -> None:
    opened.load_vectors(given(range(400)), settings=IndexSettings(replicas=0))
    assert "vectors" in current_version(cluster, kb_name).indexes
    assert len(ElasticKB(kb_name, cluster).vectors()) == 400
    load_sample(force=True, keep=0)
    assert [sorted(version.indexes) for version in list_versions(cluster, kb_name)] == [["entities", "names"]]
    with pytest.raises(VectorsMissing):
        ElasticKB(kb_name, cluster).vectors()


@pytest.mark.real_cluster
@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param(given([0, 0]), id="one entity twice"),
        pytest.param(given([0, ENTITIES]), id="no entity"),
        pytest.param(given([0], dim=4_097), id="more dimensions than the cluster takes"),
        pytest.param(given([0], dim=0), id="none"),
    ],
)
def test_what_the_cluster_would_reject_is_refused(opened: ElasticKB, vectors: EntityVectors) -> None:
    with pytest.raises(WrongFormat):
        opened.load_vectors(vectors)


def test_what_a_failed_load_leaves_is_removed(opened: ElasticKB, cluster: Cluster, kb_name: str) -> None:
    broken = EntityVectors(np.array([0], dtype=np.uint32), 2, lambda some: np.full((1, 2), np.nan, np.float32))
    with pytest.raises(BadVectors):
        opened.load_vectors(broken)
    assert list(current_version(cluster, kb_name).indexes) == ["entities", "names"]


def test_vectors_are_not_loaded_during_an_update_nor_the_other_way_round(
    opened: ElasticKB, cluster: Cluster, kb_name: str, tmp_path: Path
) -> None:
    (tmp_path / "new.jsonl").write_text('{"id": "m.0new", "names": ["New"]}\n')
    sources = [UpdateSource(Source(tmp_path / "new.jsonl", "any"), "changes")]
    with update_lock(cluster, kb_name), pytest.raises(BuildLocked, match="is being loaded or updated by process"):
        opened.load_vectors(given([0, 1]))

    def read(rows: EntityRows) -> NDArray[np.float32]:
        with pytest.raises(BuildLocked):
            update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(ReadOptions()))
        return np.ones((len(rows), 2), dtype=np.float32)

    opened.load_vectors(EntityVectors(np.array([0], dtype=np.uint32), 2, read))
    update_on_cluster(cluster, kb_name, sources, options=UpdateOptions(ReadOptions()))
    with pytest.raises(ServerError, match="another version became current in the meantime"):
        opened.load_vectors(given([0, 1]))


def test_vectors_of_a_killed_loader_are_not_read_and_go_with_their_version(
    opened: ElasticKB, cluster: Cluster, kb_name: str
) -> None:
    index = opened.load_vectors(given([0, 1])).index
    mark = IndexMark(kb_name, opened.version.number, MAPPING_VERSION, complete=False)
    cluster.ask("PUT", f"/{index}/_mapping", {"_meta": mark.to_meta()}, to="unmark")
    again = ElasticKB(kb_name, cluster)
    with pytest.raises(VectorsMissing):
        again.vectors()
    assert again.version.complete
    assert index in again.version.indexes.values()
