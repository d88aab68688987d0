"""Whether the cluster finds the nearest vectors, and says so where there are none."""

import numpy as np
import pytest

from kbtools.errors import VectorsMissing, WrongFormat
from kbtools.indexers.elastic.knowledge import ElasticKB
from kbtools.indexers.elastic.mapping import Settings
from kbtools.indexers.elastic.vectors import ElasticVectors, load_vectors
from kbtools.indexers.elastic.versions import current_version, list_versions
from kbtools.vectors import ExactVectors, recall

ENTITIES, DIM = 506, 16


@pytest.fixture
def opened(load_sample, cluster, kb_name):
    load_sample()
    return ElasticKB(kb_name, cluster)


@pytest.fixture
def world():
    random = np.random.default_rng(5)
    rows = random.permutation(ENTITIES)[:400].astype(np.uint32)
    return rows, random.normal(size=(400, DIM)).astype(np.float32), random.normal(size=(30, DIM)).astype(np.float32)


@pytest.fixture
def loaded(opened, world):
    return load_vectors(opened, world[0], world[1], settings=Settings(replicas=0))


def test_a_kb_without_vectors_says_so(opened, kb_name):
    with pytest.raises(VectorsMissing, match=f"{kb_name}: has no entity vectors"):
        ElasticVectors(opened)


def test_the_nearest_are_found_with_their_cosines(loaded, world):
    rows, vectors, asked = world
    exact = ExactVectors(rows, vectors).nearest(asked, limit=10)
    found = loaded.nearest(asked, limit=10)
    assert (len(loaded), loaded.dim) == (400, DIM)
    assert recall(found, exact) >= 0.95
    assert found.cosines[:, 0] == pytest.approx(exact.cosines[:, 0], abs=1e-4)
    assert (np.diff(found.cosines, axis=1) <= 0).all()


def test_a_vector_is_nearest_to_itself_whatever_its_length(loaded, world):
    rows, vectors, _ = world
    found = loaded.nearest(vectors[:20] * 7, limit=1)
    assert found.rows[:, 0].tolist() == rows[:20].tolist()


def test_no_more_are_given_than_there_are(loaded, world):
    assert loaded.nearest(world[2][:2], limit=1_000).rows.shape == (2, 400)
    assert loaded.nearest(world[2][:0]).rows.shape == (0, 10)


def test_vectors_belong_to_their_version_and_go_with_it(loaded, cluster, kb_name, load_sample, opened):
    assert "vectors" in current_version(cluster, kb_name).indexes
    assert len(ElasticVectors(ElasticKB(kb_name, cluster))) == 400
    load_sample(force=True, keep=0)
    assert [sorted(version.indexes) for version in list_versions(cluster, kb_name)] == [["entities", "names"]]
    with pytest.raises(VectorsMissing):
        ElasticVectors(ElasticKB(kb_name, cluster))


def test_vectors_can_be_replaced(loaded, opened, world):
    again = load_vectors(opened, world[0][:50], world[1][:50, :8], settings=Settings(replicas=0))
    assert (len(again), again.dim) == (50, 8)


@pytest.mark.parametrize(
    ("rows", "vectors"),
    [
        ([0, 1], np.ones((3, 4))),
        ([0, 0], np.ones((2, 4))),
        ([0, ENTITIES], np.ones((2, 4))),
        ([0, 1], np.zeros((2, 4))),
        ([0, 1], np.full((2, 4), np.nan)),
        ([], np.ones((0, 4))),
        ([0], np.ones(4)),
    ],
)
def test_what_is_no_vector_of_an_entity_is_refused(opened, rows, vectors):
    with pytest.raises(WrongFormat):
        load_vectors(opened, np.array(rows, dtype=np.uint32), vectors.astype(np.float32))


def test_a_question_of_another_dimension_is_refused(loaded):
    with pytest.raises(WrongFormat, match=r"expected \(vectors, 16\)"):
        loaded.nearest(np.ones((1, 4), dtype=np.float32))


def test_exact_neighbours_agree_with_a_plain_loop(world):
    rows, vectors, asked = world
    found = ExactVectors(rows, vectors).nearest(asked[:5], limit=3)
    for at, vector in enumerate(asked[:5]):
        cosines = {
            int(row): float(v @ vector / np.linalg.norm(v) / np.linalg.norm(vector))
            for row, v in zip(rows, vectors, strict=True)
        }
        assert found.rows[at].tolist() == sorted(cosines, key=lambda row: -cosines[row])[:3]
