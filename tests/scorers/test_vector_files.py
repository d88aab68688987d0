"""Vectors trained elsewhere are taken over as they are, and neighbours are those of the cosine."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.errors import BadVectors, SourceMissing, UnknownEntity
from kbtools.kb.contract import KnowledgeBase

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")

import torch

from kbtools.answering.bearers import find_entity
from kbtools.scorers.entities.neighbours import nearest
from kbtools.scorers.entities.pykeen import IDS as PYKEEN_IDS
from kbtools.scorers.entities.pykeen import MODEL, read_pykeen
from kbtools.scorers.entities.vector_files import read_array, take_over_vectors

IDS = ("m.01paris", "m.02paris", "/m/02texas")


def write(folder: Path, vectors: object, ids: tuple[str, ...] = IDS) -> tuple[Path, Path]:
    np.save(folder / "vectors.npy", np.array(vectors, dtype=np.float32))
    (folder / "ids.txt").write_text("\n".join(ids) + "\n")
    return folder / "vectors.npy", folder / "ids.txt"


def test_neighbours_stand_by_their_cosine(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    files = write(tmp_path, [[1, 0], [-1, 0.1], [5, 5]])
    taken = take_over_vectors(tiny_memory, read_array(tiny_memory, *files), models=tmp_path)
    paris, texas, far = tiny_memory.rows(["m.01paris", "m.02texas", "m.02paris"])

    found = nearest(tiny_memory, int(paris or 0), models=tmp_path, top=100)

    assert (taken.vectors, taken.known) == (3, 3)
    assert found[0].entity == texas
    assert found[0].cosine == pytest.approx(2**-0.5)
    assert found[-1].entity == far


@pytest.mark.parametrize(
    ("vectors", "ids", "message"),
    [
        pytest.param([[1, 0], [0, 1]], IDS, r"found shape \(2, 2\), expected a row for each of the 3 ids", id="rows"),
        pytest.param([1, 2, 3], IDS, r"found shape \(3,\)", id="flat"),
        pytest.param([[1], [np.nan], [2]], IDS, "a value that is no number", id="nan"),
        pytest.param([[1]], ("m.0nobody",), "none of the 1 ids is an entity", id="unknown"),
        pytest.param([[1], [2]], ("m.01paris", "/m/01paris"), "'m.01paris' stands twice", id="twice"),
    ],
)
def test_vectors_that_cannot_be_are_refused(
    tiny_memory: KnowledgeBase, tmp_path: Path, vectors: object, ids: tuple[str, ...], message: str
) -> None:
    files = write(tmp_path, vectors, ids)

    with pytest.raises(BadVectors, match=message):
        take_over_vectors(tiny_memory, read_array(tiny_memory, *files), models=tmp_path)


def test_files_that_are_none_are_named(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    vectors, ids = write(tmp_path, [[1, 0], [0, 1], [1, 1]])

    with pytest.raises(SourceMissing, match=r"none\.npy: no such file"):
        read_array(tiny_memory, tmp_path / "none.npy", ids)
    vectors.write_text("no array")
    with pytest.raises(BadVectors, match="found no NumPy array"):
        read_array(tiny_memory, vectors, ids)


def test_numbered_ids_of_openke_stand_by_their_numbers(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    vectors, ids = write(tmp_path, [[1, 0], [0, 1]])
    ids.write_text("2\nm.02paris\t1\nm.01paris\t0\n")
    paris = tiny_memory.rows(["m.01paris", "m.02paris"])

    table = read_array(tiny_memory, vectors, ids)

    assert [table.table[place].tolist() for place in table.places_of(np.array(paris))] == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"m.01paris\nm.02\xff\nm.03\n", r"ids\.txt:2: found invalid UTF-8, expected an id"),
        (b"2\nm.01paris\t0\nm.02paris\t2\n", "found numbers up to 2 of 2 ids, expected 0, 1 and so on"),
    ],
)
def test_ids_that_cannot_be_read_are_refused(
    tiny_memory: KnowledgeBase, tmp_path: Path, content: bytes, message: str
) -> None:
    vectors, ids = write(tmp_path, [[1, 0], [0, 1]])
    ids.write_bytes(content)

    with pytest.raises(BadVectors, match=message):
        read_array(tiny_memory, vectors, ids)


def test_an_array_of_text_is_refused(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    vectors, ids = write(tmp_path, [[1, 0]], ("m.01paris",))
    np.save(vectors, np.array([["a", "b"]]))

    with pytest.raises(BadVectors, match="found values of type <U1, expected numbers"):
        read_array(tiny_memory, vectors, ids)


def test_ids_that_the_knowledge_base_lacks_are_named(
    tiny_memory: KnowledgeBase, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_array(tiny_memory, *write(tmp_path, [[1], [2]], ("m.01paris", "e.77")))

    assert caplog.messages == [
        f"{tmp_path / 'ids.txt'}: 1 of 2 ids are not in the knowledge base and left out, the first 'e.77'"
    ]


def test_an_entity_is_found_by_id_or_by_name(tiny_memory: KnowledgeBase) -> None:
    (texas,) = tiny_memory.rows(["m.02texas"])

    assert find_entity(tiny_memory, "/m/02texas") == texas
    assert find_entity(tiny_memory, "texas") == texas
    with pytest.raises(UnknownEntity, match="no entity has the id or the name 'mordor'"):
        find_entity(tiny_memory, "mordor")


class Embedding(torch.nn.Module):
    """What PyKEEN keeps vectors in, by the names of its attributes."""

    def __init__(self, vectors: "torch.Tensor") -> None:
        super().__init__()
        self._embeddings = torch.nn.Embedding.from_pretrained(vectors, freeze=False)
        self.initializer = torch.nn.init.uniform_
        self.regularizer = {Path("x")}


class Model(torch.nn.Module):
    def __init__(self, vectors: "torch.Tensor", extra: object = None) -> None:
        super().__init__()
        self.loss = torch.nn.MSELoss()
        self.entity_representations = torch.nn.ModuleList([Embedding(vectors)])
        self.relation_representations = torch.nn.ModuleList([Embedding(torch.ones(1, 2))])
        self.extra = extra


def write_pykeen(folder: Path, model: object, labels: tuple[str, ...] = IDS, *, numbers: str = "012") -> Path:
    """Write a folder as PyKEEN's save_to_directory does."""
    (folder / PYKEEN_IDS).parent.mkdir(parents=True)
    torch.save(model, folder / MODEL, pickle_protocol=4)
    rows = "".join(f"{number}\t{label}\n" for number, label in zip(numbers, labels, strict=True))
    (folder / PYKEEN_IDS).write_bytes(gzip.compress(f"id\tlabel\n{rows}".encode()))
    return folder


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_vectors_of_pykeen_are_read_by_their_labels(tiny_memory: KnowledgeBase, tmp_path: Path, dtype: Any) -> None:
    table = torch.arange(12, dtype=dtype).reshape(2, 3, 2).transpose(0, 1).reshape(3, 4)
    folder = write_pykeen(tmp_path / "result", Model(table.T.contiguous().T))

    read = read_pykeen(tiny_memory, folder)

    (row,) = tiny_memory.rows(["m.02texas"])
    assert len(read.rows) == 3
    assert read.table[read.places_of(np.array([row], dtype=np.uint32))].tolist() == [table[2].tolist()]


def test_complex_vectors_are_pairs_of_reals(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    table = torch.complex(torch.ones(3, 2), torch.zeros(3, 2))

    assert read_pykeen(tiny_memory, write_pykeen(tmp_path / "r", Model(table))).table[0].tolist() == [1, 0, 1, 0]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("run_by_a_pickle"),))  # type: ignore[return-value]


def test_nothing_that_a_pickle_names_is_run(
    tiny_memory: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    read = read_pykeen(tiny_memory, write_pykeen(tmp_path / "r", Model(torch.ones(3, 2), Evil())))

    assert read.table.shape == (3, 2)
    assert not (tmp_path / "run_by_a_pickle").exists()


def test_folders_that_are_not_pykeens_are_refused(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="save_to_directory"):
        read_pykeen(tiny_memory, tmp_path)
    with pytest.raises(BadVectors, match="found no vectors of entities"):
        read_pykeen(tiny_memory, write_pykeen(tmp_path / "linear", torch.nn.Linear(2, 2)))
    with pytest.raises(BadVectors, match="its ids are not 0 to 2"):
        read_pykeen(tiny_memory, write_pykeen(tmp_path / "ids", Model(torch.ones(3, 2)), numbers="124"))
    folder = write_pykeen(tmp_path / "header", Model(torch.ones(3, 2)))
    (folder / PYKEEN_IDS).write_bytes(gzip.compress(b"number\tname\n0\ta\n"))
    with pytest.raises(BadVectors, match="expected the columns id and label"):
        read_pykeen(tiny_memory, folder)
    folder = write_pykeen(tmp_path / "cut", Model(torch.ones(3, 2)))
    (folder / MODEL).write_bytes((folder / MODEL).read_bytes()[:-100])
    with pytest.raises(BadVectors, match="cannot be read as a model of PyKEEN"):
        read_pykeen(tiny_memory, folder)
