"""The small trainings that tests of scorers share."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kbtools.answering import Answerer
from kbtools.knowledge import KnowledgeBase


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Let torch compute on one core: its threads wait for each other longer than these networks take."""
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample_kb(sample_memory: Answerer) -> KnowledgeBase:
    """Give the sample's knowledge base."""
    return sample_memory.kb


@pytest.fixture(scope="session")
def question_files(examples: Path) -> dict[str, Path]:
    """Name the sample's annotated questions."""
    return {"train": examples / "sample.train.txt", "valid": examples / "sample.valid.txt"}


@pytest.fixture
def annotated(tmp_path: Path) -> Callable[..., Path]:
    """Write an annotated file of questions about the sample."""

    def write(*rows: tuple[str, str, str], name: str = "questions.txt") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{subject}\t{relation}\tm.0x\t{text}\n" for subject, relation, text in rows))
        return path

    return write
