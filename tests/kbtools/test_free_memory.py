"""Memory that is free: what does not fit is refused before it begins, with the option that makes it fit."""

from pathlib import Path

import numpy as np
import pytest

from kbtools import free_memory
from kbtools.errors import MemoryExhausted
from kbtools.free_memory import require_memory
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.indexers.folder.faiss_index import FOLDER, write_vectors
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.kb.vector_index import EntityVectors


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a machine with 200 kB of free memory, and the folder of what its container may use."""
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable:   200 kB\n")
    monkeypatch.setattr(free_memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "GROUP", tmp_path / "group")
    return tmp_path / "group"


def test_what_a_container_may_use_counts_too(machine: Path) -> None:
    machine.mkdir()
    (machine / "memory.current").write_text("1000\n")
    (machine / "memory.max").write_text("max\n")
    unlimited = free_memory.free_memory()
    (machine / "memory.max").write_text("51000\n")

    assert (unlimited, free_memory.free_memory()) == (200 * 1024, 50_000)


@pytest.mark.usefixtures("machine")
def test_what_does_not_fit_is_named_with_what_is_free() -> None:
    with pytest.raises(MemoryExhausted, match=r"^vectors take 2\.0 GiB of memory, 0\.0 GiB are free; fewer$") as caught:
        require_memory(2 << 30, "vectors", instead="fewer")
    require_memory(100_000, "vectors", instead="fewer")

    assert caught.value.facts == {"needed": 2 << 30, "free": 200 * 1024}


def test_a_system_that_does_not_say_refuses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(free_memory, "MEMORY", tmp_path / "none")

    require_memory(1 << 60, "vectors", instead="fewer")


@pytest.mark.usefixtures("machine")
def test_a_build_names_the_memory_that_fits(tmp_path: Path) -> None:
    names = tmp_path / "names.tsv"
    names.write_text("entity\tname\n" + "".join(f"e{row}\tname {row}\n" for row in range(20_000)))

    with pytest.raises(MemoryExhausted, match=r"the work tables of the build take .* free; --memory 1MB fits"):
        build([Source(names, "names")], tmp_path / "x.kb", options=ReadOptions(), watch=BuildProgress())
    assert not (tmp_path / "x.kb").exists()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("kind", "cure"), [("flat", "vectors of fewer"), ("hnsw", "--kind flat takes 0.0 GiB")])
def test_vectors_that_do_not_fit_are_refused_before_the_first_is_read(sample_path: Path, kind: str, cure: str) -> None:
    kb = EmbeddedKB(sample_path)
    rows = np.arange(400, dtype=np.uint32)
    unread = EntityVectors(rows, 400, lambda some: pytest.fail("a vector was read"))

    with pytest.raises(MemoryExhausted, match=f"400 vectors of 400 dimensions in an index of kind {kind} .*{cure}"):
        write_vectors(sample_path, kb, unread, kind=kind)
    assert not (sample_path / FOLDER).exists()
