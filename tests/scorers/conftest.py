"""Small trainings shared by tests of scorers."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kbtools.answering.answerer import Answerer
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows, Grouped


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Make torch compute on one core: for these networks its threads would wait for each other longer than compute."""
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample_kb(sample_memory: Answerer) -> KnowledgeBase:
    """Return the sample's knowledge base."""
    return sample_memory.kb


class Reordered:
    """A knowledge base with its relations and types in reverse order."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.relations, self.types = kb.relations[::-1], kb.types[::-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kb, name)

    def types_of(self, entities: EntityRows) -> Grouped:
        found = self.kb.types_of(entities)
        return Grouped(found.starts, (len(self.types) - 1 - found.values).astype(found.values.dtype))


@pytest.fixture(scope="session")
def reordered_kb(sample_kb: KnowledgeBase) -> KnowledgeBase:
    """Return the sample's knowledge base with its relations and types in another order."""
    return Reordered(sample_kb)


@pytest.fixture(scope="session")
def question_files(examples: Path) -> dict[str, Path]:
    """Return the paths of the sample's annotated questions."""
    return {"train": examples / "sample.train.txt", "valid": examples / "sample.valid.txt"}


@pytest.fixture(scope="session")
def splits(sample_kb: KnowledgeBase, question_files: dict[str, Path]) -> Any:
    """Return the sample's questions for training and validation."""
    from kbtools.scorers.fitting.splits import Splits

    return Splits.read(sample_kb, **question_files)


@pytest.fixture
def annotated(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes an annotated file of questions about the sample."""

    def write(*rows: tuple[str, str, str], name: str = "questions.txt") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{subject}\t{relation}\tm.0x\t{text}\n" for subject, relation, text in rows))
        return path

    return write
