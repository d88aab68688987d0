"""Dense pruners keep the entities nearest to the question, and their vectors and questions go together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import BrokenPlugin, CheckpointMismatch, VectorsMissing
from kbtools.indexers.folder.memory import MemoryKB
from kbtools.kb.contract import KnowledgeBase
from kbtools.kb.rows import EntityRows
from kbtools.kb.vector_index import ExactVectors, VectorOrigin
from kbtools.pruning.dense import Dense, DenseLast
from kbtools.ranking.model_store import RECORD
from kbtools.ranking.models import make_embedder, make_vector_scorer, subject_vectors
from kbtools.ranking.pools import gather_pool
from kbtools.text.question import MarkedQuestion, Question
from kbtools.text.rungs import Rung
from tests.conftest import World

NAMES = {"m.01paris": [1.0, 0.0], "m.02paris": [0.6, 0.8], "m.09unnamed": [-1.0, 0.0]}


@pytest.fixture
def kb(tiny_world: World) -> MemoryKB:
    made = MemoryKB(tiny_world.facts, tiny_world.names, tiny_world.types, aliases=tiny_world.aliases)
    rows = np.array(made.rows(list(NAMES)), dtype=np.uint32)
    made.vector_index = ExactVectors(rows, np.array(list(NAMES.values()), dtype=np.float32))
    return made


def east(questions: Sequence[MarkedQuestion]) -> np.ndarray:
    """Embed every question as (1, 0)."""
    return np.array([[2.0, 0.0]] * len(questions), dtype=np.float32)


def test_dense_keeps_the_nearest_whatever_they_are_called(kb: KnowledgeBase) -> None:
    links = Dense(kb, east).links([Question.read(" what is it? ")])[0]

    assert [kb.ids(link.entities) for link in links] == [["m.01paris"], ["m.02paris"], ["m.09unnamed"]]
    assert [link.name for link in links] == ["Paris", "Paris", "m.09unnamed"]
    assert [link.similarity for link in links] == pytest.approx([100.0, 60.0, 0.01], abs=1e-4)
    assert {link.rung for link in links} == {Rung.NEAR}
    assert {(link.start, link.end) for link in links} == {(1, 12)}
    assert {(link.ngram.first, link.ngram.last, link.ngram.start, link.ngram.end) for link in links} == {(0, 3, 1, 12)}


@pytest.mark.parametrize("pruner", [Dense, DenseLast])
def test_questions_are_embedded_alone_and_without_a_mention(kb: KnowledgeBase, pruner: type[Dense]) -> None:
    asked: list[list[MarkedQuestion]] = []
    questions = [Question.read(text) for text in ("zzzzzzz", "", "yyyyyy xxxxx")]

    links = pruner(kb, lambda marked: asked.append(list(marked)) or east(marked)).links(questions)  # type: ignore[func-returns-value]

    assert [len(own) for own in links] == [3, 0, 3]
    assert asked == [[MarkedQuestion(question, 0, 0)] for question in (questions[0], questions[2])]


def test_dense_keeps_twenty(kb: MemoryKB) -> None:
    rows = np.arange(25, dtype=np.uint32)
    angles = np.linspace(0, 1, 25)
    kb.vector_index = ExactVectors(rows, np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))

    links = Dense(kb, east).links([Question.read("what is it")])[0]

    assert [link.entities.tolist() for link in links] == [[row] for row in range(20)]


def test_candidates_of_dense_are_the_facts_of_the_nearest(kb: KnowledgeBase) -> None:
    pool = gather_pool(kb, Dense(kb, east).links([Question.read("it")])[0])

    pairs = {
        (subject, kb.relations[row])
        for subject, row in zip(kb.ids(pool.subject_of_pair), pool.relation_of_pair, strict=True)
    }
    assert pairs == {
        ("m.01paris", "location.time_zone"),
        ("m.01paris", "location.containedby"),
        ("m.02paris", "location.containedby"),
    }


def test_dense_last_asks_vectors_only_where_no_name_links(kb: KnowledgeBase) -> None:
    pruner = DenseLast(kb, east)

    assert {link.name for link in pruner.links([Question.read("where is texas")])[0]} == {"Texas"}
    assert {link.rung for link in pruner.links([Question.read("zzzzzzz")])[0]} == {Rung.NEAR}


def test_a_kb_without_vectors_says_so(tiny_memory: KnowledgeBase) -> None:
    with pytest.raises(VectorsMissing, match="has no entity vectors"):
        Answerer(tiny_memory).query("where is texas", pruning="dense")


def test_vectors_that_no_question_lies_beside_are_no_use(kb: KnowledgeBase) -> None:
    with pytest.raises(VectorsMissing, match="do not come from a subject scorer"):
        make_embedder(kb)


class Counting:
    """A subject scorer of somebody else's, with vectors."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    dim = 2

    def score(self, questions: Sequence[MarkedQuestion], *, which: np.ndarray, subjects: EntityRows) -> np.ndarray:
        return np.zeros(len(subjects))

    def embed_questions(self, questions: Sequence[MarkedQuestion]) -> np.ndarray:
        return east(questions)

    def embed_subjects(self, subjects: EntityRows) -> np.ndarray:
        counts = self.kb.fact_counts(subjects).astype(np.float32)
        return np.stack([counts, np.ones_like(counts)], axis=1)


def test_a_subject_scorer_of_somebody_elses_can_be_indexed_and_searched(kb: MemoryKB) -> None:
    vectors = subject_vectors(f"{__name__}:Counting", kb)
    kb.vector_index = ExactVectors(*map(np.concatenate, zip(*vectors.chunks(), strict=True)), origin=vectors.origin)

    result = Answerer(kb, trust_plugins=True).query("what is it", pruning="dense", subject=f"{__name__}:Counting")

    assert vectors.origin == VectorOrigin(f"{__name__}:Counting", "")
    assert result.candidates[0].rung == "near"
    assert "m.08acdc" in {candidate.subject for candidate in result.candidates}


def test_a_subject_scorer_without_vectors_cannot(kb: KnowledgeBase) -> None:
    with pytest.raises(BrokenPlugin, match="has no vectors of questions and entities"):
        make_vector_scorer("fact-count", kb)


class Told(Counting):
    """A scorer that training makes, whose model is any file."""

    @classmethod
    def load(cls, folder: Path, kb: KnowledgeBase, *, device: str = "cpu") -> "Told":
        return cls(kb)


@pytest.fixture
def trained(kb: MemoryKB, tmp_path: Path) -> Path:
    """Return the record of the model that the vectors of the knowledge base come from."""
    name = f"{__name__}:Told"
    record = tmp_path / "subject" / name.replace(":", ".") / RECORD
    record.parent.mkdir(parents=True)
    record.write_text("one")
    _, origin = make_vector_scorer(name, kb, models=tmp_path)
    kb.vector_index = replace_origin(kb.vector_index, origin)
    return record


def test_vectors_of_another_training_are_refused(kb: MemoryKB, tmp_path: Path, trained: Path) -> None:
    assert make_embedder(kb, models=tmp_path, trust_plugins=True)

    trained.write_text("another")

    with pytest.raises(CheckpointMismatch, match="come from another training"):
        make_embedder(kb, models=tmp_path, trust_plugins=True)


def test_vectors_are_searched_on_the_device_that_embeds_questions(
    kb: MemoryKB, tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    monkeypatch.setattr(ExactVectors, "use", lambda index, device: used.append(device))

    make_embedder(kb, models=tmp_path, device="cuda:1", trust_plugins=True)

    assert used == ["cuda:1"]


def replace_origin(index: Any, origin: VectorOrigin) -> ExactVectors:
    return ExactVectors(index.rows, index.vectors, origin=replace(origin))
