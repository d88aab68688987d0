"""Runs over the sample knowledge base, to compare on and to break."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.comparison.experiment import Request, compare
from kbtools.comparison.grid import Grid
from kbtools.comparison.run_folder import Run

GRID = Grid(("n-gram", "n-gram+"))


@pytest.fixture(scope="session")
def sample_questions(examples: Path) -> Path:
    return examples / "sample.test.txt"


@pytest.fixture(scope="session")
def sample_run(sample_memory: Answerer, sample_questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compare untrained over the sample: two pruners and the controls."""
    out = tmp_path_factory.mktemp("runs") / "sample"
    return compare(sample_memory, Request(sample_questions, out, GRID, Path("sample.kb"), errors=3))


@pytest.fixture
def request_for(sample_questions: Path, tmp_path: Path) -> Callable[..., Request]:
    """Ask for a small comparison in a folder of its own; any part of it may be another one."""

    def make(**other: object) -> Request:
        usual = {"questions": sample_questions, "out": tmp_path / "run", "grid": GRID, "kb_path": Path("sample.kb")}
        return Request(**(usual | other))  # type: ignore[arg-type]

    return make
