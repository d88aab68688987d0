"""Whether vectors trained elsewhere are taken over as they are, and neighbours are those of the cosine."""

from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import BadVectors, SourceMissing, UnknownEntity
from kbtools.knowledge import KnowledgeBase

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[cpu]'")

from kbtools.scorers.given_vectors import take_over_vectors
from kbtools.scorers.similar import find_entity, nearest

IDS = ("m.01paris", "m.02paris", "/m/02texas")


def write(folder: Path, vectors: object, ids: tuple[str, ...] = IDS) -> tuple[Path, Path]:
    np.save(folder / "vectors.npy", np.array(vectors, dtype=np.float32))
    (folder / "ids.txt").write_text("\n".join(ids) + "\n")
    return folder / "vectors.npy", folder / "ids.txt"


def test_neighbours_stand_by_their_cosine(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    files = write(tmp_path, [[1, 0], [-1, 0.1], [5, 5]])
    taken = take_over_vectors(tiny_memory, *files, models=tmp_path)
    paris, texas, far = tiny_memory.rows(["m.01paris", "m.02texas", "m.02paris"])

    found = nearest(tiny_memory, int(paris or 0), models=tmp_path, top=100)

    assert (taken.given, taken.known) == (3, 3)
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
    ],
)
def test_vectors_that_cannot_be_are_refused(
    tiny_memory: KnowledgeBase, tmp_path: Path, vectors: object, ids: tuple[str, ...], message: str
) -> None:
    files = write(tmp_path, vectors, ids)

    with pytest.raises(BadVectors, match=message):
        take_over_vectors(tiny_memory, *files, models=tmp_path)


def test_files_that_are_none_are_named(tiny_memory: KnowledgeBase, tmp_path: Path) -> None:
    vectors, ids = write(tmp_path, [[1, 0], [0, 1], [1, 1]])

    with pytest.raises(SourceMissing, match=r"none\.npy: no such file"):
        take_over_vectors(tiny_memory, tmp_path / "none.npy", ids, models=tmp_path)
    vectors.write_text("no array")
    with pytest.raises(BadVectors, match="found no NumPy array"):
        take_over_vectors(tiny_memory, vectors, ids, models=tmp_path)


def test_an_entity_is_found_by_id_or_by_name(tiny_memory: KnowledgeBase) -> None:
    (texas,) = tiny_memory.rows(["m.02texas"])

    assert find_entity(tiny_memory, "/m/02texas") == texas
    assert find_entity(tiny_memory, "texas") == texas
    with pytest.raises(UnknownEntity, match="no entity has the id or the name 'mordor'"):
        find_entity(tiny_memory, "mordor")
