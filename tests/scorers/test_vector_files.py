"""Vectors trained elsewhere are taken over as they are, and neighbours are those of the cosine."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import BadVectors, SourceMissing, UnknownEntity
from kbtools.kb.contract import KnowledgeBase

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

from kbtools.answering.name_candidates import find_entity
from kbtools.scorers.subjects.transe import nearest
from kbtools.scorers.subjects.vector_files import read_array, take_over_vectors

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
        pytest.param([[1], [np.nan], [2]], IDS, "a value that is not a number", id="nan"),
        pytest.param([[1]], ("m.0nobody",), "none of the 1 ids is an entity", id="unknown"),
        pytest.param([[1], [2]], ("m.01paris", "/m/01paris"), "'m.01paris' occurs twice", id="twice"),
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


class Boom:
    """An object whose pickle makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (self.path, "w")


def several_arrays() -> bytes:
    file = io.BytesIO()
    np.savez(file, v=ROWS)
    return file.getvalue()


ROWS = np.array([[1, 0, 0], [9, 1, 0], [0, 0, 1]], dtype=np.float32)
RIGHT = {
    "float64": ROWS.astype("f8"),
    "float16": ROWS.astype("f2"),
    "columns first": np.asfortranarray(ROWS),
    "big-endian": ROWS.astype(">f4"),
    "whole numbers": ROWS.astype("i4"),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_arrays_of_any_numbers_are_read(tiny_memory: KnowledgeBase, tmp_path: Path, kind: str) -> None:
    _, ids = write(tmp_path, ROWS)
    np.save(tmp_path / "vectors.npy", RIGHT[kind])

    given = read_array(tiny_memory, tmp_path / "vectors.npy", ids)

    assert given.entity_vectors().read(given.rows).tolist() == given.table[given.places].tolist()
    assert sorted(given.table.tolist()) == sorted(ROWS.tolist())


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "complex numbers": (lambda path: np.save(path, ROWS.astype("c8")), "type complex64, expected numbers"),
    "three dimensions": (lambda path: np.save(path, ROWS[None]), r"found shape \(1, 3, 3\)"),
    "raw numbers": (lambda path: path.write_bytes(ROWS.tobytes()), r"expected a \.npy file"),
    "a text": (lambda path: np.savetxt(path, ROWS), r"expected a \.npy file"),
    "several arrays": (lambda path: path.write_bytes(several_arrays()), r"expected a \.npy file with one array"),
    "a pickled object": (
        lambda path: np.save(path, np.array([Boom(f"{path}.boom")], dtype=object), allow_pickle=True),
        r"expected a \.npy file",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_files_of_vectors_that_are_none_are_refused(tiny_memory: KnowledgeBase, tmp_path: Path, kind: str) -> None:
    path, ids = write(tmp_path, ROWS)
    make, message = WRONG[kind]
    make(path)

    with pytest.raises(BadVectors, match=message):
        read_array(tiny_memory, path, ids)
    assert not (tmp_path / "vectors.npy.boom").exists()


def test_numbers_before_ids_are_refused(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    path, ids = write(tmp_path, ROWS)
    ids.write_text("0\tm.01paris\n1\tm.02paris\n2\tm.02texas\n")

    with pytest.raises(BadVectors, match="none of the 3 ids is an entity"):
        read_array(tiny_memory, path, ids)


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
        (b"2\nm.01paris\t0\nm.02paris\n", "expected a row for each of the 3 ids"),
    ],
)
def test_ids_that_cannot_be_read_are_refused(
    tiny_memory: KnowledgeBase, tmp_path: Path, content: bytes, message: str
) -> None:
    vectors, ids = write(tmp_path, [[1, 0], [0, 1]])
    ids.write_bytes(content)

    with pytest.raises(BadVectors, match=message):
        read_array(tiny_memory, vectors, ids)


def test_the_last_id_may_lack_a_line_break(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    vectors, ids = write(tmp_path, ROWS)
    expected = read_array(tiny_memory, vectors, ids)
    ids.write_text("\n".join(IDS))

    assert np.array_equal(read_array(tiny_memory, vectors, ids).places, expected.places)


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
