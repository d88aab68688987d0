"""Vectors trained elsewhere are taken over as they are, and neighbours are those of the cosine."""

from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import BadVectors, SourceMissing, UnknownEntity
from kbtools.kb.contract import KnowledgeBase

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")

from kbtools.answering.bearers import find_entity
from kbtools.scorers.entities.neighbours import nearest
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
    assert found[0].entity_row == texas
    assert found[0].cosine == pytest.approx(2**-0.5)
    assert found[-1].entity_row == far


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
