"""Builds with several processes: the same files as with one, errors that name what happened, nothing left behind."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kbtools.errors import MemoryExhausted
from kbtools.indexers.building import near_names
from kbtools.indexers.building.build import BuildProgress, build
from kbtools.indexers.readers.reading import ReadOptions, Source
from kbtools.processes import Worker

Build = Callable[[int], Path]


@pytest.fixture
def make(examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Build the sample with so many jobs, in processes although it is small."""
    monkeypatch.setattr("kbtools.processes.WORTHWHILE", 1)
    monkeypatch.setattr("kbtools.indexers.building.writing.NAMES_AT_ONCE", 20)
    monkeypatch.setattr("kbtools.indexers.building.near_names.MANY", 0)
    sources = [Source(examples / f"sample.{kind}.txt", kind) for kind in ("facts", "names", "types")]

    def run(jobs: int) -> Path:
        out = tmp_path / f"{jobs}.kb"
        build(sources, out, options=ReadOptions(jobs=jobs), watch=BuildProgress())
        return out

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """Read every file but the manifest, which says when it was written."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "manifest.msgpack"}


def test_any_number_of_jobs_writes_the_same_files(make: Build) -> None:
    one, three = contents(make(1)), contents(make(3))

    assert len(one) > 40
    assert three == one


def test_a_machine_of_many_cores_builds_too(examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    names = Source(examples / "sample.names.txt", "names")

    assert build([names], tmp_path / "x.kb", options=ReadOptions(jobs=16), watch=BuildProgress()).fresh


def test_a_process_that_is_killed_ends_the_build_and_leaves_nothing(
    make: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(task: Callable[[object], object]) -> Worker[object, object]:
        worker = Worker(task)
        os.kill(worker.process.pid, signal.SIGKILL)
        return worker

    monkeypatch.setattr(near_names, "Worker", start)

    with pytest.raises(MemoryExhausted, match="a process of the build was killed"):
        make(2)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_under_another_process_is_said_to_be_full(
    small_disk: Path,
) -> None:
    near = Worker(near_names.NearNames(small_disk, names=60_000))
    (small_disk / ".staging").mkdir()
    forms = [f"{number:06} {number * 7919 % 50_021} abc" for number in range(60_000)]

    with pytest.raises(OSError, match="No space left"):
        fill(near, forms)
    near.close()


def fill(near: "Worker[near_names.Forms | None, dict[str, str]]", forms: list[str]) -> None:
    near.send((forms, np.arange(len(forms), dtype=np.uint32)))
    near.receive()
    near.send(None)
    near.receive()
