"""Vectors of entities are trained as the paper says, and belong to their knowledge base."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kbtools.answering.answerer import Answerer
from kbtools.errors import CheckpointMismatch, MemoryExhausted, ModelMissing
from kbtools.indexers.folder.embedded import EmbeddedKB
from kbtools.kb.contract import BackendDefaults, KnowledgeBase
from kbtools.ranking.models import ENTITIES, SUBJECT, make_subject_scorer
from kbtools.text.question import MarkedQuestion, Question

pytest.importorskip("torch", reason="networks need torch: pip install 'kbtools[train]'")

import torch

from kbtools.scorers.fitting.measures import Callbacks
from kbtools.scorers.fitting.profiles import profile_settings
from kbtools.scorers.fitting.splits import Splits
from kbtools.scorers.fitting.training import train
from kbtools.scorers.networks.checkpoint import read_checkpoint
from kbtools.scorers.networks.training_settings import EncoderConfig, ObjectiveConfig, TransESettings, change_settings
from kbtools.scorers.networks.words import load_words
from kbtools.scorers.subjects.entity_vectors import RandomVectorScorer
from kbtools.scorers.subjects.subject_training import ALPHA, SubjectTask, rebuild_entity_network
from kbtools.scorers.subjects.transe import (
    TransE,
    TranslatingTask,
    nearest_rows,
    read_triples,
)
from kbtools.scorers.subjects.vector_files import entity_count

SMALL = {"words": "random", "dim": 8, "words_dim": 8, "hidden": 8, "epochs": 4, "batch": 16, "negatives": 32}
ASKED = [MarkedQuestion(Question.read("who wrote dune"), 10, 14), MarkedQuestion(Question.read(""), 0, 0)]


@pytest.fixture(scope="session")
def models(sample_kb: KnowledgeBase, splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train TransE and both subject scorers on the sample."""
    folder = tmp_path_factory.mktemp("models")
    settings = change_settings(TransESettings(), {"dim": 6, "epochs": 3, "batch": 64})
    train(sample_kb, None, part=ENTITIES, name="transe", settings=settings, models=folder)
    for name in ("random", "transe"):
        settings = change_settings(profile_settings("best", SUBJECT, name), SMALL)
        train(sample_kb, splits, part=SUBJECT, name=name, settings=settings, models=folder)
    return folder


@pytest.mark.parametrize("name", ["random", "transe"])
def test_u_is_the_product_of_question_and_entity(sample_kb: KnowledgeBase, models: Path, name: str) -> None:
    scorer = make_subject_scorer(name, sample_kb, models=models)
    subjects, which = np.array([3, 5, 3], dtype=np.uint32), np.array([0, 0, 1])

    scores = scorer.score(ASKED, which=which, subjects=subjects)

    saved = read_checkpoint(models / "subject" / name)
    network = rebuild_entity_network(saved, sample_kb, folder=models, device="cpu")
    questions = [network.questions([RandomVectorScorer.text(one)])[0] for one in ASKED]
    expected = [questions[q] @ saved.weights["table.weight"][s] for q, s in zip(which, subjects.tolist(), strict=True)]
    assert scores == pytest.approx(expected, abs=1e-5)


def test_the_hinge_counts_h_for_sampled_subjects_that_have_the_relation(
    sample_kb: KnowledgeBase, splits: Splits
) -> None:
    config = EncoderConfig(dim=4, words_dim=4, hidden=4, dropout=0.0, word_dropout=0.0)
    scorer = RandomVectorScorer.new(config, kb=sample_kb, texts=[], words=load_words("random"), seed=1)
    objective = ObjectiveConfig(negatives=5_000, margin=0.1)
    task = SubjectTask(scorer, objective, kb=sample_kb, splits=splits)
    torch.nn.init.zeros_(task.network.table.weight)
    torch.manual_seed(3)

    (loss,) = task.loss(np.array([0])).tolist()

    torch.manual_seed(3)
    sampled = torch.randint(entity_count(sample_kb), (5_000,)).numpy()
    has = [task.relations[0] in relations_of(sample_kb, row) for row in sampled]
    others = sampled != task.subjects[0]
    assert not others.all()  # a sample that is the gold subject is no negative
    assert ALPHA == 1.0  # as docs/training.md says
    expected = sum(max(0.0, 0.1 - ALPHA + ALPHA * own) for own, other in zip(has, others, strict=True) if other)
    assert loss == pytest.approx(expected, rel=1e-5)


def relations_of(kb: KnowledgeBase, row: int) -> list[int]:
    return kb.relations_of(np.array([row], dtype=np.uint32)).values.tolist()


def test_every_fact_is_read(tiny_memory: KnowledgeBase) -> None:
    triples = read_triples(tiny_memory)

    assert len(triples) == tiny_memory.manifest.counts["facts"].unique
    assert all(o in tiny_memory.objects_of([(int(s), int(r))])[0] for s, r, o in triples)


def test_facts_in_columns_are_those_of_each_pair(sample_path: Path) -> None:
    kb = EmbeddedKB(sample_path)
    rows, by_pair = kb.entity_rows(), partial(BackendDefaults.facts_of, kb)

    assert np.array_equal(kb.facts_of(rows), by_pair(rows))
    assert np.array_equal(kb.facts_of(rows[7:60][::-1]), by_pair(rows[7:60][::-1]))
    assert kb.facts_of(rows[:0]).shape == by_pair(rows[:0]).shape == (0, 3)
    assert len(read_triples(kb)) == kb.manifest.counts["facts"].unique


def test_facts_that_memory_does_not_hold_are_refused_before_they_are_read(
    tiny_memory: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtools.free_memory.free_memory", lambda: 100)

    with pytest.raises(MemoryExhausted, match=r"facts take .* or import vectors made elsewhere with --vectors"):
        read_triples(tiny_memory)


def test_the_nearest_are_found_piece_by_piece() -> None:
    torch.manual_seed(1)
    wanted, vectors = torch.randn(5, 4), torch.randn(23, 4)
    pieces = [(first, vectors[first : first + 6]) for first in range(0, 23, 6)]

    near = nearest_rows(wanted, pieces, count=10)

    assert torch.equal(near, torch.cdist(wanted, vectors).topk(10, largest=False).indices)
    assert nearest_rows(wanted, pieces[:1], count=10).shape == (5, 6)


@pytest.mark.parametrize(("optimiser", "rate"), [("adam", 0.01), ("row-adagrad", 0.1)])
def test_transe_brings_facts_nearer_than_corrupted_ones(
    sample_kb: KnowledgeBase, tmp_path: Path, optimiser: str, rate: float
) -> None:
    losses = []
    changes = {"dim": 8, "epochs": 8, "batch": 64, "optimiser": optimiser, "learning_rate": rate}
    settings = change_settings(TransESettings(), changes)

    train(
        sample_kb,
        None,
        part=ENTITIES,
        name="transe",
        settings=settings,
        models=tmp_path,
        callbacks=Callbacks(lambda epoch: losses.append(epoch.loss)),
    )
    again = train(sample_kb, None, part=ENTITIES, name="transe", settings=settings, models=tmp_path)

    assert losses[-1] < 0.97 * losses[0]
    assert not again.fresh


def test_transe_starts_from_vectors_on_all_sides_of_zero() -> None:
    torch.manual_seed(1)

    network = TransE(50, 20, dim=9)

    for table in (network.entities, network.relations):
        weights = table.weight.detach().numpy()
        # As in TransE: 6 divided by the root of 9.
        assert (weights.min(), weights.max()) == pytest.approx((-2, 2), abs=0.2)


def test_transe_compares_each_fact_with_a_corrupted_one() -> None:
    torch.manual_seed(1)
    network, facts = TransE(9, 2, dim=5), np.array([[0, 0, 1], [1, 1, 2], [0, 1, 3], [4, 0, 4], [5, 1, 6]])
    task = TranslatingTask(network, facts, margin=0.5)

    torch.manual_seed(2)
    losses = task.loss(np.arange(5)).tolist()

    torch.manual_seed(2)
    tails, others = torch.randint(0, 2, (5,)).tolist(), torch.randint(9, (5,)).tolist()
    corrupted = [
        (subject, relation, other) if tail else (other, relation, target)
        for (subject, relation, target), tail, other in zip(facts.tolist(), tails, others, strict=True)
    ]
    pairs = zip(facts.tolist(), corrupted, strict=True)
    assert losses == pytest.approx([max(0.0, 0.5 + distance(network, a) - distance(network, b)) for a, b in pairs])
    assert any(losses)


def distance(network: TransE, fact: Sequence[int]) -> float:
    """Return |E(s) + E(r) - E(o)|, E(s) and E(o) of length 1."""
    entities, relations = (table.weight.detach() for table in (network.entities, network.relations))
    subject, target = (entities[row] / entities[row].norm() for row in (fact[0], fact[2]))
    return float((subject + relations[fact[1]] - target).norm())


def test_a_fact_far_below_the_margin_costs_nothing() -> None:
    network = TransE(3, 1, dim=2)
    task = TranslatingTask(network, np.array([[0, 0, 1]]), margin=-10.0)

    assert task.loss(np.array([0])).tolist() == [0.0]


def test_transe_must_be_trained_first(sample_kb: KnowledgeBase, splits: Splits, tmp_path: Path) -> None:
    settings = change_settings(profile_settings("best", SUBJECT, "transe"), SMALL)

    with pytest.raises(ModelMissing, match="no trained model here"):
        train(sample_kb, splits, part=SUBJECT, name="transe", settings=settings, models=tmp_path)


def test_vectors_of_another_knowledge_base_are_refused(tiny_memory: KnowledgeBase, models: Path) -> None:
    with pytest.raises(CheckpointMismatch, match="its entities are those of a knowledge base with digest"):
        make_subject_scorer("random", tiny_memory, models=models)


def test_a_query_uses_them(sample_memory: Answerer, models: Path) -> None:
    result = Answerer(sample_memory.kb, models=models).query("who wrote it", subject="transe")

    assert all("subject" in found.parts for found in result.candidates)


def test_subjects_and_objects_are_corrupted_alike() -> None:
    network = TransE(3, 1, dim=2)
    with torch.no_grad():
        network.entities.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
        network.relations.weight.zero_()
    task = TranslatingTask(network, np.array([[0, 0, 1]] * 200), margin=9.0)
    torch.manual_seed(1)

    losses = task.loss(np.arange(200)).tolist()

    near, apart = 2**0.5, 2.0  # from the first entity to the second, and to the third
    of_subjects = [9 + near - distance for distance in (near, 0.0, near)]
    of_objects = [9 + near - distance for distance in (0.0, near, apart)]
    assert {round(loss, 4) for loss in losses} == {round(loss, 4) for loss in (*of_subjects, *of_objects)}
    assert sum(loss == pytest.approx(of_objects[2], abs=1e-4) for loss in losses) in range(20, 50)
