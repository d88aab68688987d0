"""The contract of vector indexes: one suite, with the exact index as the reference."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.errors import (
    BadSetting,
    BadVectors,
    KBToolsError,
    KBUnusable,
    MemoryExhausted,
    VectorsMissing,
    WrongFormat,
)
from kbtools.indexers.elastic.mapping import IndexSettings
from kbtools.indexers.folder import faiss_index
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FOLDER, INDEX, RECORD, FaissVectors, write_vectors
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.vector_index import EntityVectors, ExactVectors, VectorIndex, VectorOrigin, normalised, recall
from tests.conftest import World

ENTITIES, DIM = 506, 16
ORIGIN = VectorOrigin("transe", "abc")
INDEXES = ["exact", "flat", "ivf", "hnsw", "elasticsearch"]


def given(rows: Sequence[int] | np.ndarray, vectors: np.ndarray, *, origin: VectorOrigin = ORIGIN) -> EntityVectors:
    """Give vectors by row, as a table is read."""
    places = {int(row): place for place, row in enumerate(rows)}
    read = lambda some: vectors[[places[row] for row in some.tolist()]]  # noqa: E731
    return EntityVectors(np.sort(np.array(rows, dtype=np.uint32)), vectors.shape[1], read, origin)


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    rows = random.permutation(ENTITIES)[:400].astype(np.uint32)
    return rows, random.normal(size=(400, DIM)).astype(np.float32), random.normal(size=(30, DIM)).astype(np.float32)


@pytest.fixture
def embedded(sample_path: Path, tmp_path: Path) -> EmbeddedKB:
    """Give a copy of the sample, to put vectors into."""
    folder = tmp_path / "sample.kb"
    folder.mkdir()
    for path in sample_path.iterdir():
        (folder / path.name).symlink_to(path)
    return EmbeddedKB(folder)


@pytest.fixture(params=INDEXES)
def make_index(request: pytest.FixtureRequest) -> Callable[[EntityVectors], VectorIndex]:
    """Give what puts vectors into each kind of index."""
    if request.param == "exact":
        return lambda vectors: ExactVectors(
            *map(np.concatenate, zip(*vectors.chunks(), strict=True)), origin=vectors.origin
        )
    if request.param == "elasticsearch":
        kb = request.getfixturevalue("on_cluster")
        return lambda vectors: kb.load_vectors(vectors, settings=IndexSettings(replicas=0))
    kb = request.getfixturevalue("embedded")
    return lambda vectors: write_vectors(kb.path, kb, vectors, kind=request.param)


@pytest.fixture(scope="module")
def on_cluster(make_kb: Callable[[str, World], Any], sample_world: World) -> KnowledgeBase:
    return make_kb("elasticsearch", sample_world)


@pytest.fixture
def new_on_cluster(make_kb: Callable[[str, World], Any], tiny_world: World) -> KnowledgeBase:
    return make_kb("elasticsearch", tiny_world)


def test_the_nearest_are_found_with_their_cosines(
    make_index: Callable[[EntityVectors], VectorIndex], world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    rows, vectors, asked = world
    exact = ExactVectors(rows, vectors).nearest(asked, limit=10)
    index = make_index(given(rows, vectors))
    found = index.nearest(asked, limit=10)
    assert (len(index), index.dim, index.origin) == (400, DIM, ORIGIN)
    assert recall(found, exact) >= 0.95

    true = np.take_along_axis(normalised(asked) @ normalised(vectors).T, place(rows, found.rows), axis=1)
    assert found.cosines == pytest.approx(true, abs=1e-4)
    assert (np.diff(found.cosines, axis=1) <= 0).all()


def place(rows: np.ndarray, found: np.ndarray) -> np.ndarray:
    order = np.argsort(rows)
    return order[np.searchsorted(rows[order], found)]


def test_a_vector_is_nearest_to_itself_whatever_its_length(
    make_index: Callable[[EntityVectors], VectorIndex], world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    rows, vectors, _ = world
    index = make_index(given(rows, vectors))

    assert index.nearest(vectors[:20] * 7, limit=1).rows[:, 0].tolist() == rows[:20].tolist()
    assert index.vector(int(rows[3])) == pytest.approx(normalised(vectors[3:4])[0], abs=1e-6)
    assert index.vector(next(iter(set(range(ENTITIES)) - set(rows.tolist())))) is None


def test_no_more_are_given_than_there_are(
    make_index: Callable[[EntityVectors], VectorIndex], world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    rows, vectors, asked = world
    index = make_index(given(rows, vectors))

    assert [sorted(found) for found in index.nearest(asked[:2], limit=1_000).rows.tolist()] == [sorted(rows)] * 2
    assert index.nearest(asked[:0]).rows.shape == (0, 10)


def test_vectors_without_direction_are_never_found(make_index: Callable[[EntityVectors], VectorIndex]) -> None:
    vectors = np.array([[0, 0], [1, 0], [0, -0.0]], dtype=np.float32)
    index = make_index(given([5, 6, 7], vectors))

    assert index.nearest(np.array([[-1, 0.1]], dtype=np.float32)).rows.tolist() == [[6]]
    assert (len(index), index.vector(5)) == (1, None)


def test_equal_vectors_stand_by_row(make_index: Callable[[EntityVectors], VectorIndex]) -> None:
    index = make_index(given([9, 2, 4], np.ones((3, 4), dtype=np.float32)))

    assert index.nearest(np.ones((1, 4), dtype=np.float32)).rows.tolist() == [[2, 4, 9]]


def test_vectors_can_be_replaced(
    make_index: Callable[[EntityVectors], VectorIndex], world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    make_index(given(world[0], world[1]))
    again = make_index(given(world[0][:50], world[1][:50, :8]))

    assert (len(again), again.dim) == (50, 8)


def test_a_question_of_another_dimension_is_refused(
    make_index: Callable[[EntityVectors], VectorIndex], world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    index = make_index(given(world[0], world[1]))

    with pytest.raises(WrongFormat, match=r"expected \(vectors, 16\)"):
        index.nearest(np.ones((1, 4), dtype=np.float32))


@pytest.mark.parametrize("home", ["embedded", "new_on_cluster"])
def test_what_has_no_vectors_says_so_and_what_makes_them(request: pytest.FixtureRequest, home: str) -> None:
    kb = request.getfixturevalue(home)

    with pytest.raises(VectorsMissing, match="has no entity vectors; create them with kbtools index vectors"):
        kb.vectors()


@pytest.mark.parametrize("home", ["embedded", "on_cluster"])
@pytest.mark.parametrize(
    ("vectors", "error", "message"),
    [
        pytest.param([[1, np.nan], [1, 1]], BadVectors, "not a number", id="nan"),
        pytest.param([[0, 0], [0, 0]], VectorsMissing, "none of its entities has a vector", id="zero"),
    ],
)
def test_what_is_no_vector_is_refused(
    request: pytest.FixtureRequest, home: str, vectors: list[Any], error: type[KBToolsError], message: str
) -> None:
    kb = request.getfixturevalue(home)

    def make(vectors: EntityVectors) -> object:
        return kb.load_vectors(vectors) if home == "on_cluster" else write_vectors(kb.path, kb, vectors)

    with pytest.raises(error, match=message):
        make(given([0, 1], np.array(vectors, dtype=np.float32)))


def test_groups_of_no_vectors_are_refused_too(embedded: EmbeddedKB) -> None:
    with pytest.raises(VectorsMissing, match="none of its entities has a vector"):
        write_vectors(embedded.path, embedded, given([0, 1], np.zeros((2, 2), dtype=np.float32)), kind="ivf")


def test_vectors_are_found_when_the_kb_is_opened_again(
    embedded: EmbeddedKB, world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    write_vectors(embedded.path, embedded, given(world[0], world[1]), kind="ivf")
    again = EmbeddedKB(embedded.path).vectors()
    assert isinstance(again, FaissVectors)

    assert (len(again), again.kind, again.origin) == (400, "ivf", ORIGIN)


def test_older_vectors_stay_where_new_ones_cannot_be_made(
    embedded: EmbeddedKB, world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    write_vectors(embedded.path, embedded, given(world[0], world[1]))

    with pytest.raises(BadVectors):
        write_vectors(embedded.path, embedded, given([0], np.array([[np.inf]], dtype=np.float32)))
    assert len(EmbeddedKB(embedded.path).vectors()) == 400


def test_an_index_of_unknown_kind_is_refused(
    embedded: EmbeddedKB, world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(BadSetting, match="no kind of vector index 'tree'; known: flat, ivf, hnsw"):
        write_vectors(embedded.path, embedded, given(world[0], world[1]), kind="tree")


def test_vectors_of_another_kb_are_refused(
    embedded: EmbeddedKB,
    world: tuple[np.ndarray, np.ndarray, np.ndarray],
    make_kb: Callable[[str, World], Any],
    tiny_world: World,
) -> None:
    write_vectors(embedded.path, embedded, given(world[0], world[1]))
    other = make_kb("embedded", tiny_world)

    (embedded.path / FOLDER).rename(other.path / FOLDER)

    with pytest.raises(KBUnusable, match="its vectors belong to a knowledge base with digest"):
        other.vectors()


@pytest.mark.parametrize("name", [INDEX, RECORD])
def test_cut_vectors_are_refused(
    embedded: EmbeddedKB, world: tuple[np.ndarray, np.ndarray, np.ndarray], name: str
) -> None:
    write_vectors(embedded.path, embedded, given(world[0], world[1]))
    path = embedded.path / FOLDER / name

    path.write_bytes(path.read_bytes()[:-3])

    with pytest.raises(KBUnusable, match=name):
        embedded.vectors()


def test_a_gpu_that_is_not_there_leaves_the_search_on_the_cpu(
    embedded: EmbeddedKB, world: tuple[np.ndarray, np.ndarray, np.ndarray], caplog: pytest.LogCaptureFixture
) -> None:
    rows, vectors, asked = world
    index = write_vectors(embedded.path, embedded, given(rows, vectors))
    before = index.nearest(asked).rows.tolist()
    index.use("cpu")
    assert not caplog.records

    index.use("cuda:9")
    assert "vectors are searched on the CPU" in caplog.text
    assert index.nearest(asked).rows.tolist() == before


@pytest.mark.parametrize(
    ("kind", "size"), [("flat", 400 * 16 * 4), ("ivf", 400 * 16 * 4), ("hnsw", 400 * (16 + 66) * 4)]
)
def test_an_index_needs_memory_for_every_number_and_link(
    monkeypatch: pytest.MonkeyPatch, embedded: EmbeddedKB, world: tuple[np.ndarray, ...], kind: str, size: int
) -> None:
    monkeypatch.setattr("kbtools.free_memory.free_memory", lambda: size)
    write_vectors(embedded.path, embedded, given(world[0], world[1]), kind=kind)
    monkeypatch.setattr("kbtools.free_memory.free_memory", lambda: size - 1)
    with pytest.raises(MemoryExhausted, match="--kind flat" if kind == "hnsw" else "fewer dimensions") as raised:
        write_vectors(embedded.path, embedded, given(world[0], world[1]), kind=kind)
    assert raised.value.facts["needed"] == size


@pytest.mark.parametrize(("count", "lists"), [(63, 1), (128, 2), (640, 10), (1, 1)])
def test_clusters_grow_with_the_vectors_and_all_of_few_are_searched(count: int, lists: int) -> None:
    vectors = given(range(count), np.random.default_rng(2).normal(size=(count, 4)).astype(np.float32))

    index = faiss_index._empty_index(faiss_index.load_faiss(), "ivf", vectors, seed=1)

    assert (index.nlist, index.nprobe, index.is_trained) == (lists, lists, True)


def test_exact_neighbours_agree_with_a_plain_loop(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    rows, vectors, asked = world
    found = ExactVectors(rows, vectors).nearest(asked[:5], limit=3)
    for at, vector in enumerate(asked[:5]):
        cosines = {
            int(row): float(v @ vector / np.linalg.norm(v) / np.linalg.norm(vector))
            for row, v in zip(rows, vectors, strict=True)
        }
        assert found.rows[at].tolist() == sorted(cosines, key=lambda row: -cosines[row])[:3]


class OnGPU:
    """An index on a GPU, as FAISS has it: searches one thread at a time, looks into at most 2,048 clusters."""

    def __init__(self, index: Any, gpu: int) -> None:
        assert not isinstance(index, OnGPU), "FAISS copies an index of the CPU alone"
        self.index, self.gpu, self.nprobe = index, gpu, getattr(index, "nprobe", 1)
        self.searches, self.busy = 0, threading.Lock()

    def search(self, vectors: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.busy.acquire(blocking=False), "two threads search one GPU"
        try:
            assert self.nprobe <= 2_048
            assert limit <= 2_048
            self.searches += 1
            cosines, places = self.index.search(vectors, limit)
        finally:
            self.busy.release()
        return cosines, places


class FaissWithGPUs:
    """FAISS with two GPUs."""

    StandardGpuResources = object

    def get_num_gpus(self) -> int:
        return 2

    def index_cpu_to_gpu(self, resources: object, gpu: int, index: Any) -> OnGPU:
        return OnGPU(index, gpu)


@pytest.fixture(params=["flat", "ivf"])
def on_gpu(
    request: pytest.FixtureRequest,
    embedded: EmbeddedKB,
    world: tuple[np.ndarray, np.ndarray, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> FaissVectors:
    """Return vectors that are searched on a GPU."""
    index = write_vectors(embedded.path, embedded, given(world[0], world[1]), kind=request.param)
    monkeypatch.setattr(faiss_index, "load_faiss", FaissWithGPUs)
    if request.param == "ivf":
        index.index.nprobe = 5_000  # as of millions of vectors
    index.use("cuda")
    return index


def test_vectors_on_a_gpu_find_and_return_what_they_do_on_the_cpu(
    on_gpu: FaissVectors, world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    rows, vectors, asked = world
    exact = ExactVectors(rows, vectors)

    assert on_gpu.nearest(asked).rows.tolist() == exact.nearest(asked).rows.tolist()
    assert on_gpu.vector(int(rows[0])) == pytest.approx(exact.vector(int(rows[0])), abs=1e-6)
    assert on_gpu.on_gpu.searches == 1


def test_a_device_in_use_takes_vectors_once_and_another_takes_them_anew(on_gpu: FaissVectors) -> None:
    first = on_gpu.on_gpu

    on_gpu.use("cuda:0")
    assert on_gpu.on_gpu is first

    on_gpu.use("cuda:1-bf16")
    assert on_gpu.on_gpu.gpu == 1


def test_more_neighbours_than_a_gpu_finds_come_from_the_cpu(
    on_gpu: FaissVectors, world: tuple[np.ndarray, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss_index, "MOST_ON_GPU", 20)

    assert on_gpu.nearest(world[2], limit=21).rows.shape == (30, 21)
    assert on_gpu.on_gpu.searches == 0


def test_threads_search_a_gpu_one_after_another(
    on_gpu: FaissVectors, world: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    with ThreadPoolExecutor(5) as threads:
        searches = [threads.submit(on_gpu.nearest, world[2]) for _ in range(40)]

    assert len({search.result().rows.tobytes() for search in searches}) == 1
