"""Runs over the sample knowledge base, for comparisons and fault injection."""

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
    """Return an untrained comparison over the sample: two pruners and the controls."""
    out = tmp_path_factory.mktemp("runs") / "sample"
    return compare(sample_memory, Request(sample_questions, out, GRID, Path("sample.kb"), errors=3))


@pytest.fixture
def request_for(sample_questions: Path, tmp_path: Path) -> Callable[..., Request]:
    """Return a function that makes a request for a small comparison in its own folder; any part can be replaced."""

    def make(**other: object) -> Request:
        usual = {"questions": sample_questions, "out": tmp_path / "run", "grid": GRID, "kb_path": Path("sample.kb")}
        return Request(**(usual | other))  # type: ignore[arg-type]

    return make
